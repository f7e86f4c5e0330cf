// The two launches of mla_decode: the splits, then their combination. Also chooses the number of splits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/checked.h"
#include "gpu/kernels/mla_decode/config.h"
#include "gpu/kernels/mla_decode/params.h"
#include "gpu/launch/device.h"

namespace kvscope::gpu {

// The row formats of mla_decode/params.h.
enum class MlaRows : std::uint8_t { bf16, fp8, e4m3 };

inline KernelLaunch mla_decode_launch(MlaRows rows, std::int64_t query_heads, std::int64_t batch, std::int64_t splits) {
  KernelLaunch launch;
  launch.kernel = "mla_decode";
  launch.entry = rows == MlaRows::bf16  ? "mla_decode_bf16"
                 : rows == MlaRows::fp8 ? "mla_decode_fp8"
                                        : "mla_decode_e4m3";
  launch.grid = {splits, (query_heads + mla::kHeads - 1) / mla::kHeads, batch};
  launch.block = {mla::kThreads, 1, 1};
  launch.dynamic_shared = mla::kSharedBytes;
  return launch;
}

// The number of splits with the least estimated time: waves of CTAs, one per multiprocessor, each a split plus two
// tiles' worth of starting and merging.
// Example: batch 32, 16 heads, 4096 keys on 132: 4 splits of 16 tiles, 128 CTAs, one wave.
inline std::int64_t mla_splits(std::int64_t longest, std::int64_t query_heads, std::int64_t batch,
                               std::int64_t multiprocessors) {
  const std::int64_t tiles = std::max<std::int64_t>(1, ceil_div(longest, mla::kKeys));
  const std::int64_t ctas = batch * ceil_div(query_heads, mla::kHeads);
  std::int64_t best = 1, least = 0;
  for (std::int64_t splits = 1; splits <= std::min<std::int64_t>(tiles, 64); ++splits) {
    const std::int64_t waves = ceil_div(ctas * splits, multiprocessors);
    const std::int64_t cost = waves * (ceil_div(tiles, splits) + 2);
    if (least == 0 || cost < least) best = splits, least = cost;
  }
  return best;
}

inline KernelLaunch mla_combine_launch(std::int64_t query_heads, std::int64_t batch) {
  KernelLaunch launch;
  launch.kernel = "mla_decode";
  launch.entry = "mla_combine";
  launch.grid = {query_heads, batch, 1};
  launch.block = {mla::kCombineThreads, 1, 1};
  return launch;
}

}  // namespace kvscope::gpu
