"""Numba CUDA kernels on the virtual GPU. Skipped without numba-cuda, which tests/python/outside.sh installs."""
import numpy as np
import pytest

import kvscope as kv

numba = pytest.importorskip("numba", reason="Numba is not installed: pip install \"numba-cuda[cu12]\"")
cuda = pytest.importorskip("numba.cuda", reason="numba-cuda is not installed: pip install \"numba-cuda[cu12]\"")
kv_numba = kv.numba


def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] += a * x[i]


def paged_rows(cache, table, out):
    """Copies the tokens of one sequence out of its pages: out[t] = cache[table[t // page], t % page]."""
    t, d = cuda.blockIdx.x, cuda.threadIdx.x
    page = cache.shape[1]
    out[t, d] = cache[table[t // page], t % page, d]


def reversed_in_shared(x, synchronized):
    tile = cuda.shared.array(64, numba.float32)
    i = cuda.threadIdx.x
    tile[i] = x[i]
    if synchronized:
        cuda.syncthreads()
    x[i] = tile[63 - i]


def test_a_kernel_writes_the_callers_array():
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    for kernel in (saxpy, cuda.jit(saxpy)):
        before = y.copy()
        assert kv_numba.launch(kernel, 4, 32, np.float32(2), x, y).clean
        np.testing.assert_array_equal(y, before + 2 * x)


def test_rows_are_gathered_through_a_table_and_a_wrong_entry_is_reported():
    rng = np.random.default_rng(1)
    cache, table = rng.standard_normal((5, 4, 8)), np.array([3, 0, 4], np.int32)
    out = np.zeros((10, 8))
    assert kv_numba.launch(paged_rows, 10, 8, cache, table, out).clean
    np.testing.assert_array_equal(out, cache[table].reshape(-1, 8)[:10])
    table[1] = 5
    result = kv_numba.launch(paged_rows, 10, 8, cache, table, out)
    assert result.reports[0].kind == "OUT_OF_BOUNDS" and "parameter cache" in result.reports[0]["message"]


def test_a_missing_barrier_is_a_race():
    x = np.arange(64, dtype=np.float32)
    assert kv_numba.launch(reversed_in_shared, 1, 64, x, True).clean and x[0] == 63
    result = kv_numba.launch(reversed_in_shared, 1, 64, x, False)
    assert any(report.kind.startswith("RACE") for report in result.reports)


def test_wrong_arguments_are_named():
    x = np.ones(4, np.float32)
    with pytest.raises(kv.InputError, match=r"saxpy\(a, x, y\) takes 3"):
        kv_numba.launch(saxpy, 1, 1, x, x)
    with pytest.raises(kv.InputError, match="argument a is str"):
        kv_numba.launch(saxpy, 1, 1, "2", x, x)
    with pytest.raises(kv.InputError, match="contiguous"):
        kv_numba.launch(saxpy, 1, 1, 2.0, np.ones(8, np.float32)[::2], x)
    with pytest.raises(kv.CompileError, match="Numba rejected"):
        kv_numba.launch(saxpy, 1, 1, 2.0, x, 3)
