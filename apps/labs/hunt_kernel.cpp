#include "apps/labs/hunt_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "core/base/portable_math.h"

namespace kvscope::labs {
namespace {

constexpr std::int64_t kPageBase = 16;  // of the page counter in dim 7; more than twice the tokens of a page

// The layers are more than one and the table holds no block twice, so each stride and each entry can be missed.
void make_sizes(HuntProblem& problem, const CounterRng& random, std::uint64_t& at) {
  const auto pick = [&](std::int64_t low, std::int64_t high) { return random.integer(at++, low, high); };
  problem.page_size = pick(4, 6);
  problem.layers = pick(2, 4);
  problem.layer = pick(0, problem.layers - 1);
  problem.kv_heads = pick(3, 4);
  problem.tokens_per_split = 2 * problem.page_size;
  problem.scale = pick(0, 1) == 0 ? 0.25 : 0.5;
  const std::int64_t size = problem.page_size;
  // One key; a last page with at least two free slots; a full last page; three splits, the last one small.
  problem.lengths = {1, 2 * size + pick(1, size - 2), 3 * size, 4 * size + pick(2, size - 1)};
  for (std::size_t i = problem.lengths.size() - 1; i > 0; --i) {
    std::swap(problem.lengths[i], problem.lengths[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(i)))]);
  }
  for (std::int64_t head = 0; head < problem.query_heads(); ++head) {
    problem.query.push_back(2.0 + 0.5 * static_cast<double>(head) + static_cast<double>(pick(0, 3)));
  }
}

void make_table(HuntProblem& problem, const CounterRng& random, std::uint64_t& at) {
  const auto pick = [&](std::int64_t low, std::int64_t high) { return random.integer(at++, low, high); };
  std::int64_t held = 0;
  for (std::int64_t b = 0; b < problem.batch(); ++b) {
    held += problem.pages(b);
    problem.columns = std::max(problem.columns, problem.pages(b));
  }
  problem.columns += 3;  // a key past the last page reads a padding entry
  problem.blocks = held + pick(4, 12);
  std::vector<std::uint32_t> free(static_cast<std::size_t>(problem.blocks - 1));  // not block 0: every stride counts
  std::iota(free.begin(), free.end(), 1U);
  problem.table.assign(static_cast<std::size_t>(problem.batch() * problem.columns),
                       static_cast<std::uint32_t>(problem.blocks));
  for (std::int64_t b = 0; b < problem.batch(); ++b) {
    for (std::int64_t page = 0; page < problem.pages(b); ++page) {
      const auto drawn = static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(free.size()) - 1));
      problem.table[static_cast<std::size_t>(b * problem.columns + page)] = free[drawn];
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(drawn));
    }
  }
}

void make_fault_parameters(HuntProblem& problem, const CounterRng& random, std::uint64_t& at) {
  const auto pick = [&](std::int64_t low, std::int64_t high) { return random.integer(at++, low, high); };
  const auto sequence_of = [&](std::int64_t pages) {
    std::int64_t b = 0;
    while (problem.pages(b) != pages) ++b;
    return b;
  };
  // A full page of the longest sequence is read from a full page of another one, with another number.
  problem.entry_sequence = sequence_of(5);
  problem.entry_page = pick(0, 3);
  std::int64_t owner_page = pick(0, 1);
  if (owner_page == problem.entry_page) owner_page = 1 - owner_page;
  problem.entry_block = problem.entry(sequence_of(3), owner_page);
  const std::int64_t first = pick(0, problem.batch() - 2);
  problem.exchanged = {first, pick(first + 1, problem.batch() - 1)};
}

// The kernel ------------------------------------------------------------------------------------------------------

// One (sequence, query head): the rows that it reads, as offsets of their first element in the pool.
struct KeyRow {
  std::int64_t k = 0, v = 0;
};

class HuntKernel {
 public:
  HuntKernel(const HuntProblem& problem, HuntFault fault) : problem_(problem), fault_(fault) {}

  [[nodiscard]] std::vector<KeyRow> key_rows(std::int64_t sequence, std::int64_t query_head) const {
    std::vector<KeyRow> rows;
    const std::int64_t kv_head = kv_head_of(query_head);
    for (std::int64_t t = 0; t < key_count(sequence); ++t) {
      const std::int64_t block = block_of(sequence, t / problem_.page_size), slot = t % problem_.page_size;
      rows.push_back(
          {offset(block, 0, slot, kv_head), offset(block, has(HuntFault::k_read_as_v) ? 0 : 1, slot, kv_head)});
    }
    return rows;
  }

  [[nodiscard]] bool has(HuntFault fault) const { return fault_ == fault; }

 private:
  [[nodiscard]] std::int64_t key_count(std::int64_t sequence) const {
    const std::int64_t keys = problem_.lengths[static_cast<std::size_t>(sequence)];
    if (has(HuntFault::one_key_too_many)) return keys + 1;
    if (has(HuntFault::new_token_missing)) return keys - 1;
    if (has(HuntFault::last_page_unmasked)) return problem_.pages(sequence) * problem_.page_size;
    return keys;
  }
  [[nodiscard]] std::int64_t kv_head_of(std::int64_t query_head) const {
    if (has(HuntFault::head_modulo)) return query_head % problem_.kv_heads;
    if (has(HuntFault::head_divided_by_kv_heads)) return query_head / problem_.kv_heads;
    if (has(HuntFault::head_zero)) return 0;
    return query_head / HuntProblem::kGroup;
  }
  [[nodiscard]] std::int64_t block_of(std::int64_t sequence, std::int64_t page) const {
    if (has(HuntFault::first_page_repeated)) return problem_.entry(sequence, 0);
    if (has(HuntFault::table_entry) && sequence == problem_.entry_sequence && page == problem_.entry_page) {
      return problem_.entry_block;
    }
    if (has(HuntFault::table_rows_exchanged)) {
      const auto [one, other] = problem_.exchanged;
      if (sequence == one || sequence == other) return problem_.entry(one + other - sequence, page);
    }
    return problem_.entry(sequence, page);
  }
  [[nodiscard]] std::int64_t offset(std::int64_t block, std::int64_t kv, std::int64_t slot, std::int64_t head) const {
    const std::int64_t page = problem_.page_size * problem_.kv_heads * HuntProblem::kDims;  // one layer of K or V
    const std::int64_t per_block = 2 * page * (has(HuntFault::stride_of_one_layer) ? 1 : problem_.layers);
    const std::int64_t layer = has(HuntFault::other_layer) ? (problem_.layer + 1) % problem_.layers : problem_.layer;
    return block * per_block + kv * problem_.layers * page + layer * page +
           (slot * problem_.kv_heads + head) * HuntProblem::kDims;
  }

  const HuntProblem& problem_;
  HuntFault fault_;
};

// What one split leaves for the merge: the largest score, the sum of weights, and the weighted sum of V.
struct SplitSums {
  double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
  std::array<double, HuntProblem::kDims> weighted{};
};

double factor_of_scores(const HuntProblem& problem, const HuntKernel& kernel) {
  if (kernel.has(HuntFault::scale_missing)) return 1;
  return kernel.has(HuntFault::scale_twice) ? problem.scale * problem.scale : problem.scale;
}

std::vector<SplitSums> split_sums(const HuntProblem& problem, const std::vector<KeyRow>& rows, double factor) {
  std::vector<SplitSums> splits;
  const auto per_split = static_cast<std::size_t>(problem.tokens_per_split);
  for (std::size_t first = 0; first < rows.size(); first += per_split) {
    SplitSums sums;
    const std::size_t last = std::min(rows.size(), first + per_split);
    const auto score = [&](const KeyRow& row) {
      return factor * static_cast<double>(problem.pool[static_cast<std::size_t>(row.k + HuntProblem::kScoreDim)]);
    };
    for (std::size_t i = first; i < last; ++i) sums.maximum = std::max(sums.maximum, score(rows[i]));
    for (std::size_t i = first; i < last; ++i) {
      const double weight = portable_exp(score(rows[i]) - sums.maximum);
      sums.sum += weight;
      for (std::size_t d = 0; d < sums.weighted.size(); ++d) {
        sums.weighted[d] += weight * static_cast<double>(problem.pool[static_cast<std::size_t>(rows[i].v) + d]);
      }
    }
    splits.push_back(sums);
  }
  return splits;
}

double lse_of(const HuntKernel& kernel, double maximum, double sum) {
  if (sum == 0) return -std::numeric_limits<double>::infinity();
  const double lse = maximum + portable_log(sum);
  if (kernel.has(HuntFault::maximum_not_added)) return portable_log(sum);
  if (kernel.has(HuntFault::lse_without_logarithm)) return maximum + sum;
  if (kernel.has(HuntFault::lse_base_two)) return lse * std::numbers::log2e;
  return kernel.has(HuntFault::lse_negated) ? -lse : lse;
}

}  // namespace

std::int64_t HuntProblem::pages(std::int64_t sequence) const {
  return (lengths[static_cast<std::size_t>(sequence)] + page_size - 1) / page_size;
}

std::uint32_t HuntProblem::entry(std::int64_t sequence, std::int64_t page) const {
  return table[static_cast<std::size_t>(sequence * columns + page)];
}

HuntProblem make_hunt_problem(const CounterRng& random) {
  HuntProblem problem;
  std::uint64_t at = 0;
  make_sizes(problem, random, at);
  make_table(problem, random, at);
  make_fault_parameters(problem, random, at);
  fill_with_tracers(problem);
  return problem;
}

void fill_with_tracers(HuntProblem& problem) {
  const std::int64_t rows = problem.page_size * problem.kv_heads;  // of one layer's K or V in a block
  struct Token {
    std::int64_t position = -1, sequence = -1;
    double page = 0;
  };
  std::vector<Token> tokens(static_cast<std::size_t>((problem.blocks + 1) * problem.page_size));
  for (std::int64_t b = 0; b < problem.batch(); ++b) {
    double counter = 1;
    for (std::int64_t t = 0; t < problem.lengths[static_cast<std::size_t>(b)]; ++t) {
      if (t > 0 && t % problem.page_size == 0) counter *= static_cast<double>(kPageBase);
      const std::int64_t slot = problem.entry(b, t / problem.page_size) * problem.page_size + t % problem.page_size;
      tokens[static_cast<std::size_t>(slot)] = {t, b, counter};
    }
  }
  problem.pool.clear();
  problem.pool.reserve(static_cast<std::size_t>((problem.blocks + 1) * 2 * problem.layers * rows * HuntProblem::kDims));
  for (std::int64_t block = 0; block <= problem.blocks; ++block) {
    for (std::int64_t kv = 0; kv < 2; ++kv) {
      for (std::int64_t layer = 0; layer < problem.layers; ++layer) {
        for (std::int64_t row = 0; row < rows; ++row) {
          const std::int64_t slot = row / problem.kv_heads;
          const Token& token = tokens[static_cast<std::size_t>(block * problem.page_size + slot)];
          for (const std::int64_t value :
               {block, slot, row % problem.kv_heads, layer, kv + 1, token.position, token.sequence}) {
            problem.pool.push_back(static_cast<float>(value));
          }
          problem.pool.push_back(static_cast<float>(token.page));
        }
      }
    }
  }
}

bool hunt_differs(float golden, float candidate) {
  if (!std::isfinite(candidate) || !std::isfinite(golden)) return !(golden == candidate);
  return std::abs(golden - candidate) > 1e-5F * std::max(1.0F, std::abs(golden));
}

HuntOutput run_hunt_kernel(const HuntProblem& problem, HuntFault fault) {
  const HuntKernel kernel(problem, fault);
  HuntOutput output;
  for (std::int64_t b = 0; b < problem.batch(); ++b) {
    for (std::int64_t h = 0; h < problem.query_heads(); ++h) {
      const double factor = factor_of_scores(problem, kernel) * problem.query[static_cast<std::size_t>(h)];
      std::vector<SplitSums> splits = split_sums(problem, kernel.key_rows(b, h), factor);
      const auto parts = static_cast<double>(splits.size());
      if (kernel.has(HuntFault::last_split_lost) && splits.size() > 1) splits.pop_back();
      if (kernel.has(HuntFault::last_split_twice) && splits.size() > 1) splits.push_back(SplitSums(splits.back()));

      SplitSums all;
      std::array<double, HuntProblem::kDims> mean_of_splits{};
      for (const SplitSums& split : splits) all.maximum = std::max(all.maximum, split.maximum);
      for (const SplitSums& split : splits) {
        const double weight = portable_exp(split.maximum - all.maximum);
        all.sum += weight * split.sum;
        for (std::size_t d = 0; d < all.weighted.size(); ++d) {
          all.weighted[d] += weight * split.weighted[d];
          mean_of_splits[d] += split.weighted[d] / split.sum / parts;
        }
      }
      double divisor = all.sum == 0 ? 1 : all.sum;
      if (kernel.has(HuntFault::not_normalized)) divisor = 1;
      if (kernel.has(HuntFault::divided_twice)) divisor *= divisor;
      if (kernel.has(HuntFault::divided_by_slots)) divisor = static_cast<double>(problem.pages(b) * problem.page_size);
      for (std::size_t d = 0; d < all.weighted.size(); ++d) {
        const double o = kernel.has(HuntFault::splits_averaged) ? mean_of_splits[d] : all.weighted[d] / divisor;
        output.o.push_back(static_cast<float>(o));
      }
      output.lse.push_back(static_cast<float>(lse_of(kernel, all.maximum, all.sum)));
    }
  }
  return output;
}

}  // namespace kvscope::labs
