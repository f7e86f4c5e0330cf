"""The hook of kv.capture in SGLang itself, on the CPU: its torch-native backend computes the attention from its own pools, batch and
layer. Skipped where SGLang cannot be imported."""
import types

import numpy as np
import pytest

import kvscope as kv
from kvscope.__main__ import main

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
try:
    from sglang.srt.layers.attention import torch_native_backend
    from sglang.srt.layers.radix_attention import RadixAttention
    from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, ReqToTokenPool
    from sglang.srt.model_executor.forward_batch_info import ForwardBatch, ForwardMode
except ImportError as error:
    pytest.skip(f"SGLang cannot be imported ({error}): tests/outside/engines.sh installs it", allow_module_level=True)

HEADS, KV_HEADS, DIMS, SLOTS, LAYERS = 4, 2, 32, 96, 2
LENGTHS, NEW = [21, 1, 40], [3, 1, 5]


def batch_of(mode, random):
    """A backend with filled pools, and a batch of SGLang whose last tokens are new."""
    pool = MHATokenToKVPool(SLOTS, 1, torch.float16, KV_HEADS, DIMS, LAYERS, "cpu", False)
    requests = ReqToTokenPool(4, 64, "cpu", False)
    order = random.permutation(np.arange(1, SLOTS))
    owned = np.split(order[:sum(LENGTHS)], np.cumsum(LENGTHS)[:-1])
    rows = [3, 1, 2]
    for row, slots in zip(rows, owned):
        requests.req_to_token[row, :len(slots)] = torch.as_tensor(slots.astype(np.int32))
    for layer in range(LAYERS):
        for buffer in (pool.get_key_buffer(layer), pool.get_value_buffer(layer)):
            buffer.fill_(float("nan"))  # slots that no request holds
            buffer[torch.as_tensor(order[:sum(LENGTHS)])] = torch.as_tensor(
                random.standard_normal((sum(LENGTHS), KV_HEADS, DIMS))).half()
    new = NEW if mode is ForwardMode.EXTEND else [1] * len(LENGTHS)
    written = torch.as_tensor(np.concatenate([slots[len(slots) - n:] for slots, n in zip(owned, new)]))
    fields = dict(forward_mode=mode, batch_size=len(LENGTHS), input_ids=torch.zeros(sum(new), dtype=torch.int64),
                  req_pool_indices=torch.tensor(rows), seq_lens=torch.tensor(LENGTHS), out_cache_loc=written,
                  seq_lens_sum=sum(LENGTHS))
    if mode is ForwardMode.EXTEND:
        fields |= dict(extend_seq_lens=torch.tensor(new), extend_prefix_lens=torch.tensor(LENGTHS) - torch.tensor(new))
    backend = torch_native_backend.TorchNativeAttnBackend(
        types.SimpleNamespace(device="cpu", req_to_token_pool=requests, token_to_kv_pool=pool))
    return backend, ForwardBatch(**fields), sum(new)


def call(folder, mode=ForwardMode.DECODE, **options):
    """One call of layer 1; the capture."""
    random = np.random.default_rng(7)
    backend, batch, tokens = batch_of(mode, random)
    backend.init_forward_metadata(batch)
    layer = RadixAttention(HEADS, DIMS, DIMS**-0.5, KV_HEADS, 1, **options)
    q, k, v = (torch.as_tensor(random.standard_normal((tokens, heads * DIMS))).half() for heads in (HEADS, KV_HEADS, KV_HEADS))
    with kv.capture.to(folder) as capture:
        capture.sglang()
        backend.forward(q, k.view(-1, KV_HEADS, DIMS), v.view(-1, KV_HEADS, DIMS), layer, batch)
    return capture


@pytest.mark.parametrize("mode", [ForwardMode.DECODE, ForwardMode.EXTEND])
@pytest.mark.parametrize("options", [{}, {"sliding_window_size": 6}])
def test_calls_of_its_backend_are_kept_and_pass(tmp_path, mode, options):
    capture = call(tmp_path, mode, **options)
    assert (capture.seen, capture.kept) == (1, 1), capture
    (kept,) = kv.capture.calls(tmp_path)
    assert kept.layer == 1 and "forward" in kept.function
    assert main(["replay", str(tmp_path)]) == 0


def test_a_missing_scale_in_its_backend_is_named_by_replay(monkeypatch, tmp_path, capsys):
    right = torch_native_backend.scaled_dot_product_attention
    monkeypatch.setattr(torch_native_backend, "scaled_dot_product_attention",
                        lambda *tensors, **rest: right(*tensors, **{**rest, "scale": 1.0}))
    assert call(tmp_path).kept == 1
    assert main(["replay", str(tmp_path)]) == 1
    assert "the scores are not multiplied by the scale" in capsys.readouterr().out
