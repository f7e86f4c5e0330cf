"""Attention over a paged cache in NumPy, without kvscope: the oracle of the tests of the module."""
import numpy as np


def paged_attention(q, cache, table, lengths):
    """q [B, Hq, D], cache [N, 2, P, H, D], one query per sequence -> o [B, Hq, D], lse [B, Hq] in f64."""
    batch, query_heads, dims = q.shape
    page, heads = cache.shape[2], cache.shape[3]
    o, lse = np.zeros((batch, query_heads, dims)), np.full((batch, query_heads), -np.inf)
    for b in range(batch):
        keys = [cache[table[b, t // page], :, t % page].astype(np.float64) for t in range(lengths[b])]
        if not keys:
            continue
        kv = np.stack(keys)
        for h in range(query_heads):
            scores = kv[:, 0, h * heads // query_heads] @ q[b, h].astype(np.float64) / np.sqrt(dims)
            weights = np.exp(scores - scores.max())
            o[b, h] = weights @ kv[:, 1, h * heads // query_heads] / weights.sum()
            lse[b, h] = scores.max() + np.log(weights.sum())
    return o, lse
