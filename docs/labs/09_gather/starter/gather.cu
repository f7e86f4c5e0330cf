// Copies selected tokens of one layer's K to a packed output.
//
//   tokens   17  -1  40 ...        page_size 16
//   pool     block table[1] slot 1 |  -  | block table[2] slot 8 | ...
//   out      row                   | 0 0 | row                   | ...      [count, row]
//
// pool          the first element of the layer's K in block 0; bf16 as 16 bits
// table         [pages] block of each page of the sequence
// tokens        [count] token of each output row; negative: the row is zeros
// out           [count, row], 16-byte aligned
// page_size     [tokens] of a page
// row           [elements] of a token: a multiple of 16; may have fewer than 32 vectors of 16 bytes, or more
// block_stride  [elements] from block to block: every layer's K and V
//
// The launch has (count + 3) / 4 CTAs of 128 threads: warp w of CTA c copies row 4 * c + w.
extern "C" __global__ void gather(const unsigned short* pool, const unsigned* table, const int* tokens,
                                  unsigned short* out, int count, int page_size, int row, long long block_stride) {
}
