// Whole numbers of options: decimal, or hexadecimal after 0x, in the range of their type. A number outside of it is not
// converted, and the range is kept for the message.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>

namespace kvscope::apps {

// The range that the last rejected whole number exceeded; empty if a text was rejected that is no whole number.
struct WholeRange {
  std::int64_t least = 0;
  std::uint64_t most = 0;
};
inline std::optional<WholeRange> exceeded_range;

// Example: convert_whole("-1", 0U, 4294967295U, n) is false and sets exceeded_range to 0 .. 4294967295.
template <class T>
[[nodiscard]] bool convert_whole(const std::string& text, T least, T most, T& value) noexcept {
  exceeded_range.reset();
  const bool is_negative = text.starts_with('-');
  const std::size_t first = is_negative || text.starts_with('+') ? 1 : 0;
  if (first == text.size() || text[first] < '0' || text[first] > '9') return false;
  char* end = nullptr;
  errno = 0;
  // Base 0 would also read 010 as the octal number 8.
  const bool is_hex = text.compare(first, 2, "0x") == 0 || text.compare(first, 2, "0X") == 0;
  const std::uint64_t magnitude = std::strtoull(text.c_str() + first, &end, is_hex ? 16 : 10);
  if (end != text.c_str() + text.size()) return false;
  const std::uint64_t limit =
      is_negative ? std::uint64_t{0} - static_cast<std::uint64_t>(least) : static_cast<std::uint64_t>(most);
  const std::uint64_t allowed = is_negative && !std::is_signed_v<T> ? 0 : limit;
  if (errno == ERANGE || magnitude > allowed) {
    exceeded_range = WholeRange{static_cast<std::int64_t>(least), static_cast<std::uint64_t>(most)};
    return false;
  }
  value = static_cast<T>(is_negative ? std::uint64_t{0} - magnitude : magnitude);
  return true;
}

}  // namespace kvscope::apps
