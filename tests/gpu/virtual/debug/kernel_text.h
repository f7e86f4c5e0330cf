// One small kernel of two warps with a loop, a divergent branch, a barrier, shared and global stores: it covers every
// stop condition.
#pragma once

#include <memory>
#include <string>

#include "gpu/virtual/machine/device.h"

namespace kvscope::ptx::test {

// "steps.ptx", with lines of "steps.cu": 1 sets up, 2 loops, 3 stores to shared memory, 4 is the barrier, 5 reads the
// other warp's word, 6 stores the result: out[t] = word of thread t ^ 32 after `rounds` rounds of x = 3 x + t, odd x
// halved.
[[nodiscard]] std::string steps_ptx();

struct StepsLaunch {
  Device device;
  const LoadedModule* module = nullptr;
  LaunchConfig config;
  std::uint64_t out = 0;
};
[[nodiscard]] std::unique_ptr<StepsLaunch> steps_launch(int rounds, Policy policy = Policy::late,
                                                        std::uint64_t seed = 0, const std::string& text = steps_ptx());

}  // namespace kvscope::ptx::test
