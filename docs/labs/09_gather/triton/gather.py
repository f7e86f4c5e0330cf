# Copies selected tokens of one layer's K to a packed output.
#
#   tokens   17  -1  40 ...        page_size 16
#   pool     block table[1] slot 1 |  -  | block table[2] slot 8 | ...
#   out      row                   | 0 0 | row                   | ...      [count, row]
#
# pool          pointer to the first element of the layer's K in block 0, bf16
# table         pointer to int32 [pages]: block of each page of the sequence
# tokens        pointer to int32 [count]: token of each output row; negative: the row is zeros
# out           pointer to bf16 [count, row], 16-byte aligned
# count         int32
# page_size     int32 [tokens] of a page
# row           int32 [elements] of a token: a multiple of 16, at most 1024
# block_stride  int64 [elements] from block to block: every layer's K and V
#
# The launch has (count + 3) // 4 programs with num_warps=4: program c copies rows 4 * c to 4 * c + 3. Further parameters may
# follow if each is a tl.constexpr with a value: BLOCK: tl.constexpr = 256.
import triton
import triton.language as tl


@triton.jit
def gather(pool, table, tokens, out, count, page_size, row, block_stride):
    pass
