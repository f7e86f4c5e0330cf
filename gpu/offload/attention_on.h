// Computes the attention of a problem of the model with one of the kernels on a device.
//
//   OffloadResult got = attention_on(device, problem);
//   got.kernel        "paged_decode_bf16_d128"
//   got.notes         {"every query is a separate sequence"}: how the problem was converted for the kernel
//
//   paged_decode        bf16, f16, f32; e4m3 with scales of any granularity. Every mask, soft cap, ALiBi, sinks; head
//                       sizes that are multiples of 8 up to 256. Chosen where each sequence has one query
//   continuous_decode   the same, where each sequence has one page
//   paged_prefill       bf16, f16. Causal, windowed, capped. Chosen where a sequence has several queries
//   mla_decode          rows of 576 that are K and, up to element 512, V: bf16, or e4m3 with at most one scale a token.
//                       Every query sees a sequence's first keys
//
// Where paged_prefill does not support a problem of several queries, paged_decode computes it with each query as a
// separate sequence; mla_decode always does. Inputs of any other dtype, or of mixed dtypes, are converted to f32.
//
// Elements are converted to f32 exactly, except scaled ones: element * scale is rounded once, to f32.
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
  std::string kernel;              // entry of its first launch; empty: there were no queries
  std::vector<std::string> notes;  // conversions, one line each
  DType dtype = DType::f32;        // of o
  std::vector<std::byte> o;        // [total_queries, query_heads, v.head_size]
  std::vector<float> lse;  // [total_queries, query_heads] in the base and with the empty-row value of the options
  Outcome outcome;         // faults and costs of all launches; with a fault, o and lse are undefined
};

// Thrown if no kernel supports the problem:
//   no kernel computes this attention, 3 reasons:
//     paged_decode does not support head_size 300: multiples of 8 up to 256
//     ...
class NoKernel : public UnsupportedError {
 public:
  explicit NoKernel(std::vector<std::string> lacks);  // of each kernel
  [[nodiscard]] const std::vector<std::string>& lacks() const { return lacks_; }

 private:
  std::vector<std::string> lacks_;
};

// Throws NoKernel; GeometryError and IndexError as attention::check_problem; DeviceError if the device rejects a call.
[[nodiscard]] OffloadResult attention_on(Device& device, const attention::Problem& problem);

}  // namespace kvscope::gpu
