#include "core/golden/diagnosis/row_recipe.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "core/base/convert.h"
#include "core/base/interruption.h"

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

// The elements of a row in the order in which they are read: row `number` of boxes as wide as the swizzle. The row has
// whole boxes.
void order_chunks(const ChunkOrder& order, DType dtype, std::int64_t number, std::span<double> row) {
  if (order.stored == SwizzleMode::none) return;
  const Swizzle place = make_swizzle(dtype, order.stored);
  const std::int64_t width = swizzle_granularity(dtype, order.stored), start = (number + order.first_row) * width;
  const std::int64_t chunk = kChunkBytes / size_of(dtype), read = ((number >> order.shift) & order.mask) * chunk;
  for (std::int64_t d = 0; d < std::ssize(row); d += chunk) {
    const std::int64_t from = d / width * width + place(start + (d % width ^ read)) - start;
    // An XOR with one number: it exchanges chunks in pairs.
    if (from > d) std::swap_ranges(row.begin() + d, row.begin() + d + chunk, row.begin() + from);
  }
}

// sum of a[i] * b[i]. Several partial sums: one sum would wait for each addition.
double dot_product(std::span<const double> a, std::span<const double> b) {
  constexpr std::size_t kSums = 8;
  double sums[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums <= a.size(); i += kSums) {
    for (std::size_t n = 0; n < kSums; ++n) sums[n] += a[i + n] * b[i + n];
  }
  double total = 0;
  for (; i < a.size(); ++i) total += a[i] * b[i];
  for (const double sum : sums) total += sum;
  return total;
}

// Rotates rows by the angles of their positions. From one position to the next the angle of a pair grows by a constant,
// so that a run of positions needs no sines after the first: 4096 keys accumulate an error of about 1e-12.
class Rotator {
 public:
  Rotator(const Rotary& rotary, std::size_t dims)
      : interleaved_(rotary.interleaved), step_(dims / 2), step_cos_(dims / 2), step_sin_(dims / 2) {
    for (std::size_t i = 0; i < step_.size(); ++i) {
      step_[i] = std::pow(rotary.base, -2.0 * static_cast<double>(i) / static_cast<double>(dims));
      step_cos_[i] = std::cos(step_[i]);
      step_sin_[i] = std::sin(step_[i]);
    }
    cos_ = sin_ = step_;
  }

  void rotate(std::int64_t position, std::span<double> row) {
    move_to(position);
    const std::size_t half = row.size() / 2;
    for (std::size_t i = 0; i < half; ++i) {
      double& x = interleaved_ ? row[2 * i] : row[i];
      double& y = interleaved_ ? row[2 * i + 1] : row[i + half];
      const double rotated = x * cos_[i] - y * sin_[i];
      y = x * sin_[i] + y * cos_[i];
      x = rotated;
    }
  }

 private:
  void move_to(std::int64_t position) {
    const bool next = known_ && position == position_ + 1;
    for (std::size_t i = 0; i < step_.size(); ++i) {
      if (next) {
        const double c = cos_[i] * step_cos_[i] - sin_[i] * step_sin_[i];
        sin_[i] = sin_[i] * step_cos_[i] + cos_[i] * step_sin_[i];
        cos_[i] = c;
      } else if (!known_ || position != position_) {
        cos_[i] = std::cos(static_cast<double>(position) * step_[i]);
        sin_[i] = std::sin(static_cast<double>(position) * step_[i]);
      }
    }
    position_ = position;
    known_ = true;
  }

  bool interleaved_;
  std::vector<double> step_, step_cos_, step_sin_, cos_, sin_;  // [pair]
  std::int64_t position_ = 0;
  bool known_ = false;
};

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

// e4m3fnuz and e5m2fnuz have exponent bias 8 instead of 7 and 16 instead of 15, no infinities, no negative zero, and
// one NaN, the code 0x80.
void to_doubles_fnuz(DType type, const std::byte* first, std::span<double> out) {
  const int mantissa_bits = type == DType::e4m3 ? 3 : 2, bias = type == DType::e4m3 ? 8 : 16;
  for (std::size_t d = 0; d < out.size(); ++d) {
    const auto code = std::to_integer<int>(first[d]);
    const int exponent = (code & 127) >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
    const double value = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                       : std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
    out[d] = code == 0x80 ? std::numeric_limits<double>::quiet_NaN() : code > 0x80 ? -value : value;
  }
}

// Whether a key is read elsewhere than its block and slot tell.
bool elsewhere(const KeyRead& key) {
  return key.k_from_v || key.v_from_k || key.layer_bytes != 0;
}

// Decodes one row; false when it is outside the problem's K and V and outside `pool`.
bool decode(const Problem& problem, std::span<const std::byte> pool, PagedRows rows, const KeyRead& key,
            std::int64_t scale_block, std::int64_t scale_layer_bytes, const Recipe& recipe, std::int64_t head,
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
  if (recipe.fnuz) {
    to_doubles_fnuz(rows.dtype, first, out);
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
    const std::int64_t element = static_cast<std::int64_t>(d) / recipe.scale_vector * recipe.scale_vector;
    out[d] *= load_as_double(rows.scale_dtype, scales + element / rows.granularity * size_of(rows.scale_dtype));
  }
  return true;
}

// The read of V's row.
KeyRead of_v(KeyRead key) {
  if (key.v_block >= 0) key.block = key.v_block;
  if (key.v_slot >= 0) key.slot = key.v_slot;
  return key;
}

bool same_rows(const PagedRows& a, const PagedRows& b) {
  return a.data == b.data && a.dtype == b.dtype && a.block_stride == b.block_stride &&
         a.token_stride == b.token_stride && a.head_stride == b.head_stride && a.scales == b.scales &&
         a.scale_block_stride == b.scale_block_stride && a.scale_token_stride == b.scale_token_stride &&
         a.scale_head_stride == b.scale_head_stride && a.granularity == b.granularity;
}

}  // namespace

RowEvaluator::RowEvaluator(const Problem& problem, std::span<const std::byte> pool, std::int64_t sequence,
                           std::int64_t query, std::int64_t head)
    : problem_(problem),
      pool_(pool),
      sequence_(sequence),
      query_(query),
      head_(head),
      dims_(problem.v.head_size),
      base_values_(std::make_shared<BaseValues>()) {
  correct_ = correct_recipe(problem, sequence, query, head);
}

bool RowEvaluator::share_values(const RowEvaluator& other) {
  const std::vector<KeyRead>&own = correct_.keys, &others = other.correct_.keys;
  // The keys of a correct kernel are a run of positions.
  if (!problem_.options.bias.empty()) return false;  // each head may see other keys
  const bool same_keys = sequence_ == other.sequence_ && own.size() == others.size() &&
                         (own.empty() || own.front().position == others.front().position);
  if (!same_keys || correct_.v_head != other.correct_.v_head || dims_ != other.dims_) return false;
  base_values_ = other.base_values_;
  return true;
}

RowEvaluator RowEvaluator::first_dims(std::int64_t dims) const {
  RowEvaluator probe(problem_, pool_, sequence_, query_, head_);
  probe.dims_ = std::min(dims, problem_.v.head_size);
  if (has_base_scores()) {
    probe.base_scores_ = base_scores_;
    probe.scores_kept_ = Kept::yes;
  }
  return probe;
}

bool RowEvaluator::has_base_scores() const {
  if (scores_kept_ == Kept::not_yet) {
    scores_kept_ = Kept::no;  // while these are read
    Terms terms;
    read_scores(correct_, terms);
    if (!terms.outside && !terms.scores.empty()) {
      base_scores_ = std::move(terms.scores);
      scores_kept_ = Kept::yes;
    }
  }
  return scores_kept_ == Kept::yes;
}

bool RowEvaluator::has_base_values() const {
  BaseValues& base = *base_values_;
  if (base.kept == Kept::not_yet) {
    base.kept = Kept::no;
    Terms terms;
    read_values(correct_, terms);
    if (!terms.outside && !terms.values.empty()) {
      base.rows = std::move(terms.values);
      base.decoded = std::move(terms.decoded);
      base.kept = Kept::yes;
    }
  }
  return base.kept == Kept::yes;
}

std::size_t RowEvaluator::known(const KeyRead& key, std::size_t near) const {
  if (key.slot >= problem_.k.page_size || elsewhere(key)) return correct_.keys.size();
  const auto is_at = [&](std::size_t i) {
    return i < correct_.keys.size() && correct_.keys[i].block == key.block && correct_.keys[i].slot == key.slot;
  };
  if (is_at(near)) return near;
  // The keys of a correct kernel are mostly a run of positions, of which a recipe may leave out some.
  const std::int64_t first = correct_.keys.empty() ? 0 : correct_.keys.front().position;
  if (key.position >= first && is_at(at(key.position - first))) return at(key.position - first);
  if (index_.empty()) {
    for (std::size_t i = 0; i < correct_.keys.size(); ++i) {
      index_.try_emplace(correct_.keys[i].block * problem_.k.page_size + correct_.keys[i].slot, i);
    }
  }
  const auto found = index_.find(key.block * problem_.k.page_size + key.slot);
  return found == index_.end() ? correct_.keys.size() : found->second;
}

bool RowEvaluator::read_transposed(const PagedRows& rows, const KeyRead& key, const Recipe& recipe, std::int64_t head,
                                   Squares& squares, std::span<double> row) const {
  constexpr std::int64_t side = 8;
  const std::int64_t first = key.position / side * side, column = key.position % side;
  if (squares.first != first) {
    squares.first = first;
    squares.rows.resize(row.size() * at(side));
    for (std::int64_t i = 0; i < side; ++i) {
      const std::span<double> other = std::span(squares.rows).subspan(at(i) * row.size(), row.size());
      if (recipe.zeros_past_end && first + i >= problem_.keys(sequence_)) {
        std::ranges::fill(other, 0.0);
        continue;
      }
      squares.known = decode(problem_, pool_, rows, key_of(problem_, sequence_, first + i), -1, 0, recipe, head, other);
      if (!squares.known) break;
    }
  }
  if (!squares.known) return false;
  for (std::int64_t d = 0; d < std::ssize(row); ++d) {
    row[at(d)] = squares.rows[at(d % side) * row.size() + at(d / side * side + column)];
  }
  return true;
}

const std::vector<double>& RowEvaluator::half_scores(const LaneHalves& lanes) const {
  if (half_scores_.empty()) {
    const std::size_t dims = at(problem_.k.head_size);
    std::vector<double> q(dims), row(dims);
    const std::int64_t element = (query_ * problem_.query_heads + head_) * problem_.k.head_size;
    to_doubles(problem_.q_dtype, problem_.q + element * size_of(problem_.q_dtype), q);
    half_scores_.resize(2 * static_cast<std::size_t>(std::bit_width(dims)), std::vector<double>(correct_.keys.size()));
    for (std::size_t i = 0; i < correct_.keys.size(); ++i) {
      interruption_point();
      const KeyRead& key = correct_.keys[i];
      decode(problem_, pool_, correct_.k, key, key.k_scale_block, 0, correct_, correct_.k_head, row);
      for (std::size_t d = 0; d < dims; ++d) {
        for (std::size_t log2 = 0; 2 * log2 < half_scores_.size(); ++log2) {
          half_scores_[2 * log2 + (d >> log2 & 1)][i] += q[d] * row[d];
        }
      }
    }
  }
  return half_scores_[2 * at(std::countr_zero(static_cast<std::uint64_t>(lanes.run))) + at(lanes.half)];
}

void RowEvaluator::read_scores(const Recipe& recipe, Terms& terms) const {
  if (recipe.lanes.run > 0) {
    terms.scores = half_scores(recipe.lanes);
    return;
  }
  const std::size_t dims = at(problem_.k.head_size);
  std::vector<double> q(dims), row(dims);
  Squares squares;
  const std::int64_t q_element = (recipe.query_row * problem_.query_heads + recipe.query_head) * problem_.k.head_size;
  to_doubles(problem_.q_dtype, problem_.q + q_element * size_of(problem_.q_dtype), q);
  std::optional<Rotator> rotator;
  if (recipe.rotary) rotator.emplace(*recipe.rotary, dims);
  if (recipe.rotary && recipe.rotary->query) {
    rotator->rotate(recipe.query_position, q);
  }
  const bool base = same_rows(recipe.k, correct_.k) && recipe.k_head == correct_.k_head &&
                    recipe.query_row == correct_.query_row && recipe.query_head == correct_.query_head &&
                    recipe.k_dims == DimOrder::stored && !recipe.rotary && !recipe.fnuz && recipe.scale_vector == 1 &&
                    recipe.k_rotation == 0 && recipe.k_used == 0 && recipe.k_chunks.stored == SwizzleMode::none &&
                    !recipe.k_transposed && has_base_scores();
  terms.scores.assign(recipe.keys.size(), 0);
  for (std::size_t i = 0; i < recipe.keys.size(); ++i) {
    interruption_point();
    const KeyRead& key = recipe.keys[i];
    if (key.zeros) continue;
    if (const std::size_t known = base ? this->known(key, i) : correct_.keys.size(); known < correct_.keys.size()) {
      terms.scores[i] = base_scores_[known];
      continue;
    }
    const PagedRows& rows = key.k_from_v ? recipe.v : recipe.k;
    if (recipe.k_transposed ? !read_transposed(rows, key, recipe, recipe.k_head, squares, row)
                            : !decode(problem_, pool_, rows, key, key.k_scale_block, key.k_scale_layer_bytes, recipe,
                                      recipe.k_head, row)) {
      terms.outside = true;
      return;
    }
    reorder(recipe.k_dims, row);
    order_chunks(recipe.k_chunks, rows.dtype, key.position, row);
    if (recipe.rotary && recipe.rotary->key) rotator->rotate(key.position, row);
    // Element d of q meets element (d + rotation) % dims of K.
    const std::size_t rotation = at(recipe.k_rotation), used = recipe.k_used > 0 ? at(recipe.k_used) : dims;
    const std::size_t before = std::min(used, dims - rotation);
    const std::span<const double> query(q), stored(row);
    terms.scores[i] = dot_product(query.first(before), stored.subspan(rotation)) +
                      dot_product(query.subspan(before, used - before), stored);
  }
}

void RowEvaluator::read_values(const Recipe& recipe, Terms& terms) const {
  const std::size_t dims = at(dims_);
  const bool as_stored =
      recipe.v_dims == DimOrder::stored && recipe.v_chunks.stored == SwizzleMode::none && !recipe.v_transposed;
  const bool base = same_rows(recipe.v, correct_.v) && recipe.v_head == correct_.v_head && as_stored && !recipe.fnuz &&
                    recipe.scale_vector == 1 && has_base_values();
  const std::vector<double>& own = zeros_.empty() ? zeros_ = std::vector<double>(dims) : zeros_;
  terms.values.assign(recipe.keys.size(), own.data());
  std::vector<std::size_t> rest;  // keys whose rows are decoded
  for (std::size_t i = 0; i < recipe.keys.size(); ++i) {
    const KeyRead key = of_v(recipe.keys[i]);
    if (key.zeros || key.v_zeros) continue;
    if (const std::size_t known = base ? this->known(key, i) : correct_.keys.size(); known < correct_.keys.size()) {
      terms.values[i] = base_values_->rows[known];
    } else {
      rest.push_back(i);
    }
  }
  // A kernel that takes the elements in another order may read any of them.
  std::vector<double> whole(at(problem_.v.head_size));
  Squares squares;
  terms.decoded.resize(rest.size() * dims);
  for (std::size_t n = 0; n < rest.size(); ++n) {
    interruption_point();
    const KeyRead key = of_v(recipe.keys[rest[n]]);
    const PagedRows& rows = key.v_from_k ? recipe.k : recipe.v;
    const std::span<double> value(terms.decoded.data() + n * dims, dims);
    const std::span<double> row = as_stored ? value : std::span<double>(whole);
    if (recipe.v_transposed ? !read_transposed(rows, key, recipe, recipe.v_head, squares, row)
                            : !decode(problem_, pool_, rows, key, key.v_scale_block, key.v_scale_layer_bytes, recipe,
                                      recipe.v_head, row)) {
      terms.outside = true;
      return;
    }
    if (!as_stored) {
      reorder(recipe.v_dims, whole);
      order_chunks(recipe.v_chunks, rows.dtype, key.position, whole);
      std::copy_n(whole.begin(), dims, value.begin());
    }
    terms.values[rest[n]] = value.data();
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
    s += recipe.keys[i].bias;
  }
  return terms;
}

double RowEvaluator::largest_score() const {
  const Terms terms = scores(correct_);
  return terms.scores.empty() ? kMinusInfinity : *std::max_element(terms.scores.begin(), terms.scores.end());
}

RowEvaluator::Terms RowEvaluator::terms(const Recipe& recipe) const {
  Terms terms = scores(recipe);
  if (!terms.outside) read_values(recipe, terms);
  return terms;
}

}  // namespace kvscope::golden
