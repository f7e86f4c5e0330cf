#include "core/base/nearest_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace kvscope {
namespace {

// The number of insertions, deletions, replacements and swaps of adjacent characters that turn one word into the other.
// Keeps three rows of the table.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1), above(row), two_above(row);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    two_above.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1), above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr std::size_t kLongestTyped = 64;  // no legal name is longer; a limit, because a name may be hostile

}  // namespace

std::string_view nearest_name(std::string_view typed, std::span<const std::string_view> names) {
  if (typed.size() > kLongestTyped) return {};
  const auto is_typed = [&](std::string_view name) {
    return std::ranges::equal(name, typed, {}, &lower_case, &lower_case);
  };
  if (const auto same = std::ranges::find_if(names, is_typed); same != names.end()) return *same;
  std::string_view best;
  std::size_t best_distance = std::min(std::max<std::size_t>(1, typed.size() / 3) + 1, typed.size());
  for (const std::string_view candidate : names) {
    const std::size_t distance = edit_distance(typed, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggest_name(std::string_view typed, std::span<const std::string_view> names) {
  const std::string_view near = nearest_name(typed, names);
  if (!near.empty()) return fmt::format(": did you mean \"{}\"?", near);
  return fmt::format(": choose one of {}", fmt::join(names, ", "));
}

}  // namespace kvscope
