// Plans the launches of a decode step: arithmetic on the host.
//
// Bandwidth. Each of an H200's 132 multiprocessors has 33 bytes per nanosecond of its 4.3 TB/s; with a latency of one
// microsecond, 33 KB per multiprocessor must always be in flight. Two CTAs per multiprocessor with a ring of 96 KB each
// provide up to six times that, and while one CTA starts or merges, the other keeps the memory busy. A ring has as many
// stages as fit in 96 KB, at most eight; three of 32 KB for bf16 and head_size 128.
//
// Runs of keys. All CTAs should begin and end together. The number of runs is chosen so that the waves of CTAs take the
// least time, a CTA costing a run plus 128 keys for starting and merging. Batch 8, 8 KV heads, 4096 keys, 264 slots:
//   3 runs of 1408   192 CTAs, 1 wave    1536
//   4 runs of 1024   256 CTAs, 1 wave    1152   <- least
//   5 runs of  832   320 CTAs, 2 waves   1920
// A run is whole tiles and the same for each sequence, so a short sequence has fewer CTAs with work, not smaller ones.
//
// Copies. The copy engine is used if a tile consists of few boxes: 16, 32 or 64 slots of a page each, a number that
// must divide the page. A page of 1 would need 256 boxes per stage; cp.async then copies 16 bytes per thread, which
// also uses full 32-byte sectors and 256 contiguous bytes per key. The engine also requires strides and addresses that
// are multiples of 16 bytes; rows aligned to only 4 bytes are copied 4 bytes at a time.
//
// The entries for any head size have neither ring nor copies; only rows, runs and shared memory are planned for them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>

#include "gpu/kernels/paged_decode/config.h"

namespace kvscope::gpu {

struct DecodeShape {
  int element_bytes = 2;  // of the cache: 1, 2 or 4
  int head_size = 128;    // 64 or 128; with any_size a multiple of 8, at most 256
  bool any_size = false;  // the entries for any head size
  int query_heads = 0, kv_heads = 0;
  int page_size = 0;                       // [tokens]
  bool one_page = false;                   // a continuous cache: page_size is the longest sequence
  std::span<const std::uint32_t> lengths;  // [batch] visible keys
  std::uint64_t alignment = 16;            // [bytes] divides all addresses and strides of K and V
  int multiprocessors = 132;
  int splits = 0;  // maximum runs of keys of the longest sequence; 0: chosen here
};

struct DecodePlan {
  int box_rows = 0;  // 0: cp.async
  int copy_bytes = 0;
  int rows = 0;  // query heads per CTA
  int row_tiles = 0;
  int stages = 0;
  int keys_per_split = 0, splits = 0;
  int threads = 0;
  int scales_at = 0, barriers_at = 0, shared_bytes = 0;
};

namespace plan_detail {

inline constexpr int kRingBytes = 96 * 1024, kCtasPerMultiprocessor = 2, kStartKeys = 128, kMostRuns = 64;

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Keys per run if the longest sequence is divided into `runs`.
inline std::int64_t keys_of(std::int64_t longest, std::int64_t runs) {
  return std::max<std::int64_t>(1, ceil_div(ceil_div(longest, runs), kDecodeTile)) * kDecodeTile;
}

inline std::int64_t cost(const DecodeShape& shape, std::int64_t keys, int row_tiles) {
  std::int64_t ctas = 0;
  for (const std::uint32_t length : shape.lengths) ctas += ceil_div(length, keys) * shape.kv_heads * row_tiles;
  const std::int64_t waves = ceil_div(ctas, std::int64_t{shape.multiprocessors} * kCtasPerMultiprocessor);
  return waves * (keys + kStartKeys);
}

}  // namespace plan_detail

// [bytes] The required alignment of addresses and strides of K and V.
constexpr std::uint64_t decode_row_alignment(bool any_size, int element_bytes) {
  return !any_size ? 4 : element_bytes == 1 ? 8 : 16;
}

// Throws std::invalid_argument for a head size, a group or an alignment that no kernel supports.
inline DecodePlan decode_plan(const DecodeShape& shape) {
  using namespace plan_detail;
  if (shape.any_size) {
    if (shape.head_size < 1 || shape.head_size > kDecodeAnyMostHead || shape.head_size % kDecodeAnyDims != 0)
      throw std::invalid_argument("decode: head_size is not a multiple of 8 from 8 to 256");
  } else if (shape.element_bytes == 4 || (shape.head_size != 64 && shape.head_size != 128)) {
    throw std::invalid_argument("decode by matrix instructions: head_size must be 64 or 128, and the type not f32");
  }
  if (shape.kv_heads < 1 || shape.query_heads < 1 || shape.query_heads % shape.kv_heads != 0)
    throw std::invalid_argument("decode: query heads are no multiple of the KV heads");
  if (shape.alignment % decode_row_alignment(shape.any_size, shape.element_bytes) != 0)
    throw std::invalid_argument(
        "decode: rows of K and V must be aligned to 4 bytes; for any head size to 16, of e4m3 to 8");

  DecodePlan plan;
  const int group = shape.query_heads / shape.kv_heads;
  plan.rows = shape.any_size ? kDecodeAnyRows : kDecodeRows;
  plan.row_tiles = static_cast<int>(ceil_div(group, plan.rows));

  std::int64_t longest = 0;
  for (const std::uint32_t length : shape.lengths) longest = std::max<std::int64_t>(longest, length);
  std::int64_t keys = keys_of(longest, shape.splits > 0 ? shape.splits : 1);
  if (shape.splits == 0)
    for (std::int64_t runs = 2; runs <= kMostRuns && keys > kDecodeTile; ++runs) {
      const std::int64_t fewer = keys_of(longest, runs);
      if (cost(shape, fewer, plan.row_tiles) < cost(shape, keys, plan.row_tiles)) keys = fewer;
    }
  plan.keys_per_split = static_cast<int>(keys);
  plan.splits = static_cast<int>(std::max<std::int64_t>(1, ceil_div(longest, keys)));

  if (shape.any_size) {
    plan.threads = kDecodeAnyThreads;
    plan.shared_bytes = decode_any_shared_bytes(shape.head_size);
    return plan;
  }
  if (shape.alignment % 16 == 0)
    for (const int rows : {64, 32, 16})
      if (plan.box_rows == 0 && (shape.one_page || shape.page_size % rows == 0)) plan.box_rows = rows;
  plan.copy_bytes = plan.box_rows > 0 ? 0 : shape.alignment % 16 == 0 ? 16 : 4;
  plan.threads = 32 * (kDecodeConsumers + (plan.box_rows > 0 ? kDecodeBoxProducers : kDecodeCopyProducers));
  const int stage = 2 * decode_tile_bytes(shape.head_size, shape.element_bytes);
  plan.stages = std::min(kRingBytes / stage, kDecodeMaxStages);
  plan.scales_at = decode_ring_bytes(shape.head_size, shape.element_bytes, plan.stages);
  plan.barriers_at = decode_barriers_at(shape.head_size, shape.element_bytes, plan.stages);
  plan.shared_bytes = decode_shared_bytes(shape.head_size, shape.element_bytes, plan.stages);
  return plan;
}

}  // namespace kvscope::gpu
