// Attention of a problem of the model, computed by one of the kernels on a device.
//
//   OffloadResult got = attention_on(device, problem);
//   got.kernel        "paged_decode_bf16_d128"
//   got.notes         {"every query is a sequence of its own"}: what was done to the problem so that a kernel takes it
//
//   kernel           takes                                                                 is asked
//   paged_decode     bf16, f16, f32; e4m3 with at most a scale a head; all keys up to one     first for one query a sequence
//   mla_decode       bf16 rows of 576 that are K and, up to 512, V                              first where K and V are one row
//   paged_prefill    bf16, f16; causal, windowed, capped                                   first for several queries
//   paged_decode     other types as f32, several queries as so many sequences               last
//
// Elements become f32 without a change, but for scaled ones: element * scale is rounded once, to f32.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/attention/problem.h"
#include "core/base/dtype.h"
#include "gpu/launch/device.h"

namespace kvscope::gpu {

struct OffloadResult {
  std::string kernel;              // entry of its first launch; empty: there was no query
  std::vector<std::string> notes;  // conversions, one line each
  DType dtype = DType::f32;        // of o
  std::vector<std::byte> o;        // [total_queries, query_heads, v.head_size]
  std::vector<float> lse;  // [total_queries, query_heads] in the base and with the empty-row value of the options
  Outcome outcome;         // faults and costs of all launches; with a fault, o and lse mean nothing
};

// UnsupportedError when no kernel has what the problem needs, one line a kernel and lack:
//   no kernel computes this attention, 3 reasons:
//     paged_decode: head_size 8, and it has 64 and 128
//     ...
// GeometryError, IndexError: as attention::check_problem. DeviceError: what the device refuses.
[[nodiscard]] OffloadResult attention_on(Device& device, const attention::Problem& problem);

}  // namespace kvscope::gpu
