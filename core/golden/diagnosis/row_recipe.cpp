#include "core/golden/diagnosis/row_recipe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/attention/bounds.h"
#include "core/attention/mask.h"
#include "core/attention/weight_terms.h"
#include "core/base/convert.h"

namespace kvscope::golden {
namespace {

using attention::PagedRows;
using attention::Problem;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// Where element (dim) of a head comes from, for a kernel that takes the elements in another order.
std::int64_t source_dim(DimOrder order, std::int64_t dim, std::int64_t dims) {
  const std::int64_t half = dims / 2;
  if (order == DimOrder::stored || dims % 2 != 0) return dim;
  switch (order) {
    case DimOrder::halves_exchanged:
      return dim < half ? dim + half : dim - half;
    case DimOrder::interleaved:  // reads (i, i + D / 2) where pairs (2i, 2i + 1) are stored
      return dim < half ? 2 * dim : 2 * (dim - half) + 1;
    case DimOrder::deinterleaved:
      return dim % 2 == 0 ? dim / 2 : half + dim / 2;
    case DimOrder::stored:
      break;
  }
  return dim;
}

void reorder(DimOrder order, std::span<double> row) {
  if (order == DimOrder::stored) return;
  const std::vector<double> stored(row.begin(), row.end());
  for (std::size_t d = 0; d < row.size(); ++d) {
    row[d] = stored[at(source_dim(order, static_cast<std::int64_t>(d), static_cast<std::int64_t>(row.size())))];
  }
}

// Angle of each pair at position 1.
std::vector<double> frequencies(const Rotary& rotary, std::size_t dims) {
  std::vector<double> angles(dims / 2);
  for (std::size_t i = 0; i < angles.size(); ++i) {
    angles[i] = std::pow(rotary.base, -2.0 * static_cast<double>(i) / static_cast<double>(dims));
  }
  return angles;
}

void rotate(const Rotary& rotary, const std::vector<double>& angles, double position, std::span<double> row) {
  const std::size_t half = row.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    const double angle = position * angles[i];
    double& x = rotary.interleaved ? row[2 * i] : row[i];
    double& y = rotary.interleaved ? row[2 * i + 1] : row[i + half];
    const double rotated = x * std::cos(angle) - y * std::sin(angle);
    y = x * std::sin(angle) + y * std::cos(angle);
    x = rotated;
  }
}

// Bytes that rows of a pool may occupy, from `rows.data`.
std::int64_t extent_bytes(const PagedRows& rows) {
  if (rows.blocks < 1) return 0;
  return ((rows.blocks - 1) * rows.block_stride + (rows.page_size - 1) * rows.token_stride +
          (rows.heads - 1) * rows.head_stride + rows.head_size) *
         size_of(rows.dtype);
}

bool inside(std::span<const std::byte> bytes, const std::byte* first, std::int64_t count) {
  return first >= bytes.data() && first + count <= bytes.data() + bytes.size();
}
std::span<const std::byte> bytes_of(const PagedRows& rows) {
  return {rows.data, at(extent_bytes(rows))};
}

// e4m3fnuz has exponent bias 8 instead of 7, no negative zero, and one NaN, the code 0x80.
void to_doubles_fnuz(const std::byte* first, std::span<double> out) {
  for (std::size_t d = 0; d < out.size(); ++d) {
    const auto code = std::to_integer<int>(first[d]);
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    const double value = exponent == 0 ? std::ldexp(mantissa, -10) : std::ldexp(8 + mantissa, exponent - 11);
    out[d] = code == 0x80 ? std::numeric_limits<double>::quiet_NaN() : code > 0x80 ? -value : value;
  }
}

// Whether a key is read elsewhere than its block and slot tell.
bool elsewhere(const KeyRead& key) {
  return key.k_from_v || key.v_from_k || key.layer_bytes != 0;
}

// Decodes one row; false when it is outside the problem's K and V and outside `pool`.
bool decode(const Problem& problem, std::span<const std::byte> pool, PagedRows rows, const KeyRead& key,
            std::int64_t scale_block, std::int64_t scale_layer_bytes, bool fnuz, std::int64_t head,
            std::span<double> out) {
  if (key.block < 0 || key.slot < 0) return false;
  rows.data += key.layer_bytes;
  if (rows.scales != nullptr) rows.scales += scale_layer_bytes;
  const std::byte* first =
      rows.data +
      (key.block * rows.block_stride + key.slot * rows.token_stride + head * rows.head_stride) * size_of(rows.dtype);
  const auto bytes = static_cast<std::int64_t>(out.size()) * size_of(rows.dtype);
  if (!inside(bytes_of(problem.k), first, bytes) && !inside(bytes_of(problem.v), first, bytes) &&
      !inside(pool, first, bytes)) {
    return false;
  }
  if (fnuz) {
    to_doubles_fnuz(first, out);
  } else {
    to_doubles(rows.dtype, first, out);
  }
  if (rows.scales == nullptr) return true;
  const std::int64_t block = scale_block >= 0 ? scale_block : key.block;
  const std::int64_t blocks = rows.scale_blocks != 0 ? rows.scale_blocks : rows.blocks;
  // A slot past the page reads the next block's scales, up to the last scale.
  const std::int64_t at_scale =
      block * rows.scale_block_stride + key.slot * rows.scale_token_stride + head * rows.scale_head_stride;
  if (at_scale > (blocks - 1) * rows.scale_block_stride + (rows.page_size - 1) * rows.scale_token_stride +
                     (rows.heads - 1) * rows.scale_head_stride) {
    return false;
  }
  const std::byte* scales = rows.scales + at_scale * size_of(rows.scale_dtype);
  for (std::size_t d = 0; d < out.size(); ++d) {
    out[d] *= load_as_double(rows.scale_dtype,
                             scales + static_cast<std::int64_t>(d) / rows.granularity * size_of(rows.scale_dtype));
  }
  return true;
}

bool same_rows(const PagedRows& a, const PagedRows& b) {
  return a.data == b.data && a.dtype == b.dtype && a.block_stride == b.block_stride &&
         a.token_stride == b.token_stride && a.head_stride == b.head_stride && a.scales == b.scales &&
         a.scale_block_stride == b.scale_block_stride && a.scale_token_stride == b.scale_token_stride &&
         a.scale_head_stride == b.scale_head_stride && a.granularity == b.granularity;
}

// A running softmax state over some keys.
struct State {
  double maximum = kMinusInfinity;
  double sum = 0;
  std::vector<double> o, a1, a2;
  explicit State(std::size_t dims) : o(dims), a1(dims), a2(dims) {}

  void rescale(double to) {
    const double factor = std::isinf(maximum) ? 0.0 : std::exp(maximum - to);
    sum *= factor;
    for (std::size_t d = 0; d < o.size(); ++d) {
      o[d] *= factor;
      a1[d] *= factor;
      a2[d] *= factor * factor;
    }
    maximum = to;
  }
  void add(double score, double weight, std::span<const double> value) {
    const double e = weight * std::exp(score - maximum);
    sum += e;
    for (std::size_t d = 0; d < o.size(); ++d) {
      o[d] += e * value[d];
      a1[d] += e * std::fabs(value[d]);
      a2[d] += e * e * value[d] * value[d];
    }
  }
};

}  // namespace

std::vector<KeyRead> keys_of(const Problem& problem, std::int64_t sequence, std::int64_t first, std::int64_t last) {
  std::vector<KeyRead> keys;
  const PagedRows& k = problem.k;
  const auto scale_entry = [&](const PagedRows& rows, std::int64_t page) -> std::int64_t {
    if (rows.scales_table == nullptr) return -1;
    const std::int64_t stride = rows.scales_table_stride != 0 ? rows.scales_table_stride : rows.table_stride;
    return page < stride ? std::int64_t{rows.scales_table[sequence * stride + page]} : -1;
  };
  for (std::int64_t t = first; t < last; ++t) {
    const std::int64_t page = t / k.page_size;
    KeyRead key;
    key.block = page < k.table_stride ? std::int64_t{k.table[sequence * k.table_stride + page]} : -1;
    key.slot = t % k.page_size;
    key.position = t;
    key.k_scale_block = scale_entry(problem.k, page);
    key.v_scale_block = scale_entry(problem.v, page);
    keys.push_back(key);
  }
  return keys;
}

Recipe correct_recipe(const Problem& problem, std::int64_t sequence, std::int64_t query, std::int64_t head) {
  const attention::Options& options = problem.options;
  const std::int64_t queries = problem.first_query(sequence + 1) - problem.first_query(sequence);
  const std::int64_t own = query - problem.first_query(sequence);
  const attention::KeyRange visible = attention::visible_keys(options, own, queries, problem.keys(sequence));
  Recipe recipe;
  recipe.k = problem.k;
  recipe.v = problem.v;
  recipe.k_head = recipe.v_head = head / (problem.query_heads / problem.k.heads);
  recipe.query_row = query;
  recipe.query_head = head;
  recipe.keys = keys_of(problem, sequence, visible.first, visible.last);
  recipe.scale = options.scale;
  recipe.soft_cap = options.soft_cap;
  recipe.query_position = attention::query_position(options, own, queries, problem.keys(sequence));
  if (!options.alibi_slopes.empty()) recipe.slope = options.alibi_slopes[at(head)];
  recipe.slope_origin = static_cast<double>(recipe.query_position);
  if (!options.sinks.empty()) recipe.sink = options.sinks[at(head)];
  recipe.lse_base = options.lse_base;
  recipe.empty_row = options.empty_row;
  return recipe;
}

RowEvaluator::RowEvaluator(const Problem& problem, std::span<const std::byte> pool, std::int64_t sequence,
                           std::int64_t query, std::int64_t head)
    : problem_(problem), pool_(pool), sequence_(sequence), query_(query), head_(head) {
  correct_ = correct_recipe(problem, sequence, query, head);
  for (std::size_t i = 0; i < correct_.keys.size(); ++i) {
    const KeyRead& key = correct_.keys[i];
    index_.try_emplace(key.block * problem.k.page_size + key.slot, i);
  }
}

bool RowEvaluator::has_base_scores() const {
  if (scores_kept_ == Kept::not_yet) {
    scores_kept_ = Kept::no;  // while these are read
    Terms terms;
    read_scores(correct_, terms);
    if (!terms.outside && !terms.scores.empty()) {
      base_.scores = std::move(terms.scores);
      scores_kept_ = Kept::yes;
    }
  }
  return scores_kept_ == Kept::yes;
}

bool RowEvaluator::has_base_values() const {
  if (values_kept_ == Kept::not_yet) {
    values_kept_ = Kept::no;
    Terms terms;
    read_values(correct_, terms);
    if (!terms.outside && !terms.values.empty()) {
      base_.values = std::move(terms.values);
      values_kept_ = Kept::yes;
    }
  }
  return values_kept_ == Kept::yes;
}

std::size_t RowEvaluator::known(const KeyRead& key) const {
  if (key.slot >= problem_.k.page_size || elsewhere(key)) return correct_.keys.size();
  const auto found = index_.find(key.block * problem_.k.page_size + key.slot);
  return found == index_.end() ? correct_.keys.size() : found->second;
}

void RowEvaluator::read_scores(const Recipe& recipe, Terms& terms) const {
  const std::size_t dims = at(problem_.k.head_size);
  std::vector<double> q(dims), row(dims);
  const std::int64_t q_element = (recipe.query_row * problem_.query_heads + recipe.query_head) * problem_.k.head_size;
  to_doubles(problem_.q_dtype, problem_.q + q_element * size_of(problem_.q_dtype), q);
  const std::vector<double> angles = recipe.rotary ? frequencies(*recipe.rotary, dims) : std::vector<double>();
  if (recipe.rotary && recipe.rotary->query) {
    rotate(*recipe.rotary, angles, static_cast<double>(recipe.query_position), q);
  }
  const bool base = same_rows(recipe.k, correct_.k) && recipe.k_head == correct_.k_head &&
                    recipe.query_row == correct_.query_row && recipe.query_head == correct_.query_head &&
                    recipe.k_dims == DimOrder::stored && !recipe.rotary && !recipe.fnuz && has_base_scores();
  terms.scores.assign(recipe.keys.size(), 0);
  for (std::size_t i = 0; i < recipe.keys.size(); ++i) {
    const KeyRead& key = recipe.keys[i];
    if (key.zeros) continue;
    if (const std::size_t known = base ? this->known(key) : correct_.keys.size(); known < correct_.keys.size()) {
      terms.scores[i] = base_.scores[known];
      continue;
    }
    if (!decode(problem_, pool_, key.k_from_v ? recipe.v : recipe.k, key, key.k_scale_block, key.k_scale_layer_bytes,
                recipe.fnuz, recipe.k_head, row)) {
      terms.outside = true;
      return;
    }
    reorder(recipe.k_dims, row);
    if (recipe.rotary && recipe.rotary->key) rotate(*recipe.rotary, angles, static_cast<double>(key.position), row);
    double dot = 0;
    for (std::size_t d = 0; d < dims; ++d) dot += q[d] * row[d];
    terms.scores[i] = dot;
  }
}

void RowEvaluator::read_values(const Recipe& recipe, Terms& terms) const {
  const std::size_t dims = at(problem_.v.head_size);
  const bool base = same_rows(recipe.v, correct_.v) && recipe.v_head == correct_.v_head &&
                    recipe.v_dims == DimOrder::stored && !recipe.fnuz && has_base_values();
  terms.values.assign(recipe.keys.size() * dims, 0);
  for (std::size_t i = 0; i < recipe.keys.size(); ++i) {
    const KeyRead& key = recipe.keys[i];
    const std::span value(terms.values.data() + i * dims, dims);
    if (key.zeros) continue;
    if (const std::size_t known = base ? this->known(key) : correct_.keys.size(); known < correct_.keys.size()) {
      std::copy_n(base_.values.data() + known * dims, dims, value.begin());
    } else if (!decode(problem_, pool_, key.v_from_k ? recipe.k : recipe.v, key, key.v_scale_block,
                       key.v_scale_layer_bytes, recipe.fnuz, recipe.v_head, value)) {
      terms.outside = true;
      return;
    } else {
      reorder(recipe.v_dims, value);
    }
  }
}

RowEvaluator::Terms RowEvaluator::scores(const Recipe& recipe) const {
  Terms terms;
  read_scores(recipe, terms);
  for (std::size_t i = 0; i < terms.scores.size(); ++i) {
    double& s = terms.scores[i];
    if (recipe.soft_cap && recipe.cap_before_scale) {
      s = *recipe.soft_cap * std::tanh(s / *recipe.soft_cap) * recipe.scale;
    } else {
      s *= recipe.scale;
      if (recipe.soft_cap) s = *recipe.soft_cap * std::tanh(s / *recipe.soft_cap);
    }
    s += recipe.slope * (static_cast<double>(recipe.keys[i].position) - recipe.slope_origin);
  }
  return terms;
}

RowEvaluator::Terms RowEvaluator::terms(const Recipe& recipe) const {
  Terms terms = scores(recipe);
  if (!terms.outside) read_values(recipe, terms);
  return terms;
}

void RowEvaluator::weigh(const Recipe& recipe, const std::vector<double>& scores, attention::RowTerms& row) const {
  double maximum = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
  if (recipe.sink) maximum = std::max(maximum, *recipe.sink);
  double sum = recipe.extra_denominator * std::exp(-maximum);
  attention::WeightTerms weights;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double e = recipe.keys[i].weight * std::exp(scores[i] - maximum);
    row.smax = std::max(row.smax, std::fabs(scores[i]));
    sum += e;
    weights.add(e);
  }
  if (recipe.sink) sum += std::exp(*recipe.sink - maximum);
  row.base_two = recipe.lse_base == attention::LseBase::two;
  row.lse = (maximum + std::log(sum)) * (row.base_two ? std::numbers::log2e : 1.0);
  row.keys = static_cast<double>(std::max<std::size_t>(scores.size(), 1));
  row.head_size = static_cast<double>(problem_.k.head_size);
  row.p2 = weights.p2(sum);
  row.repeats = weights.repeats();
  for (std::size_t i = 0; i < attention::kClumpTypes; ++i) row.clump[i] = weights.clump(i, sum);
  for (std::size_t i = 0; i < attention::kFaintTerms; ++i) row.faint[i] = weights.faint(i, sum);
}

RowValue RowEvaluator::evaluate(const Recipe& recipe) const {
  const std::size_t dims = at(problem_.v.head_size);
  Terms terms = scores(recipe);
  RowValue row;
  row.outside = terms.outside;
  if (terms.outside) return row;
  // A mean of the splits' outputs beside the correct lse; sinks are left to the loop below.
  const bool mean = recipe.combine == Combine::mean && !recipe.sink && recipe.extra_denominator == 0;
  if (expected_ && !terms.scores.empty() && (recipe.combine == Combine::online || mean) &&
      recipe.stored_lse == StoredLse::correct) {
    weigh(recipe, terms.scores, row.terms);
    const auto& [lse, rounding] = *expected_;
    if (std::isfinite(lse) && !attention::lse_within(rounding, row.terms, lse)) return row;
  } else {
    weigh(recipe, terms.scores, row.terms);
  }
  read_values(recipe, terms);
  row.outside = terms.outside;
  if (terms.outside) return row;
  row.o.assign(dims, 0);
  row.a1.assign(dims, 0);
  row.a2.assign(dims, 0);
  const double to_stored = recipe.lse_base == attention::LseBase::two ? std::numbers::log2e : 1.0;
  if (terms.scores.empty()) {
    row.terms.lse = recipe.empty_row == attention::EmptyRow::minus_infinity ? kMinusInfinity : -kMinusInfinity;
    return row;
  }

  // Tiles or splits of `split` keys; all keys at once when the order does not matter.
  const auto keys = static_cast<std::int64_t>(terms.scores.size());
  const std::int64_t piece = recipe.combine == Combine::online || recipe.split < 1 ? keys : recipe.split;
  State total(dims);
  double pieces = 0;
  double weight_sum = 0;
  double mean_lse = 0;
  std::vector<double> merged(dims);
  for (std::int64_t first = 0; first < keys; first += piece) {
    const std::int64_t last = std::min(keys, first + piece);
    double maximum = total.maximum;
    if (recipe.combine != Combine::online && recipe.combine != Combine::without_rescaling) maximum = kMinusInfinity;
    for (std::int64_t i = first; i < last; ++i) maximum = std::max(maximum, terms.scores[at(i)]);
    const bool sink_here = first == 0 && recipe.sink && recipe.sink_joins != SinkJoins::after;
    if (sink_here) maximum = std::max(maximum, *recipe.sink);
    if (first == 0 && recipe.extra_denominator > 0) maximum = std::max(maximum, 0.0);
    State part(dims);
    State& state = recipe.combine == Combine::online || recipe.combine == Combine::without_rescaling ? total : part;
    if (recipe.combine == Combine::without_rescaling) {
      state.maximum = maximum;  // what is already summed keeps its old scale
    } else {
      state.rescale(maximum);
    }
    for (std::int64_t i = first; i < last; ++i) {
      const KeyRead& key = recipe.keys[at(i)];
      if (key.weight != 0) state.add(terms.scores[at(i)], key.weight, {terms.values.data() + at(i) * dims, dims});
    }
    if (sink_here) state.sum += recipe.sink_joins == SinkJoins::before ? 1.0 : std::exp(*recipe.sink - maximum);
    if (first == 0 && recipe.extra_denominator > 0) state.sum += recipe.extra_denominator * std::exp(-maximum);
    if (&state == &total) continue;
    const double lse = state.maximum + std::log(state.sum);
    // The weight of a split: equal for a mean; for the other base, exp2 of a natural lse or exp of a base-2 one.
    const double stored = lse * to_stored;
    const double weight = recipe.combine == Combine::mean
                              ? 1.0
                              : (recipe.lse_base == attention::LseBase::two ? std::exp(stored) : std::exp2(stored));
    for (std::size_t d = 0; d < dims; ++d) {
      merged[d] += weight * state.o[d] / state.sum;
      total.a1[d] += weight * state.a1[d] / state.sum;
      total.a2[d] += weight * weight * state.a2[d] / (state.sum * state.sum);
    }
    weight_sum += weight;
    mean_lse += lse;
    pieces += 1;
  }
  if (recipe.combine == Combine::mean || recipe.combine == Combine::other_base) {
    for (std::size_t d = 0; d < dims; ++d) {
      row.o[d] = merged[d] / weight_sum;
      row.a1[d] = total.a1[d] / weight_sum;
      row.a2[d] = std::sqrt(total.a2[d]) / weight_sum;
    }
    if (recipe.stored_lse == StoredLse::mean_of_splits) {
      row.terms.lse = mean_lse / pieces * to_stored;
    } else if (recipe.combine == Combine::mean) {
      const double maximum = *std::max_element(terms.scores.begin(), terms.scores.end());
      double sum = 0;
      for (const double s : terms.scores) sum += std::exp(s - maximum);
      row.terms.lse = (maximum + std::log(sum)) * to_stored;
    } else {
      row.terms.lse = recipe.lse_base == attention::LseBase::two ? std::log(weight_sum) : std::log2(weight_sum);
    }
    return row;
  }
  if (recipe.sink && recipe.sink_joins == SinkJoins::after) {
    total.rescale(std::max(total.maximum, *recipe.sink));
    total.sum += std::exp(*recipe.sink - total.maximum);
  }
  const double norm = recipe.normalized ? total.sum : 1.0;
  for (std::size_t d = 0; d < dims; ++d) {
    row.o[d] = total.o[d] / norm;
    row.a1[d] = total.a1[d] / norm;
    row.a2[d] = std::sqrt(total.a2[d]) / norm;
  }
  const double natural = total.maximum + std::log(total.sum);
  switch (recipe.stored_lse) {
    case StoredLse::correct:
    case StoredLse::mean_of_splits:  // of one split
      row.terms.lse = natural * to_stored;
      break;
    case StoredLse::other_base:
      row.terms.lse = natural * (recipe.lse_base == attention::LseBase::two ? 1.0 : std::numbers::log2e);
      break;
    case StoredLse::sum_only:
      row.terms.lse = std::log(total.sum) * to_stored;
      break;
    case StoredLse::maximum_only:
      row.terms.lse = total.maximum * to_stored;
      break;
  }
  return row;
}

}  // namespace kvscope::golden
