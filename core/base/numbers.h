// Numbers from text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace kvscope {

// The whole text as a number of that type; empty when the text is not a number, does not fit, or has any other
// character before or after the number. A base or a std::chars_format is passed to std::from_chars. Only signed types
// accept a minus. Example: whole_number<int>("12") == 12; whole_number<int>("12 "), ("+12") and ("") are empty.
template <class Number, class... Format>
[[nodiscard]] std::optional<Number> whole_number(std::string_view text, Format... format) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, format...);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace kvscope
