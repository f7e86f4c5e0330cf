#!/usr/bin/env python3
"""A kernel with a fault, for `kvscope reduce`: decode attention over a paged cache of FlashInfer in NumPy.

    faulty_kernel.py INPUTS.npz CANDIDATE.npz
"""
import sys

import numpy as np

t = np.load(sys.argv[1])
batch, query_heads, size = t["q"].shape
page_size, kv_heads = t["kv_cache"].shape[2:4]
o = np.zeros(t["q"].shape)
for b in range(batch):
    pages = t["kv_indices"][t["kv_indptr"][b]:t["kv_indptr"][b + 1]]
    keys = (len(pages) - 1) * page_size + t["kv_last_page_len"][b]
    if len(pages) > 2:
        pages = pages[[0, 2, 1, *range(3, len(pages))]]  # the fault: the second and the third page are exchanged
    for h in range(query_heads):
        k, v = t["kv_cache"][pages, :, :, h * kv_heads // query_heads].swapaxes(0, 1).reshape(2, -1, size)[:, :keys]
        p = np.exp(k @ t["q"][b, h] / np.sqrt(size))
        o[b, h] = p @ v / p.sum()
np.savez(sys.argv[2], o=o.astype(np.float32))
