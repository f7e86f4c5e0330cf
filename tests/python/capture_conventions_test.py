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
