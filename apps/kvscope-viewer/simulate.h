// Runs a scenario through the paging engine for the viewer: for a picture, in this process and into memory; for a
// window, in a separate process and into a trace file, so that the window survives a crash.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/pipeline/run_scenario.h"
#include "viz/playback/event_source.h"

namespace kvscope::apps {

// Throws InputError with every fault of the scenario and its requests; viz::Cancelled when `progress` returns false.
[[nodiscard]] std::unique_ptr<viz::EventSource> simulate_in_memory(const std::string& scenario,
                                                                   const ProgressFunction& progress);

// --simulate: the child process of simulate_in_child(). Writes the complete trace or none. Prints lines "progress
// <done> <all>" to standard output, at most ten per second, and stops when the reader has closed the pipe. `changed`:
// the scenario is read from standard input, and only its file of requests is beside `scenario`. Returns the exit code;
// throws as above.
[[nodiscard]] int simulate_to_file(const std::string& scenario, const std::string& trace, bool changed = false);

}  // namespace kvscope::apps
