# A program copies four rows: a block of 4 rows and 256 columns has a warp for each row, and a vector of 16 bytes for each
# lane.
import triton
import triton.language as tl


@triton.jit
def gather(pool, table, tokens, out, count, page_size, row, block_stride, BLOCK: tl.constexpr = 256):
    i = tl.program_id(0) * 4 + tl.arange(0, 4)
    token = tl.load(tokens + i, mask=i < count, other=-1)
    block = tl.load(table + token // page_size, mask=token >= 0, other=0).to(tl.int64)
    first = block * block_stride + token % page_size * row
    for at in range(0, row, BLOCK):
        column = at + tl.arange(0, BLOCK)
        read = (column < row)[None, :] & (token >= 0)[:, None]
        values = tl.load(pool + first[:, None] + column[None, :], mask=read, other=0)
        write = (column < row)[None, :] & (i < count)[:, None]
        tl.store(out + i[:, None] * row + column[None, :], values, mask=write)
