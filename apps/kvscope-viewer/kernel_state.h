// The state of a controlled run as the window shows it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/virtual/debug/controlled_run.h"
#include "viz/playback/kernel_run.h"

namespace kvscope::apps {

// The warp whose registers are shown; -1, or a warp that is not there: that of the next instruction.
struct ShownWarp {
  std::int32_t cta = -1, warp = -1;
  std::string lanes = {};  // of a group of the warp; empty, or not among them: the next one, else the first
};

// `reports`: all that are known. Without `arrived` and `last`, which the run knows.
[[nodiscard]] viz::KernelState kernel_state(ptx::ControlledRun& run, const std::vector<ptx::Report>& reports,
                                            const ShownWarp& wanted);

}  // namespace kvscope::apps
