# A program computes one query head, a block of 64 keys at a time, with a running maximum.
import triton
import triton.language as tl


@triton.jit
def decode(q, k, v, table, lengths, out, heads, kv_heads, page_size, columns, block_stride, scale,
           BLOCK: tl.constexpr = 64):
    row = tl.program_id(0)
    sequence = row // heads
    head = row % heads
    kv_head = head // (heads // kv_heads)
    length = tl.load(lengths + sequence)
    dim = tl.arange(0, 64)
    query = tl.load(q + row * 64 + dim).to(tl.float32)
    largest = float("-inf")
    total = 0.0
    sums = tl.zeros([64], tl.float32)
    for first in range(0, length, BLOCK):
        key = first + tl.arange(0, BLOCK)
        block = tl.load(table + sequence * columns + key // page_size, mask=key < length, other=0).to(tl.int64)
        place = block * block_stride + (key % page_size * kv_heads + kv_head) * 64
        at = place[:, None] + dim[None, :]
        inside = (key < length)[:, None]
        keys = tl.load(k + at, mask=inside, other=0).to(tl.float32)
        score = tl.sum(keys * query[None, :], 1) * scale
        score = tl.where(key < length, score, float("-inf"))
        larger = tl.maximum(largest, tl.max(score, 0))
        weight = tl.exp(score - larger)
        rescale = tl.exp(largest - larger)
        values = tl.load(v + at, mask=inside, other=0).to(tl.float32)
        total = total * rescale + tl.sum(weight, 0)
        sums = sums * rescale + tl.sum(weight[:, None] * values, 0)
        largest = larger
    tl.store(out + row * 64 + dim, sums / total)
