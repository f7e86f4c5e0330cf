// The expected behavior of a kernel, written once: a case prepares inputs, runs the kernel on any device, and compares
// the results with the golden model. The tests, `kvscope kernels verify` and the check program for GPU machines run the
// same cases.
//
//   movement    byte for byte, including bytes that must not change; memory that must not be read is poisoned
//   attention   each element within the bound of core/attention/bounds.h
//
// A fault names the first element that differs, as (sequence, token, head, dim) and as block and slot, both values, and
// the number of differing elements.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/launch/device.h"

namespace kvscope::golden {
struct Diagnosis;
}

namespace kvscope::gpu {

struct Verdict {
  std::vector<std::string> faults;                     // empty: passed
  Costs costs;                                         // summed over the case's launches; zero on hardware
  std::shared_ptr<const golden::Diagnosis> diagnosis;  // of a wrong attention output; its report is also a fault
  // Adds a launch's faults and costs. Returns false if there are faults: the output must then not be compared.
  bool take(const Outcome& outcome);
};

// Maximum costs of a case's launches on the virtual GPU; fields that are not set are not checked. The values are
// computed by hand from the data that the kernel must move, in the comment where they are set.
struct Budget {
  std::optional<std::int64_t> wavefronts{}, sectors{}, tma_bytes{};
};

struct Case {
  std::string kernel;  // folder of gpu/kernels
  std::string name;    // "paged_bf16_page16_gqa": lower case, unique among the kernel's
  std::string what;    // one line: the fault that simpler data would miss
  bool demo = false;   // one small case per kernel, for `kernels verify --small`: under a second on the virtual GPU
  std::string architecture = "sm_90a";  // the first that supports it: gather4's hardware form is "sm_100a"
  Budget budget{};
  std::function<Verdict(Device&)> run;
};

// Makes the cases of one kernel from its descriptions: each has name, what, demo and budget, and run(description,
// device) returns its verdict.
template <class Description, class Run>
[[nodiscard]] std::vector<Case> cases_of(const std::string& kernel, std::vector<Description> descriptions, Run run) {
  std::vector<Case> cases;
  for (Description& d : descriptions) {
    Case c;
    c.kernel = kernel;
    c.name = d.name;
    c.what = d.what;
    c.demo = d.demo;
    c.budget = d.budget;
    c.run = [run, d = std::move(d)](Device& device) { return run(d, device); };
    cases.push_back(std::move(c));
  }
  return cases;
}

// The cases of each kernel are in verify/<kernel>_cases.cpp.
[[nodiscard]] std::vector<Case> append_tokens_cases();
[[nodiscard]] std::vector<Case> gather_rows_cases();
[[nodiscard]] std::vector<Case> populate_rows_cases();
[[nodiscard]] std::vector<Case> tma_tile_load_cases();
[[nodiscard]] std::vector<Case> gather4_tile_load_cases();
[[nodiscard]] std::vector<Case> lds_stage_cases();
[[nodiscard]] std::vector<Case> paged_decode_cases();
[[nodiscard]] std::vector<Case> paged_prefill_cases();
[[nodiscard]] std::vector<Case> mla_decode_cases();
[[nodiscard]] std::vector<Case> continuous_decode_cases();

struct Kernel {
  std::string name;  // folder of gpu/kernels
  std::string what;  // one line
  std::vector<Case> cases;
};
// In pipeline order: writing, lookup, staging, attention.
[[nodiscard]] const std::vector<Kernel>& all_kernels();

}  // namespace kvscope::gpu
