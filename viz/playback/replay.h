// Applies a range of events to a state. The blocks and sequences of a large run are larger than the processor's caches,
// and events touch them in any order: the data of an event is fetched while the events before it are applied.
//
//   decode ---> | e+24 | ... | e+12 | ... | e+1 | e | ---> apply
//                 fetch the    fetch its
//                 sequence     page's entry
//                 and block    of the table
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "viz/playback/event_tape.h"
#include "viz/playback/state.h"

namespace kvscope::viz {

inline constexpr std::size_t kFetchAhead = 24, kFetchRowAhead = 12;  // [events]

// Events [first, end) of the tape, in order. `each(event, position)` is called when an event has been applied, with
// the position after it. An event that the state rejects ends it with apply()'s exception.
// Precondition (caller): the state is that at `first`, and 0 <= first <= end <= tape.size().
template <class Each>
void replay(State& state, const Facts& facts, const EventTape& tape, std::int64_t first, std::int64_t end,
            Each&& each) {
  constexpr std::size_t kRing = 32;
  static_assert(kRing > kFetchAhead && kFetchAhead > kFetchRowAhead);
  std::array<trace::Event, kRing> ring;
  EventTape::Reader reader(tape, first);
  const auto slot = [](std::int64_t position) { return static_cast<std::size_t>(position) % kRing; };
  for (std::int64_t at = first; at < end; ++at) {
    for (; reader.position() < std::min(end, at + static_cast<std::int64_t>(kFetchAhead));) {
      const std::size_t next = slot(reader.position());
      ring[next] = reader.next();
      fetch_objects(state, ring[next]);
    }
    if (const std::int64_t row = at + static_cast<std::int64_t>(kFetchRowAhead); row < reader.position()) {
      fetch_row(state, ring[slot(row)]);
    }
    apply(state, facts, ring[slot(at)]);
    each(ring[slot(at)], at + 1);
  }
}

inline void replay(State& state, const Facts& facts, const EventTape& tape, std::int64_t first, std::int64_t end) {
  replay(state, facts, tape, first, end, [](const trace::Event&, std::int64_t) {});
}

}  // namespace kvscope::viz
