"""kv.capture: hooks for backends by stand-in modules with the signatures of the real ones, limits, and replay.

The stand-ins compute attention with NumPy from the tensors that the real backends read: a wrong hook gives a wrong
golden output, which replay rejects.
"""
import functools
import json
import pathlib
import subprocess
import sys
import types

import numpy as np
import pytest

import kvscope as kv
from kvscope.__main__ import main

RNG = np.random.default_rng(11)


def attention(q, keys, values, scale, causal=True, left=-1, cap=0.0, sinks=None):
    """One sequence: q [T, Hq, D], keys and values [S, H, D], sinks [Hq] -> o [T, Hq, Dv], lse [T, Hq] in base 2."""
    rows, query_heads = q.shape[:2]
    o, lse = np.zeros((rows, query_heads, values.shape[2])), np.zeros((rows, query_heads))
    for t in range(rows):
        at = len(keys) - rows + t
        last = at + 1 if causal else len(keys)
        first = max(0, at - left) if left >= 0 else 0
        for h in range(query_heads):
            group = h * keys.shape[1] // query_heads
            scores = scale * (keys[first:last, group].astype(np.float64) @ q[t, h].astype(np.float64))
            scores = cap * np.tanh(scores / cap) if cap else scores
            weights = np.exp(scores - scores.max())
            total = weights.sum() + (0 if sinks is None else np.exp(sinks[h] - scores.max()))
            o[t, h] = weights @ values[first:last, group] / total
            lse[t, h] = (scores.max() + np.log(total)) / np.log(2)
    return o.astype(np.float32), lse.astype(np.float32)


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


class FlashAttentionImpl:
    """The arguments of vLLM's; K and V of this step are in the cache already."""
    num_heads, scale, alibi_slopes, sliding_window, kv_cache_dtype = 4, 0.3, None, (-1, -1), "auto"
    logits_soft_cap, sinks, attn_type, wrong_page = 0, None, "decoder", False

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output=None, output_scale=None,
                output_block_scale=None):
        if attn_metadata is None:
            return output
        start = attn_metadata.query_start_loc
        for b, length in enumerate(attn_metadata.seq_lens):
            table = attn_metadata.block_table[b][::-1] if self.wrong_page and b == 1 else attn_metadata.block_table[b]
            pages = kv_cache[:, table].reshape(2, -1, *kv_cache.shape[3:])[:, :length]
            output[start[b]:start[b + 1]] = attention(query[start[b]:start[b + 1]], *pages, self.scale, sinks=self.sinks)[0].reshape(
                output[start[b]:start[b + 1]].shape)
        return output


def vllm_call(layer="model.layers.3.self_attn.attn"):
    """A decode and a prefill of 3 queries, padded to 6 tokens; blocks of no sequence hold NaN."""
    cache = np.full((2, 40, 4, 2, 8), np.nan, np.float32)
    table = np.array([[17, 2, 31], [9, 30, 765]], np.int32)  # 765: behind the sequence's pages
    cache[:, [17, 2, 31, 9, 30]] = some(2, 5, 4, 2, 8)
    metadata = types.SimpleNamespace(num_actual_tokens=4, seq_lens=np.array([10, 8], np.int32), causal=True,
                                     query_start_loc=np.array([0, 1, 4], np.int32), block_table=table)
    return dict(layer=types.SimpleNamespace(layer_name=layer), query=some(6, 4, 8), key=None, value=None,
                kv_cache=cache, attn_metadata=metadata, output=np.full((6, 32), np.nan, np.float32))


class VllmModule(types.ModuleType):
    FlashAttentionImpl = FlashAttentionImpl


def forward(impl, call):
    """As the engine calls it; the stand-in indexes a table of pages that exist."""
    return impl.forward(**call)


@pytest.fixture
def vllm(monkeypatch):
    name = "vllm.v1.attention.backends.flash_attn"
    parts = name.split(".")
    for i in range(1, len(parts)):
        monkeypatch.setitem(sys.modules, ".".join(parts[:i]), types.ModuleType(parts[i - 1]))
    monkeypatch.setitem(sys.modules, name, VllmModule(name))
    # The table entry behind the pages is not read by a kernel; NumPy would index with it.
    monkeypatch.setattr(FlashAttentionImpl, "wrong_page", False)
    return FlashAttentionImpl()


def call_in_bounds(**options):
    call = vllm_call(**options)
    call["attn_metadata"].block_table = call["attn_metadata"].block_table % 40
    return call


def test_calls_of_vllm_are_kept_and_pass(vllm, tmp_path, capsys):
    original = FlashAttentionImpl.__dict__["forward"]
    with kv.capture.to(tmp_path / "dumps") as capture:
        capture.vllm()
        forward(vllm, call_in_bounds())
        vllm.forward(**{**call_in_bounds(), "attn_metadata": None})
        assert (capture.seen, capture.kept) == (2, 1)
    assert FlashAttentionImpl.__dict__["forward"] is original
    about = json.loads((tmp_path / "dumps" / "000000_layer3" / "call.json").read_text())
    assert about["layer"] == 3 and about["blocks"] == [2, 9, 17, 30, 31] and about["function"].endswith("forward")
    problem = kv.Problem.load(tmp_path / "dumps" / "000000_layer3" / "inputs.safetensors")
    call, = kv.capture.calls(tmp_path / "dumps")
    assert call.verdict() and (call.layer, call.call, call.blocks) == (3, 0, about["blocks"])
    assert problem.about["blocks"] == 5 and problem.about["queries"] == 4
    np.testing.assert_array_equal(problem.lookup_table, [[2, 0, 4], [1, 3, -1]])
    assert main(["replay", str(tmp_path / "dumps")]) == 0
    assert "pass  000000_layer3" in capsys.readouterr().out and "1 left out: a profiling call" in repr(capture)


class LaterFlashAttentionImpl(FlashAttentionImpl):
    """vLLM 0.33: a cache [N, H, P, 2 * D] with the row of V after that of K, and an fp8 query with its scale."""
    head_size, dcp_world_size = 8, 1

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output, output_scale=None,
                output_block_scale=None):
        halves = np.stack([kv_cache.swapaxes(1, 2)[..., :8], kv_cache.swapaxes(1, 2)[..., 8:]])
        return super().forward(layer, query, key, value, halves, attn_metadata, output)


def later_call(**options):
    call = call_in_bounds(**options)
    call["kv_cache"] = np.concatenate(call["kv_cache"], axis=-1).swapaxes(1, 2).copy()
    vars(call["attn_metadata"]).update(mm_prefix_query_range_tensor=None, rswa_prefix_lens=None)
    return call


@pytest.fixture
def later_vllm(vllm, monkeypatch):
    monkeypatch.setattr(VllmModule, "FlashAttentionImpl", LaterFlashAttentionImpl)
    return LaterFlashAttentionImpl()


def test_calls_of_a_later_vllm_with_k_and_v_in_one_row_are_kept_and_pass(later_vllm, tmp_path):
    with kv.capture.to(tmp_path) as capture:
        capture.vllm()
        later_vllm.forward(**later_call())
    assert capture.kept == 1, capture
    call, = kv.capture.calls(tmp_path)
    assert call.verdict() and call.blocks == [2, 9, 17, 30, 31]


@pytest.mark.parametrize("of,name,value,reason", [
    ("metadata", "causal", np.array([True, False]), "differs between sequences"),
    ("metadata", "mm_prefix_query_range_tensor", np.zeros((4, 2)), "differs between sequences"),
    ("metadata", "rswa_prefix_lens", np.zeros(2), "differs between sequences"),
    ("impl", "dcp_world_size", 2, "split between devices"), ("impl", "kv_cache_dtype", "nvfp4", "type nvfp4"),
    ("impl", "head_size", 8, "")])
def test_calls_of_a_later_vllm_that_are_another_attention_are_left_out(later_vllm, tmp_path, monkeypatch, of, name, value, reason):
    call = later_call()
    if of == "impl":
        monkeypatch.setattr(LaterFlashAttentionImpl, name, value)
    plain = dict(vars(call["attn_metadata"]))
    with kv.capture.to(tmp_path) as capture:
        capture.vllm()
        if of == "metadata":
            setattr(call["attn_metadata"], name, value)
        later_vllm.forward(**call)
        vars(call["attn_metadata"]).update(plain)
    assert capture.kept == (0 if reason else 1) and (not reason or reason in repr(capture)), capture


def test_a_wrong_page_of_vllm_is_named_by_replay(vllm, tmp_path, capsys):
    vllm.wrong_page = True
    with kv.capture.to(tmp_path) as capture:
        capture.vllm()
        call = call_in_bounds()
        call["attn_metadata"].block_table[1] = [9, 30, 17]  # read from the back: block 17 of sequence 0 first
        forward(vllm, call)
    assert main(["replay", str(tmp_path), "--html", str(tmp_path / "page.html")]) == 1
    printed = capsys.readouterr().out
    assert "FAIL" in printed and "sequence 1" in printed and "0 of 1 calls pass" in printed
    assert "<svg" in (tmp_path / "page.html").read_text()


def test_sinks_of_vllm_are_kept(vllm, tmp_path):
    vllm.sinks = np.array([2, -1, 0.5, 3], np.float32)
    with kv.capture.to(tmp_path) as capture:
        capture.vllm()
        forward(vllm, call_in_bounds())
    assert capture.kept == 1 and main(["replay", str(tmp_path)]) == 0
    kept = kv.Problem.load(next(tmp_path.iterdir()) / "inputs.safetensors")
    assert kept.tensor("sinks").tolist() == vllm.sinks.tolist()


def test_every_nth_call_of_chosen_layers_within_the_size_limit(vllm, tmp_path):
    with kv.capture.to(tmp_path, every=3, layers=[0, 2]) as capture:
        capture.vllm()
        for step in range(7):
            for layer in range(4):
                forward(vllm, call_in_bounds(layer=f"layers.{layer}.attn"))
    assert capture.seen == 28 and capture.kept == 6 and sorted(p.name for p in tmp_path.iterdir()) == [
        f"{i:06}_layer{layer}" for i, layer in enumerate([0, 2] * 3)]
    assert capture.left == {"another layer": 14, "between every 3 calls of a layer": 8}
    one = capture.bytes // 6
    with kv.capture.to(tmp_path / "small", max_bytes=2 * one) as small:
        small.vllm()
        for _ in range(4):
            forward(vllm, call_in_bounds())
    assert small.kept == 2 and small.bytes == 2 * one and small.left == {f"past max_bytes ({2 * one:,})": 2}


def test_calls_of_earlier_runs_and_of_other_processes_stay(vllm, tmp_path):
    (tmp_path / "000004_layer3").mkdir()
    (tmp_path / "000004_layer3" / "mine").touch()
    for names in (["000005_layer3"], ["000006_layer3", "000008_layer3"]):
        with kv.capture.to(tmp_path) as capture:
            capture.vllm()
            for name in names:
                forward(vllm, call_in_bounds())
                assert (tmp_path / name / "call.json").exists()
                if name == "000006_layer3":  # another process keeps a call under the next name
                    (tmp_path / "000007_layer3").mkdir()
                    (tmp_path / "000007_layer3" / "theirs").touch()
    assert (tmp_path / "000004_layer3" / "mine").exists() and (tmp_path / "000007_layer3" / "theirs").exists()
    assert len(kv.capture.calls(tmp_path)) == 3 and not list(tmp_path.glob("*.part"))


def test_a_call_that_cannot_be_kept_is_counted_and_does_not_raise(vllm, tmp_path):
    with kv.capture.to(tmp_path) as capture:
        capture.vllm()
        call = call_in_bounds()
        call["attn_metadata"].seq_lens = np.array([10, 8], np.float32)
        call["output"] = call["output"].reshape(6, 4, 8)
        with pytest.raises(Exception):
            forward(vllm, call)  # the backend's own error is raised
        call["attn_metadata"].seq_lens = np.array([10, 8], np.int32)
        del call["layer"].layer_name
        assert forward(vllm, call) is call["output"]
    assert capture.kept == 0 and any("layer_name" in reason for reason in capture.left)


class DeviceTensor:
    """A tensor of another device: NumPy cannot read it, and only what cpu() copies comes to the host."""
    copied = 0
    device = types.SimpleNamespace(type="cuda")

    def __init__(self, values):
        self.values, self.shape, self.nbytes = values, values.shape, values.nbytes

    def __getitem__(self, key):
        return DeviceTensor(self.values[key])

    def index_select(self, axis, rows):
        return DeviceTensor(np.take(self.values, rows, axis=axis))

    def reshape(self, *shape):
        return DeviceTensor(self.values.reshape(shape))

    def detach(self):
        return self

    def cpu(self):
        DeviceTensor.copied += self.values.nbytes
        return self.values

    def __array__(self, *_):
        raise TypeError("can't convert a device tensor to numpy")


def test_only_the_blocks_that_sequences_hold_are_copied_from_a_device(vllm, tmp_path, monkeypatch):
    torch = types.SimpleNamespace(as_tensor=lambda rows, device: rows, Tensor=DeviceTensor)
    call = call_in_bounds()
    FlashAttentionImpl.forward(vllm, **call)
    call = {name: DeviceTensor(value) if isinstance(value, np.ndarray) else value for name, value in call.items()}
    for name in ("seq_lens", "query_start_loc", "block_table"):
        setattr(call["attn_metadata"], name, DeviceTensor(getattr(call["attn_metadata"], name)))
    monkeypatch.setattr(FlashAttentionImpl, "forward", lambda self, layer, query, key, value, kv_cache, attn_metadata,
                        output=None: output)
    monkeypatch.setattr("kvscope._arrays._is_torch", lambda value: False)
    monkeypatch.setitem(sys.modules, "torch", torch)
    DeviceTensor.copied = 0
    with kv.capture.to(tmp_path) as capture:
        capture.vllm()
        vllm.forward(**call)
    monkeypatch.delitem(sys.modules, "torch")
    assert capture.kept == 1, capture
    assert main(["replay", str(tmp_path)]) == 0
    assert DeviceTensor.copied < 2 * call["kv_cache"].values.nbytes * 5 / 40 + 4096
    kept = call["kv_cache"].values.nbytes * 5 // 40 + call["query"].values[:4].nbytes + call["output"].values[:4].nbytes
    assert 0 <= capture.bytes - kept < 100  # the table, the lengths and the offsets
    # A call past the limit copies indices only.
    DeviceTensor.copied = 0
    monkeypatch.setitem(sys.modules, "torch", torch)
    with kv.capture.to(tmp_path, max_bytes=100) as capture:
        capture.vllm()
        vllm.forward(**call)
    assert capture.kept == 0 and DeviceTensor.copied < 200


E4M3 = np.array([(-1 if code & 128 else 1) * (np.nan if code & 127 == 127 else
                                              code % 8 * 2.0**-9 if code >> 3 & 15 == 0 else
                                              (8 + code % 8) * 2.0**((code >> 3 & 15) - 10)) for code in range(256)])


class Query(np.ndarray):
    """A query with PyTorch's conversion to another type: its values are those of e4m3."""

    def to(self, dtype):
        assert str(dtype) == "torch.float8_e4m3fn"
        codes = np.abs(np.asarray(self)[..., None] - np.nan_to_num(E4M3, nan=1e9)).argmin(-1)
        return E4M3[codes].astype(np.float32)


class AttentionBackend:
    """SGLang's base class: forward calls forward_decode or forward_extend. The pools are in the batch or in the backend."""

    def forward(self, q, k, v, layer, forward_batch, save_kv_cache=True, **kwargs):
        owner = self if hasattr(self, "token_to_kv_pool") else forward_batch
        pool, slots = owner.token_to_kv_pool, owner.req_to_token_pool.req_to_token
        decode, out, first = forward_batch.forward_mode.is_decode(), [], 0
        for b, length in enumerate(forward_batch.seq_lens):
            rows = 1 if decode else forward_batch.extend_seq_lens[b]
            at = slots[forward_batch.req_pool_indices[b], :length]
            keys, values = pool.get_key_buffer(layer.layer_id)[at], pool.get_value_buffer(layer.layer_id)[at]
            if hasattr(pool, "dtype"):
                keys, values = (E4M3[x] * (1 if scale is None else np.reshape(scale, (-1, 1)))
                                for x, scale in ((keys, layer.k_scale), (values, layer.v_scale)))
            own = q.reshape(len(q), 4, 8)[first:first + rows]
            own = own.to(self.kv_cache_dtype) if getattr(self, "kv_cache_dtype_str", "auto") != "auto" else own
            out.append(attention(own, keys, values, layer.scaling, left=layer.sliding_window_size, cap=layer.logit_cap,
                                 sinks=kwargs.get("sinks"))[0])
            first += rows
        return np.concatenate(out).reshape(len(q), -1)


def sglang_call(monkeypatch, decode=True, window=-1, cap=0.0, in_backend=False):
    """A backend of the stand-in, and the arguments of a call of its forward."""
    module = types.ModuleType("base_attn_backend")
    module.AttentionBackend = AttentionBackend
    monkeypatch.setitem(sys.modules, "base_attn_backend", module)
    buffers = some(2, 64, 2, 8)
    table = np.zeros((5, 16), np.int32)
    table[3, :9], table[1, :6] = RNG.permutation(64)[:9], RNG.permutation(64)[:6]
    free = np.setdiff1d(np.arange(64), np.concatenate([table[3, :9], table[1, :6]]))
    buffers[:, free] = np.nan
    pool = types.SimpleNamespace(get_key_buffer=lambda layer: buffers[0], get_value_buffer=lambda layer: buffers[1])
    extend = np.array([4, 2], np.int32)
    pools = dict(token_to_kv_pool=pool, req_to_token_pool=types.SimpleNamespace(req_to_token=table))
    backend = AttentionBackend()
    vars(backend).update(pools if in_backend else {})
    batch = types.SimpleNamespace(
        **({} if in_backend else pools), req_pool_indices=np.array([3, 1]), seq_lens=np.array([9, 6]), extend_seq_lens=extend,
        forward_mode=types.SimpleNamespace(is_decode=lambda: decode))
    layer = types.SimpleNamespace(layer_id=7, tp_q_head_num=4, qk_head_dim=8, scaling=0.35, logit_cap=cap,
                                  sliding_window_size=window, is_cross_attention=False)
    return backend, (some(2 if decode else 6, 32), None, None, layer, batch)


@pytest.mark.parametrize("in_backend", [False, True])
@pytest.mark.parametrize("decode,window,cap", [(True, -1, 0.0), (False, -1, 0.0), (True, 3, 5.0)])
def test_calls_of_sglang_are_kept_and_pass(monkeypatch, tmp_path, decode, window, cap, in_backend):
    backend, arguments = sglang_call(monkeypatch, decode, window, cap, in_backend)
    with kv.capture.to(tmp_path) as capture:
        capture.sglang("base_attn_backend")
        backend.forward(*arguments)
    assert capture.kept == 1, capture
    assert main(["replay", str(tmp_path)]) == 0


def sglang_fp8_call(monkeypatch, decode=True, k_scale=None, v_scale=None, flash=True):
    """A call on a pool of e4m3 codes: get_key_buffer returns a view of the stored bytes. `flash`: FlashAttention's backend,
    which converts q to the type of the cache."""
    backend, (q, k, v, layer, batch) = sglang_call(monkeypatch, decode)
    pool = batch.token_to_kv_pool
    codes = np.random.default_rng(5).integers(0x28, 0x48, (2, 64, 2, 8)).astype(np.uint8)
    pool.get_key_buffer, pool.get_value_buffer = lambda layer: codes[0], lambda layer: codes[1]
    pool.dtype, pool.store_dtype = "torch.float8_e4m3fn", "torch.uint8"
    layer.k_scale, layer.v_scale = k_scale, v_scale
    if flash:
        backend.kv_cache_dtype_str, backend.kv_cache_dtype, q = "fp8_e4m3", "torch.float8_e4m3fn", q.view(Query)
    return backend, (q, k, v, layer, batch)


@pytest.mark.parametrize("decode,flash", [(True, True), (False, True), (True, False)])
@pytest.mark.parametrize("k_scale,v_scale", [
    (None, None), (np.float32(0.5), np.float32(0.125)), (np.array([0.5], np.float32), np.array([3], np.float32)),
    (np.array([0.5, 0.25], np.float32), np.array([2, 0.75], np.float32))], ids=["none", "numbers", "layer", "heads"])
def test_fp8_pools_of_sglang_are_kept_with_their_scales(monkeypatch, tmp_path, decode, flash, k_scale, v_scale):
    backend, arguments = sglang_fp8_call(monkeypatch, decode, k_scale, v_scale, flash)
    with kv.capture.to(tmp_path) as capture:
        capture.sglang("base_attn_backend")
        backend.forward(*arguments)
    assert capture.kept == 1, capture
    kept = kv.Problem.load(next(tmp_path.iterdir()) / "inputs.safetensors")
    if k_scale is not None:
        assert kept.tensor("k_scale").reshape(-1).tolist() == np.reshape(k_scale, -1).tolist()
    assert main(["replay", str(tmp_path)]) == 0


def test_an_fp8_kernel_of_sglang_without_the_scale_of_v_fails(monkeypatch, tmp_path, capsys):
    backend, arguments = sglang_fp8_call(monkeypatch, k_scale=np.float32(0.5), v_scale=np.float32(0.25))
    whole = AttentionBackend.forward
    monkeypatch.setattr(AttentionBackend, "forward", lambda self, q, k, v, layer, forward_batch: 4 * whole(
        self, q, k, v, layer, forward_batch))
    with kv.capture.to(tmp_path) as capture:
        capture.sglang("base_attn_backend")
        backend.forward(*arguments)
    assert main(["replay", str(tmp_path)]) == 1
    assert "0 of 1 calls pass" in capsys.readouterr().out


@pytest.mark.parametrize("change,reason", [
    (dict(decode=False, flash=False), "new keys that the kernel reads before they are quantized"),
    (dict(k_scale=np.float32(1)), "a scale for only one of K and V"),
    (dict(k_scale=np.ones(3, np.float32), v_scale=np.ones(3, np.float32)), "3 scales for 2 KV heads")])
def test_fp8_calls_of_sglang_that_read_something_else_are_left_out(monkeypatch, tmp_path, change, reason):
    scales = {name: change.get(name) for name in ("k_scale", "v_scale")}
    if np.size(scales["k_scale"]) == 3:
        scales = {name: np.ones(1, np.float32) for name in scales}
    backend, (q, k, v, layer, batch) = sglang_fp8_call(monkeypatch, change.get("decode", True), flash=change.get("flash", True),
                                                       **scales)
    if "k_scale" in change:
        monkeypatch.setattr(AttentionBackend, "forward", lambda self, q, k, v, layer, forward_batch: np.zeros((2, 32), np.float32))
        layer.k_scale, layer.v_scale = change.get("k_scale"), change.get("v_scale")
    with kv.capture.to(tmp_path) as capture:
        capture.sglang("base_attn_backend")
        backend.forward(q, k, v, layer, batch)
    assert capture.left == {reason: 1}, capture


def test_the_type_of_a_pool_of_amd_is_left_out(monkeypatch, tmp_path):
    backend, arguments = sglang_fp8_call(monkeypatch)
    arguments[4].token_to_kv_pool.dtype = "torch.float8_e4m3fnuz"
    with kv.capture.to(tmp_path) as capture:
        capture.sglang("base_attn_backend")
        backend.forward(*arguments)
    assert capture.left == {"a cache of type e4m3fnuz": 1}, capture


@pytest.mark.parametrize("name", ["full_to_swa_index_mapping", "translate_loc_from_full_to_swa"])
def test_a_pool_of_sglang_with_other_slots_for_windows_is_left_out(monkeypatch, tmp_path, name):
    backend, arguments = sglang_call(monkeypatch, in_backend=True)
    setattr(backend.token_to_kv_pool, name, lambda slots: slots)
    with kv.capture.to(tmp_path) as capture:
        capture.sglang("base_attn_backend")
        backend.forward(*arguments)
    assert capture.left == {"a pool with other slots for layers with a window": 1}


class BatchDecodeWithPagedKVCacheWrapper:
    sinks = None

    def __init__(self, float_workspace_buffer=None, kv_layout="NHD"):
        self._kv_layout = kv_layout

    def plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size,
             pos_encoding_mode="NONE", window_left=-1, logits_soft_cap=None, sm_scale=None):
        self.planned = (indptr, indices, last_page_len, page_size, sm_scale or head_dim ** -0.5, window_left,
                        logits_soft_cap or 0.0)

    def run(self, q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, return_lse=False):
        indptr, indices, last, page, scale, left, cap = self.planned
        return self.compute(q, paged_kv_cache, np.arange(len(q) + 1), True, scale * (k_scale or 1), left, cap,
                            v_scale or 1, return_lse)

    def compute(self, q, cache, rows, causal, scale, left, cap, v_scale, return_lse):
        indptr, indices, last, page = self.planned[:4]
        outs = []
        for b in range(len(last)):
            blocks = indices[indptr[b]:indptr[b + 1]]
            pages = cache[blocks] if self._kv_layout == "NHD" else cache[blocks].swapaxes(2, 3)
            tokens = (len(blocks) - 1) * page + last[b]
            keys, values = pages.swapaxes(0, 1).reshape(2, -1, *pages.shape[3:])[:, :tokens]
            outs.append(attention(q[rows[b]:rows[b + 1]], keys, v_scale * values, scale, causal, left, cap, self.sinks))
        o, lse = (np.concatenate(parts) for parts in zip(*outs))
        return (o, lse) if return_lse else o


class BatchPrefillWithPagedKVCacheWrapper(BatchDecodeWithPagedKVCacheWrapper):
    def plan(self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads,
             head_dim_qk, page_size, head_dim_vo=None, custom_mask=None, packed_custom_mask=None, causal=False,
             pos_encoding_mode="NONE", sm_scale=None, window_left=-1, logits_soft_cap=None):
        self.planned = (paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, page_size)
        self.rest = (qo_indptr, causal, sm_scale or head_dim_qk ** -0.5, window_left, logits_soft_cap or 0.0)

    def run(self, q, paged_kv_cache, *args, k_scale=None, v_scale=None, return_lse=False):
        return self.compute(q, paged_kv_cache, *self.rest, v_scale or 1, return_lse)


@pytest.mark.parametrize("kind,options,more", [
    ("decode", {}, {}), ("decode", dict(window_left=3, logits_soft_cap=4.0, sm_scale=0.2), dict(return_lse=True)),
    ("decode", {}, dict(k_scale=0.5, v_scale=2.0)), ("HND", {}, dict(return_lse=True)),
    ("prefill", dict(causal=True), dict(return_lse=True)), ("prefill", dict(causal=False), {})])
def test_calls_of_flashinfer_are_kept_and_pass(monkeypatch, tmp_path, kind, options, more):
    module = types.ModuleType("flashinfer")
    module.BatchDecodeWithPagedKVCacheWrapper = BatchDecodeWithPagedKVCacheWrapper
    module.BatchPrefillWithPagedKVCacheWrapper = BatchPrefillWithPagedKVCacheWrapper
    monkeypatch.setitem(sys.modules, "flashinfer", module)
    indptr, indices, last = np.array([0, 3, 5], np.int32), np.array([7, 1, 12, 3, 9], np.int32), np.array([2, 4], np.int32)
    cache = np.full((16, 2, 2, 4, 8) if kind == "HND" else (16, 2, 4, 2, 8), np.nan, np.float32)
    cache[indices] = some(5, *cache.shape[1:])
    with kv.capture.to(tmp_path) as capture:
        capture.flashinfer()
        if kind == "prefill":
            wrapper = BatchPrefillWithPagedKVCacheWrapper()
            wrapper.plan(np.array([0, 3, 4], np.int32), indptr, indices, last, 4, 2, 8, 4, **options)
        else:
            wrapper = BatchDecodeWithPagedKVCacheWrapper(None, "HND" if kind == "HND" else "NHD")
            wrapper.plan(indptr, indices, last, 4, 2, 8, 4, **options)
        wrapper.run(some(4 if kind == "prefill" else 2, 4, 8), cache, **more)
        BatchDecodeWithPagedKVCacheWrapper.__init__(wrapper)
    assert (capture.seen, capture.kept) == (1, 1), capture
    g = kv.golden(kv.Problem.load(tmp_path / "000000" / "inputs.safetensors"))
    assert np.isfinite(g.o).all()
    assert main(["replay", str(tmp_path), "--accuracy", "fast"]) == 0


class MaskedPrefillWrapper(BatchPrefillWithPagedKVCacheWrapper):
    """A custom mask replaces the causal one: the kernel reads the bits if there are both."""

    def plan(self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads,
             head_dim_qk, page_size, head_dim_vo=None, custom_mask=None, packed_custom_mask=None, causal=False,
             pos_encoding_mode="NONE", sm_scale=None, window_left=-1, logits_soft_cap=None):
        super().plan(qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads,
                     head_dim_qk, page_size)
        self.bits, self.values = packed_custom_mask, custom_mask

    def run(self, q, paged_kv_cache, *args, k_scale=None, v_scale=None, return_lse=False):
        (indptr, indices, last, page), rows = self.planned, self.rest[0]
        out, at = [], 0
        for b, tokens in enumerate((np.diff(indptr) - 1) * page + last):
            keys, values = paged_kv_cache[indices[indptr[b]:indptr[b + 1]]].swapaxes(0, 1).reshape(2, -1, 2, 8)[:, :tokens]
            size = (rows[b + 1] - rows[b]) * tokens
            if self.bits is not None:
                own = np.unpackbits(self.bits[at:at + (size + 7) // 8], bitorder="little")[:size]
                at += (size + 7) // 8
            else:
                own = self.values[at:at + size]
                at += size
            for i, seen in enumerate(own.reshape(-1, tokens).astype(bool)):
                out.append(attention(q[rows[b] + i][None], keys[seen], values[seen], self.rest[2])[0])
        return np.concatenate(out)


@pytest.mark.parametrize("kind", ["values", "bits", "both"])
def test_custom_masks_of_flashinfer_are_kept_and_pass(monkeypatch, tmp_path, kind):
    module = types.ModuleType("flashinfer")
    module.BatchPrefillWithPagedKVCacheWrapper = MaskedPrefillWrapper
    monkeypatch.setitem(sys.modules, "flashinfer", module)
    indptr, indices, last = np.array([0, 3, 5], np.int32), np.array([7, 1, 12, 3, 9], np.int32), np.array([2, 3], np.int32)
    cache = np.full((16, 2, 4, 2, 8), np.nan, np.float32)
    cache[indices] = some(5, 2, 4, 2, 8)
    masks = [RNG.random((3, 10)) < 0.5, RNG.random((1, 7)) < 0.5]
    for mask in masks:
        mask[:, 2] = True
    bits = np.concatenate([np.packbits(mask.ravel(), bitorder="little") for mask in masks])
    values = np.concatenate([mask.ravel() for mask in masks])
    given = {"values": dict(custom_mask=values, causal=True), "bits": dict(packed_custom_mask=bits),
             "both": dict(custom_mask=~values, packed_custom_mask=bits)}[kind]
    for more in ({}, dict(window_left=3)):
        wrapper = MaskedPrefillWrapper()
        with kv.capture.to(tmp_path) as capture:
            capture.flashinfer(names=["BatchPrefillWithPagedKVCacheWrapper"])
            wrapper.plan(np.array([0, 3, 4], np.int32), indptr, indices, last, 4, 2, 8, 4, **given, **more)
            wrapper.run(some(4, 4, 8), cache)
        assert capture.left == ({"a window together with a custom mask": 1} if more else {}), capture
    assert main(["replay", str(tmp_path)]) == 0


class LaterDecodeWrapper(BatchDecodeWithPagedKVCacheWrapper):
    """FlashInfer 0.7: `plan` names no optional argument, and its second names hold the functions themselves."""

    def plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size,
             *deprecated_positional_args, **kwargs):
        names = ("pos_encoding_mode", "window_left", "logits_soft_cap", "q_data_type", "kv_data_type", "o_data_type", "data_type",
                 "sm_scale")
        options = {**kwargs, **dict(zip(names, deprecated_positional_args))}
        self.planned = (indptr, indices, last_page_len, page_size, options.get("sm_scale") or head_dim ** -0.5,
                        options.get("window_left", -1), options.get("logits_soft_cap") or 0.0)

    begin_forward = plan

    def run(self, q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, out=None, lse=None, return_lse=False,
            lse_base="log2", lse_layout="NH", window_left=None, sinks=None, kv_cache_sf=None,
            skip_softmax_threshold_scale_factor=None):
        indptr, indices, last, page, scale, left, cap = self.planned
        rows, self.sinks = np.arange(len(last) + 1) * (len(q) // len(last)), sinks
        o, base_2 = self.compute(q, paged_kv_cache, rows, True, scale * (q_scale or 1) * (k_scale or 1), left, cap, v_scale or 1, True)
        base_2 = base_2 * np.float32(np.log(2)) if lse_base == "ln" else base_2
        return (o, base_2.T.copy() if lse_layout == "HN" else base_2) if return_lse else o

    run_return_lse = functools.partialmethod(run, return_lse=True)


@pytest.mark.parametrize("plan,positions,options,run,more,queries", [
    ("plan", (), dict(window_left=3, logits_soft_cap=4.0, sm_scale=0.2), "run", {}, 2),
    ("plan", ("NONE", 3, 4.0, "float32", None, None, None, 0.2), {}, "run", dict(q_scale=0.5), 2),
    ("begin_forward", (), dict(sm_scale=0.3), "run_return_lse", {}, 2),
    ("plan", (), {}, "run_return_lse", dict(lse_base="ln", lse_layout="HN"), 2),
    ("plan", (), {}, "run", dict(sinks=np.array([2, -1, 0.5, 3], np.float32)), 2),
    ("plan", (), dict(q_len_per_req=3), "run", dict(return_lse=True), 6)])
def test_calls_of_a_later_flashinfer_are_kept_and_pass(monkeypatch, tmp_path, plan, positions, options, run, more, queries):
    module = types.ModuleType("flashinfer")
    module.BatchDecodeWithPagedKVCacheWrapper = LaterDecodeWrapper
    monkeypatch.setitem(sys.modules, "flashinfer", module)
    indptr, indices, last = np.array([0, 3, 5], np.int32), np.array([7, 1, 12, 3, 9], np.int32), np.array([2, 4], np.int32)
    cache = np.full((16, 2, 4, 2, 8), np.nan, np.float32)
    cache[indices] = some(5, *cache.shape[1:])
    wrapper, own = LaterDecodeWrapper(), dict(vars(LaterDecodeWrapper))
    with kv.capture.to(tmp_path) as capture:
        capture.flashinfer(names=["BatchDecodeWithPagedKVCacheWrapper"])
        getattr(wrapper, plan)(indptr, indices, last, 4, 2, 8, 4, *positions, **options)
        getattr(wrapper, run)(some(queries, 4, 8), cache, **more)
    assert (capture.seen, capture.kept) == (1, 1), capture
    assert dict(vars(LaterDecodeWrapper)) == own
    assert main(["replay", str(tmp_path)]) == 0


@pytest.mark.parametrize("options,arguments,more,reason", [
    (dict(window_right=2), (), {}, "a window to the right"),
    (dict(prefix_len_ptr=np.array([2], np.uint32)), (), {}, "several items in a prompt"), ({}, (1.0,), {}, "a custom kernel"),
    ({}, (), dict(kv_cache_sf=1), "NVFP4"), ({}, (), dict(skip_softmax_threshold_scale_factor=0.5), "skipped softmax")])
def test_calls_of_flashinfer_that_are_another_attention_are_left_out(monkeypatch, tmp_path, options, arguments, more, reason):
    module = types.ModuleType("flashinfer")
    module.BatchDecodeWithPagedKVCacheWrapper = LaterDecodeWrapper
    monkeypatch.setitem(sys.modules, "flashinfer", module)
    wrapper = LaterDecodeWrapper()
    with kv.capture.to(tmp_path) as capture:
        capture.flashinfer(names=["BatchDecodeWithPagedKVCacheWrapper"])
        wrapper.plan(np.array([0, 1], np.int32), np.array([0], np.int32), np.array([4], np.int32), 4, 2, 8, 4, **options)
        wrapper.run(some(1, 4, 8), some(2, 2, 4, 2, 8), *arguments, **more)
    assert capture.kept == 0 and reason in repr(capture), capture


def test_flashinfer_needs_its_plan_and_knows_no_layer(tmp_path, monkeypatch):
    module = types.ModuleType("flashinfer")
    module.BatchDecodeWithPagedKVCacheWrapper = BatchDecodeWithPagedKVCacheWrapper
    monkeypatch.setitem(sys.modules, "flashinfer", module)
    wrapper = BatchDecodeWithPagedKVCacheWrapper()
    wrapper.plan(np.array([0, 1]), np.array([0]), np.array([4]), 4, 2, 8, 4)
    with kv.capture.to(tmp_path) as capture:
        capture.flashinfer(names=["BatchDecodeWithPagedKVCacheWrapper"])
        wrapper.run(some(1, 4, 8), some(2, 2, 4, 2, 8))
    assert capture.kept == 0 and "run without a plan" in repr(capture)
    with pytest.raises(kv.InputError, match="layers"):
        with kv.capture.to(tmp_path, layers=[1]) as capture:
            capture.flashinfer()
    with pytest.raises(kv.InputError, match="no class Batch"):
        with kv.capture.to(tmp_path) as capture:
            capture.flashinfer(names=["BatchOther"])


def decode(q, cache, meta, scale):
    return {"out": np.stack([attention(q[b:b + 1], *cache[meta["table"][b]].swapaxes(0, 1).reshape(2, -1, 2, 8)[:, :n],
                                       scale)[0][0] for b, n in enumerate(meta["lengths"])])}


def test_any_function_is_wrapped_by_a_mapping(tmp_path):
    paths = dict(layout="vllm", q="q", kv_cache="cache", block_table="meta.table", seq_lens="meta.lengths",
                 scale="=scale", o="return.out")
    wrapped = kv.capture.wrap(decode, paths)
    meta = dict(table=np.array([[2, 0], [1, 3]], np.int32), lengths=np.array([7, 8], np.int32))
    arguments = (some(2, 4, 8), some(4, 2, 4, 2, 8), meta)
    plain = wrapped(*arguments, scale=0.4)  # outside of a capture
    with kv.capture.to(tmp_path) as capture:
        np.testing.assert_array_equal(wrapped(*arguments, scale=0.4)["out"], plain["out"])
    assert capture.kept == 1, capture
    assert main(["replay", str(tmp_path)]) == 0
    assert wrapped.__name__ == "decode"
    with kv.capture.to(tmp_path / "b") as capture:
        kv.capture.wrap(decode, {**paths, "q": "query"})(*arguments, 0.4)
    assert "no argument 'query'" in repr(capture)
    with pytest.raises(kv.InputError, match="layout"):
        kv.capture.wrap(decode, dict(q="q", o="return"))
    with pytest.raises(kv.InputError, match="output"):
        kv.capture.wrap(decode, dict(layout="vllm", q="q"))


def test_wrong_arguments_are_named(tmp_path, capsys):
    for wrong in (dict(every=0), dict(max_bytes=0)):
        with pytest.raises(kv.InputError, match="at least 1"):
            kv.capture.to(tmp_path, **wrong)
    with pytest.raises(kv.InputError, match="not active"):
        kv.capture.to(tmp_path).patch(json, "dumps", None)
    with kv.capture.to(tmp_path) as capture:
        with pytest.raises(kv.InputError, match="no function 'nothing'"):
            capture.patch(json, "nothing", None)
        with pytest.raises(kv.InputError, match="cannot be imported"):
            capture.vllm("no_such_module_of_vllm")
    assert main(["replay", str(tmp_path)]) == 2 and "no kept call" in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "missing")]) == 2


def test_a_kept_call_of_another_version_or_a_damaged_one_is_rejected(tmp_path):
    (tmp_path / "000000").mkdir()
    for words, problem in (("{\"kvscope_call\": 2}", "version 2"), ("{", "damaged"), ("{\"kvscope_call\": 1}", "damaged")):
        (tmp_path / "000000" / "call.json").write_text(words)
        with pytest.raises(kv.InputError, match=problem):
            kv.capture.calls(tmp_path)


def test_no_backend_is_imported_by_the_module_itself():
    code = "import sys, kvscope; print([m for m in ('torch', 'vllm', 'sglang', 'flashinfer', 'anywidget') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_runs_as_a_module(tmp_path):
    done = subprocess.run([sys.executable, "-m", "kvscope", "replay", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Exit status" in done.stdout
    assert pathlib.Path(kv.capture.__file__).name == "capture.py"
