"""kv.capture: which recorded arguments belong to a call, and the mask that they mean. The stand-ins are those of capture_test.py."""
import itertools
import types

import numpy as np
import pytest

import kvscope as kv
from capture_test import (AttentionBackend, BatchDecodeWithPagedKVCacheWrapper, BatchPrefillWithPagedKVCacheWrapper, FlashAttentionImpl,
                          attention, call_in_bounds, some, sglang_call, vllm)  # noqa: F401 (vllm is a fixture)
from kvscope.__main__ import main

DECODE = "BatchDecodeWithPagedKVCacheWrapper"
PREFILL = "BatchPrefillWithPagedKVCacheWrapper"
PLANS = [([0, 3, 5], [7, 1, 12, 3, 9], [2, 4]), ([0, 2, 5], [4, 14, 0, 6, 11], [3, 1])]  # indptr, indices, last_page_len


@pytest.fixture
def flashinfer(monkeypatch):
    module = types.ModuleType("flashinfer")
    module.BatchDecodeWithPagedKVCacheWrapper = BatchDecodeWithPagedKVCacheWrapper
    module.BatchPrefillWithPagedKVCacheWrapper = BatchPrefillWithPagedKVCacheWrapper
    monkeypatch.setitem(__import__("sys").modules, "flashinfer", module)


def plan_of(number):
    return [np.array(values, np.int32) for values in PLANS[number]]


def cache_of(*plans):
    """Blocks of the plans; all others hold NaN."""
    cache = np.full((16, 2, 4, 2, 8), np.nan, np.float32)
    blocks = [block for number in plans for block in PLANS[number][1]]
    cache[blocks] = some(len(blocks), 2, 4, 2, 8)
    return cache


@pytest.mark.parametrize("every", [1, 2, 3])
def test_each_run_of_flashinfer_is_judged_by_its_own_plan(flashinfer, tmp_path, every):
    cache, wrapper = cache_of(0, 1), BatchDecodeWithPagedKVCacheWrapper()
    with kv.capture.to(tmp_path, every=every) as capture:
        capture.flashinfer(names=[DECODE])
        for step in range(6):
            wrapper.plan(*plan_of(step // every % 2), 4, 2, 8, 4)  # kept runs alternate between the plans
            for _ in range(1 + step % 2):
                wrapper.run(some(2, 4, 8), cache)
    assert capture.seen == 9 and capture.kept == -(-9 // every), capture  # a plan is no call
    kept = kv.capture.calls(tmp_path)
    assert {tuple(call.blocks) for call in kept} == {tuple(sorted(blocks)) for _, blocks, _ in PLANS}
    assert [call.call for call in kept] == list(range(0, 9, every))
    assert main(["replay", str(tmp_path)]) == 0


def test_a_plan_of_an_earlier_capture_is_not_used(flashinfer, tmp_path):
    cache, wrapper = cache_of(0, 1), BatchDecodeWithPagedKVCacheWrapper()
    with kv.capture.to(tmp_path / "a") as capture:
        capture.flashinfer(names=[DECODE])
        wrapper.plan(*plan_of(0), 4, 2, 8, 4)
    wrapper.plan(*plan_of(1), 4, 2, 8, 4)  # no capture sees it
    with kv.capture.to(tmp_path / "b") as capture:
        capture.flashinfer(names=[DECODE])
        wrapper.run(some(2, 4, 8), cache)
    assert capture.kept == 0 and "run without a plan" in repr(capture), capture


WINDOWS = [-1, 0, 1, 3, 9, 100]


def kept_passes(capture, folder):
    assert (capture.seen, capture.kept) == (1, 1), capture
    return main(["replay", str(folder)]) == 0


@pytest.mark.parametrize("causal,left", itertools.product([True, False], WINDOWS))
def test_every_mask_of_flashinfers_prefill_is_the_one_that_is_judged(flashinfer, tmp_path, causal, left):
    wrapper = BatchPrefillWithPagedKVCacheWrapper()
    with kv.capture.to(tmp_path) as capture:
        capture.flashinfer(names=[PREFILL])
        wrapper.plan(np.array([0, 3, 5], np.int32), *plan_of(0), 4, 2, 8, 4, causal=causal, window_left=left)
        wrapper.run(some(5, 4, 8), cache_of(0))
    assert kept_passes(capture, tmp_path)


@pytest.mark.parametrize("left", WINDOWS)
def test_every_window_of_flashinfers_decode_is_the_one_that_is_judged(flashinfer, tmp_path, left):
    wrapper = BatchDecodeWithPagedKVCacheWrapper()
    with kv.capture.to(tmp_path) as capture:
        capture.flashinfer(names=[DECODE])
        wrapper.plan(*plan_of(0), 4, 2, 8, 4, window_left=left)
        wrapper.run(some(2, 4, 8), cache_of(0))
    assert kept_passes(capture, tmp_path)


@pytest.mark.parametrize("decode,window", itertools.product([True, False], [None, *WINDOWS]))
def test_every_window_of_sglang_is_the_one_that_is_judged(monkeypatch, tmp_path, decode, window):
    backend, arguments = sglang_call(monkeypatch, decode, -1 if window is None else window)
    whole = AttentionBackend.forward

    def forward(self, q, k, v, layer, forward_batch):
        layer.sliding_window_size = -1 if window is None else window
        out = whole(self, q, k, v, layer, forward_batch)
        layer.sliding_window_size = window
        return out
    monkeypatch.setattr(AttentionBackend, "forward", forward)
    with kv.capture.to(tmp_path) as capture:
        capture.sglang("base_attn_backend")
        backend.forward(*arguments)
    assert kept_passes(capture, tmp_path)


@pytest.mark.parametrize("kind,kept", [("decoder", True), ("encoder_only", False), ("decoder_bidirectional", False)])
def test_layers_of_sglang_that_are_not_causal_are_left_out(monkeypatch, tmp_path, kind, kept):
    backend, arguments = sglang_call(monkeypatch)
    arguments[3].attn_type = types.SimpleNamespace(value=kind)
    with kv.capture.to(tmp_path) as capture:
        capture.sglang("base_attn_backend")
        backend.forward(*arguments)
    assert capture.kept == kept and capture.left == ({} if kept else {"not decoder attention": 1}), capture


@pytest.mark.parametrize("decode", [True, False])
def test_sinks_of_sglang_are_kept(monkeypatch, tmp_path, decode):
    backend, arguments = sglang_call(monkeypatch, decode)
    with kv.capture.to(tmp_path) as capture:
        capture.sglang("base_attn_backend")
        backend.forward(*arguments, sinks=np.array([2, -1, 0.5, 3], np.float32))
    assert kept_passes(capture, tmp_path)


@pytest.mark.parametrize("owner,change,reason", [
    ("layer", dict(pos_encoding_mode="ROPE_LLAMA"), "position encoding inside of the kernel"),
    ("layer", dict(xai_temperature_len=1024), "another function of the scores"),
    ("layer", dict(logit_capping_method="none"), "another function of the scores"),
    ("layer", dict(use_irope=True), "a mask of chunks"),
    ("call", dict(rel_bias=np.ones(4)), "arguments of another attention: rel_bias"),
    ("call", dict(q_rope=np.ones(4), k_rope=np.ones(4)), "arguments of another attention: q_rope, k_rope"),
    ("layer", dict(pos_encoding_mode="NONE", logit_capping_method="tanh", xai_temperature_len=-1, use_irope=False), ""),
    ("call", dict(rel_bias=None), "")])
def test_calls_of_sglang_that_are_another_attention_are_left_out(monkeypatch, tmp_path, owner, change, reason):
    backend, arguments = sglang_call(monkeypatch)
    backend.attention_chunk_size = 8192
    if owner == "layer":
        vars(arguments[3]).update(change)
    with kv.capture.to(tmp_path) as capture:
        capture.sglang("base_attn_backend")
        backend.forward(*arguments, **(change if owner == "call" else {}))
    assert capture.left == ({reason: 1} if reason else {}), capture


class WindowedImpl(FlashAttentionImpl):
    """FlashAttention's window (left, right): -1 is no limit, and causal order sets right to 0."""

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output=None):
        start = attn_metadata.query_start_loc
        left, right = (-1, -1) if self.sliding_window is None else self.sliding_window
        for b, length in enumerate(attn_metadata.seq_lens):
            keys, values = kv_cache[:, attn_metadata.block_table[b]].reshape(2, -1, *kv_cache.shape[3:])[:, :length]
            rows = start[b + 1] - start[b]
            for i in range(rows):
                at = length - rows + i
                last = at + 1 if attn_metadata.causal else length if right < 0 else min(length, at + right + 1)
                seen = slice(max(0, at - left) if left >= 0 else 0, last)
                output[start[b] + i] = attention(query[start[b] + i][None], keys[seen], values[seen], self.scale, causal=False)[0].ravel()
        return output


@pytest.mark.parametrize("causal,window", itertools.product(
    [True, False], [None, (-1, -1), (-1, 0), (-1, 2), (0, 0), (3, 0), (3, -1), (3, 2), (100, 100)]))
def test_every_window_of_vllm_is_the_one_that_is_judged(vllm, monkeypatch, tmp_path, causal, window):  # noqa: F811
    monkeypatch.setattr(FlashAttentionImpl, "forward", WindowedImpl.forward)
    vllm.sliding_window = window
    call = call_in_bounds()
    call["attn_metadata"].causal = causal
    with kv.capture.to(tmp_path) as capture:
        capture.vllm()
        vllm.forward(**call)
    if not causal and window not in (None, (-1, -1)):
        assert capture.left == {"a window without causal order": 1}, capture
    else:
        assert kept_passes(capture, tmp_path)


@pytest.mark.parametrize("window", [0, 3])
def test_a_window_of_vllm_that_is_a_number_is_not_judged_without_causal_order(vllm, tmp_path, window):  # noqa: F811
    vllm.sliding_window = window
    call = call_in_bounds()
    call["attn_metadata"].causal = False
    with kv.capture.to(tmp_path) as capture:
        capture.vllm()
        vllm.forward(**call)
    assert capture.left == {"a window without causal order": 1}, capture
