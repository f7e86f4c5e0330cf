// Runs the CTAs of a launch on several threads (LaunchOptions::jobs), with the results, counters and reports of one thread.
//
//   Launch launch = device.begin(module, config, monitor);
//   run_parts(launch);                                         finished, or not begun: Launch::one_thread is the reason
//   while (launch.status == LaunchStatus::running) run(launch, ~std::uint64_t{0});
//
// The clusters are divided into parts: contiguous ranges, four for each thread. Each part runs on private memory
// (memory_part.h) with monitors of its own (Monitor::fork). The launch takes over bytes, printed text and monitors, in the
// order of the CTAs, only if no part has made a report and no two parts have accessed the same 4 bytes of device memory, one
// of them with a write. Otherwise all of it is dropped, and the launch runs on one thread. That run makes the same reports
// whatever the number of threads is.
//
// Not tried: cooperative launches, schedules by seed, kernels whose CTAs can see one another by their instructions
// (cta_communication.h) or that discard bytes, and monitors that need the order of one thread.
#pragma once

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

inline constexpr std::int64_t kMostJobs = 256;

// Precondition: no step of the launch has run. Throws what interruption_point() throws, on the calling thread, which waits.
void run_parts(Launch& launch);

}  // namespace kvscope::ptx
