// One step of a check, performed in this process: the device, a kernel's cases, a part of a probe, the times. Each
// result is printed as a line of JSON immediately, so that it is kept if the process ends.
//
//   device            {"device": {"kind": "cuda", "name": "NVIDIA H200", ...}}  or  {"none": "cuInit: ..."}
//   cases:KERNEL/N    {"begin": N} and {"case": {...}} for the kernel's cases from N on; {"lost": true}: no context
//   probe:ID/PART     {"answer": {...}}
//   instructions/N    {"instruction": {...}} for each word of part N of measured_words()
//   bench             {"progress": N} repeatedly, {"bench": {...}, "markdown": "...", "passed": true}
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
  std::string kernel;                   // cases and times of this kernel only; empty: all
  bool small = false;                   // only the small case of each kernel; small shapes for the benchmark
  std::int64_t random_blocks = 0;       // of P1; 0: 100000 on hardware, 32 on the virtual GPU
};

using Say = std::function<void(const json::Value&)>;

// Throws InputError if `what` is none of the above.
void do_one(const WhichDevice& which, const std::string& what, const Say& say);

// The words of part N: kWordsOfAPart of them, or, if `which.small`, one of each sixteen.
inline constexpr std::size_t kWordsOfAPart = 256;
[[nodiscard]] std::vector<std::string> words_of_part(const WhichDevice& which, std::size_t part);
[[nodiscard]] std::size_t instruction_parts();

// The cases of a kernel, in order.
[[nodiscard]] std::vector<const Case*> chosen_cases(const WhichDevice& which, const std::string& kernel);

}  // namespace kvscope::gpu
