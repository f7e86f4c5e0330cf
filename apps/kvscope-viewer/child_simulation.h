// A scenario run in a process of its own: whatever ends it (a fault, a signal, no memory left) is a message here, and
// the window and what it shows go on.
#pragma once

#include <memory>
#include <string>

#include "viz/playback/event_source.h"
#include "viz/playback/run.h"

namespace kvscope::apps {

// Starts `program --simulate scenario --trace <temporary file>` and waits for it; `progress` is asked at least ten
// times a second and ends it by saying false (viz::Cancelled). Nothing is left on disk. Any thread; no event loop is
// needed. Throws InputError: the child's own fault lines, or how it ended.
[[nodiscard]] std::unique_ptr<viz::EventSource> simulate_in_child(const std::string& program,
                                                                  const std::string& scenario,
                                                                  const viz::OpenProgress& progress);

}  // namespace kvscope::apps
