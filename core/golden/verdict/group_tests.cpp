#include "core/golden/verdict/group_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "core/golden/verdict/detail/bits_set.h"
#include "core/golden/verdict/detail/verdict_loops.h"

namespace kvscope::golden {
namespace {

constexpr double kGroupFalseAlarm = 1e-7;  // of all groups of a report together

// E[z^2; |z| >= t] and sqrt(E[z^4; |z| >= t]) of a normal z, at t = index / 32; both fall with t.
struct Tail {
  double second, root_fourth;
};

const std::array<Tail, std::size_t{kTailEntries}>& tails() {
  static const std::array<Tail, std::size_t{kTailEntries}> table = [] {
    std::array<Tail, std::size_t{kTailEntries}> all{};
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
  bool any = false;  // a row belongs to it, counted or not

  void add(const RowEvidence& row, bool counted) {
    any = true;
    if (!counted) return;
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

std::string group_text(std::int64_t sequence, std::int64_t head) {
  if (sequence < 0) return fmt::format("head {} of all sequences", head);
  if (head < 0) return fmt::format("sequence {}, all heads", sequence);
  return fmt::format("sequence {}, head {}", sequence, head);
}

}  // namespace

void RowEvidence::add(double excess, double boundary, double deviations) {
  if (std::isnan(excess) || std::isnan(boundary)) return;  // the element's own bound fails then
  sum += excess * excess;
  const auto index = static_cast<std::size_t>(std::min(boundary * kTailSteps, static_cast<double>(kTailEntries - 1)));
  const Tail& tail = tails()[index];
  expected += tail.second;
  root_second_moment += tail.root_fourth;
  visible += std::max(0.0, 1 - boundary * boundary / (deviations * deviations));
}

void RowEvidence::add(const EvidenceBlock& elements, std::int64_t count) {
  const Tail* const tail = tails().data();
  RowEvidence even, odd;  // two sums at a time: an addition waits for the one before it
  const auto take = [&](RowEvidence& part, std::int64_t i) {
    const Tail& beyond = tail[elements.boundary[i]];
    part.sum += elements.excess2[i];
    part.expected += beyond.second;
    part.root_second_moment += beyond.root_fourth;
    part.visible += elements.visible[i];
  };
  std::int64_t i = 0;
  for (; i + 2 <= count; i += 2) take(even, i), take(odd, i + 1);
  if (i < count) take(even, i);
  sum += even.sum + odd.sum;
  expected += even.expected + odd.expected;
  root_second_moment += even.root_second_moment + odd.root_second_moment;
  visible += even.visible + odd.visible;
}

RowGroups::RowGroups(std::span<const RowLabel> labels) : members_(labels.size()) {
  const auto index_by = [&](auto value_of, auto set_index) {
    std::map<std::int64_t, std::uint32_t> known;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const std::int64_t value = value_of(labels[i]);
      if (i == 0 || value != value_of(labels[i - 1])) known.try_emplace(value, 0);
    }
    std::vector<std::int64_t> sorted;
    for (auto& [value, index] : known) {
      index = static_cast<std::uint32_t>(sorted.size());
      sorted.push_back(value);
    }
    std::uint32_t index = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const std::int64_t value = value_of(labels[i]);
      // The value of the row before, or the one after it: rows are in the order of sequences, then heads.
      if (sorted[index] != value) index = index + 1 < sorted.size() ? index + 1 : 0;
      if (sorted[index] != value) index = known.find(value)->second;
      set_index(members_[i], index);
    }
    return sorted;
  };
  sequences_ = index_by([](const RowLabel& label) { return label.sequence; },
                        [](Member& member, std::uint32_t index) { member.sequence = index; });
  heads_ = index_by([](const RowLabel& label) { return label.head; },
                    [](Member& member, std::uint32_t index) { member.head = index; });

  // Most identities occur once or a few times: such rows are compared with the rows before them. A set serves those
  // that occur often, as in an output whose rows are all equal.
  constexpr std::uint32_t kFew = 16, kNone = 0xffffffff;
  BitsSet identities(labels.size());
  std::vector<std::uint32_t> identity(labels.size(), kNone), before(labels.size(), kNone), last, occurrences;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::optional<std::uint64_t> key = key_of(labels[i].identity);
    if (!key) continue;
    identity[i] = identities.index_of(*key);
    if (identity[i] == last.size()) last.push_back(kNone), occurrences.push_back(0);
    before[i] = std::exchange(last[identity[i]], static_cast<std::uint32_t>(i));
    ++occurrences[identity[i]];
  }
  const std::size_t heads = heads_.size(), sequences = sequences_.size();
  const std::uint64_t groups = sequences * heads + sequences + heads;
  std::size_t often = 0;
  for (const std::uint32_t rows : occurrences) often += rows > kFew ? rows : 0;
  BitsSet seen(3 * often);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (identity[i] == kNone || occurrences[identity[i]] == 1) continue;
    Member& member = members_[i];
    if (occurrences[identity[i]] > kFew) {
      const std::uint64_t first = identity[i] * groups;
      member.in_both = seen.insert(first + member.sequence * heads + member.head);
      member.in_sequence = seen.insert(first + sequences * heads + member.sequence);
      member.in_head = seen.insert(first + sequences * heads + sequences + member.head);
      continue;
    }
    for (std::uint32_t other = before[i]; other != kNone; other = before[other]) {
      const bool same_sequence = members_[other].sequence == member.sequence;
      const bool same_head = members_[other].head == member.head;
      if (same_sequence) member.in_sequence = false;
      if (same_head) member.in_head = false;
      if (same_sequence && same_head) member.in_both = false;
    }
  }
}

GroupResult RowGroups::test(std::span<const RowEvidence> rows) const {
  std::vector<Group> of_sequence(sequences_.size()), of_head(heads_.size()), of_both(sequences_.size() * heads_.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Member& member = members_[i];
    of_both[member.sequence * heads_.size() + member.head].add(rows[i], member.in_both);
    of_sequence[member.sequence].add(rows[i], member.in_sequence);
    of_head[member.head].add(rows[i], member.in_head);
  }
  const auto each = [&](const auto& visit) {
    for (std::size_t h = 0; h < heads_.size(); ++h) visit(of_head[h], -1, heads_[h]);
    for (std::size_t s = 0; s < sequences_.size(); ++s) {
      visit(of_sequence[s], sequences_[s], -1);
      for (std::size_t h = 0; h < heads_.size(); ++h) visit(of_both[s * heads_.size() + h], sequences_[s], heads_[h]);
    }
  };
  GroupResult result;
  each([&](const Group& group, std::int64_t, std::int64_t) { result.groups += group.any ? 1 : 0; });
  const double x = std::log(static_cast<double>(std::max<std::int64_t>(result.groups, 1)) / kGroupFalseAlarm);
  each([&](const Group& group, std::int64_t sequence, std::int64_t head) {
    if (!group.any) return;
    const double ratio = group.sum / group.allowed(x);
    if (!(ratio <= 1)) ++result.failing;
    if (ratio <= result.ratio && !result.worst.empty()) return;
    result.ratio = ratio;
    result.worst = group_text(sequence, head);
    result.place.sequence = sequence;
    result.place.head = head;
    result.rows = group.rows;
  });
  return result;
}

GroupResult test_groups(std::span<const RowEvidence> rows, std::span<const RowLabel> labels) {
  return RowGroups(labels).test(rows);
}

}  // namespace kvscope::golden
