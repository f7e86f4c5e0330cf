// Helpers of the tests of the playback: a run from a vector of events, and the last event before a cursor.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "viz/playback/cursor.h"
#include "viz/playback/event_source.h"
#include "viz/playback/event_tape.h"

namespace kvscope::viz {

// `meta` has the keys that trace::TraceWriter takes: "producer", "scenario", ...
[[nodiscard]] inline std::unique_ptr<EventSource> from_memory(const std::vector<trace::Event>& events, trace::Meta meta,
                                                              trace::Detail detail) {
  EventTape tape;
  for (const trace::Event& event : events) tape.push(event);
  return from_tape(std::move(tape), std::move(meta), detail);
}

// The last event before the position; nullopt at position 0.
[[nodiscard]] inline std::optional<trace::Event> last_event(const Cursor& cursor) {
  if (cursor.at_start()) return std::nullopt;
  return EventTape::Reader(cursor.run().tape(), cursor.position().value - 1).next();
}

}  // namespace kvscope::viz
