// One decode step: each sequence has one query token, which attends to all keys of the sequence in a paged cache.
//
//   score[t] = scale * sum over d of q[d] * k[t][d]        t < lengths[sequence]
//   out[d]   = sum over t of softmax(score)[t] * v[t][d]
//
// q             [batch, heads, 64] bf16 as 16 bits: its value is __uint_as_float(bits << 16)
// k, v          the first element of the layer's K and V in block 0; a token is [kv_heads, 64] bf16
// table         [batch, columns] block of each page; entries past a sequence's last page are not blocks
// lengths       [batch] keys of each sequence: at least 1, at most 128
// out           [batch, heads, 64] f32
// heads         query heads; kv_heads divides it: adjacent query heads share a KV head
// page_size     [tokens] of a page
// block_stride  [elements] from block to block: every layer's K and V
//
// The launch has batch * heads CTAs of 128 threads: CTA c computes query head c % heads of sequence c / heads.
extern "C" __global__ void decode(const unsigned short* q, const unsigned short* k, const unsigned short* v,
                                  const unsigned* table, const int* lengths, float* out, int heads, int kv_heads,
                                  int page_size, int columns, long long block_stride, float scale) {
}
