#include "core/golden/diagnosis/failure_pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace kvscope::golden {
namespace {

std::string range_words(const std::vector<std::int64_t>& counts, const std::string& one, const std::string& many) {
  std::vector<std::int64_t> failing;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) failing.push_back(static_cast<std::int64_t>(i));
  }
  if (failing.size() == counts.size())
    return counts.size() == 1 ? fmt::format("the only {}", one) : fmt::format("all {} {}", counts.size(), many);
  if (failing.size() == 1) return fmt::format("{} {} of {}", one, failing.front(), counts.size());
  const bool run = failing.back() - failing.front() + 1 == static_cast<std::int64_t>(failing.size());
  if (run) return fmt::format("{} {} to {} of {}", many, failing.front(), failing.back(), counts.size());
  if (failing.size() <= 8) return fmt::format("{} {} of {}", many, fmt::join(failing, ", "), counts.size());
  return fmt::format("{} of {} {}", failing.size(), counts.size(), many);
}

// One character for `failing` of `all`.
char mark(std::int64_t failing, std::int64_t all) {
  return failing == 0 ? '.' : 2 * failing >= all ? '#' : '-';
}

// At most kColumns characters for the entries of an axis; empty if all are alike. Neighbors share a column.
std::string marks(const std::vector<std::int64_t>& failing, const std::vector<std::int64_t>& all) {
  constexpr std::size_t kColumns = 64;
  const std::size_t step = (failing.size() + kColumns - 1) / kColumns;
  std::string text;
  for (std::size_t first = 0; first < failing.size(); first += step) {
    std::int64_t f = 0, a = 0;
    for (std::size_t i = first; i < std::min(failing.size(), first + step); ++i) {
      f += failing[i];
      a += all[i];
    }
    text += a == 0 ? ' ' : mark(f, a);
  }
  const bool alike = text.find_first_not_of(text.empty() ? '.' : text[0]) == std::string::npos;
  if (alike) return "";
  return step == 1 ? text : text + fmt::format("   {} per column", step);
}

}  // namespace

void count_row(FailurePattern& pattern, std::int64_t sequence, std::int64_t head, std::int64_t visible_keys, bool fails,
               const std::vector<std::size_t>& failing_dims) {
  const auto s = static_cast<std::size_t>(sequence), h = static_cast<std::size_t>(head);
  ++pattern.rows;
  ++pattern.rows_of_sequence[s];
  ++pattern.rows_of_head[h];
  std::int64_t first = visible_keys;
  if (first > 1) {
    for (first = 1; first * 2 <= visible_keys;) first *= 2;
  }
  const std::int64_t last = first < 2 ? first : 2 * first - 1;
  auto at = std::lower_bound(pattern.lengths.begin(), pattern.lengths.end(), first,
                             [](const FailurePattern::Lengths& l, std::int64_t x) { return l.first < x; });
  if (at == pattern.lengths.end() || at->first != first) at = pattern.lengths.insert(at, {first, last, 0, 0});
  ++at->rows;
  if (!fails) return;
  ++at->failing_rows;
  ++pattern.failing_rows;
  ++pattern.failing_of_sequence[s];
  ++pattern.failing_of_head[h];
  const auto elements = static_cast<std::int64_t>(failing_dims.size());
  pattern.sequences[s] += elements;
  pattern.heads[h] += elements;
  for (const std::size_t d : failing_dims) ++pattern.dims[d];
}

void find_pages(FailurePattern& pattern, const std::vector<PageRow>& rows) {
  if (rows.empty()) return;
  std::vector<double> along, size;  // <o' - o, c_j> and <c_j, c_j> of each page, over the rows
  double error = 0, elements = 0;
  for (const PageRow& r : rows) {
    const Recipe& correct = r.row->correct();
    const RowEvaluator::Terms terms = r.row->terms(correct);
    if (terms.outside || correct.keys.empty()) continue;
    const std::size_t dims = r.golden.size();
    const std::int64_t page_size = r.row->problem().k.page_size;
    const std::int64_t pages = correct.keys.back().position / page_size + 1;
    if (static_cast<std::int64_t>(along.size()) < pages) {
      along.resize(static_cast<std::size_t>(pages));
      size.resize(along.size());
    }
    std::vector<double> change(dims), contribution(dims);
    for (std::size_t d = 0; d < dims; ++d) {
      change[d] = ((*r.candidate)[d] - r.golden[d]) * r.factor;
      error += change[d] * change[d];
    }
    elements += static_cast<double>(dims);
    for (std::size_t i = 0; i < correct.keys.size();) {
      const auto page = static_cast<std::size_t>(correct.keys[i].position / page_size);
      std::fill(contribution.begin(), contribution.end(), 0.0);
      for (; i < correct.keys.size() && correct.keys[i].position / page_size == static_cast<std::int64_t>(page); ++i) {
        const double p = std::exp(terms.scores[i] - r.lse);
        for (std::size_t d = 0; d < dims; ++d) contribution[d] += p * (terms.values[i][d] - r.golden[d]);
      }
      for (std::size_t d = 0; d < dims; ++d) {
        along[page] += change[d] * contribution[d];
        size[page] += contribution[d] * contribution[d];
      }
    }
  }
  if (!(error > 0) || !std::isfinite(error) || along.size() < 2) return;
  // An error in a random direction has <error, c_j> of about |error| |c_j| / sqrt(elements).
  constexpr double kSignificant = 4;
  constexpr double kMostTimes = 16;  // no fault reads a page more often
  std::vector<double> shares(along.size());
  std::size_t marked = 0;
  double explained = 0;
  for (std::size_t j = 0; j < along.size(); ++j) {
    if (!(size[j] > 0) || std::fabs(along[j]) < kSignificant * std::sqrt(error * size[j] / elements)) continue;
    shares[j] = -along[j] / size[j];
    if (std::fabs(shares[j]) > kMostTimes) return;  // the weights changed, not the pages that are read
    if (std::fabs(shares[j]) < 0.5) continue;
    ++marked;
    explained += along[j] * along[j] / size[j];
  }
  // No place, or a fault of the whole sequence.
  if (marked == 0 || marked > std::max<std::size_t>(1, shares.size() / 4)) return;
  pattern.page_sequence = rows.front().row->sequence();
  pattern.pages = std::move(shares);
  pattern.pages_explain = explained / error;
}

void describe_pattern(FailurePattern& pattern) {
  const bool only_lse = std::all_of(pattern.dims.begin(), pattern.dims.end(), [](std::int64_t n) { return n == 0; });
  pattern.words =
      only_lse ? "o is correct everywhere; only lse fails"
               : fmt::format("{}; {}; {}{}", range_words(pattern.failing_of_sequence, "sequence", "sequences"),
                             range_words(pattern.failing_of_head, "head", "heads"),
                             range_words(pattern.dims, "dim", "dims"), pattern.lse_correct ? "; lse is correct" : "");
}

std::string map_text(const FailurePattern& pattern) {
  std::string text;
  const auto line = [&](const char* axis, const std::string& map) {
    if (!map.empty()) text += fmt::format("  {:<12} {}\n", axis, map);
  };
  line("by sequence", marks(pattern.failing_of_sequence, pattern.rows_of_sequence));
  line("by head", marks(pattern.failing_of_head, pattern.rows_of_head));
  line("by dim", marks(pattern.dims, std::vector<std::int64_t>(pattern.dims.size(), 1)));
  std::string lengths;
  std::string kinds;
  for (const FailurePattern::Lengths& l : pattern.lengths) {
    const char m = mark(l.failing_rows, l.rows);
    if (kinds.find(m) == std::string::npos) kinds += m;
    lengths += fmt::format("{}{} {}", lengths.empty() ? "" : "  ",
                           l.first == l.last ? fmt::format("{}", l.first) : fmt::format("{}-{}", l.first, l.last), m);
  }
  if (kinds.size() > 1) line("by keys", lengths);
  if (pattern.page_sequence >= 0) {
    constexpr std::size_t kColumns = 64;
    const std::size_t step = (pattern.pages.size() + kColumns - 1) / kColumns;
    std::string pages;
    for (std::size_t first = 0; first < pattern.pages.size(); first += step) {
      double share = 0;
      for (std::size_t j = first; j < std::min(pattern.pages.size(), first + step); ++j) {
        if (std::fabs(pattern.pages[j]) > std::fabs(share)) share = pattern.pages[j];
      }
      pages += share >= 0.5 ? '#' : share <= -0.5 ? '+' : '.';
    }
    if (step > 1) pages += fmt::format("   {} per column", step);
    line("by page", fmt::format("sequence {}: {}", pattern.page_sequence, pages));
  }
  return text;
}

}  // namespace kvscope::golden
