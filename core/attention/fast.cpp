#include "core/attention/fast.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/attention/detail/query_block.h"
#include "core/attention/detail/query_blocks.h"
#include "core/attention/detail/reference_kernels.h"
#include "core/attention/problem_checks.h"
#include "core/layout/filled.h"

namespace kvscope::attention {
namespace {

constexpr double kFloatUnit = 0x1p-24;
constexpr double kSecondOrder = 1.01;  // products of errors, for up to 2^16 additions
constexpr double kWeightError = 3 * kFloatUnit * kSecondOrder;
constexpr double kScoreError = 10 * 0x1p-53 * kSecondOrder;  // times |score|, with ALiBi and biases, in double
constexpr double kLargestScore = 0x1p29;                     // that error would exceed those of floats
constexpr double kSmallest = 0x1p-32;  // of sum p |v|: squares of the products are then in float's normal range

// Roundings of an element that is decoded to float.
int roundings(DType dtype, bool scaled) {
  const bool held = dtype == DType::f32 || dtype == DType::f16 || bits(dtype) == 8 || dtype == DType::bf16 ||
                    dtype == DType::i16 || dtype == DType::u16;
  return (held ? 0 : 1) + (scaled ? 1 : 0);
}

class FastRun {
 public:
  FastRun(const Problem& problem, const ReferenceKernels& kernels, Terms terms)
      : p_(problem),
        terms_(terms),
        result_(empty_result(problem, terms)),
        fast_(problem, kernels, terms, result_),
        strict_(problem, kernels, terms, result_) {
    const auto lane_sum = static_cast<double>((problem.k.head_size + kFastLanes - 1) / kFastLanes);
    const int inputs = roundings(problem.q_dtype, false) + roundings(problem.k.dtype, problem.k.scales != nullptr);
    score_factor_ = std::fabs(problem.options.scale) * (lane_sum + 6 + inputs) * kFloatUnit * kSecondOrder;
    result_.score_error = filled(0.0, problem.total_queries(), problem.query_heads);
    result_.sum_error = static_cast<double>(kFastKeys + 3 + roundings(problem.v.dtype, problem.v.scales != nullptr)) *
                        kFloatUnit * kSecondOrder;
    double slope = 0;
    for (const double of_head : problem.options.alibi_slopes) slope = std::max(slope, std::fabs(of_head));
    std::int64_t most_keys = 0;
    for (const std::int64_t length : problem.key_lengths) most_keys = std::max(most_keys, length);
    largest_alibi_ = slope * static_cast<double>(most_keys + problem.total_queries());
    if (terms == Terms::left_out) o_error_ = filled(0.0, problem.total_queries(), problem.query_heads);
  }
  FastRun(const FastRun&) = delete;

  Result take() {
    run();
    return std::move(result_);
  }
  Output take_output() {
    run();
    Output output{std::move(result_.o), std::move(result_.lse), std::move(o_error_), std::move(result_.score_error),
                  true};
    if (p_.options.lse_base == LseBase::two) output.lse_error *= std::numbers::log2e;
    return output;
  }

 private:
  void run() {
    each_query_block(p_, [&](std::int64_t sequence, std::int64_t first, std::int64_t last, std::int64_t origin) {
      if (!run_fast(sequence, first, last, origin)) strict_.run(sequence, first, last, origin);
    });
  }

  // A few queries at a time: their sums and weights stay in the caches. False if floats do not hold a value.
  bool run_fast(std::int64_t sequence, std::int64_t first, std::int64_t last, std::int64_t origin) {
    constexpr std::int64_t kQueries = 16;
    for (std::int64_t at = first; at < last; at += kQueries) {
      const std::int64_t end = std::min(at + kQueries, last);
      fast_.run(sequence, at, end, origin);
      const std::int64_t row = p_.first_query(sequence) + at;
      if (!fast_.weights_are_normal() || !floats_hold(row, row + end - at)) {
        clear_errors(p_.first_query(sequence) + first, last - first);
        return false;
      }
      write_errors(row, end - at);
    }
    return true;
  }

  // Whether the sums of queries [first, last) of the result, and those that its error is made of, are floats.
  bool floats_hold(std::int64_t first, std::int64_t last) const {
    for (std::int64_t kv_head = 0; kv_head < p_.k.heads; ++kv_head) {
      if (!std::isfinite(fast_.largest_key(kv_head))) return false;
    }
    if (!(largest_score() < kLargestScore)) return false;
    return terms_ == Terms::computed ? floats_hold_terms(first, last) : floats_hold_output(first, last);
  }

  // Finite, and 0 or not too small for a sum of squares.
  bool floats_hold_terms(std::int64_t first, std::int64_t last) const {
    const std::int64_t elements = p_.query_heads * p_.v.head_size;
    bool held = true;
    for (std::int64_t i = first * elements; i < last * elements; ++i) {
      const double a1 = result_.a1.data()[i];
      const double a2 = result_.a2.data()[i];
      held = held && std::isfinite(a1) && std::isfinite(a2) && (a1 == 0 || a1 >= kSmallest);
    }
    for (std::int64_t i = first * p_.query_heads; i < last * p_.query_heads; ++i) {
      held = held && std::isfinite(result_.smax.data()[i]);
    }
    return held;
  }

  // Without terms, the largest |v| is known. Products far below it are lost, and do not count.
  bool floats_hold_output(std::int64_t first, std::int64_t last) const {
    bool held = true;
    for (std::int64_t kv_head = 0; kv_head < p_.k.heads; ++kv_head) {
      const double largest = fast_.largest_value(kv_head);
      held = held && std::isfinite(largest) && (largest == 0 || largest >= kSmallest);
    }
    for (std::int64_t i = first * p_.query_heads * p_.v.head_size; i < last * p_.query_heads * p_.v.head_size; ++i) {
      held = held && std::isfinite(result_.o.data()[i]);
    }
    for (std::int64_t i = first * p_.query_heads; i < last * p_.query_heads; ++i) {
      held = held && !std::isnan(result_.lse.data()[i]);
    }
    return held;
  }

  void clear_errors(std::int64_t row, std::int64_t queries) {
    for (std::int64_t query = row; query < row + queries; ++query) {
      for (std::int64_t head = 0; head < p_.query_heads; ++head) {
        result_.score_error(query, head) = 0;
        if (terms_ == Terms::left_out) o_error_(query, head) = 0;
      }
    }
  }

  // Of a score while options are added to it. ALiBi and a bias may cancel each other.
  double largest_score() const { return fast_.largest_score() + largest_alibi_; }

  void write_errors(std::int64_t row, std::int64_t queries) {
    const std::int64_t group = p_.query_heads / p_.k.heads;
    const double added = kScoreError * largest_score() + kWeightError;
    for (std::int64_t query = 0; query < queries; ++query) {
      for (std::int64_t head = 0; head < p_.query_heads; ++head) {
        const double error = score_factor_ * fast_.query_norm(query, head) * fast_.largest_key(head / group) + added;
        result_.score_error(row + query, head) = error;
        if (terms_ == Terms::computed) continue;
        o_error_(row + query, head) =
            (2 * kSecondOrder * error + result_.sum_error) * fast_.largest_value(head / group);
      }
    }
  }

  const Problem& p_;
  Terms terms_;
  Result result_;
  xt::xtensor<double, 2> o_error_;  // [query, query_head]; without terms only
  QueryBlock<float> fast_;
  QueryBlock<double> strict_;
  double score_factor_ = 0;
  double largest_alibi_ = 0;  // at least what ALiBi adds to a score
};

}  // namespace

Result fast_reference(const Problem& problem) {
  check_problem(problem);
  return FastRun(problem, widest_kernels(), Terms::computed).take();
}
Result fast_reference(const Problem& problem, InstructionSet set) {
  const ReferenceKernels& kernels = available_kernels(set);
  check_problem(problem);
  return FastRun(problem, kernels, Terms::computed).take();
}

Output fast_output(const Problem& problem) {
  check_problem(problem);
  return FastRun(problem, widest_kernels(), Terms::left_out).take_output();
}
Output fast_output(const Problem& problem, InstructionSet set) {
  const ReferenceKernels& kernels = available_kernels(set);
  check_problem(problem);
  return FastRun(problem, kernels, Terms::left_out).take_output();
}

}  // namespace kvscope::attention
