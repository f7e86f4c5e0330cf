// What a kernel must give, written once: a case prepares inputs, runs the kernel on whatever device it is handed, and
// holds what came back against the golden model. The tests, `kvscope kernels verify` and the check program for GPU machines run
// the same cases.
//
//   movement    byte for byte, bytes that must stay untouched included; what must not be read is poisoned
//   attention   each element within the bound of core/attention/bounds.h
//
// A fault says where: the first element that differs, as (sequence, token, head, dim) and as block and slot, both values,
// and how many differ.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/launch/device.h"

namespace kvscope::gpu {

struct Verdict {
  std::vector<std::string> faults;  // empty: passed
  Costs costs;                      // summed over the case's launches; zero on hardware
  // Adds a launch's faults and costs. False when it has faults: there is nothing to compare then.
  bool take(const Outcome& outcome);
};

// What the launches of a case may cost on the virtual GPU, at most; none of them: not held. Worked out by hand from what
// the kernel has to move, in the comment where it is set.
struct Budget {
  std::optional<std::int64_t> wavefronts{}, sectors{}, tma_bytes{};
};

struct Case {
  std::string kernel;  // folder of gpu/kernels
  std::string name;    // "paged_bf16_page16_gqa": lower case, unique among the kernel's
  std::string what;    // one line: what easier data would let through
  bool demo = false;   // one small case a kernel, for `kernels verify --small`: under a second on the virtual GPU
  std::string architecture = "sm_90a";  // the first that has what it needs: gather4's hardware form is "sm_100a"
  Budget budget{};
  std::function<Verdict(Device&)> run;
};

// Cases of one kernel from descriptions of its own: each has name, what, demo and budget, and run(description, device)
// gives its verdict.
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

// The cases of each kernel stand in verify/<kernel>_cases.cpp.
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
// In the order of the chain: writing, finding, staging, attention.
[[nodiscard]] const std::vector<Kernel>& all_kernels();

}  // namespace kvscope::gpu
