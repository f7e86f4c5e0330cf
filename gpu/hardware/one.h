// One thing of a check, done in this process: which device there is, a kernel's cases, a part of a probe, the times.
// What it finds it says as lines of JSON, one as soon as it is known, so that nothing is lost when the process is.
//
//   device            {"device": {"kind": "cuda", "name": "NVIDIA H200", ...}}  or  {"none": "cuInit: ..."}
//   cases:KERNEL/N    {"begin": N} and {"case": {...}} for the kernel's N-th case on; {"lost": true}: the GPU is gone
//   probe:ID/PART     {"answer": {...}}
//   bench             {"progress": N} now and then, {"bench": {...}, "markdown": "...", "passed": true}
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "gpu/verify/case.h"

namespace kvscope::gpu {

struct WhichDevice {
  std::string device = "cuda";          // or "virtual"
  std::string driver = "libcuda.so.1";  // the library
  std::string kernel;                   // cases and times of this one; empty: all
  bool small = false;                   // of each kernel, the small case alone; of the benchmark, small shapes
  std::int64_t random_blocks = 0;       // of P1; 0: 100000 on hardware, 32 on the virtual GPU
};

using Say = std::function<void(const json::Value&)>;

// InputError: `what` is none of the above.
void do_one(const WhichDevice& which, const std::string& what, const Say& say);

// Of a kernel, in order.
[[nodiscard]] std::vector<const Case*> chosen_cases(const WhichDevice& which, const std::string& kernel);

}  // namespace kvscope::gpu
