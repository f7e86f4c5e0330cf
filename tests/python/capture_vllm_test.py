"""The hook of kv.capture in vLLM itself, on the CPU: FlashAttentionImpl with its metadata, its checks and its cache [block, head, slot,
2 * dim]. A stand-in takes the place of the compiled attention, which only a GPU runs. Skipped where vLLM cannot be imported."""
import types

import numpy as np
import pytest

import kvscope as kv
from capture_test import attention
from kvscope.__main__ import main

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
try:
    from vllm.v1.attention.backends import flash_attn
except ImportError as error:
    pytest.skip(f"vLLM cannot be imported ({error}): tests/outside/engines.sh installs it", allow_module_level=True)

HEADS, KV_HEADS, DIMS, PAGE, BLOCKS = 8, 2, 64, 16, 24
LENGTHS, NEW = [37, 1, 90, 16], [5, 1, 1, 16]


def compiled(wrong_scale=1.0):
    """flash_attn_varlen_func: the attention of its arguments."""
    def function(q, k, v, out, cu_seqlens_q, max_seqlen_q, seqused_k, max_seqlen_k, softmax_scale, causal, block_table, window_size,
                 softcap, s_aux=None, alibi_slopes=None, **rest):
        assert causal and alibi_slopes is None and max_seqlen_k == max(LENGTHS) and max_seqlen_q == max(NEW)
        left = -1 if window_size is None else window_size[0]
        for b, length in enumerate(seqused_k.tolist()):
            first, last = cu_seqlens_q[b:b + 2].tolist()
            blocks = block_table[b, :-(-length // PAGE)].long()
            keys, values = (pool[blocks].float().reshape(-1, KV_HEADS, DIMS)[:length].numpy() for pool in (k, v))
            o, _ = attention(q[first:last].float().numpy(), keys, values, softmax_scale * wrong_scale, left=left, cap=softcap,
                             **({} if s_aux is None else {"sinks": s_aux.numpy()}))
            out[first:last] = torch.from_numpy(o).to(out.dtype)
        return out
    return function


def call(monkeypatch, folder, wrong_scale=1.0, **options):
    """One call of a layer of vLLM; the capture."""
    # Both names exist only where vLLM finds a CUDA device: without it, nothing is imported under them.
    monkeypatch.setattr(flash_attn, "flash_attn_varlen_func", compiled(wrong_scale), raising=False)
    monkeypatch.setattr(flash_attn, "get_flash_attn_version", lambda **_: 3)
    monkeypatch.setattr(flash_attn, "flash_attn_supports_sinks", lambda: True, raising=False)
    random = np.random.default_rng(11)
    impl = flash_attn.FlashAttentionImpl(HEADS, DIMS, DIMS**-0.5, KV_HEADS, None, options.pop("sliding_window", None), "auto",
                                         **options)
    pages = [-(-length // PAGE) for length in LENGTHS]
    order = random.permutation(BLOCKS)
    table = np.full((len(LENGTHS), max(pages) + 1), order[-1], np.int32)
    for row, own in zip(table, np.split(order[:sum(pages)], np.cumsum(pages)[:-1])):
        row[:len(own)] = own
    cache = np.full((BLOCKS, KV_HEADS, PAGE, 2 * DIMS), np.nan, np.float32)
    cache[order[:sum(pages)]] = random.standard_normal((sum(pages), KV_HEADS, PAGE, 2 * DIMS))
    starts = np.concatenate([[0], np.cumsum(NEW)]).astype(np.int32)
    tokens, padding = int(starts[-1]), 3
    metadata = flash_attn.FlashAttentionMetadata(
        num_actual_tokens=tokens, max_query_len=max(NEW), query_start_loc=torch.from_numpy(starts), max_seq_len=max(LENGTHS),
        seq_lens=torch.tensor(LENGTHS, dtype=torch.int32), block_table=torch.from_numpy(table),
        slot_mapping=torch.zeros(tokens, dtype=torch.int64))
    one = torch.ones(())
    layer = types.SimpleNamespace(layer_name="model.layers.5.self_attn.attn", _q_scale=one, _k_scale=one, _v_scale=one)
    q = torch.from_numpy(random.standard_normal((tokens + padding, HEADS, DIMS))).bfloat16()
    k, v = (torch.from_numpy(random.standard_normal((tokens + padding, KV_HEADS, DIMS))).bfloat16() for _ in range(2))
    with kv.capture.to(folder) as capture:
        capture.vllm()
        impl.forward(layer, q, k, v, torch.from_numpy(cache).bfloat16(), metadata, torch.full_like(q, float("nan")))
    return capture


@pytest.mark.parametrize("options", [{}, {"sliding_window": 20, "logits_soft_cap": 5.0},
                                     {"sinks": torch.linspace(-1, 2, HEADS)}], ids=["plain", "window and cap", "sinks"])
def test_calls_of_its_flash_attention_are_kept_and_pass(monkeypatch, tmp_path, options):
    capture = call(monkeypatch, tmp_path, **options)
    assert (capture.seen, capture.kept) == (1, 1), capture
    (kept,) = kv.capture.calls(tmp_path)
    assert kept.layer == 5 and kept.function == "FlashAttentionImpl.forward"
    assert main(["replay", str(tmp_path)]) == 0


def test_a_wrong_scale_behind_its_flash_attention_is_named_by_replay(monkeypatch, tmp_path, capsys):
    assert call(monkeypatch, tmp_path, wrong_scale=DIMS**0.5).kept == 1
    assert main(["replay", str(tmp_path)]) == 1
    assert "the scores are not multiplied by the scale" in capsys.readouterr().out


def test_a_profiling_call_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setattr(flash_attn, "get_flash_attn_version", lambda **_: 3)
    impl = flash_attn.FlashAttentionImpl(HEADS, DIMS, DIMS**-0.5, KV_HEADS, None, None, "auto")
    layer = types.SimpleNamespace(layer_name="model.layers.5.self_attn.attn")
    with kv.capture.to(tmp_path) as capture:
        capture.vllm()
        impl.forward(layer, *(torch.ones(2, heads, DIMS) for heads in (HEADS, KV_HEADS, KV_HEADS)), None, None,
                     torch.ones(2, HEADS, DIMS))
    assert capture.left == {"a profiling call, without metadata": 1}
