// A kernel on the virtual GPU for the window: implements viz/playback/kernel_run.h with a controlled run.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/launch/launch.h"
#include "viz/playback/kernel_run.h"

namespace kvscope::apps {

// By name, or by the text that a file begins with.
[[nodiscard]] bool is_ptx(const std::string& path);
// InputError: every error of the file.
[[nodiscard]] viz::KernelFile read_kernel_file(const std::string& path);

// A launch as its user types it <-> as it is prepared. InputError("launch"): a word that is no option, or its value.
[[nodiscard]] LaunchRequest request_of(const viz::KernelLaunch& launch);
[[nodiscard]] viz::KernelLaunch launch_of(const LaunchRequest& request);
// The command that debugs the same launch, quoted for a shell: "kvscope ptx debug scale.ptx --block 64 ...".
[[nodiscard]] std::string command_of(const viz::KernelLaunch& launch);

// Prepares the launch, executes it once to its end, and goes back to its beginning, so that all reports are known.
// InputError as prepare(). If `keep_going` returns false, the end is not known yet.
[[nodiscard]] std::unique_ptr<viz::KernelRun> start_kernel(const LaunchRequest& launch,
                                                           const std::function<bool()>& keep_going);

}  // namespace kvscope::apps
