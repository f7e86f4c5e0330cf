// How the facts of a run come about: from the scenario in its meta, and from one look at every event before the first
// is folded. What the scenario cannot know is counted (its requests may come from a file); where there is no scenario
// that can be read, the pool is measured too:
//
//   blocks      1 + the highest block that is named, or as many as a step_ended counts
//   page_size   first_token - slot is a multiple of it: the greatest number that divides all of them. Where nobody
//               leaves the first page, the highest slot written + 1.
#pragma once

#include <cstdint>
#include <string>

#include "viz/playback/event_source.h"
#include "viz/playback/facts.h"

namespace kvscope::viz {

// A trace that claims more is refused: a block takes 20 bytes, a sequence 64.
inline constexpr std::int64_t kMostBlocks = std::int64_t{1} << 27;
inline constexpr std::int64_t kMostSequences = std::int64_t{1} << 24;
inline constexpr std::int64_t kMostPageSize = (std::int64_t{1} << 31) - 1;  // [tokens]

class FactsScan {
 public:
  // `shown` is the name where the scenario has none.
  FactsScan(const EventSource& source, std::string shown);
  void add(const trace::Event& event);
  // After the last event. Throws InputError(shown, ...) past the limits above.
  [[nodiscard]] Facts finish() const;

 private:
  Facts facts_;
  std::string shown_;
  std::int64_t sequences_ = 0, blocks_ = 0, pages_ = 0;  // 1 + the highest that is named
  std::int64_t starts_ = 0;                              // greatest common divisor of first_token - slot
  std::int64_t slots_ = 0;                               // 1 + the highest that is written
};

}  // namespace kvscope::viz
