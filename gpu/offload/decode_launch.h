// Prepares a step of paged_decode or continuous_decode: plan, tensor maps, workspace, two launches.
//
//   DecodeCall call(device, {.kernel = "paged_decode", .cache = DType::bf16, .out = DType::bf16, .k = k, .v = v, ...});
//   verdict.take(device.launch(call.attend, bytes_of(call.params))) &&
//       verdict.take(device.launch(call.combine, bytes_of(call.params)));
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/tma/tile_map.h"
#include "gpu/kernels/paged_decode/params.h"
#include "gpu/kernels/paged_decode/plan.h"
#include "gpu/launch/device.h"

namespace kvscope::gpu {

struct DecodeStep {
  std::string kernel = "paged_decode";  // or "continuous_decode"
  DType cache = DType::bf16;            // bf16, f16, f32 or e4m3
  DType out = DType::bf16;              // bf16, f16 or f32
  PagedCache k, v;
  const void* q = nullptr;                 // on the device, as all pointers below
  const std::uint32_t* lengths = nullptr;  // [batch]
  std::vector<std::uint32_t> host_lengths{};
  void* o = nullptr;
  float* lse = nullptr;
  int query_heads = 0;
  double scale = 1;
  int splits = 0;           // 0: chosen by the plan
  int multiprocessors = 0;  // 0: the device's

  // Only the entries for any head size support these.
  double soft_cap = 0;                    // 0: none
  const std::uint32_t* firsts = nullptr;  // [batch] first visible key; null: 0
  std::vector<std::uint32_t> host_firsts{};
  const float* slopes_log2 = nullptr;       // [query_heads] ALiBi slopes times log2(e); null: none
  const std::int32_t* positions = nullptr;  // [batch] with slopes: position of the query
  const float* sinks_log2 = nullptr;        // [query_heads] times log2(e), supported by every entry; null: none
};

// Decides between the entries that use matrix instructions and those for any head size.
struct DecodeKind {
  DType cache = DType::bf16;
  std::int64_t head_size = 0;
  bool several_scales = false;  // per head
  bool changed_scores = false;  // a soft cap, a first key or ALiBi
  [[nodiscard]] bool any_size() const {
    return cache == DType::f32 || (head_size != 64 && head_size != 128) || several_scales || changed_scores;
  }
};
inline DecodeKind kind_of(const DecodeStep& step) {
  return {
      .cache = step.cache,
      .head_size = step.k.head_size,
      .several_scales = step.k.scales != nullptr && std::min(step.k.granularity, step.v.granularity) < step.k.head_size,
      .changed_scores = step.soft_cap > 0 || step.firsts != nullptr || step.slopes_log2 != nullptr};
}

// The largest power of two, at most 16, that divides all addresses and strides. [bytes]
inline std::uint64_t decode_alignment(const PagedCache& k, const PagedCache& v, std::int64_t element) {
  std::uint64_t all = 16;
  for (const PagedCache* cache : {&k, &v})
    all |= reinterpret_cast<std::uint64_t>(cache->data) | static_cast<std::uint64_t>(cache->token_stride * element) |
           static_cast<std::uint64_t>(cache->block_stride * element);
  return std::uint64_t{1} << std::countr_zero(all);
}

// K or V of a layer as boxes of `rows` slots of one head's 128 bytes (64 if a head has only 64).
inline TensorMap decode_cache_map(const PagedCache& cache, DType dtype, int rows) {
  const auto bytes = [&](std::int64_t elements) { return static_cast<std::uint64_t>(elements * size_of(dtype)); };
  const std::uint64_t row = std::min<std::uint64_t>(bytes(cache.head_size), 128);
  TensorMap map;
  map.data_type = tma_data_type(dtype);
  map.rank = 4;
  map.base = reinterpret_cast<std::uint64_t>(cache.data);
  map.dims = {static_cast<std::uint64_t>(cache.head_size), static_cast<std::uint64_t>(cache.heads),
              static_cast<std::uint64_t>(cache.page_size), static_cast<std::uint64_t>(cache.blocks)};
  map.strides = {bytes(cache.head_size), bytes(cache.token_stride), bytes(cache.block_stride)};
  map.box = {static_cast<std::uint32_t>(row / bytes(1)), 1, static_cast<std::uint32_t>(rows), 1};
  map.swizzle = row == 128 ? TmaSwizzle::b128 : TmaSwizzle::b64;
  map.l2 = L2Promotion::b256;
  return map;
}

class DecodeCall {
 public:
  DecodeCall(Device& device, const DecodeStep& step) {
    const auto batch = static_cast<std::int64_t>(step.host_lengths.size());
    const int head_size = step.k.head_size, group = step.query_heads / step.k.heads;
    const bool any_size = kind_of(step).any_size();
    std::vector<std::uint32_t> seen = step.host_lengths;
    for (std::size_t b = 0; b < step.host_firsts.size(); ++b) seen[b] -= std::min(seen[b], step.host_firsts[b]);
    plan =
        decode_plan({.element_bytes = static_cast<int>(size_of(step.cache)),
                     .head_size = head_size,
                     .any_size = any_size,
                     .query_heads = step.query_heads,
                     .kv_heads = step.k.heads,
                     .page_size = step.k.page_size,
                     .one_page = step.kernel == "continuous_decode",
                     .lengths = seen,
                     .alignment = decode_alignment(step.k, step.v, size_of(step.cache)),
                     .multiprocessors = step.multiprocessors > 0 ? step.multiprocessors : device.info().multiprocessors,
                     .splits = step.splits});
    const std::int64_t rows = batch * step.query_heads * plan.splits;
    partial_o_ = DeviceArray(device, device.allocate(rows * head_size * 4, "partial_o"), rows * head_size * 4);
    partial_lse_ = DeviceArray(device, device.allocate(rows * 4, "partial_lse"), rows * 4);

    params.k = step.k;
    params.v = step.v;
    if (plan.box_rows > 0) {
      params.k_map = device.encode(decode_cache_map(step.k, step.cache, plan.box_rows));
      params.v_map = device.encode(decode_cache_map(step.v, step.cache, plan.box_rows));
    }
    params.q = step.q;
    params.lengths = step.lengths;
    params.partial_o = partial_o_.as<float>();
    params.partial_lse = partial_lse_.as<float>();
    params.o = step.o;
    params.lse = step.lse;
    params.scale_log2 = static_cast<float>(step.scale * std::numbers::log2e);
    params.batch = static_cast<std::int32_t>(batch);
    params.query_heads = step.query_heads;
    params.group = group;
    params.row_tiles = plan.row_tiles;
    params.splits = plan.splits;
    params.keys_per_split = plan.keys_per_split;
    params.stages = plan.stages;
    params.box_rows = plan.box_rows;
    params.copy_bytes = plan.copy_bytes;
    params.scales_at = plan.scales_at;
    params.barriers_at = plan.barriers_at;
    if (step.soft_cap > 0) {
      params.cap_log2 = static_cast<float>(step.soft_cap * std::numbers::log2e);
      params.cap_scale = static_cast<float>(step.scale / step.soft_cap);
    }
    params.firsts = step.firsts;
    params.slopes_log2 = step.slopes_log2;
    params.positions = step.positions;
    params.sinks_log2 = step.sinks_log2;

    attend.kernel = combine.kernel = step.kernel;
    attend.entry =
        step.kernel + "_" + std::string(name(step.cache)) + (any_size ? "_any" : "_d" + std::to_string(head_size));
    attend.grid = {std::int64_t{step.k.heads} * plan.row_tiles, plan.splits, batch};
    attend.block = {plan.threads, 1, 1};
    attend.dynamic_shared = plan.shared_bytes;
    combine.entry = step.kernel + "_combine_" + std::string(name(step.out));
    combine.grid = {(batch * step.query_heads * 32 + kCombineThreads - 1) / kCombineThreads, 1, 1};
    combine.block = {kCombineThreads, 1, 1};
  }

  PagedDecodeParams params;
  DecodePlan plan;
  KernelLaunch attend, combine;

 private:
  DeviceArray partial_o_, partial_lse_;
};

}  // namespace kvscope::gpu
