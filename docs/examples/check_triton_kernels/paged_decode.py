"""Decode attention over vLLM's paged cache: one new query per sequence, all earlier tokens in pages."""
import triton
import triton.language as tl


@triton.jit
def paged_decode(q, cache, table, lengths, out, lse, scale, columns,  # table [batch, columns]
                 block_stride, value_stride, row_stride, head_stride,  # of cache [block, kv, page_row, head, dim]
                 GROUP: tl.constexpr, PAGE: tl.constexpr, DIMS: tl.constexpr, TILE: tl.constexpr):
    """One program per sequence and KV head computes the GROUP query heads that read it, TILE tokens at a time."""
    ROWS: tl.constexpr = 16 if GROUP < 16 else GROUP  # the least that a matrix instruction takes
    sequence, kv_head = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths + sequence)
    row, dim = tl.arange(0, ROWS), tl.arange(0, DIMS)
    head = sequence * tl.num_programs(1) * GROUP + kv_head * GROUP + row
    here = row < GROUP
    queries = tl.load(q + head[:, None] * DIMS + dim[None, :], mask=here[:, None], other=0)

    maximum = tl.full([ROWS], float("-inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, DIMS], tl.float32)
    for first in range(0, length, TILE):
        token = first + tl.arange(0, TILE)
        seen = token < length
        block = tl.load(table + sequence * columns + token // PAGE, mask=seen, other=0).to(tl.int64)
        key = cache + block * block_stride + token % PAGE * row_stride + kv_head * head_stride
        k = tl.load(key[None, :] + dim[:, None], mask=seen[None, :], other=0)
        v = tl.load(key[:, None] + value_stride + dim[None, :], mask=seen[:, None], other=0)
        scores = tl.dot(queries, k, input_precision="ieee") * scale
        scores = tl.where(seen[None, :], scores, float("-inf"))
        higher = tl.maximum(maximum, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(maximum - higher)
        total = total * shrink + tl.sum(weights, 1)
        sums = tl.dot(weights.to(v.dtype), v, sums * shrink[:, None], input_precision="ieee")
        maximum = higher

    result = tl.where(total[:, None] > 0, sums / total[:, None], 0)  # a sequence without tokens
    tl.store(out + head[:, None] * DIMS + dim[None, :], result.to(out.dtype.element_ty), mask=here[:, None])
    tl.store(lse + head, maximum + tl.log(total), mask=here)


def arguments(q, cache, table, lengths, out, lse, tile=32):
    """(grid, positional arguments, constants) of a launch, for tensors of NumPy or PyTorch."""
    group, page, dims = q.shape[1] // cache.shape[3], cache.shape[2], q.shape[2]
    strides = cache.shape[1:]
    row = strides[2] * strides[3]
    return ((len(q), cache.shape[3]),
            (q, cache, table, lengths, out, lse, dims ** -0.5, table.shape[1], 2 * page * row, page * row, row, dims),
            dict(GROUP=group, PAGE=page, DIMS=dims, TILE=tile))
