// What every event struct consists of: the detail at which it is recorded, and its named numbers.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvscope::trace {

// How much is recorded. `steps` keeps the start and end of engine steps and the events of requests;
// `full` adds what happened to every block and token.
enum class Detail : std::uint8_t { off, steps, full };

template <class Event, class Member>
struct Field {
  std::string_view name;
  Member Event::*member;
};
template <class Event, class Member>
Field(const char*, Member Event::*) -> Field<Event, Member>;

// Converts every number of an event to or from 64 bits, in the order of fields(); used by files and diffs.
template <class Number>
[[nodiscard]] constexpr std::int64_t to_i64(Number x) {
  if constexpr (requires { x.value; }) {
    return static_cast<std::int64_t>(x.value);
  } else {
    return static_cast<std::int64_t>(x);
  }
}
template <class Number>
constexpr void from_i64(Number& x, std::int64_t bits) {
  if constexpr (requires { x.value; }) {
    x = Number(static_cast<typename Number::rep>(bits));
  } else {
    x = static_cast<Number>(bits);
  }
}

}  // namespace kvscope::trace
