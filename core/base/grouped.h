// Numbers for people: digits in groups of three. One form for reports, the viewer and the notes of scenarios.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kvscope {

// Examples: "999", "1,024", "-73,728", "1,234,567".
[[nodiscard]] inline std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t sign = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > sign + 3;) text.insert(at -= 3, ",");
  return text;
}

}  // namespace kvscope
