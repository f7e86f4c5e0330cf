// Compile-time constants shared by host and device of paged_decode and continuous_decode. Shared memory:
//
//   ring       [stages][K tile, V tile], 1024-byte aligned; the end: [warp][16 rows][head_size + 4] f32
//   scales     [stages][K, V][64] f32, of e4m3
//   barriers   full[kDecodeMaxStages], empty[kDecodeMaxStages]
//   sums       [warp][16] maxima, [warp][16] sums, f32
//
// Example: bf16, head_size 128, 3 stages: ring 3 * 32768, barriers at 98304, 98304 + 128 + 512 = 98944 bytes.
#pragma once

namespace kvscope::gpu {

inline constexpr int kDecodeTile = 64;      // keys of a stage
inline constexpr int kDecodeConsumers = 4;  // warps with 16 keys of a tile each
inline constexpr int kDecodeRows = 16;      // query heads per CTA
inline constexpr int kDecodeMaxStages = 8;
inline constexpr int kDecodeBoxProducers = 1;   // warps that load: by tensor copies,
inline constexpr int kDecodeCopyProducers = 2;  // by cp.async
inline constexpr int kDecodeThreads = 32 * (kDecodeConsumers + kDecodeCopyProducers);  // at most
// The entries for any head size, which have no ring: query heads per CTA, threads, elements per lane, head sizes.
inline constexpr int kDecodeAnyRows = 8;
inline constexpr int kDecodeAnyThreads = 32 * kDecodeConsumers;
inline constexpr int kDecodeAnyDims = 8;  // head sizes are multiples of it
inline constexpr int kDecodeAnyMostHead = 256;
inline constexpr int kCombineThreads = 128;  // one warp per row

// [warp][8 rows][head_size + 4] outputs, [warp][8] maxima, [warp][8] sums, f32. Example: head_size 256: 33536 bytes.
constexpr int decode_any_shared_bytes(int head_size) {
  return kDecodeConsumers * kDecodeAnyRows * (head_size + 4 + 2) * 4;
}

constexpr int decode_tile_bytes(int head_size, int element_bytes) {  // of K or V
  return kDecodeTile * head_size * element_bytes;
}
constexpr int decode_merge_bytes(int head_size) {
  return kDecodeConsumers * kDecodeRows * (head_size + 4) * 4;
}
constexpr int decode_ring_bytes(int head_size, int element_bytes, int stages) {
  const int ring = stages * 2 * decode_tile_bytes(head_size, element_bytes), merge = decode_merge_bytes(head_size);
  return ring > merge ? ring : merge;
}
constexpr int decode_barriers_at(int head_size, int element_bytes, int stages) {
  const int scales = element_bytes == 1 ? stages * 2 * kDecodeTile * 4 : 0;
  return decode_ring_bytes(head_size, element_bytes, stages) + scales;
}
constexpr int decode_shared_bytes(int head_size, int element_bytes, int stages) {
  return decode_barriers_at(head_size, element_bytes, stages) + 2 * kDecodeMaxStages * 8 +
         2 * kDecodeConsumers * kDecodeRows * 4;
}

}  // namespace kvscope::gpu
