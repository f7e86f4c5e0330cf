// A scenario run through the paging engine, for the viewer: in this process, packed in memory, for a picture; in a
// process of its own, into a trace file, for a window that must outlive it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/pipeline/run_scenario.h"
#include "viz/playback/event_source.h"

namespace kvscope::apps {

// Throws InputError with every fault of the scenario and its requests; viz::Cancelled when `progress` says false.
[[nodiscard]] std::unique_ptr<viz::EventSource> simulate_in_memory(const std::string& scenario,
                                                                   const ProgressFunction& progress);

// --simulate: the other end of simulate_in_child(). Writes the trace whole or not at all; prints "progress <done>
// <all>" lines on standard output, ten a second at most, and stops when nobody reads them any more. Returns the exit
// code; throws as above.
[[nodiscard]] int simulate_to_file(const std::string& scenario, const std::string& trace);

}  // namespace kvscope::apps
