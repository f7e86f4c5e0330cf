#include "core/attention/bounds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <string>

#include "core/attention/detail/output_formula.h"
#include "core/attention/reference.h"
#include "core/base/errors.h"

namespace kvscope::attention {
namespace {

constexpr double kInverseRoot3 = 0.57735026918962576;  // standard deviation of an error that is uniform in -1 .. 1
constexpr double kFalseAlarm = 1e-7;                   // of one criterion; a report has fewer than ten

[[noreturn]] void reject(DType out) {
  throw UnsupportedError("error bound of " + std::string(name(out)) +
                         " output: a kernel's output is f64, f32, f16 or " +
                         "bf16; compare narrower outputs bit for bit");
}

struct Precision {
  int kept_bits;  // of the significand after the leading 1
  int smallest;   // exponent of the smallest normal number
};

Precision precision_of(DType type) {
  switch (type) {
    case DType::f64:
      return {52, -1022};
    case DType::f32:
      return {23, -126};
    case DType::f16:
      return {10, -14};
    case DType::bf16:
      return {7, -126};
    case DType::e4m3:
      return {3, -6};
    case DType::e5m2:
      return {2, -14};
    default:
      reject(type);
  }
}

// 2^exponent for a normal or subnormal double. std::ldexp takes ten times as long, for each row of a comparison.
double power_of_two(int exponent) {
  const auto bits = exponent >= -1022 ? static_cast<std::uint64_t>(exponent + 1023) << 52
                                      : std::uint64_t{1} << std::max(0, exponent + 1074);
  return std::bit_cast<double>(exponent < -1074 ? 0 : bits);
}

double unit_of(DType type) {
  return power_of_two(-1 - precision_of(type).kept_bits);
}

// Half the smallest positive number: the rounding error near zero.
double half_smallest(DType type) {
  const Precision p = precision_of(type);
  return power_of_two(p.smallest - p.kept_bits - 1);
}

// The reference and the kernel both round when the kernel computes in double.
double arithmetic_unit(const Rounding& r) {
  return r.output == DType::f64 ? 2 * 0x1p-53 : 0x1p-24;
}

constexpr double kUnlimited = 0x1p1000;

constexpr double kFurtherAdditions = 16;  // of the whole sum: rescaling, merging parts, dividing

double additions(const Rounding& r, double keys) {
  const auto tile = static_cast<double>(r.tile_keys);
  return kFurtherAdditions + (r.tile_keys <= 1 ? keys : std::min(keys, tile + keys / tile));
}

// Root mean square of the row sum at its additions, divided by the whole row sum.
double row_sum_at_additions(const RowTerms& row, double all) {
  return std::sqrt((kFurtherAdditions + (all - kFurtherAdditions) * row.row_sum_so_far * row.row_sum_so_far) / all);
}

double score_sum_of(const RowTerms& row) {
  return row.score_sum < 0 ? 1 + row.smax : row.score_sum;
}

// One standard deviation of a score, from the additions of its dot product.
double score_deviation(const Rounding& r, const RowTerms& row) {
  return arithmetic_unit(r) * 0.5 * std::sqrt(row.head_size) * score_sum_of(row);
}

// The systematic error of a row sum of equal weights, in units of the arithmetic. In tiles, every addition within a
// tile and every addition of a tile may round in the same direction.
double repeated_additions(const Rounding& r, const RowTerms& row) {
  const double repeats = row.repeats < 0 ? row.keys : row.repeats;
  const auto tile = static_cast<double>(r.tile_keys);
  return r.tile_keys <= 1 ? repeats : std::min(repeats, tile + row.keys / tile);
}

// Products that one matrix instruction adds to the sum so far.
constexpr double kInstructionTerms = 32;

// What a truncating sum of `terms` terms may lose, relative to its largest partial sum: each product and, once for each
// instruction, the sum so far lose less than a unit of the largest addend.
double cut_of(const Rounding& r, double terms) {
  return r.accumulator_bits == 0 ? 0 : std::ldexp(terms + std::ceil(terms / kInstructionTerms), 1 - r.accumulator_bits);
}

// What a matrix instruction with an f32 sum loses for each product, relative to the sum so far: of each of 8 products
// and the sum half of 2^-25, and of the result half of 2^-23.
constexpr double kCutProduct = (9 * 0x1p-26 + 0x1p-24) / 8;

// Whether sums over keys and over a head are those of matrix instructions with an f32 sum.
bool on_matrix_units(const Rounding& r) {
  return r.accumulator_bits == 0 && r.output != DType::f64 && r.probabilities != DType::f32 &&
         r.probabilities != DType::f64;
}

// Of a score. A truncated product loses half a unit on average, with the product's sign.
double cut_score(const Rounding& r, const RowTerms& row) {
  if (on_matrix_units(r)) return kCutProduct * row.head_size * score_sum_of(row);
  return 0.5 * cut_of(r, row.head_size) * (1 + row.smax);
}

// Of the sum over the keys, relative to the sum so far. Equal products may each lose a whole unit.
double cut_sum_so_far(const Rounding& r, const RowTerms& row) {
  const double repeats = row.repeats < 0 ? row.keys : std::min(row.keys, row.repeats);
  return on_matrix_units(r) ? std::min(1.0, kCutProduct * (row.keys + repeats)) : 0;
}

// Of the row sum, relative to it. Equal weights may each lose a whole unit.
double cut_row_sum(const Rounding& r, const RowTerms& row) {
  if (!on_matrix_units(r)) return 0;
  const double known = r.probabilities == DType::bf16   ? row.row_sum_cut[0]
                       : r.probabilities == DType::f16  ? row.row_sum_cut[1]
                       : r.probabilities == DType::e4m3 ? row.row_sum_cut[2]
                                                        : -1;
  if (known < 0) return cut_sum_so_far(r, row) * row.row_sum_so_far;
  const double repeats = row.repeats < 0 ? row.keys : std::min(row.keys, row.repeats);
  return std::min(1.0, known * (1 + repeats / std::max(row.keys, 1.0)));
}

// Of the sum over the keys. No sum can lose more than its terms.
double cut_sum(const Rounding& r, const RowTerms& row) {
  return std::min(1.0, cut_of(r, r.tile_keys <= 1 ? row.keys : std::min(row.keys, static_cast<double>(r.tile_keys))));
}

// Of the row's type of P; a type as wide as the arithmetic is not measured, and its unit is negligible.
double clump_of(const Rounding& r, const RowTerms& row) {
  switch (r.probabilities) {
    case DType::bf16:
      return std::min(1.0, 2 * row.clump[0]);
    case DType::f16:
      return std::min(1.0, 2 * row.clump[1]);
    case DType::e4m3:
      return std::min(1.0, 2 * row.clump[2]);
    default:
      return 1.0;
  }
}

// What P loses below its normal range: all of it, in one direction; or a systematic part and independent errors with a
// standard deviation. Each as a weight of the row, and as shares of a1 and of a2.
struct Lost {
  double weight = 0, share = 0;  // in one direction
  double systematic_weight = 0, systematic_share = 0;
  double deviation_weight = 0, deviation_share = 0;
};

// The values of faint keys may be larger than those of the others: a1 / faint is their mean, and four times that is
// allowed. Among the faint keys, the values of the faintest may be larger than those of the others, so the independent
// errors are allowed twice the share of a2 that they have if values do not depend on weights.
Lost lost_by(const Rounding& r, const RowTerms& row) {
  const std::size_t type = r.probabilities == DType::f16 ? 0 : 1;
  const double measured = row.faint[1 + type];
  if ((r.probabilities == DType::f16 || r.probabilities == DType::e4m3) && measured >= 0) {
    Lost lost;
    if (measured == 0) return lost;
    const auto share_of = [&](double weight) { return std::min(1.0, 4 * weight / row.faint[0]); };
    lost.weight = lost.systematic_weight = measured;
    lost.share = lost.systematic_share = share_of(measured);
    if (row.lost[type] < 0 || !(row.lost[2 * kLostTypes] > 0)) return lost;  // not separated
    lost.systematic_weight = std::min(measured, row.lost[type]);
    lost.systematic_share = share_of(lost.systematic_weight);
    lost.deviation_weight = kInverseRoot3 * row.lost[kLostTypes + type];
    lost.deviation_share = 2 * lost.deviation_weight / row.lost[2 * kLostTypes];
    return lost;
  }
  // The row sum is at least 1, and at least exp(lse - smax) because no score exceeds smax.
  const double natural = row.base_two ? row.lse * std::numbers::ln2 : row.lse;
  const double row_sum = std::max(1.0, std::exp(std::min(natural - row.smax, 700.0)));
  const double weight = std::min(1.0, half_smallest(r.probabilities) * row.keys / row_sum);
  const double share = std::min(1.0, 4 * weight);
  return {weight, share, weight, share, 0, 0};
}

double square(double x) {
  return x * x;
}

}  // namespace

Rounding rounding_of(DType output) {
  if (output != DType::f64 && output != DType::f32 && output != DType::f16 && output != DType::bf16) reject(output);
  Rounding r;
  r.output = r.probabilities = output;
  r.lse = output == DType::f64 ? DType::f64 : DType::f32;
  if (output == DType::f64) r.ex2_error = 0x1p-51;
  return r;
}

double deviations_for(double elements) {
  return std::sqrt(2 * std::log(2 * std::max(elements, 1.0) / kFalseAlarm));
}

RowTerms row_terms(const Result& golden, std::size_t query, std::size_t head, double head_size, bool base_two) {
  RowTerms row;
  row.keys = golden.keys(query, head);
  row.head_size = head_size;
  row.smax = golden.smax(query, head);
  row.lse = golden.lse(query, head);
  row.base_two = base_two;
  row.p2 = golden.p2(query, head);
  row.repeats = golden.repeats(query, head);
  for (std::size_t i = 0; i < kClumpTypes; ++i) row.clump[i] = golden.clump(query, head, i);
  for (std::size_t i = 0; i < kFaintTerms; ++i) row.faint[i] = golden.faint(query, head, i);
  for (std::size_t i = 0; i < kLostTerms; ++i) row.lost[i] = golden.lost(query, head, i);
  row.score_sum = golden.partial_sums(query, head, 0);
  row.row_sum_so_far = golden.partial_sums(query, head, 1);
  for (std::size_t i = 0; i < kClumpTypes; ++i) row.row_sum_cut[i] = golden.row_sum_cut(query, head, i);
  row.largest_value = golden.largest_value(query, head);
  if (golden.score_error.size() > 0) {
    row.score_error = golden.score_error(query, head);
    row.sum_error = row.score_error > 0 ? golden.sum_error : 0;
  }
  return row;
}

ElementTerms element_terms(const Result& golden, std::size_t query, std::size_t head, std::size_t dim) {
  return {golden.o(query, head, dim), golden.a1(query, head, dim), golden.a2(query, head, dim),
          golden.running(query, head, dim)};
}

StepOfType step_of(DType type) {
  return {power_of_two(precision_of(type).smallest), unit_of(type)};
}

double half_step(DType type, double x) {
  return half_step_at<1>(step_of(type), x);
}

OutputBudgets::OutputBudgets(const Rounding& r, const RowTerms& row) {
  OutputFactors& f = factors_;
  const double e = arithmetic_unit(r);
  f.output = step_of(r.output);
  f.in_tiles = r.tile_keys > 1;
  f.p2 = row.p2;
  f.k = r.deviations;
  f.spread = f.k * kInverseRoot3;
  f.inputs = r.inputs ? unit_of(*r.inputs) * f.k * kInverseRoot3 * (2 * (1 + row.smax) + 1) : 0;
  f.score = score_deviation(r, row);
  f.scores = 4 * e * (1 + row.smax);
  f.ex2 = r.ex2_error;
  f.p = unit_of(r.probabilities);
  f.p_deviation = f.p / f.k;
  f.clump = f.p * clump_of(r, row);
  const Lost lost = lost_by(r, row);
  f.lost = lost.share;
  f.most_lost = row.largest_value >= 0 ? std::min(lost.weight * row.largest_value, kUnlimited) : kUnlimited;
  f.lost_systematic = lost.systematic_share;
  f.lost_deviation = lost.deviation_share;
  const double all = additions(r, row.keys);
  f.sum = e * 0.5 * std::sqrt(all);
  f.row_sum = row_sum_at_additions(row, all);
  f.row_sum_so_far = row.row_sum_so_far;
  f.repeated = e * repeated_additions(r, row);
  f.cut = cut_sum(r, row);
  f.cut_sum_so_far = cut_sum_so_far(r, row);
  f.cut_scores = cut_score(r, row);
  f.merge = 2 * e * (std::isfinite(row.lse) ? std::fabs(row.lse) : 0) + (r.partials ? unit_of(*r.partials) : 0);
  f.partial_floor = r.partials ? half_smallest(*r.partials) : 0;
  f.golden_score = 1.01 * row.score_error;
  f.golden_sum = row.sum_error;
}

ProbabilityErrors probability_errors(const Rounding& r, const RowTerms& row) {
  const double u = unit_of(r.probabilities);
  const bool narrow = r.probabilities == DType::f16 || r.probabilities == DType::e4m3;
  return {std::hypot(kInverseRoot3 * u, kInverseRoot3 * r.ex2_error, score_deviation(r, row)), u * clump_of(r, row),
          narrow ? half_smallest(r.probabilities) : 0};
}

Budget OutputBudgets::of(const ElementTerms& element) const {
  const OutputFactors& f = factors_;
  const OutputTerms<1> terms = output_terms<1, true, true>(f, element.o, element.a1, element.a2, element.running);
  // The errors of scores and of sums are independent: together they are the root of their squares. Each source has the
  // part that its variance has.
  const double together = Lanes<1>::length(terms.score, terms.largest_sum, terms.sum_of_weights);
  const double of_scores = terms.score / std::max(together, kTiny) * terms.score;
  Budget b;
  b.inputs = terms.inputs;
  b.scores = f.scores * element.a1 + f.k * of_scores;
  b.ex2 = f.ex2 * (terms.size + terms.spread);
  b.p = f.clump * terms.size + f.p * terms.spread + terms.lost + f.k * terms.lost_deviation;
  b.sum = f.k * (together - of_scores) + f.repeated * terms.size;
  b.cut = terms.cut + f.cut_scores * (element.a1 + terms.size);
  b.merge = terms.merge;
  b.golden = terms.golden;
  b.output = half_step_at<1>(f.output, terms.size + b.before_output());
  b.common = (f.clump + f.ex2) * terms.size;
  b.independent = independent_part<1>(f, terms, together);
  b.deviation = std::sqrt(variance_of<1>(f, terms));
  return b;
}

void OutputBudgets::of_row(const ElementRow& elements, const BudgetRow& budgets) const {
  static const InstructionSet kWidest = available_instruction_sets().back();
  of_row(elements, budgets, kWidest);
}

void OutputBudgets::of_row(const ElementRow& elements, const BudgetRow& budgets, InstructionSet set) const {
  switch (set) {
#if defined(KVSCOPE_AVX2)
    case InstructionSet::avx2:
      return avx2::budgets_of_row(factors_, elements, budgets);
#endif
#if defined(KVSCOPE_AVX512)
    case InstructionSet::avx512:
      return avx512::budgets_of_row(factors_, elements, budgets);
#endif
    default:
      return baseline::budgets_of_row(factors_, elements, budgets);
  }
}

Budget output_budget(const Rounding& rounding, const RowTerms& row, const ElementTerms& element) {
  return OutputBudgets(rounding, row).of(element);
}

namespace {

double lse_base(const RowTerms& row) {
  return row.base_two ? std::numbers::log2e : 1.0;
}

// One standard deviation of each independent error of lse, and the systematic part of what P loses below its normal
// range.
struct LseDeviations {
  double score, p, lost, sum;
  double lost_systematic;
};

LseDeviations lse_deviations(const Rounding& r, const RowTerms& row) {
  const double base = lse_base(row), e = arithmetic_unit(r);
  LseDeviations out{};
  const double all = additions(r, row.keys);
  out.score = base * score_deviation(r, row) * row.p2;
  out.sum = base * e * 0.5 * std::sqrt(all) * row_sum_at_additions(row, all);
  if (r.row_sum == RowSum::exact) return out;
  out.p = base * unit_of(r.probabilities) * kInverseRoot3 * row.p2;
  const Lost lost = lost_by(r, row);
  out.lost_systematic = base * lost.weight;
  const double deviation = base * lost.deviation_weight;
  if (base * lost.systematic_weight + r.deviations * deviation < out.lost_systematic) {
    out.lost_systematic = base * lost.systematic_weight;
    out.lost = deviation;
  }
  return out;
}

double together(const LseDeviations& parts) {
  return std::sqrt(square(parts.score) + square(parts.p) + square(parts.lost) + square(parts.sum));
}

}  // namespace

double lse_deviation(const Rounding& rounding, const RowTerms& row) {
  return together(lse_deviations(rounding, row));
}

Budget lse_budget(const Rounding& r, const RowTerms& row) {
  const double k = r.deviations;
  const double e = arithmetic_unit(r);
  const double base = lse_base(row);
  const double natural = std::fabs(row.lse) / base;
  const LseDeviations parts = lse_deviations(r, row);
  Budget b;
  if (r.inputs) b.inputs = base * unit_of(*r.inputs) * k * kInverseRoot3 * 2 * (1 + row.smax);
  const double of_sums = std::hypot(parts.score, parts.sum);
  const double of_scores = of_sums > 0 ? square(parts.score) / of_sums : 0;  // the part of its variance
  b.scores = base * e * (4 + 4 * row.smax + 2 * natural) + k * of_scores;
  b.ex2 = base * r.ex2_error;
  double independent_p = 0;  // what the independent errors of P may add to the common error
  if (r.row_sum != RowSum::exact) {
    const double u = base * unit_of(r.probabilities);
    const double common = u * clump_of(r, row);
    independent_p = std::min(u - common, k * parts.p);
    b.p = common + independent_p + k * parts.lost + parts.lost_systematic;
    independent_p += k * parts.lost;
  }
  b.sum = k * (of_sums - of_scores) + base * e * repeated_additions(r, row);
  const double cut = cut_sum(r, row) + cut_row_sum(r, row);
  b.falling = r.row_sum == RowSum::exact ? 0 : base * cut;
  b.cut = base * cut_score(r, row) + b.falling;
  b.merge = base * 2 * e * natural;
  b.golden = base * row.score_error;
  b.output = half_step(r.lse, std::fabs(row.lse) + b.before_output());
  b.deviation = together(parts);
  b.independent = k * of_sums + independent_p;
  return b;
}

namespace {

// Whether NaN and infinities agree; `finite` tells whether both values are finite and must be compared with a bound.
bool same_mask(double x, double y, bool& finite) {
  finite = std::isfinite(x) && std::isfinite(y);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return finite || x == y;
}

}  // namespace

bool output_within(const Rounding& rounding, const RowTerms& row, const ElementTerms& golden, double o) {
  bool finite = false;
  if (!same_mask(o, golden.o, finite)) return false;
  return !finite || std::fabs(o - golden.o) <= output_budget(rounding, row, golden).total();
}

bool lse_within(const Rounding& rounding, const RowTerms& golden, double lse) {
  bool finite = false;
  if (!same_mask(lse, golden.lse, finite)) return false;
  return !finite || std::fabs(lse - golden.lse) <= lse_budget(rounding, golden).toward(lse - golden.lse).total();
}

}  // namespace kvscope::attention
