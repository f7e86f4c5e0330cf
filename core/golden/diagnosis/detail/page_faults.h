// What one page or one key of a sequence can have wrong, and the trial of it: for the search for a wrong page, which
// tries them all, and for a page that a test of many elements names.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/golden/diagnosis/hypotheses.h"

namespace kvscope::golden {

enum class PageMistake : std::uint8_t {
  other_block,  // read from another block
  left_out,
  twice,      // counted twice
  zeros,      // read as zeros
  exchanged,  // with another page of the sequence
  elsewhere,  // read from its own block, but in another layer or on the other side of the K/V axis
};

struct PageFault {
  PageMistake mistake = PageMistake::left_out;
  std::int64_t page = 0;
  std::int64_t key = -1;    // left_out, twice: this key alone, not its page
  std::int64_t block = -1;  // other_block
  std::int64_t other = -1;  // exchanged: the other page; elsewhere: index in places_elsewhere
};

// A place outside of the lookup table's reach, and the change of a key that is read there.
struct PlaceElsewhere {
  std::string name, from, look_at;
  std::function<void(KeyRead&)> change;
};
[[nodiscard]] std::vector<PlaceElsewhere> places_elsewhere(const DiagnosisInput& input);

// The fault in the sequence of `row`.
[[nodiscard]] Trial trial_of(const PageFault& fault, const std::vector<PlaceElsewhere>& places,
                             const RowEvaluator& row);

// Whether it may be a fault of the loop over keys or pages, which is the same in all sequences: two of them have this
// key or page. The first page has its hypothesis.
[[nodiscard]] bool is_of_loop(const PageFault& fault, const attention::Problem& problem);

// The same fault at this place of every sequence; `trial` is that of one.
[[nodiscard]] Trial in_every_sequence(const PageFault& fault, Trial trial);

// The trials of one page: left out, counted twice, of zeros, elsewhere, and, for `other` >= 0, read from the block of
// this page, or exchanged with it.
[[nodiscard]] std::vector<Trial> trials_of_page(const DiagnosisInput& input, const RowEvaluator& row, std::int64_t page,
                                                std::int64_t other);

}  // namespace kvscope::golden
