// Runs a scenario in a separate process. If that process ends with a fault, by a signal or for lack of memory, the
// caller gets a message, and the window stays open.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "viz/playback/event_source.h"
#include "viz/playback/run.h"

namespace kvscope::apps {

// Starts `program --simulate scenario --trace <temporary file>` and waits for it. With `text`, that is the scenario,
// and `scenario` the file that it was: the text goes to the program's standard input. `progress` is called at least
// ten times per second; if it returns false, the child is ended and viz::Cancelled is thrown. No file remains on disk.
// Can be called from any thread, without an event loop. Throws InputError with the child's fault lines, or how it
// ended.
[[nodiscard]] std::unique_ptr<viz::EventSource> simulate_in_child(
    const std::string& program, const std::string& scenario, const viz::OpenProgress& progress,
    const std::optional<std::string>& text = std::nullopt);

}  // namespace kvscope::apps
