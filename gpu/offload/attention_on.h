// Attention of a problem of the model, computed by one of the kernels on a device.
//
//   OffloadResult got = attention_on(device, problem);
//   got.kernel        "paged_decode_bf16_d128"
//   got.notes         {"every query is a sequence of its own"}: what was done to the problem so that a kernel takes it
//
//   paged_decode    bf16, f16, f32; e4m3 with at most a scale a head. All keys of a sequence up to one.
//                   First where each sequence has one query
//   paged_prefill   bf16, f16. Causal, windowed, capped. First where there are more
//   mla_decode      bf16 rows of 576 that are K and, as far as 512, V. Keys as for paged_decode
//
// Where paged_prefill does not take a problem of several queries, paged_decode does: each query is a sequence then. So
// it is with mla_decode. What is of other types, or of two, is multiplied as f32.
//
// Elements become f32 without a change, but for scaled ones: element * scale is rounded once, to f32.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/attention/problem.h"
#include "core/base/dtype.h"
#include "core/base/errors.h"
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

// No kernel has what the problem needs:
//   no kernel computes this attention, 3 reasons:
//     paged_decode does not have head_size 8: 64 and 128
//     ...
class NoKernel : public UnsupportedError {
 public:
  explicit NoKernel(std::vector<std::string> lacks);  // of each kernel
  [[nodiscard]] const std::vector<std::string>& lacks() const { return lacks_; }

 private:
  std::vector<std::string> lacks_;
};

// Throws NoKernel. GeometryError, IndexError: as attention::check_problem. DeviceError: what the device refuses.
[[nodiscard]] OffloadResult attention_on(Device& device, const attention::Problem& problem);

}  // namespace kvscope::gpu
