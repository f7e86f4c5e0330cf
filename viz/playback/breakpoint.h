// When to stop: a kind of event, perhaps with conditions on its numbers.
//
//   block_evicted
//   block_allocated block=7
//   step_ended free_blocks<4 running>=2
//   tokens_written seq=3 decode=1
//   off block_evicted                    kept, but not stopped at
//
// Kinds and fields are those of core/trace/events.h; operators = != < <= > >=. Blanks around an operator do not matter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/trace/events.h"

namespace kvscope::viz {

enum class Compare : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal };

struct Condition {
  std::size_t field = 0;  // in trace::field_names(kind)
  Compare compare = Compare::equal;
  std::int64_t value = 0;
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Breakpoint {
  std::size_t kind = 0;               // of trace::Event
  std::vector<Condition> conditions;  // all must hold
  bool enabled = true;
  friend bool operator==(const Breakpoint&, const Breakpoint&) = default;
};

// Throws InputError("breakpoint", ...) with every fault: an unknown kind or field with the nearest name, a number
// that is none, an operator that is missing.
[[nodiscard]] Breakpoint parse_breakpoint(std::string_view text);
[[nodiscard]] std::string to_text(const Breakpoint& breakpoint);  // parses to the same
// Enabled, of this kind, and every condition holds.
[[nodiscard]] bool matches(const Breakpoint& breakpoint, const trace::Event& event);

}  // namespace kvscope::viz
