#!/usr/bin/python3
"""What people use instead of the golden reference, timed in numpy on the problem of attention_bench.cpp, on one core.

  fp64 gather+matmul    pages gathered, K and V widened to float64, one matmul per KV head
  fp32 gather+matmul    the same in float32
  fp32 repeat+einsum    the usual reference of a kernel's tests: per sequence, K and V repeated for each query head

Prints one JSON object: best wall and best processor time of each, in milliseconds. Compare ratios of one run, never
figures of two machines. Usage: numpy_attention.py [repetitions | --check]; --check exits 0 when it can measure
"""
import os

# Before the import: OpenBLAS reads both when it is loaded. Debian's picks SSE3 kernels on newer cores unless told.
os.environ["OPENBLAS_CORETYPE"] = "SKYLAKEX"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import json
import sys
import time

import numpy as np

# A numpy without OpenBLAS multiplies matrices four times slower, so a comparison with it would be meaningless.
with open("/proc/self/maps", encoding="utf-8") as maps:
    if "openblas" not in maps.read():
        sys.exit("numpy runs on another BLAS here: apt-get install libopenblas0-pthread, then measure again")

BATCH, QUERY_HEADS, KV_HEADS, HEAD_SIZE, TOKENS, PAGE = 8, 32, 8, 128, 4096, 16
GROUP = QUERY_HEADS // KV_HEADS
PAGES = TOKENS // PAGE
SCALE = 1 / np.sqrt(HEAD_SIZE)


def softmax(scores):
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return scores


def gather_matmul(q, k, v, table, dtype):
    out = np.empty((BATCH, QUERY_HEADS, HEAD_SIZE), dtype)
    for b in range(BATCH):
        keys = k[table[b]].reshape(TOKENS, KV_HEADS, HEAD_SIZE).transpose(1, 0, 2).astype(dtype)
        values = v[table[b]].reshape(TOKENS, KV_HEADS, HEAD_SIZE).transpose(1, 0, 2).astype(dtype)
        queries = q[b].astype(dtype).reshape(KV_HEADS, GROUP, HEAD_SIZE)
        weights = softmax(np.matmul(queries, keys.transpose(0, 2, 1)) * dtype(SCALE))
        out[b] = np.matmul(weights, values).reshape(QUERY_HEADS, HEAD_SIZE)
    return out


def repeat_einsum(q, k, v, table):
    out = np.empty((BATCH, QUERY_HEADS, HEAD_SIZE), np.float32)
    for b in range(BATCH):
        keys = np.repeat(k[table[b]].reshape(TOKENS, KV_HEADS, HEAD_SIZE), GROUP, axis=1)
        values = np.repeat(v[table[b]].reshape(TOKENS, KV_HEADS, HEAD_SIZE), GROUP, axis=1)
        weights = softmax(np.einsum("hd,thd->ht", q[b], keys) * np.float32(SCALE))
        out[b] = np.einsum("ht,thd->hd", weights, values)
    return out


def best(run, repetitions):
    wall, processor = [], []
    for _ in range(repetitions):
        w, p = time.perf_counter(), time.process_time()
        run()
        wall.append(time.perf_counter() - w)
        processor.append(time.process_time() - p)
    return {"wall_ms": round(min(wall) * 1e3, 1), "processor_ms": round(min(processor) * 1e3, 1)}


def main():
    if sys.argv[1:] == ["--check"]:
        return  # NumPy was loaded, and runs on OpenBLAS
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    rng = np.random.default_rng(1)
    shape = (BATCH * PAGES, PAGE, KV_HEADS, HEAD_SIZE)
    k = rng.standard_normal(shape, dtype=np.float32)
    v = rng.standard_normal(shape, dtype=np.float32)
    q = rng.standard_normal((BATCH, QUERY_HEADS, HEAD_SIZE), dtype=np.float32)
    table = (np.arange(BATCH * PAGES) * 997 % (BATCH * PAGES)).reshape(BATCH, PAGES)
    assert np.allclose(gather_matmul(q, k, v, table, np.float64), repeat_einsum(q, k, v, table), atol=1e-4)
    runs = {
        "fp64 gather+matmul": lambda: gather_matmul(q, k, v, table, np.float64),
        "fp32 gather+matmul": lambda: gather_matmul(q, k, v, table, np.float32),
        "fp32 repeat+einsum": lambda: repeat_einsum(q, k, v, table),
    }
    print(json.dumps({name: best(run, repetitions) for name, run in runs.items()}, indent=2))


if __name__ == "__main__":
    main()
