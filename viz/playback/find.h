// Parses the text of the find field into an object or a position.
//
//   7              block 7                    block 7 (the number after the last block: the null page)
//   3:70           token 70 of sequence 3     token 3:70     seq 3 token 70
//   seq 3          sequence 3
//   page 3:2       page 2 of sequence 3
//   step 12        engine step 12
//   row 6          row 6 of the tile that is shown, and of it: chunk 6:3 its chunk 3, scale 6:1 its scale 1,
//                  bytes 6:512 the 16 bytes from its byte 512 on
//   axis 2         axis 2 of the tile's tensor map
//   lane 26        lane 26            register 26:0  its register 0; lane 1:26, register 1:26:0: of wave 1
//   event 5000     right after event 5000, counted from 0 as `kvscope trace show` does
//   evicted        the next event whose kind's name contains the word: block_evicted
//   byte 0x1f40    the element of the pool's memory at that offset; decimal or hexadecimal
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "viz/playback/cursor.h"
#include "viz/playback/run.h"
#include "viz/playback/selection.h"

namespace kvscope::viz {

struct FindByte {
  std::int64_t offset = 0;  // [bytes] in the pool
  friend bool operator==(const FindByte&, const FindByte&) = default;
};
struct FindEvent {
  std::size_t kind = 0;
  friend bool operator==(const FindEvent&, const FindEvent&) = default;
};
struct FindPosition {
  Position position;
  friend bool operator==(const FindPosition&, const FindPosition&) = default;
};
// A step is a Selection of kind step; the window moves the cursor to it.
using Target = std::variant<Selection, FindPosition, FindEvent, FindByte>;

// Throws InputError("find", ...) for an unknown form (the message has an example of each form above) and for an index
// out of range (the message gives the range). Case and extra blanks are ignored.
[[nodiscard]] Target parse_find(std::string_view text, const Facts& facts);

// The first step after which the token is in the cache. Nothing: never, or the run has more than kMostSearched events.
inline constexpr std::int64_t kMostSearched = 4'000'000;
[[nodiscard]] std::optional<StepIdx> first_step_of(const Run& run, SeqIdx seq, TokIdx token);

}  // namespace kvscope::viz
