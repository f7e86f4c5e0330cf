// The two launches of mla_decode: the parts, then what is made of them.
#pragma once

#include <cstdint>

#include "gpu/kernels/mla_decode/config.h"
#include "gpu/kernels/mla_decode/params.h"
#include "gpu/launch/device.h"

namespace kvscope::gpu {

inline KernelLaunch mla_decode_launch(bool fp8, std::int64_t query_heads, std::int64_t batch, std::int64_t splits) {
  KernelLaunch launch;
  launch.kernel = "mla_decode";
  launch.entry = fp8 ? "mla_decode_fp8" : "mla_decode_bf16";
  launch.grid = {splits, (query_heads + mla::kHeads - 1) / mla::kHeads, batch};
  launch.block = {mla::kThreads, 1, 1};
  launch.dynamic_shared = mla::kSharedBytes;
  return launch;
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
