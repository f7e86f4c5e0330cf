"""Causal attention of whole prompts, after FlashAttention-2 (Dao, 2023): no matrix of scores in global memory."""
import triton
import triton.language as tl


@triton.autotune([triton.Config(dict(QUERIES=queries, KEYS=keys), num_warps=4, num_stages=stages)
                  for queries, keys, stages in ((64, 32, 2), (64, 64, 2), (128, 64, 3))], key=["length"])
@triton.jit
def flash_attention(q, k, v, out, scale, length,  # k, v [batch, length, head, dim], of these strides in elements
                    batch_stride, row_stride, head_stride, HEADS: tl.constexpr, GROUP: tl.constexpr,
                    DIMS: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """One program computes QUERIES rows of one query head; q and out are [batch, length, HEADS, DIMS]."""
    sequence, head = tl.program_id(1) // HEADS, tl.program_id(1) % HEADS
    first_query = tl.program_id(0) * QUERIES
    query, dim = first_query + tl.arange(0, QUERIES), tl.arange(0, DIMS)
    place = ((sequence * length + query) * HEADS + head)[:, None] * DIMS + dim[None, :]
    queries = tl.load(q + place, mask=(query < length)[:, None], other=0)
    start = sequence * batch_stride + head // GROUP * head_stride

    maximum = tl.full([QUERIES], float("-inf"), tl.float32)
    total = tl.zeros([QUERIES], tl.float32)
    sums = tl.zeros([QUERIES, DIMS], tl.float32)
    for first in range(0, tl.minimum(first_query + QUERIES, length), KEYS):
        key = first + tl.arange(0, KEYS)
        inside = key < length
        keys = tl.load(k + start + key[None, :] * row_stride + dim[:, None], mask=inside[None, :], other=0)
        scores = tl.dot(queries, keys) * (scale * 1.4426950408889634)  # log2(e): exp2 is one instruction
        scores = tl.where((key[None, :] <= query[:, None]) & inside[None, :], scores, float("-inf"))
        higher = tl.maximum(maximum, tl.max(scores, 1))
        weights = tl.exp2(scores - higher[:, None])
        shrink = tl.exp2(maximum - higher)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + start + key[:, None] * row_stride + dim[None, :], mask=inside[:, None], other=0)
        sums = tl.dot(weights.to(values.dtype), values, sums * shrink[:, None])
        maximum = higher
    tl.store(out + place, (sums / total[:, None]).to(out.dtype.element_ty), mask=(query < length)[:, None])


def run(q, k, v, out):
    """q and out [batch, length, heads, dims]; k and v [batch, length, kv_heads, dims], with equal strides."""
    batch, length, heads, dims = q.shape
    grid = lambda meta: (triton.cdiv(length, meta["QUERIES"]), batch * heads)
    flash_attention[grid](q, k, v, out, dims ** -0.5, length, *k.stride()[:3], HEADS=heads,
                          GROUP=heads // k.shape[2], DIMS=dims)
