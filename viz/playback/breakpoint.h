// A breakpoint: the kind of event at which playback stops, optionally with conditions on the event's numbers.
//
//   block_evicted
//   block_allocated block=7
//   step_ended free_blocks<4 running>=2
//   tokens_written seq=3 decode=1
//   off block_evicted                    kept in the list, but disabled
//
// Kinds and fields are those of core/trace/events.h; operators are = != < <= > >=. Blanks around an operator are
// ignored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/trace/events.h"

namespace kvscope::viz {

enum class Compare : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal };

struct Condition {
  std::size_t field = 0;  // index into trace::field_names(kind)
  Compare compare = Compare::equal;
  std::int64_t value = 0;
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Breakpoint {
  std::size_t kind = 0;               // index of the alternative of trace::Event
  std::vector<Condition> conditions;  // all must hold
  bool enabled = true;
  friend bool operator==(const Breakpoint&, const Breakpoint&) = default;
};

// Throws InputError("breakpoint", ...) with every fault: an unknown kind or field (with the nearest valid name), an
// invalid number, a missing operator.
[[nodiscard]] Breakpoint parse_breakpoint(std::string_view text);
[[nodiscard]] std::string to_text(const Breakpoint& breakpoint);  // parse_breakpoint() of it gives the same breakpoint
// Whether the breakpoint is enabled, the event is of its kind, and every condition holds.
[[nodiscard]] bool matches(const Breakpoint& breakpoint, const trace::Event& event);

}  // namespace kvscope::viz
