// One block of queries of one sequence, all heads: the passes of the reference (reference.h has the order of
// operations) and of its fast path (fast.h) over K and V. They differ in the type of the rows and in two loops; masks,
// softmax and the terms of the bound are computed by the same code, in double.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>
#include <xtensor/xtensor.hpp>

#include "core/attention/detail/joined_rows.h"
#include "core/attention/detail/reference_kernels.h"
#include "core/attention/detail/row_reader.h"
#include "core/attention/detail/row_scores.h"
#include "core/attention/detail/row_walk.h"
#include "core/attention/equal_weights.h"
#include "core/attention/flat_weights.h"
#include "core/attention/mask.h"
#include "core/attention/partial_sums.h"
#include "core/attention/problem.h"
#include "core/attention/problem_checks.h"
#include "core/attention/result.h"
#include "core/attention/rising_clump.h"
#include "core/attention/weight_terms.h"
#include "core/base/checked.h"
#include "core/base/interruption.h"
#include "core/base/portable_math.h"
#include "core/layout/filled.h"

namespace kvscope::attention {

inline constexpr std::int64_t kRunningBlock = 64;  // keys between two looks at the running sum

inline double canonical_nan(double x) {
  return x != x ? std::numeric_limits<double>::quiet_NaN() : x;
}

// What is computed beside `o` and `lse`: the terms of the bound (result.h), or nothing. The bits of `o` and `lse` are
// the same.
enum class Terms : std::uint8_t { computed, left_out };

// All zero, in the shapes of a result of `problem`; terms that are left out are empty.
[[nodiscard]] Result empty_result(const Problem& problem, Terms terms);

// Whether the product of an element of q and of k is exact in double.
[[nodiscard]] bool products_are_exact(const Problem& problem);

// Resizes `tensor` and sets every element. Memory is kept from block to block: large allocations cost page faults.
template <class T, std::size_t N, class... Extent>
void fill(xt::xtensor<T, N>& tensor, T element, Extent... extents) {
  tensor.resize(std::array{static_cast<std::size_t>(extents)...});
  std::ranges::fill_n(tensor.data(), static_cast<std::ptrdiff_t>(tensor.size()), element);
}

// Reads every needed row of K once, then every needed row of V once.
// T is the type of elements, products and weights: double for the reference, float for the fast path. Rows of common
// types are read where they are, others are decoded first.
template <class T>
class QueryBlock {
 public:
  static constexpr bool kFast = std::is_same_v<T, float>;
  using RowKernels = std::conditional_t<kFast, FastRowKernels, ExactRowKernels>;
  static constexpr std::int64_t kPadding = kFast ? kFastStep : kLanes;
  // Keys read at a time: 32 KB at head size 128.
  static constexpr std::int64_t kKeyBlock = kFast ? kFastKeys : 32;
  // Of rows that are read where they are, as many as all heads have in so many bytes. They and the next ones, which are
  // prefetched meanwhile, stay in the second-level cache. Sums with their terms: more, because each call loads and
  // stores the sums of its heads.
  static constexpr std::int64_t kScoredBytes = 64 << 10, kSummedBytes = 128 << 10, kSummedAloneBytes = 64 << 10;

  QueryBlock(const Problem& problem, const ReferenceKernels& kernels, Terms terms, Result& result)
      : p_(problem),
        kernels_(kernels),
        with_terms_(terms == Terms::computed),
        exact_products_(products_are_exact(problem)),
        result_(result),
        group_(problem.query_heads / problem.k.heads),
        k_padded_(round_up(problem.k.head_size, kPadding)),
        v_padded_(round_up(problem.v.head_size, kPadding)),
        k_rows_(problem.k, kernels),
        v_rows_(problem.v, kernels),
        row_scores_(problem, kernels),
        joined_(v_rows_, kernels, v_padded_) {}

  // Keys are read in blocks that start at key `origin`, at or before the first key that any of the queries sees.
  void run(std::int64_t sequence, std::int64_t first_query, std::int64_t last_query, std::int64_t origin) {
    sequence_ = sequence;
    origin_ = origin;
    first_query_ = first_query;
    queries_ = last_query - first_query;
    const std::int64_t all = query_count(p_, sequence);
    const std::int64_t keys = p_.keys(sequence);
    needed_ = visible_keys_of(p_.options, first_query, last_query, all, keys);
    visible_.clear();
    position_.clear();
    for (std::int64_t query = first_query; query < last_query; ++query) {
      visible_.push_back(visible_keys(p_.options, query, all, keys));
      position_.push_back(query_position(p_.options, query, all, keys));
    }
    load_queries();
    if constexpr (kFast) k_squares_.assign(static_cast<std::size_t>(p_.k.heads), LargestLanes{});
    k_loops_ = loops_in_place(p_.k);
    v_loops_ = loops_in_place(p_.v);
    if (k_loops_ != nullptr && k_loops_->dots == nullptr) k_loops_ = nullptr;
    if (v_loops_ != nullptr && accumulate_of(*v_loops_) == nullptr) v_loops_ = nullptr;
    score_keys();
    fill(denominators_, 1.0, queries_ * p_.query_heads);  // 1: of a row without a key
    fill(additions_, 0.0, queries_ * p_.query_heads);
    for (std::int64_t query = 0; query < queries_; ++query) {
      for (std::int64_t head = 0; head < p_.query_heads; ++head) soften(query, head);
    }
    choose_measured_heads();
    sum_values();
    if (with_terms_) {
      write_largest_values();
      join_equal_weights();
    }
    write();
  }

  // Of the last run, for the fast path: the largest |k| of a KV head, its largest |v| if there are no terms, the
  // largest |score| of all rows, the |q| of a row, and whether all weights are 0 or in the normal range of float.
  [[nodiscard]] double largest_key(std::int64_t kv_head) const {
    return std::sqrt(k_squares_[static_cast<std::size_t>(kv_head)].value());
  }
  [[nodiscard]] double largest_score() const { return largest_score_; }
  [[nodiscard]] double largest_value(std::int64_t kv_head) const { return largest_[static_cast<std::size_t>(kv_head)]; }
  [[nodiscard]] double query_norm(std::int64_t query, std::int64_t head) const {
    double sum = 0;
    for (std::int64_t d = 0; d < k_padded_; ++d) {
      sum += static_cast<double>(q_(row_of(query, head), d)) * static_cast<double>(q_(row_of(query, head), d));
    }
    return std::sqrt(sum);
  }
  [[nodiscard]] bool weights_are_normal() const { return lowest_ > -87; }

 private:
  std::int64_t row_of(std::int64_t query, std::int64_t head) const { return query * p_.query_heads + head; }
  std::int64_t result_row(std::int64_t query) const { return p_.first_query(sequence_) + first_query_ + query; }
  T* scores_at(std::int64_t row, std::int64_t key) {
    return scores_.data() + row * needed_.size() + (key - needed_.first);
  }

  void load_queries() {
    const std::int64_t heads = p_.query_heads;
    const std::int64_t size = p_.k.head_size;
    fill(q_, T{0}, queries_ * heads, k_padded_);
    lowest_ = largest_score_ = 0;
    const std::byte* source = p_.q + result_row(0) * heads * size * size_of(p_.q_dtype);
    for (std::int64_t row = 0; row < queries_ * heads; ++row) {
      RowReader::widen(kernels_, p_.q_dtype, source + row * size * size_of(p_.q_dtype), size, &q_(row, 0));
    }
  }

  // Calls per_query(query, first, last) for each query of the block that sees keys in [first_key, last_key).
  template <class F>
  void each_query(std::int64_t first_key, std::int64_t last_key, const F& per_query) const {
    for (std::int64_t query = 0; query < queries_; ++query) {
      const KeyRange& visible = visible_[static_cast<std::size_t>(query)];
      const std::int64_t first = std::max(first_key, visible.first);
      const std::int64_t last = std::min(last_key, visible.last);
      if (first < last) per_query(query, first, last);
    }
  }

  // As each_row_run(), of the needed rows, which run_ holds.
  template <class F>
  void each_run(const RowReader& reader, std::int64_t most_keys, const F& per_run) {
    each_row_run(reader, {sequence_, needed_, origin_, p_.k.heads, most_keys}, run_, next_run_, per_run);
  }

  // The loops that read the rows where they are; null if rows are decoded first: into another type or number of
  // elements, or once for several queries.
  const RowKernels* loops_in_place(const PagedRows& rows) const {
    constexpr std::int64_t kFewQueries = 4;
    if (rows.scales != nullptr || rows.head_size % kPadding != 0 || queries_ > kFewQueries) return nullptr;
    if constexpr (kFast) {
      return fast_row_kernels(kernels_, rows.dtype);
    } else {
      return exact_row_kernels(kernels_, rows.dtype);
    }
  }
  // `in_place`, or without it those for decoded rows.
  const RowKernels& loops_or_decoded(const RowKernels* in_place) const {
    if (in_place != nullptr) return *in_place;
    if constexpr (kFast) {
      return kernels_.fast.f32;
    } else {
      return kernels_.exact.f64;
    }
  }

  // The rows of run_: where they are, or decoded to `buffer`.
  const std::byte* const* rows_of(const RowReader& reader, bool in_place, xt::xtensor<T, 2>& buffer) {
    if (in_place) return run_.elements.data();
    const auto stride = static_cast<std::int64_t>(buffer.shape(1));
    reader.decode(run_, buffer.data(), stride);
    decoded_.resize(run_.elements.size());
    for (std::size_t i = 0; i < decoded_.size(); ++i) {
      decoded_[i] = reinterpret_cast<const std::byte*>(buffer.data() + static_cast<std::int64_t>(i) * stride);
    }
    return decoded_.data();
  }

  auto accumulate_of(const RowKernels& loops) const { return with_terms_ ? loops.accumulate : loops.accumulate_output; }

  std::int64_t keys_at_a_time(const RowReader& rows, bool in_place, std::int64_t bytes) const {
    return in_place ? keys_of_all_heads(rows, bytes, kKeyBlock) : kKeyBlock;
  }

  void score_keys() {
    scores_.resize(static_cast<std::size_t>(queries_ * p_.query_heads * needed_.size()));
    fill(keys_, T{0}, kKeyBlock, k_padded_);
    const RowKernels& loops = loops_or_decoded(k_loops_);
    if constexpr (kFast) arrange_queries(loops);
    const std::int64_t at_a_time = keys_at_a_time(k_rows_, k_loops_ != nullptr, kScoredBytes);
    each_run(k_rows_, at_a_time, [&](std::int64_t block, std::int64_t end, std::int64_t kv_head, Ahead ahead) {
      const std::byte* const* rows = rows_of(k_rows_, k_loops_ != nullptr, keys_);
      // A single query sees all rows that are read, and its products give their squares too.
      if constexpr (kFast) {
        if (queries_ > 1) largest_square(kv_head).raise(loops.largest_square(rows, end - block, k_padded_));
      }
      each_query(block, end, [&](std::int64_t query, std::int64_t first, std::int64_t last) {
        const std::int64_t row = row_of(query, kv_head * group_);
        const std::byte* const* seen = rows + (first - block);
        T* const scores = scores_at(row, first);
        if constexpr (kFast) {
          loops.dots(&arranged_(row, 0), group_, seen, last - first, k_padded_, scores, needed_.size(),
                     queries_ > 1 ? nullptr : &largest_square(kv_head), std::exchange(ahead, Ahead{}));
        } else {
          const auto dots = exact_products_ ? loops.dots_of_exact_products : loops.dots;
          dots(&q_(row, 0), group_, seen, last - first, k_padded_, scores, needed_.size(),
               std::exchange(ahead, Ahead{}));
        }
      });
    });
  }

  LargestLanes& largest_square(std::int64_t kv_head) { return k_squares_[static_cast<std::size_t>(kv_head)]; }

  void arrange_queries(const RowKernels& loops) {
    fill(arranged_, T{0}, queries_ * p_.query_heads, k_padded_);
    for (std::int64_t row = 0; row < queries_ * p_.query_heads; row += group_) {
      loops.arrange(&q_(row, 0), group_, k_padded_, &arranged_(row, 0));
    }
  }

  // Turns dot products into scores, then weights e; computes the denominator and lse, and the terms of the weights.
  void soften(std::int64_t query, std::int64_t head) {
    interruption_point();
    const KeyRange visible = visible_[static_cast<std::size_t>(query)];
    const std::int64_t row = row_of(query, head);
    const std::int64_t i = result_row(query);
    if (visible.empty()) return write_empty(i, head);
    const std::span<T> all(scores_at(row, visible.first), static_cast<std::size_t>(visible.size()));
    const std::span<double> s = row_scores_.finish(
        all, {sequence_, head, first_query_ + query, position_[static_cast<std::size_t>(query)], visible.first});
    const std::span<T> weights = all.first(s.size());
    const auto keys = static_cast<std::int64_t>(s.size());
    if (keys == 0) {
      std::ranges::fill(all, T{0});
      return write_empty(i, head);
    }
    ScoreScan scan;
    kernels_.exact.scan(s.data(), keys, &scan);
    double largest = scan.largest;
    const bool sink = !p_.options.sinks.empty();
    if (sink) largest = std::max(largest, p_.options.sinks.data()[head]);

    lowest_ = std::min(lowest_, scan.smallest - largest);
    largest_score_ = std::max(largest_score_, scan.magnitude);
    const WeightSums sums = weigh(s, largest, weights);
    double sum = sums.row_sum;
    if (sink) sum += portable_exp(p_.options.sinks.data()[head] - largest);
    denominators_(row) = sum;
    if (with_terms_) {
      write_weights(weights, sums, sum, row, i, head);
      result_.repeats(i, head) += absorbed(std::span<const T>(weights), portable_exp(scan.smallest - largest), sum);
      result_.partial_sums(i, head, 0) = score_sum(scan.magnitude, row, visible, head / group_);
      const RowSumTerms of_sum = row_sum_terms(kernels_, weights, sum - sums.row_sum, sum);
      result_.partial_sums(i, head, 1) = canonical_nan(of_sum.so_far);
      for (std::size_t k = 0; k < kClumpTypes; ++k) result_.row_sum_cut(i, head, k) = canonical_nan(of_sum.cut[k]);
      result_.smax(i, head) = scan.all_numbers ? scan.magnitude : std::numeric_limits<double>::quiet_NaN();
    }
    if (keys < visible.size()) row_scores_.spread(all);

    const double natural = largest + portable_log(sum);
    result_.lse(i, head) =
        canonical_nan(p_.options.lse_base == LseBase::natural ? natural : natural * std::numbers::log2e);
  }

  // Scores to weights, which are the same numbers of the reference and others of the fast path. Without terms, only the
  // row sum is set.
  WeightSums weigh(std::span<double> s, double largest, std::span<T> weights) const {
    const auto keys = static_cast<std::int64_t>(s.size());
    WeightSums sums;
    if constexpr (kFast) {
      if (with_terms_) {
        kernels_.fast.weigh(s.data(), keys, largest, weights.data(), &sums);
      } else {
        sums.row_sum = kernels_.fast.exponentiate(s.data(), keys, largest, weights.data());
      }
    } else {
      for (double& x : s) x -= largest;
      portable_exp_in_place(s);
      if (with_terms_) {
        kernels_.exact.weigh(s.data(), keys, &sums);
      } else {
        sums.row_sum = kernels_.exact.row_sum(s.data(), keys);
      }
    }
    return sums;
  }

  void write_empty(std::int64_t i, std::int64_t head) {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    result_.lse(i, head) = p_.options.empty_row == EmptyRow::minus_infinity ? -kInfinite : kInfinite;
  }

  // Of the row with the largest |score| `smax`: partial_sums.h.
  double score_sum(double smax, std::int64_t row, const KeyRange& visible, std::int64_t kv_head) {
    if (!(smax < kSmallScores)) return canonical_nan(1 + smax);
    products_.resize(static_cast<std::size_t>(p_.k.head_size));
    double largest = 0;
    for (std::int64_t key = visible.first; key < visible.last; key += kKeyBlock) {
      k_rows_.locate(sequence_, key, std::min(key + kKeyBlock, visible.last), kv_head, run_);
      k_rows_.decode(run_, keys_.data(), k_padded_);
      for (std::size_t i = 0; i < run_.elements.size(); ++i) {
        const T* const q = &q_(row, 0);
        const T* const k = &keys_(static_cast<std::int64_t>(i), 0);
        for (std::size_t d = 0; d < products_.size(); ++d) {
          products_[d] = p_.options.scale * static_cast<double>(q[d]) * static_cast<double>(k[d]);
        }
        largest = std::max(largest, mean_square_of_dot(products_));
      }
    }
    return std::min(1 + smax, std::sqrt(largest));
  }

  // The terms of the bounds that depend on the weights alone.
  void write_weights(std::span<const T> weights, const WeightSums& sums, double sum, std::int64_t row, std::int64_t i,
                     std::int64_t head) {
    const WeightTerms terms(sums);
    const std::array<double, kClumpTypes> rising = rising_clump(kernels_, weights, sums, sum);
    const FlatTerms flat = flat_terms(weights, sums, sum);
    result_.keys(i, head) = static_cast<double>(weights.size());
    result_.p2(i, head) = canonical_nan(terms.p2(sum));
    additions_(row) = flat.additions;
    result_.repeats(i, head) = std::max(terms.repeats(), flat.additions);
    for (std::size_t k = 0; k < kClumpTypes; ++k) {
      const double still = terms.clump(k, sum), more = std::max(rising[k], flat.clump[k]);
      result_.clump(i, head, k) = canonical_nan(more > still ? more : still);
    }
    for (std::size_t k = 0; k < kFaintTerms; ++k) result_.faint(i, head, k) = canonical_nan(terms.faint(k, sum));
    for (std::size_t k = 0; k < kLostTerms; ++k) result_.lost(i, head, k) = canonical_nan(terms.lost(k, sum));
  }

  void sum_values() {
    const std::int64_t stride = v_padded_ + kPadding;
    const std::int64_t sums = with_terms_ ? 3 : 1;
    fill(sums_, 0.0, queries_ * p_.query_heads, sums, v_padded_);
    fill(running_, 0.0, queries_ * p_.query_heads, with_terms_ ? v_padded_ : 0);
    fill(blocks_, 0.0, queries_ * p_.query_heads);
    fill(values_, T{0}, kKeyBlock, stride);
    if constexpr (kFast) fill(parts_, 0.0F, queries_ * p_.query_heads, sums * v_padded_);
    const std::int64_t at_a_time =
        keys_at_a_time(v_rows_, v_loops_ != nullptr, with_terms_ ? kSummedBytes : kSummedAloneBytes);
    each_run(v_rows_, at_a_time, [&](std::int64_t block, std::int64_t end, std::int64_t kv_head, Ahead ahead) {
      if constexpr (kFast) {
        sum_floats(block, end, kv_head, ahead);
      } else {
        sum_doubles(block, end, kv_head, ahead);
      }
    });
    for (std::size_t kv_head = 0; kv_head < largest_.size(); ++kv_head) {
      if (largest_[kv_head] >= 0) largest_[kv_head] = std::max(largest_[kv_head], largest_lanes_[kv_head].value());
    }
  }

  void sum_doubles(std::int64_t block, std::int64_t end, std::int64_t kv_head, Ahead ahead) {
    const auto accumulate = accumulate_of(loops_or_decoded(v_loops_));
    const std::byte* const* rows = rows_of(v_rows_, v_loops_ != nullptr, values_);
    each_query(block, end, [&](std::int64_t query, std::int64_t first, std::int64_t last) {
      const std::int64_t row = row_of(query, kv_head * group_);
      accumulate(scores_at(row, first), needed_.size(), group_, rows + (first - block), last - first, v_padded_,
                 &sums_(row, 0, 0), std::exchange(ahead, Ahead{}));
    });
    if (!with_terms_) return;
    measure_values(kv_head, rows);  // of rows that are in the processor's caches now
    const std::int64_t running_block = (block - origin_) / kRunningBlock * kRunningBlock + origin_;
    if (end - running_block < kRunningBlock && end < needed_.last) return;
    each_query(running_block, end, [&](std::int64_t query, std::int64_t, std::int64_t) {
      const std::int64_t row = row_of(query, kv_head * group_);
      for (std::int64_t r = row; r < row + group_; ++r) note_running_sum(r);
    });
  }

  void sum_floats(std::int64_t block, std::int64_t end, std::int64_t kv_head, Ahead ahead) {
    static_assert(kFastKeys == kRunningBlock, "each block looks at the running sum once");
    const auto accumulate = accumulate_of(loops_or_decoded(v_loops_));
    const std::byte* const* rows = rows_of(v_rows_, v_loops_ != nullptr, values_);
    const std::int64_t running_block = (block - origin_) / kRunningBlock * kRunningBlock + origin_;
    // A single query sees all rows that are read, and its sums find the largest element too.
    const bool measured = largest_[static_cast<std::size_t>(kv_head)] >= 0 && queries_ == 1 && v_loops_ != nullptr;
    LargestLanes* const largest = measured ? &largest_lanes_[static_cast<std::size_t>(kv_head)] : nullptr;
    each_query(block, end, [&](std::int64_t query, std::int64_t first, std::int64_t last) {
      const KeyRange& visible = visible_[static_cast<std::size_t>(query)];
      const std::int64_t row = row_of(query, kv_head * group_);
      const bool starts = first == std::max(running_block, visible.first);
      const bool ends = last == std::min(running_block + kRunningBlock, visible.last);
      accumulate(scores_at(row, first), needed_.size(), group_, rows + (first - block), last - first, v_padded_,
                 BlockSums{&sums_(row, 0, 0), &running_(row, 0), &parts_(row, 0), largest, starts, ends},
                 std::exchange(ahead, Ahead{}));
      for (std::int64_t r = row; ends && r < row + group_; ++r) blocks_(r) += 1;
    });
    if (!measured) measure_values(kv_head, rows);  // of rows that are in the processor's caches now
  }

  // Adds the square of the sum so far, at the end of a block of kRunningBlock keys.
  void note_running_sum(std::int64_t row) {
    const double* sum = &sums_(row, 0, 0);
    double* squares = &running_(row, 0);
    for (std::int64_t d = 0; d < v_padded_; ++d) squares[d] += sum[d] * sum[d];
    blocks_(row) += 1;
  }

  // Rows with few faint keys need the largest |v| of their KV head's keys, and without terms those of the fast path,
  // for their error; the pass over V measures it.
  bool needs_largest_value(std::int64_t query, std::int64_t head) const {
    const double faint = result_.faint(result_row(query), head, 0);
    return faint > 0 && faint < kFewFaint;
  }

  void choose_measured_heads() {
    largest_.assign(static_cast<std::size_t>(p_.k.heads), with_terms_ || !kFast ? -1 : 0);
    largest_lanes_.assign(largest_.size(), LargestLanes{});
    if (!with_terms_) return;
    for (std::int64_t query = 0; query < queries_; ++query) {
      for (std::int64_t head = 0; head < p_.query_heads; ++head) {
        if (needs_largest_value(query, head)) largest_[static_cast<std::size_t>(head / group_)] = 0;
      }
    }
  }

  // Of the rows of run_, which are also at `rows` for the loops. Loops of floats read stored elements sooner.
  void measure_values(std::int64_t kv_head, const std::byte* const* rows) {
    double& largest = largest_[static_cast<std::size_t>(kv_head)];
    if (largest < 0) return;
    const auto keys = static_cast<std::int64_t>(run_.elements.size());
    const bool as_stored = p_.v.scales == nullptr && p_.v.head_size % kFastStep == 0;
    if (const FastRowKernels* stored = as_stored ? fast_row_kernels(kernels_, p_.v.dtype) : nullptr) {
      largest = stored->larger(largest, run_.elements.data(), keys, p_.v.head_size);
    } else {
      largest = loops_or_decoded(v_loops_).larger(largest, rows, keys, v_padded_);
    }
  }

  void write_largest_values() {
    for (std::int64_t query = 0; query < queries_; ++query) {
      for (std::int64_t head = 0; head < p_.query_heads; ++head) {
        if (!needs_largest_value(query, head)) continue;
        result_.largest_value(result_row(query), head) = largest_[static_cast<std::size_t>(head / group_)];
      }
    }
  }

  // Errors of equal probabilities are equal. The terms of independent errors count them as one where there are many.
  // The last query and the first head of a group are examined for all queries and heads of the group.
  void join_equal_weights() {
    const std::int64_t last = queries_ - 1;
    const auto weights_of = [&](std::int64_t query, std::int64_t head) {
      const KeyRange& visible = visible_[static_cast<std::size_t>(query)];
      return std::span<const T>(scores_at(row_of(query, head), visible.first),
                                visible.empty() ? 0 : static_cast<std::size_t>(visible.size()));
    };
    for (std::int64_t head = 0; head < p_.query_heads; head += group_) {
      if (!equal_.many(weights_of(last, head))) {
        enlarge_running_sums(head);
        continue;
      }
      v_rows_.locate(sequence_, needed_.first, needed_.last, head / group_, run_);
      joined_.read(run_);
      for (std::int64_t query = 0; query < queries_; ++query) {
        for (std::int64_t member = head; member < head + group_; ++member) {
          join_row(query, member, weights_of(query, member));
        }
      }
    }
  }

  double larger_sums_of_nearly_equal(std::int64_t row, std::int64_t d, double keys) const {
    return larger_sums_of_products(additions_(row), keys, sums_(row, 0, d), sums_(row, 1, d), sums_(row, 2, d));
  }
  void enlarge_running_sums(std::int64_t first_head) {
    for (std::int64_t query = 0; query < queries_; ++query) {
      for (std::int64_t head = first_head; head < first_head + group_; ++head) {
        const std::int64_t row = row_of(query, head);
        if (!(additions_(row) > 0)) continue;
        const double keys = result_.keys(result_row(query), head);
        for (std::int64_t d = 0; d < p_.v.head_size; ++d) running_(row, d) *= larger_sums_of_nearly_equal(row, d, keys);
      }
    }
  }

  void join_row(std::int64_t query, std::int64_t head, std::span<const T> e) {
    interruption_point();
    // The rows of run_ begin at the first needed key.
    const std::int64_t first = visible_[static_cast<std::size_t>(query)].first - needed_.first;
    const std::int64_t row = row_of(query, head), i = result_row(query);
    const double row_sum = denominators_(row);
    const double keys = result_.keys(i, head);
    const typename JoinedRows<T>::Terms& terms = joined_.join(e, static_cast<std::size_t>(first), keys);
    double* squares = &sums_(row, 2, 0);
    double* running = &running_(row, 0);  // squares too
    for (std::size_t d = 0; d < terms.squares.size(); ++d) {
      const double nearly_equal = larger_sums_of_nearly_equal(row, static_cast<std::int64_t>(d), keys);
      running[d] *= std::max(terms.larger_sums[d], nearly_equal);
      squares[d] = terms.squares[d] > squares[d] ? terms.squares[d] : squares[d];
    }
    const double p2 = terms.weights / row_sum;
    double& kept = result_.p2(i, head);
    if (p2 > kept) kept = p2;
    const double additions = std::max(terms.additions / row_sum, additions_(row));
    result_.repeats(i, head) = additions + absorbed(e, 0, row_sum);
  }

  void write() {
    const std::int64_t dims = p_.v.head_size;
    const std::int64_t first = result_row(0) * p_.query_heads;
    for (std::int64_t row = 0; row < queries_ * p_.query_heads; ++row) {
      const std::int64_t at = (first + row) * dims;
      const double sum = denominators_(row);
      const double* sums = &sums_(row, 0, 0);
      kernels_.exact.divide(sums, dims, sum, result_.o.data() + at);
      if (!with_terms_) continue;
      kernels_.exact.divide(sums + v_padded_, dims, sum, result_.a1.data() + at);
      kernels_.exact.divide_roots(sums + 2 * v_padded_, dims, 1, sum, result_.a2.data() + at);
      kernels_.exact.divide_roots(&running_(row, 0), dims, std::max(blocks_(row), 1.0), sum,
                                  result_.running.data() + at);
    }
  }

  const Problem& p_;
  const ReferenceKernels& kernels_;
  bool with_terms_;
  bool exact_products_;
  Result& result_;
  std::int64_t group_;     // query heads a KV head
  std::int64_t k_padded_;  // [elements]
  std::int64_t v_padded_;  // [elements]
  RowReader k_rows_;
  RowReader v_rows_;
  RowScores<T> row_scores_;

  std::int64_t sequence_ = 0;
  std::int64_t first_query_ = 0;
  std::int64_t queries_ = 0;
  std::int64_t origin_ = 0;
  KeyRange needed_;
  std::vector<KeyRange> visible_;        // [query]
  std::vector<std::int64_t> position_;   // [query]
  xt::xtensor<T, 2> q_;                  // [query * query_head, k_padded]
  xt::xtensor<T, 2> arranged_;           // q_ for the loops of the fast path
  std::vector<T> scores_;                // [query, query_head, needed key]: dot products, scores, then weights
  xt::xtensor<double, 1> denominators_;  // [query * query_head]
  xt::xtensor<double, 1> additions_;     // [query * query_head] of nearly equal weights, in one direction
  xt::xtensor<double, 3> sums_;     // [query * query_head, 3, v_padded]: of e * v, e * |v|, (e * v)^2; or the first
  xt::xtensor<double, 2> running_;  // [query * query_head, v_padded]: squares of the sum of e * v after each block
  xt::xtensor<float, 2> parts_;     // as sums_, of a block so far; fast path only
  xt::xtensor<double, 1> blocks_;   // [query * query_head]: blocks that running_ sums up
  xt::xtensor<T, 2> keys_;          // [kKeyBlock, k_padded]
  xt::xtensor<T, 2> values_;        // [kKeyBlock, v_padded + kPadding]: a stride of 2^n bytes would use few cache sets
  std::vector<LargestLanes> k_squares_;    // [kv_head] largest |k|^2; fast path only
  std::vector<const std::byte*> decoded_;  // [key] rows of keys_ or values_
  const RowKernels* k_loops_ = nullptr;    // null if rows are decoded first, as v_loops_
  const RowKernels* v_loops_ = nullptr;
  double largest_score_ = 0;
  double lowest_ = 0;                        // the lowest score less its row's maximum
  std::vector<double> products_;             // of one score, for rows with small scores
  std::vector<double> largest_;              // [kv_head] the largest |v|; -1: not measured; fast path or terms only
  std::vector<LargestLanes> largest_lanes_;  // [kv_head] what the sums of V found of it
  EqualWeights equal_;
  JoinedRows<T> joined_;
  RowRun run_;       // rows of the current computation
  RowRun next_run_;  // rows that are prefetched
};

}  // namespace kvscope::attention
