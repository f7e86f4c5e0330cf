# One decode step: each sequence has one query token, which attends to all keys of the sequence in a paged cache.
#
#   score[t] = scale * sum over d of q[d] * k[t][d]        t < lengths[sequence]
#   out[d]   = sum over t of softmax(score)[t] * v[t][d]
#
# q             pointer to bf16 [batch, heads, 64]
# k, v          pointers to the first element of the layer's K and V in block 0, bf16; a token is [kv_heads, 64]
# table         pointer to int32 [batch, columns]: block of each page; entries past a sequence's last page are not blocks
# lengths       pointer to int32 [batch]: keys of each sequence, at least 1, at most 128
# out           pointer to f32 [batch, heads, 64]
# heads         int32, query heads
# kv_heads      int32, divides heads: adjacent query heads share a KV head
# page_size     int32 [tokens] of a page
# columns       int32, entries of a row of table
# block_stride  int64 [elements] from block to block: every layer's K and V
# scale         f32
#
# The launch has batch * heads programs with num_warps=4: program c computes query head c % heads of sequence c // heads. Further
# parameters may follow if each is a tl.constexpr with a value: BLOCK: tl.constexpr = 64.
import triton
import triton.language as tl


@triton.jit
def decode(q, k, v, table, lengths, out, heads, kv_heads, page_size, columns, block_stride, scale):
    pass
