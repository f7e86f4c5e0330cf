// Compares a device's attention with the golden reference, as `kvscope verify` does for a file: each element must be
// within the bound for its type.
#pragma once

#include <string>

#include "core/attention/problem.h"
#include "core/attention/result.h"
#include "core/base/json.h"
#include "core/golden/verdict/compare.h"
#include "gpu/launch/device.h"
#include "gpu/offload/attention_on.h"

namespace kvscope::gpu {

struct CandidateCheck {
  DeviceInfo device;
  OffloadResult candidate;           // o and lse are cleared after the comparison
  golden::CompareResult comparison;  // not set if the kernel reported faults
  [[nodiscard]] bool passed() const;
};

// `golden` is the reference's output for `problem`. Throws the exceptions of attention_on.
[[nodiscard]] CandidateCheck check_candidate(Device& device, const attention::Problem& problem,
                                             const attention::Result& golden);

// candidate of the virtual GPU, kernel paged_decode_f32_d128: within the bound
//   q is bf16, the kernel is given f32
//   o   largest error 0.31x the bound for rounding to bf16, at sequence 1, query 0, head 3, dim 43 (...)
//   costs        18102 warp instructions, ...
[[nodiscard]] std::string to_text(const CandidateCheck& check);
[[nodiscard]] json::Value to_json(const CandidateCheck& check);

}  // namespace kvscope::gpu
