#include "core/golden/verdict/group_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <unordered_set>
#include <utility>

namespace kvscope::golden {
namespace {

constexpr double kGroupFalseAlarm = 1e-7;  // of all groups of a report together

// E[z^2; |z| >= t] and sqrt(E[z^4; |z| >= t]) of a normal z, at t = index / 32; both fall with t.
struct Tail {
  double second, root_fourth;
};
constexpr std::size_t kTailSteps = 32, kTailEntries = 10 * kTailSteps;

const std::array<Tail, kTailEntries>& tails() {
  static const std::array<Tail, kTailEntries> table = [] {
    std::array<Tail, kTailEntries> all{};
    for (std::size_t i = 0; i < kTailEntries; ++i) {
      const double t = static_cast<double>(i) / kTailSteps;
      const double density = std::exp(-t * t / 2) / std::sqrt(2 * std::numbers::pi);
      const double beyond = std::erfc(t / std::numbers::sqrt2) / 2;
      all[i] = {2 * (t * density + beyond), std::sqrt(2 * ((t * t * t + 3 * t) * density + 3 * beyond))};
    }
    return all;
  }();
  return table;
}

struct Group {
  double sum = 0, expected = 0, second_moment = 0, visible = 0;
  std::size_t rows = 0;
  std::unordered_set<double> seen;

  void add(const RowEvidence& row, double identity) {
    if (!seen.insert(identity).second) return;
    sum += row.sum;
    expected += row.expected;
    second_moment += row.root_second_moment * row.root_second_moment;
    visible = std::max(visible, row.visible);
    ++rows;
  }
  [[nodiscard]] double allowed(double x) const {
    return expected + std::sqrt(2 * second_moment * x) + 2 * std::max(visible, 1.0) * x;
  }
};

std::string group_text(std::pair<std::int64_t, std::int64_t> key) {
  const auto& [sequence, head] = key;
  if (sequence < 0) return fmt::format("head {} of all sequences", head);
  if (head < 0) return fmt::format("sequence {}, all heads", sequence);
  return fmt::format("sequence {}, head {}", sequence, head);
}

}  // namespace

void RowEvidence::add(double excess, double boundary, double deviations) {
  if (std::isnan(excess) || std::isnan(boundary)) return;  // the element's own bound fails then
  sum += excess * excess;
  const auto index = static_cast<std::size_t>(std::min(boundary * kTailSteps, double{kTailEntries - 1}));
  const Tail& tail = tails()[index];
  expected += tail.second;
  root_second_moment += tail.root_fourth;
  visible += std::max(0.0, 1 - boundary * boundary / (deviations * deviations));
}

GroupResult test_groups(std::span<const RowEvidence> rows, std::span<const RowLabel> labels) {
  std::map<std::pair<std::int64_t, std::int64_t>, Group> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowLabel& label = labels[i];
    groups[{label.sequence, label.head}].add(rows[i], label.identity);
    groups[{label.sequence, -1}].add(rows[i], label.identity);
    groups[{-1, label.head}].add(rows[i], label.identity);
  }
  GroupResult result;
  result.groups = static_cast<std::int64_t>(groups.size());
  const double x = std::log(static_cast<double>(std::max<std::size_t>(groups.size(), 1)) / kGroupFalseAlarm);
  for (const auto& [key, group] : groups) {
    const double ratio = group.sum / group.allowed(x);
    if (!(ratio <= 1)) ++result.failing;
    if (ratio <= result.ratio && !result.worst.empty()) continue;
    result.ratio = ratio;
    result.worst = group_text(key);
    result.place = {key.first, key.second};
    result.rows = group.rows;
  }
  return result;
}

}  // namespace kvscope::golden
