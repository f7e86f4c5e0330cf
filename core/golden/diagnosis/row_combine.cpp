// RowEvaluator::evaluate: from the scores and values of a recipe's keys to its output row.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>

#include "core/attention/equal_weights.h"
#include "core/attention/flat_weights.h"
#include "core/attention/partial_sums.h"
#include "core/attention/rising_clump.h"
#include "core/attention/weight_terms.h"
#include "core/base/interruption.h"
#include "core/golden/diagnosis/row_recipe.h"
#include "core/golden/verdict/detail/key_sums.h"

namespace kvscope::golden {
namespace {

constexpr double kNoMaximum = -std::numeric_limits<double>::infinity();

double to_stored_lse(const Recipe& recipe) {
  return recipe.lse_base == attention::LseBase::two ? std::numbers::log2e : 1.0;
}

// A running softmax state over some keys.
struct RunningSoftmax {
  double maximum = kNoMaximum;
  double sum = 0;
  std::vector<double> o, a1, a2;
  explicit RunningSoftmax(std::size_t dims) : o(dims), a1(dims), a2(dims) {}

  void scale_output(double factor) {
    for (std::size_t d = 0; d < o.size(); ++d) {
      o[d] *= factor;
      a1[d] *= factor;
      a2[d] *= factor * factor;
    }
  }
  // What is already summed keeps its old scale where `output` or `total` is false.
  void rescale(double to, bool output = true, bool total = true) {
    const double factor = std::isinf(maximum) ? 0.0 : std::exp(maximum - to);
    if (total) sum *= factor;
    if (output) scale_output(factor);
    maximum = to;
  }
  // Adds the part of another warp. Where `output` or `total` is false, both keep their weights.
  void merge(RunningSoftmax other, bool output, bool total) {
    if (std::isinf(other.maximum)) return;
    if (output || total) {
      const double to = std::max(maximum, other.maximum);
      rescale(to, output, total);
      other.rescale(to, output, total);
    }
    sum += other.sum;
    for (std::size_t d = 0; d < o.size(); ++d) {
      o[d] += other.o[d];
      a1[d] += other.a1[d];
      a2[d] += other.a2[d];
    }
  }
  // Weights exp(score - maximum) of keys, and their rows of V.
  void add(std::span<const double> weights, std::span<const double* const> values) {
    for (const double e : weights) sum += e;
    key_sums().add(weights.data(), values.data(), std::ssize(weights), std::ssize(o), o.data(), a1.data(), a2.data());
  }
};

void set_output(RowValue& row, const RunningSoftmax& from, double norm) {
  row.o = from.o;
  row.a1 = from.a1;
  row.a2 = from.a2;
  for (std::size_t d = 0; d < row.o.size(); ++d) {
    row.o[d] /= norm;
    row.a1[d] /= norm;
    row.a2[d] = std::sqrt(row.a2[d]) / norm;
  }
}

// The keys in tiles of `recipe.split` keys, with a running maximum.
class Tiles {
 public:
  Tiles(const Recipe& recipe, const RowEvaluator::Terms& terms, std::size_t dims)
      : recipe_(recipe), terms_(terms), dims_(dims), keys_(static_cast<std::int64_t>(terms.scores.size())) {
    const bool one_tile = recipe.combine == Combine::online || recipe.split < 1;
    tile_ = one_tile ? keys_ : recipe.split;
    output_ = recipe.combine != Combine::without_rescaling && recipe.combine != Combine::output_without_rescaling;
    sum_ = recipe.combine != Combine::without_rescaling && recipe.combine != Combine::sum_without_rescaling;
  }

  // The tiles of the keys [begin, end) that belong to part `which`.
  [[nodiscard]] RunningSoftmax part(std::int64_t begin, std::int64_t end, std::int64_t which) const {
    RunningSoftmax state(dims_);
    for (std::int64_t first = begin + which * tile_; first < end; first += recipe_.parts * tile_) {
      const std::int64_t last = std::min(end, first + tile_);
      double maximum = state.maximum;
      for (std::int64_t i = first; i < last; ++i) maximum = std::max(maximum, score(i));
      const bool with_sink = first == 0 && recipe_.sink && recipe_.sink_joins != SinkJoins::after;
      if (with_sink) maximum = std::max(maximum, *recipe_.sink);
      const bool with_empty = first == 0 && recipe_.extra_denominator > 0;
      if (with_empty) maximum = std::max(maximum, 0.0);
      state.rescale(maximum, output_, sum_);
      add(state, first, last);
      if (with_sink) state.sum += recipe_.sink_joins == SinkJoins::before ? 1.0 : std::exp(*recipe_.sink - maximum);
      if (with_empty) state.sum += recipe_.extra_denominator * std::exp(-maximum);
    }
    return state;
  }

  // Keys [first, last) by themselves, as a split computes them.
  [[nodiscard]] RunningSoftmax split(std::int64_t first, std::int64_t last) const {
    RunningSoftmax state(dims_);
    double maximum = kNoMaximum;
    for (std::int64_t i = first; i < last; ++i) maximum = std::max(maximum, score(i));
    if (first == 0 && recipe_.sink) maximum = std::max(maximum, *recipe_.sink);
    state.rescale(maximum);
    add(state, first, last);
    if (first == 0 && recipe_.sink) state.sum += std::exp(*recipe_.sink - maximum);
    return state;
  }

  [[nodiscard]] std::int64_t keys() const { return keys_; }
  [[nodiscard]] std::int64_t tile() const { return tile_; }

 private:
  [[nodiscard]] double score(std::int64_t i) const { return terms_.scores[static_cast<std::size_t>(i)]; }
  void add(RunningSoftmax& state, std::int64_t first, std::int64_t last) const {
    weights_.clear();
    values_.clear();
    for (std::int64_t i = first; i < last; ++i) {
      const auto k = static_cast<std::size_t>(i);
      const double weight = recipe_.keys[k].weight;
      if (weight == 0) continue;
      weights_.push_back(weight * std::exp(terms_.scores[k] - state.maximum));
      values_.push_back(dims_ == 0 ? nullptr : terms_.values[k]);
    }
    state.add(weights_, values_);
  }

  const Recipe& recipe_;
  const RowEvaluator::Terms& terms_;
  std::size_t dims_;
  std::int64_t keys_, tile_ = 0;
  bool output_ = true, sum_ = true;      // rescaled when the maximum rises
  mutable std::vector<double> weights_;  // of the keys that are added
  mutable std::vector<const double*> values_;
};

// lse of a combination whose running state is `total`.
double lse_of(const Recipe& recipe, const RunningSoftmax& total) {
  const double to_stored = to_stored_lse(recipe), natural = total.maximum + std::log(total.sum);
  switch (recipe.stored_lse) {
    case StoredLse::correct:
    case StoredLse::mean_of_splits:  // of one split
    case StoredLse::maximum_and_count:
    case StoredLse::maximum_twice:    // of one split: largest_split_lse is added
    case StoredLse::largest_maximum:  // `total` has it
    case StoredLse::first_lane:       // divide_by_lane_sums and mixed_lse replace it
    case StoredLse::mixed_bases:
      break;
    case StoredLse::other_base:
      return natural * (recipe.lse_base == attention::LseBase::two ? 1.0 : std::numbers::log2e);
    case StoredLse::sum_only:
      return std::log(total.sum) * to_stored;
    case StoredLse::maximum_only:
      return total.maximum * to_stored;
  }
  return natural * to_stored;
}

// Splits merged with wrong weights. `row` has the correct lse.
void merge_splits(const Recipe& recipe, const Tiles& tiles, double correct_lse, RowValue& row, std::size_t dims) {
  const double to_stored = to_stored_lse(recipe);
  RunningSoftmax merged(dims);
  double weights = 0, lse_sum = 0, largest = kNoMaximum, splits = 0;
  for (std::int64_t first = 0; first < tiles.keys(); first += tiles.tile()) {
    const RunningSoftmax split = tiles.split(first, std::min(tiles.keys(), first + tiles.tile()));
    const double lse = split.maximum + std::log(split.sum);
    // Equal for a mean; for the other base, exp2 of a natural lse or exp of a base-2 one.
    const double weight = recipe.combine == Combine::mean              ? 1.0
                          : recipe.lse_base == attention::LseBase::two ? std::exp(lse * to_stored)
                                                                       : std::exp2(lse);
    for (std::size_t d = 0; d < dims; ++d) {
      merged.o[d] += weight * split.o[d] / split.sum;
      merged.a1[d] += weight * split.a1[d] / split.sum;
      merged.a2[d] += weight * weight * split.a2[d] / (split.sum * split.sum);
    }
    weights += weight;
    lse_sum += lse;
    largest = std::max(largest, lse);
    splits += 1;
  }
  set_output(row, merged, weights);
  if (recipe.combine == Combine::other_base) {
    row.terms.lse = recipe.lse_base == attention::LseBase::two ? std::log(weights) : std::log2(weights);
  } else if (recipe.stored_lse == StoredLse::mean_of_splits) {
    row.terms.lse = lse_sum / splits * to_stored;
  } else if (recipe.stored_lse == StoredLse::maximum_and_count) {
    row.terms.lse = (largest + std::log(splits)) * to_stored;
  } else {
    row.terms.lse = correct_lse;
  }
}

// All keys of a recipe whose tiles, parts and splits are added up, each with the maximum of its own that it has.
RunningSoftmax added_up(const Recipe& recipe, const Tiles& tiles, std::size_t dims) {
  const bool sums_alike = recipe.combine != Combine::without_common_maximum;
  const bool outputs_alike = sums_alike && recipe.combine != Combine::output_without_common_maximum;
  const std::int64_t step = recipe.merged_split < 1 ? tiles.keys() : recipe.merged_split;
  RunningSoftmax total(dims);
  double largest = kNoMaximum;
  for (std::int64_t begin = 0; begin < tiles.keys(); begin += step) {
    const std::int64_t end = std::min(tiles.keys(), begin + step);
    RunningSoftmax split = tiles.part(begin, end, 0);
    largest = std::max(largest, split.maximum);
    for (std::int64_t part = 1; part < recipe.parts && begin + part * tiles.tile() < end; ++part) {
      RunningSoftmax other = tiles.part(begin, end, part);
      largest = std::max(largest, other.maximum);
      split.merge(std::move(other), outputs_alike, sums_alike);
    }
    if (begin == 0) {
      total = std::move(split);
    } else {
      total.merge(std::move(split), true, true);
    }
  }
  if (recipe.stored_lse == StoredLse::largest_maximum) total.maximum = largest;
  return total;
}

// The keys of equal weights, where there are many, count as one (attention/equal_weights.h), as in the reference.
// `order`: the keys ordered by weight; `values`: their rows of V.
void join_equal_weights(std::span<const double> weights, double sum, std::span<const std::size_t> order,
                        std::span<const double* const> values, RowValue& row) {
  const std::size_t dims = row.o.size();
  std::vector<double> squares(dims), together(dims), pairs(dims);
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && weights[order[end]] == weights[order[begin]]) ++end;
    std::ranges::fill(together, 0.0);
    for (std::size_t i = begin; i < end; ++i) {
      const double* const value = values[order[i]];
      const std::size_t size = end - begin;
      const double* const other =
          size > 1 ? values[order[begin + attention::EqualWeights::partner(i - begin, size)]] : nullptr;
      for (std::size_t d = 0; d < dims; ++d) {
        together[d] += weights[order[i]] * value[d];
        if (other != nullptr && value[d] == other[d] && value[d] != 0) pairs[d] += static_cast<double>(size - 1);
      }
    }
    for (std::size_t d = 0; d < dims; ++d) squares[d] += together[d] * together[d];
  }
  const auto keys = static_cast<double>(weights.size());
  row.running.resize(dims);
  for (std::size_t d = 0; d < dims; ++d) {
    row.a2[d] = std::max(row.a2[d], std::sqrt(squares[d]) / sum);
    row.running[d] = row.a1[d] * std::sqrt(attention::EqualWeights::larger_sums(1 + pairs[d] / keys, keys));
  }
}

// sqrt(sum over distinct weights of (sum of them)^2).
double size_of_distinct(std::span<const double> weights, std::span<const std::size_t> order) {
  double squares = 0;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && weights[order[end]] == weights[order[begin]]) ++end;
    const double together = weights[order[begin]] * static_cast<double>(end - begin);
    squares += together * together;
  }
  return std::sqrt(squares);
}

// The sums of Recipe::lane_sums in place of the sum of all keys.
void divide_by_lane_sums(const Recipe& recipe, const RowEvaluator::Terms& terms, const RunningSoftmax& total,
                         RowValue& row) {
  const Recipe::LaneSums& lanes = recipe.lane_sums;
  const auto lane = [&](std::int64_t x) { return static_cast<std::size_t>(x % lanes.period / lanes.run); };
  std::vector<double> sums(static_cast<std::size_t>(lanes.period / lanes.run));
  for (std::size_t i = 0; i < terms.scores.size(); ++i) {
    const KeyRead& key = recipe.keys[i];
    sums[lane(key.position)] += key.weight * std::exp(terms.scores[i] - total.maximum);
  }
  for (std::size_t d = 0; d < row.o.size(); ++d) {
    const double sum = sums[lane(static_cast<std::int64_t>(d))], factor = total.sum / sum;
    row.o[d] = total.o[d] / sum;
    row.a1[d] *= factor;
    row.a2[d] *= factor;
  }
  if (recipe.stored_lse == StoredLse::first_lane) {
    row.terms.lse = (total.maximum + std::log(sums[0])) * to_stored_lse(recipe);
  }
}

// Largest natural lse of splits of `recipe.split` keys.
double largest_split_lse(const Recipe& recipe, const RowEvaluator::Terms& terms) {
  const Tiles tiles(recipe, terms, 0);
  const std::int64_t step = recipe.split < 1 ? tiles.keys() : recipe.split;
  double largest = kNoMaximum;
  for (std::int64_t first = 0; first < tiles.keys(); first += step) {
    const RunningSoftmax split = tiles.split(first, std::min(tiles.keys(), first + step));
    largest = std::max(largest, split.maximum + std::log(split.sum));
  }
  return largest;
}

// Example: scores 2 and 1 give maximum 2, sum 1 + exp(-1) = 1.368 and lse 2.313. With log2 of the sum: 2 + 0.452.
double mixed_lse(const Recipe& recipe, const RowEvaluator::Terms& terms, const RunningSoftmax& total) {
  double maximum = total.maximum;
  if (recipe.split > 0) {
    maximum = largest_split_lse(recipe, terms);
  } else if (recipe.sink_joins == SinkJoins::after) {
    maximum = *std::ranges::max_element(terms.scores);
  }
  const double log_sum = total.maximum + std::log(total.sum) - maximum;
  return maximum * recipe.lse_maximum + log_sum * recipe.lse_sum;
}

}  // namespace

RowEvaluator::Weights RowEvaluator::weigh(const Recipe& recipe, const std::vector<double>& scores,
                                          attention::RowTerms& row) const {
  double maximum = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
  if (recipe.sink) maximum = std::max(maximum, *recipe.sink);
  double sum = recipe.extra_denominator * std::exp(-maximum);
  Weights result;
  result.of_keys.reserve(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double e = recipe.keys[i].weight * std::exp(scores[i] - maximum);
    row.smax = std::max(row.smax, std::fabs(scores[i]));
    sum += e;
    result.of_keys.push_back(e);
  }
  const std::span<const double> of_keys = result.of_keys;
  const double without_sink = sum;
  if (recipe.sink) sum += std::exp(*recipe.sink - maximum);
  const attention::WeightTerms weights = attention::weight_terms_of(of_keys);
  row.base_two = recipe.lse_base == attention::LseBase::two;
  row.lse = (maximum + std::log(sum)) * (row.base_two ? std::numbers::log2e : 1.0);
  row.keys = static_cast<double>(std::max<std::size_t>(scores.size(), 1));
  row.head_size = static_cast<double>(problem_.k.head_size);
  row.p2 = weights.p2(sum);
  const auto rising = attention::rising_clump(of_keys, weights.sums(), sum);
  const attention::FlatTerms flat = attention::flat_terms(of_keys, weights.sums(), sum);
  row.repeats = std::max(weights.repeats(), flat.additions);
  for (std::size_t i = 0; i < attention::kClumpTypes; ++i) {
    row.clump[i] = std::max({weights.clump(i, sum), rising[i], flat.clump[i]});
  }
  for (std::size_t i = 0; i < attention::kFaintTerms; ++i) row.faint[i] = weights.faint(i, sum);
  for (std::size_t i = 0; i < attention::kLostTerms; ++i) row.lost[i] = weights.lost(i, sum);
  const attention::RowSumTerms of_sum = attention::row_sum_terms(of_keys, sum - without_sink, sum);
  row.row_sum_so_far = of_sum.so_far;
  std::ranges::copy(of_sum.cut, row.row_sum_cut);
  if (equal_weights_.many(of_keys)) {
    result.joined = attention::EqualWeights::sorted(of_keys);
    row.p2 = std::max(row.p2, size_of_distinct(of_keys, result.joined) / sum);
    const double equal = attention::EqualWeights::systematic_additions(of_keys, result.joined) / sum;
    row.repeats = std::max(equal, flat.additions);
  }
  row.repeats += attention::absorbed(of_keys, 0, sum);
  result.sum = sum;
  return result;
}

RowValue RowEvaluator::evaluate_halves(const Recipe& recipe) const {
  Recipe half = recipe;
  half.lanes.output = LaneHalves::Output::of_half_0;
  RowValue row = evaluate(half);
  if (row.o.empty() || recipe.keys.empty()) return row;  // another lse, or no key
  const Terms scores_0 = scores(half);
  half.lanes.half = 1;
  const Terms terms_1 = terms(half);
  const auto dims = static_cast<std::size_t>(dims_);
  const Tiles half_0(half, scores_0, 0), half_1(half, terms_1, dims);
  const std::int64_t step = recipe.merged_split < 1 ? half_0.keys() : recipe.merged_split;
  RunningSoftmax merged(dims);  // outputs of half 1, with the maximum and the sum of half 0 unless it has its own
  for (std::int64_t first = 0; first < half_0.keys(); first += step) {
    const std::int64_t last = std::min(half_0.keys(), first + step);
    RunningSoftmax split = half_1.split(first, last);
    if (recipe.lanes.output == LaneHalves::Output::by_sum_0) {
      const RunningSoftmax stored = half_0.split(first, last);
      split.maximum = stored.maximum;
      split.sum = stored.sum;
    }
    merged.merge(std::move(split), true, true);
  }
  RowValue other;
  set_output(other, merged, merged.sum);
  for (std::size_t d = 0; d < dims; ++d) {
    if (static_cast<std::int64_t>(d) / recipe.lanes.run % 2 == 0) continue;
    row.o[d] = other.o[d];
    row.a1[d] = other.a1[d];
    row.a2[d] = other.a2[d];
    if (!row.running.empty()) row.running[d] = other.a1[d];
  }
  for (const double score : terms_1.scores) row.terms.smax = std::max(row.terms.smax, std::fabs(score));
  return row;
}

RowValue RowEvaluator::evaluate(const Recipe& recipe) const {
  interruption_point();
  if (recipe.lanes.run > 0 && recipe.lanes.output != LaneHalves::Output::of_half_0) return evaluate_halves(recipe);
  Terms terms = scores(recipe);
  RowValue row;
  row.outside = terms.outside;
  if (terms.outside) return row;
  const Weights weights = weigh(recipe, terms.scores, row.terms);
  const bool no_keys =
      std::all_of(recipe.keys.begin(), recipe.keys.end(), [](const KeyRead& k) { return k.weight == 0; });
  if (terms.scores.empty() || (no_keys && !recipe.sink)) {
    const auto dims = static_cast<std::size_t>(dims_);
    row.o.assign(dims, 0);
    row.a1 = row.a2 = row.o;
    row.terms.lse = recipe.empty_row == attention::EmptyRow::minus_infinity ? kNoMaximum : -kNoMaximum;
    row.lost_keys = !correct_.keys.empty();
    return row;
  }
  row.lost_keys = no_keys;  // a sink alone is left
  // The lse of these combinations is known before the values are read; sinks are left to the code below.
  const bool mean = recipe.combine == Combine::mean && !recipe.sink && recipe.extra_denominator == 0;
  const bool correct_sum = recipe.combine == Combine::online || recipe.combine == Combine::output_without_rescaling;
  if (expected_ && (correct_sum || mean) && recipe.stored_lse == StoredLse::correct) {
    const auto& [lse, rounding] = *expected_;
    if (std::isfinite(lse) && !attention::lse_within(rounding, row.terms, lse)) return row;
  }
  read_values(recipe, terms);
  row.outside = terms.outside;
  if (terms.outside) return row;
  if (row.terms.faint[0] > 0 && row.terms.faint[0] < attention::kFewFaint) row.terms.largest_value = largest(terms);
  row = combine(recipe, terms, std::move(row));
  if (!weights.joined.empty()) join_equal_weights(weights.of_keys, weights.sum, weights.joined, terms.values, row);
  if (!recipe.zero_weight_keys.empty()) {
    Recipe past = recipe;
    past.keys = recipe.zero_weight_keys;
    Terms values;
    read_values(past, values);
    row.outside = values.outside;
    for (std::size_t i = 0; i < values.values.size() && !values.outside; ++i) {
      for (std::size_t d = 0; d < row.o.size(); ++d) row.o[d] += 0 * values.values[i][d];
    }
  }
  return row;
}

double RowEvaluator::largest(const Terms& terms) const {
  // Sizes of doubles are ordered as their bits are: NaN and infinity are above every number.
  constexpr std::uint64_t size_bits = ~std::uint64_t{0} >> 1;
  std::uint64_t largest = 0;
  for (const double* value : terms.values) {
    for (std::int64_t d = 0; d < dims_; ++d) {
      largest = std::max(largest, std::bit_cast<std::uint64_t>(value[d]) & size_bits);
    }
  }
  const auto size = std::bit_cast<double>(largest);
  return std::isfinite(size) ? size : -1;  // -1: not known
}

RowValue RowEvaluator::combine(const Recipe& recipe, const Terms& terms, RowValue row) const {
  const auto dims = static_cast<std::size_t>(dims_);
  const Tiles tiles(recipe, terms, dims);
  if (recipe.combine == Combine::mean || recipe.combine == Combine::other_base) {
    merge_splits(recipe, tiles, row.terms.lse, row, dims);
    return row;
  }
  RunningSoftmax total = added_up(recipe, tiles, dims);
  if (recipe.sink && recipe.sink_joins == SinkJoins::after) {
    total.rescale(std::max(total.maximum, *recipe.sink));
    total.sum += std::exp(*recipe.sink - total.maximum);
  }
  set_output(row, total, recipe.normalized ? total.sum : 1.0);
  row.terms.lse = lse_of(recipe, total);
  if (recipe.lane_sums.period > 0) divide_by_lane_sums(recipe, terms, total, row);
  if (recipe.stored_lse == StoredLse::maximum_twice) {
    row.terms.lse += largest_split_lse(recipe, terms) * to_stored_lse(recipe);
  }
  if (recipe.stored_lse == StoredLse::mixed_bases) row.terms.lse = mixed_lse(recipe, terms, total);
  return row;
}

}  // namespace kvscope::golden
