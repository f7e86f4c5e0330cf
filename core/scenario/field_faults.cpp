#include "core/scenario/detail/field_faults.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/json.h"

namespace kvscope::fields {
namespace {

std::string with_next(std::string text, const About& about) {
  if (!about.next.empty()) text.append(": ").append(about.next);
  return text;
}

bool is_identifier(std::string_view key) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; };
  return !key.empty() && letter(key.front()) &&
         std::ranges::all_of(key, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

std::string range_text(IntegerRange range) {
  return fmt::format("[{}, {}]", range.low, range.high);
}

std::string range_text(RealRange range) {
  return fmt::format("{}{}, {}]", range.low_is_legal ? '[' : '(', range.low, range.high);
}

std::optional<std::string> range_fault(std::int64_t value, IntegerRange range, const About& about) {
  if (value >= range.low && value <= range.high) return std::nullopt;
  return with_next(fmt::format("{} is outside {}", value, range_text(range)), about);
}

std::optional<std::string> range_fault(std::uint64_t value, std::uint64_t high, const About& about) {
  if (value <= high) return std::nullopt;
  return with_next(fmt::format("{} is outside [0, {}]", value, high), about);
}

std::optional<std::string> range_fault(double value, RealRange range, const About& about) {
  const bool above_low = range.low_is_legal ? value >= range.low : value > range.low;
  if (above_low && value <= range.high) return std::nullopt;
  return with_next(fmt::format("{} is outside {}", value, range_text(range)), about);
}

std::optional<std::string> text_fault(std::string_view text, const About& about) {
  const auto limit = static_cast<std::size_t>(kMaxText);
  if (text.size() <= limit) return std::nullopt;
  return with_next(fmt::format("{} bytes are more than the {} allowed", text.size(), limit), about);
}

std::optional<std::string> count_fault(std::size_t count, IntegerRange range, const About& about) {
  if (count <= static_cast<std::size_t>(range.high)) return std::nullopt;
  return with_next(fmt::format("{} entries are more than the {} allowed", count, range.high), about);
}

std::string join_path(std::string_view path, std::string_view key) {
  if (is_identifier(key)) return fmt::format("{}.{}", path, key);
  constexpr std::size_t kShown = 64;
  return fmt::format("{}[{}]", path, json::dump(json::Value(key.size() <= kShown ? key : std::string_view("...")), -1));
}

std::string join_path(std::string_view path, std::size_t index) {
  return fmt::format("{}[{}]", path, index);
}

}  // namespace kvscope::fields
