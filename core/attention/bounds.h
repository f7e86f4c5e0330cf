// The maximum error of a correct kernel against the reference, as a budget: one number for each source of rounding.
// docs/04_attention_and_golden.md derives it. It follows from the data and from what the kernel rounds, and is not a
// fixed tolerance: one that a bf16 kernel at 4096 tokens needs would accept an output with a whole wrong page.
//
// With u(T) = half the distance of adjacent numbers of type T just above 1 (bf16 2^-8, f16 2^-11, e4m3 2^-4, f32 2^-24,
// f64 2^-53), e = the unit of the arithmetic (2^-24; f64: 2 * 2^-53), k = `deviations`, and per row and element the
// terms of the reference (result.h), an element of o may differ by the sum of
//
//   inputs  u(inputs) * (k / sqrt 3) * (2 (1 + smax) + 1) * a1                     0 when q, k and v are used as stored
//   scores  e * 4 (1 + smax) * a1 + k x^2 / t
//   ex2     ex2_error * (|o| + min(a1, k / sqrt 3 * a2))
//   p       u(P) * (min(1, 2 clump) * |o| + min(a1, k / sqrt 3 * a2)) + lost
//   sum     k y^2 / t + e * repeats * |o|
//   cut     c (keys + repeats) * so_far + c head_size * score_sum * (a1 + |o|)     P in 16 or 8 bits
//           min(1, T n) * a1 + T (head_size + head_size / 32) / 2 * (1 + smax) * (a1 + |o|)       accumulator_bits
//   merge   (2 e |lse| + u(partials)) * min(a1, |o| + 8 running + 4 a2)
//   golden  1.01 score_error * (a1 + |o|) + sum_error * a1                       0 for the reference (fast.h)
//   output  half a step of the output's type at the largest magnitude that these allow
//
// x = e / 2 * sqrt(head_size) * score_sum * (a2 + |o| p2) and y = e / 2 * sqrt(additions) * sqrt(min(a1, running +
// a2)^2 + (r o)^2) are standard deviations of independent errors, and t = sqrt(x^2 + y^2) is that of both together.
// lost is what P loses below its normal range: the smallest of min(1, 4 faint(P) / faint) * a1, every error in one
// direction, faint(P) * largest_value, the same, and min(1, 4 systematic / faint) * a1 + 2 k / sqrt 3 * independent /
// faint_size * a2 (weight_terms.h). c = 1.625 * 2^-26 is what a matrix instruction with an f32 sum loses for each
// product, in proportion to the sum so far: it aligns 8 or 16 products and the sum to the largest of them, and cuts
// each to 2^-25 of it and the result to 24 bits, all toward zero. An H100 does so bit by bit (docs/hardware), and
// cutting loses half a unit on average, or up to a whole one if the products are equal (repeats). so_far = min(a1,
// max(running, row_sum_so_far * |o|) + a2) is the size of the sum so far from the first key on, or from the last one
// on, as flash attention adds. T = 2^(1 - accumulator_bits) is the unit of a matrix instruction that truncates its
// addends, and n = m + m / 32 their number in a sum of m terms: m = tile_keys, or without tiles m = keys, and the
// largest partial sum instead of a1. additions = 16 + n, with n = keys when keys are added one by one, and tile + keys
// / tile in tiles. score_sum is the size of the partial sums of a score, at most 1 + smax, and r^2 = (16 + n
// row_sum_so_far^2) / (16 + n): the additions of the row sum round in proportion to the sum so far (partial_sums.h).
// lse differs by the same sources with weights 1 for the row sum and p2 for errors that are independent between keys. A
// row sum has no negative terms, so what matrix instructions cut from it only makes lse smaller: row_sum_cut * (1 +
// repeats / keys).
// Example: bf16, o = 1, a1 = 2, a2 = 0.25, smax = 3, p2 = 0.125, clump 0, k = 7, 64 keys of head size 64: p 0.00395,
// output 0.00391, total 0.0079.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "core/attention/result.h"
#include "core/base/dtype.h"

namespace kvscope::attention {

enum class InstructionSet : std::uint8_t;  // reference.h

// From which probabilities a kernel computes the row sum, which becomes lse: the unrounded ones, or those rounded to
// P's type. `either` allows both.
enum class RowSum : std::uint8_t { either, exact, rounded };

// What a kernel rounds, and to which type.
struct Rounding {
  DType output = DType::f32;         // f64, f32, f16 or bf16
  DType lse = DType::f32;            // the same types
  DType probabilities = DType::f32;  // P as the operand of P V; e4m3 too
  std::optional<DType> partials;     // outputs of the parts of a split-K kernel; empty: as the arithmetic
  std::optional<DType> inputs;       // q, k, v as operands; empty: exactly as stored
  double ex2_error = 0x1p-22;        // relative, of one exponential
  std::int64_t tile_keys = 1;        // keys whose terms are added before they join the running sum; 1: one by one
  // Significant bits to which matrix instructions cut each product and the sum so far, toward zero, aligned to the
  // largest addend: 14 for fp8 on Hopper. Tiles of `tile_keys` keys, if above 1, are summed separately and added to an
  // f32 sum. 0: sums with P in 16 or 8 bits are those of matrix instructions with an f32 sum, others are rounded to
  // nearest in the arithmetic's type.
  int accumulator_bits = 0;
  RowSum row_sum = RowSum::either;
  double deviations = 7;  // k: standard deviations allowed for independent errors; deviations_for()
};

// The rounding of a kernel that writes `output`: P has the output's type, lse is at least f32.
// UnsupportedError for other types than f64, f32, f16, bf16.
[[nodiscard]] Rounding rounding_of(DType output);

// k for a report of `elements` elements: a sum of independent rounding errors exceeds k standard deviations in any of
// them with a probability of at most 1e-7. Example: 1,000 elements -> 6.9; 10^7 -> 8.1.
[[nodiscard]] double deviations_for(double elements);

// Terms of one row, and of one element. Defaults are the largest possible values where a caller does not have a term.
struct RowTerms {
  double keys = 1;       // visible keys
  double head_size = 1;  // of K
  double smax = 0;
  double lse = 0;
  bool base_two = false;  // lse is in base 2
  double p2 = 1;
  double clump[kClumpTypes] = {1, 1, 1};
  double repeats = -1;                             // below 0: not known
  double faint[kFaintTerms] = {-1, -1, -1};        // below 0: not known
  double lost[kLostTerms] = {-1, -1, -1, -1, -1};  // below 0: not known
  double score_sum = -1;      // size of the partial sums of a score (partial_sums.h); below 0: not known, 1 + smax
  double row_sum_so_far = 1;  // rms of the row sum so far over the whole one
  double row_sum_cut[kClumpTypes] = {-1, -1, -1};  // below 0: not known
  double largest_value = -1;                       // at least |v| of all keys; below 0: not known
  double score_error = 0, sum_error = 0;           // of the golden itself: fast.h
};
struct ElementTerms {
  double o = 0, a1 = 0, a2 = 0, running = 0;
};
[[nodiscard]] RowTerms row_terms(const Result& golden, std::size_t query, std::size_t head, double head_size,
                                 bool base_two = false);
[[nodiscard]] ElementTerms element_terms(const Result& golden, std::size_t query, std::size_t head, std::size_t dim);

struct Budget {
  double inputs = 0, scores = 0, ex2 = 0, p = 0, sum = 0, cut = 0, merge = 0, golden = 0, output = 0;
  double deviation = 0;  // one standard deviation of the independent errors among them, the output's rounding excluded
  double common = 0;     // the part of p and ex2 that is the same relative error of all elements of a row of o
  double independent = 0;  // the part of total() that k deviations of them take
  double falling = 0;      // the part of cut that only makes lse smaller; 0 for o
  [[nodiscard]] double before_output() const { return inputs + scores + ex2 + p + sum + cut + merge + golden; }
  [[nodiscard]] double total() const { return before_output() + output; }
  // The budget of a value that is larger than the golden's by `error`, or smaller if `error` is negative.
  [[nodiscard]] Budget toward(double error) const {
    Budget b = *this;
    if (error > 0) b.cut -= std::exchange(b.falling, 0);
    return b;
  }
};

// Half the distance between neighboring numbers of a floating-point type: `unit` times the power of two below a number,
// which is at least `smallest`, the smallest normal number. Example: bf16 has {2^-126, 2^-8}.
struct StepOfType {
  double smallest = 0, unit = 0;
};
[[nodiscard]] StepOfType step_of(DType type);

// What the formula for the elements of one row multiplies with. detail/output_formula.h is the formula.
struct OutputFactors {
  StepOfType output;
  bool in_tiles;
  double spread, inputs, score, p2, scores, ex2, p, p_deviation, clump, lost, most_lost, lost_systematic,
      lost_deviation, sum, row_sum, row_sum_so_far, repeated, cut, cut_sum_so_far, cut_scores, merge, partial_floor,
      golden_score, golden_sum, k;
};

// Terms of `count` elements side by side, and the parts of their budgets by which a comparison judges them.
struct ElementRow {
  const double *o = nullptr, *a1 = nullptr, *a2 = nullptr, *running = nullptr;
  std::int64_t count = 0;
};
struct BudgetRow {
  double *total = nullptr, *systematic = nullptr, *variance = nullptr;  // [count] each
};

// Allowed |o - o64| of the elements of one row, and |lse - lse64| of one row in the base of `row`. Precondition: finite
// values; callers compare NaN and infinities first, as masks.
class OutputBudgets {
 public:
  OutputBudgets(const Rounding& rounding, const RowTerms& row);
  [[nodiscard]] Budget of(const ElementTerms& element) const;

  // Of many elements, with the widest vectors of this machine: total(), before_output() - independent, and deviation^2.
  // Each is within 1e-14 of what of() returns, relative to total() and deviation^2: of() adds the sources one by one.
  // The results are the same on every machine.
  // Held by tests/core/attention/budget_row_test.cpp.
  void of_row(const ElementRow& elements, const BudgetRow& budgets) const;
  void of_row(const ElementRow& elements, const BudgetRow& budgets, InstructionSet set) const;  // an available one

 private:
  OutputFactors factors_;
};
// The errors of a row's probabilities, for tests on a weighted sum of a row's elements (golden/verdict/page_tests.h):
// each probability has an independent relative error with standard deviation `independent`, and one of at most
// `common` that may be equal for many keys. P of the largest weight is 1; `smallest` is half the smallest number of P's
// type, which is the largest error below its normal range, and 0 for types whose range is that of f32.
struct ProbabilityErrors {
  double independent = 0, common = 0, smallest = 0;
};
[[nodiscard]] ProbabilityErrors probability_errors(const Rounding& rounding, const RowTerms& row);
[[nodiscard]] Budget output_budget(const Rounding& rounding, const RowTerms& row, const ElementTerms& element);
[[nodiscard]] Budget lse_budget(const Rounding& rounding, const RowTerms& row);
[[nodiscard]] double lse_deviation(const Rounding& rounding, const RowTerms& row);  // lse_budget().deviation alone

// Whether two output elements, or two log-sum-exps, agree: NaN with NaN, an infinity with the same one, else within the
// budget.
[[nodiscard]] bool output_within(const Rounding& rounding, const RowTerms& row, const ElementTerms& golden, double o);
[[nodiscard]] bool lse_within(const Rounding& rounding, const RowTerms& golden, double lse);

// Half the distance between the numbers of `type` around x. Example: bf16, 1.5 -> 2^-8; 3 -> 2^-7; 0 -> 2^-134.
[[nodiscard]] double half_step(DType type, double x);

}  // namespace kvscope::attention
