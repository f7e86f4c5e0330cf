#include "gpu/virtual/machine/cta_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "core/base/numbers.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kMostSampled = std::int64_t{1} << 20;  // CTAs of one range

using Extents = std::array<std::int64_t, 3>;

// "0-3,(1,2,0),last" -> "0-3", "(1,2,0)", "last".
std::vector<std::string_view> items_of(std::string_view list) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && !inside)) {
      out.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    } else if (list[i] == '(' || list[i] == ')') {
      inside = list[i] == '(';
    }
  }
  return out;
}

std::optional<std::int64_t> number_of_cta(std::string_view text, std::int64_t last) {
  if (text == "last") return last;
  return whole_number<std::int64_t>(text);
}

// The CTAs [first, last] that an item means; the range may begin past the end of the grid. None: the item is no CTA.
std::optional<std::pair<std::int64_t, std::int64_t>> range_of(std::string_view item, const Extents& grid) {
  const std::int64_t last = grid[0] * grid[1] * grid[2] - 1;
  if (item.starts_with('(') && item.ends_with(')')) {
    const std::vector<std::string_view> axes = items_of(item.substr(1, item.size() - 2));
    if (axes.size() != 3) return std::nullopt;
    Extents at{};
    for (std::size_t i = 0; i < 3; ++i) {
      const auto value = whole_number<std::int64_t>(axes[i]);
      if (!value || *value < 0) return std::nullopt;
      at[i] = *value;
    }
    if (at[0] >= grid[0] || at[1] >= grid[1] || at[2] >= grid[2]) return std::pair{last + 1, last + 1};
    const std::int64_t cta = at[0] + grid[0] * (at[1] + grid[1] * at[2]);
    return std::pair{cta, cta};
  }
  const std::size_t dash = item.find('-');
  const auto first = number_of_cta(item.substr(0, dash), last);
  const auto end = dash == std::string_view::npos ? first : number_of_cta(item.substr(dash + 1), last);
  // A range that begins past the end of a small grid means nothing there; "7-3" is a mistake in every grid.
  if (!first || !end || *first < 0 || (*end < *first && item.substr(dash + 1) != "last")) return std::nullopt;
  return std::pair{*first, *end};
}

}  // namespace

CtaSample sample_ctas(std::string_view list, const Extents& grid, const Extents& cluster) {
  CtaSample out;
  const std::int64_t ctas = grid[0] * grid[1] * grid[2];
  std::set<std::int64_t> clusters;
  for (const std::string_view item : items_of(list)) {
    const auto range = range_of(item, grid);
    if (!range) {
      out.fault = fmt::format(
          "'{}' is not a CTA: write a number, a range such as 0-3, last, or coordinates such as (1,2,0)", item);
      return out;
    }
    if (range->first == 0 && range->second >= ctas - 1) return out;  // all of them
    if (std::min(range->second, ctas - 1) - range->first >= kMostSampled) {
      out.fault = fmt::format("'{}' is more than {} CTAs: write a smaller range", item, kMostSampled);
      return out;
    }
    for (std::int64_t cta = range->first; cta <= std::min(range->second, ctas - 1); ++cta) {
      const Extents at{cta % grid[0] / cluster[0], cta / grid[0] % grid[1] / cluster[1],
                       cta / (grid[0] * grid[1]) / cluster[2]};
      clusters.insert(at[0] + grid[0] / cluster[0] * (at[1] + grid[1] / cluster[1] * at[2]));
    }
  }
  if (clusters.empty()) {
    out.fault = fmt::format("'{}' names no CTA of this grid, which has CTAs 0 to {}", list, ctas - 1);
  } else if (static_cast<std::int64_t>(clusters.size()) * cluster[0] * cluster[1] * cluster[2] < ctas) {
    out.clusters.assign(clusters.begin(), clusters.end());
  }
  return out;
}

}  // namespace kvscope::ptx
