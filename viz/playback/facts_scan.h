// Computes the facts of a run from the scenario in its meta and from one pass over all events, before the first event
// is applied to a state. Sequences and pages are always counted from the events, because a scenario's requests may come
// from a file. Without a readable scenario the sizes of the pool are computed from the events too:
//
//   blocks      1 + the highest block number in any event, or the number of blocks that a step_ended counts
//   page_size   the greatest common divisor of first_token - slot over all writes. If every write is to page 0 of its
//               sequence, the highest slot written + 1.
#pragma once

#include <cstdint>
#include <string>

#include "viz/playback/event_source.h"
#include "viz/playback/facts.h"

namespace kvscope::viz {

// A trace that exceeds these limits is rejected: a block takes 20 bytes of memory, a sequence 64.
inline constexpr std::int64_t kMostBlocks = std::int64_t{1} << 27;
inline constexpr std::int64_t kMostSequences = std::int64_t{1} << 24;
inline constexpr std::int64_t kMostPageSize = (std::int64_t{1} << 31) - 1;  // [tokens]

class FactsScan {
 public:
  // `shown` is the name of the run if the scenario has none.
  FactsScan(const EventSource& source, std::string shown);
  void add(const trace::Event& event);
  // To be called after the last event. Throws InputError(shown, ...) if a limit above is exceeded.
  [[nodiscard]] Facts finish() const;

 private:
  Facts facts_;
  std::string shown_;
  std::int64_t sequences_ = 0, blocks_ = 0, pages_ = 0;  // 1 + the highest number in any event
  std::int64_t starts_ = 0;                              // greatest common divisor of first_token - slot
  std::int64_t slots_ = 0;                               // 1 + the highest slot written
};

}  // namespace kvscope::viz
