#include "apps/labs/softmax_case.h"

#include <algorithm>
#include <cmath>

#include "core/attention/bounds.h"
#include "core/attention/merge.h"
#include "core/attention/reference.h"

namespace kvscope::labs {
namespace {

// Scores of at most 1, the first of them 1.5, and positive values, so that the long row's output is far from 0.
SoftmaxCase make_one_pass_case(const CounterRng& random, std::size_t number, std::int64_t dim) {
  constexpr std::int64_t kLongTile = 64, kLongTiles = 8, kLongDim = 127, kLongRepeats = 512;
  std::uint64_t at = number * 100000;
  const bool is_long = number + 1 == kSoftmaxCases;
  SoftmaxCase made;
  made.taken = true;
  made.dim = is_long ? kLongDim : dim;
  made.tile = is_long ? kLongTile : number < 4 ? 4 : random.integer(at++, 2, 32);
  made.repeats = is_long ? kLongRepeats : 1;
  const std::int64_t keys = made.tile * (is_long ? kLongTiles : number < 4 ? 2 : random.integer(at++, 3, 6));
  for (std::int64_t key = 0; key < keys; ++key) {
    made.scores.push_back(key == 0 ? 1.5F : static_cast<float>(3 * random.uniform(at++) - 2));
  }
  for (std::int64_t i = 0; i < keys * made.dim; ++i) {
    made.values.push_back(static_cast<float>(0.5 + 1.5 * random.uniform(at++)));
  }
  return made;
}

// The same tiles once more change neither the output nor its terms, and double the sum. In float32 with u = 2^-24, n
// additions of terms of one sign change their sum by at most n u of itself; the output divides two such sums of values
// below 2.
void add_repeats(Allowed& allowed, const SoftmaxCase& made) {
  const double additions = 0x1p-24 * static_cast<double>(made.keys());
  for (double& error : allowed.error) error += 4 * additions;
  allowed.value.back() += std::log(static_cast<double>(made.repeats));
}

// The reference over the visible keys of one period, as a problem with one query, one head and keys of one
// element, and its bounds for a kernel in float32.
Allowed expected_attend(const SoftmaxCase& made) {
  Numbers keys, values;
  for (std::int64_t key = 0; key < made.period(); ++key) {
    if (made.scores[static_cast<std::size_t>(key)] == kMinusInfinity) continue;
    keys.push_back(made.scores[static_cast<std::size_t>(key)]);
    for (std::int64_t d = 0; d < made.dim; ++d) values.push_back(made.value(key, d));
  }
  Allowed allowed{std::vector<double>(static_cast<std::size_t>(made.dim + 1)),
                  std::vector<double>(static_cast<std::size_t>(made.dim + 1))};
  if (keys.empty()) {
    allowed.value.back() = kMinusInfinity;
    return allowed;
  }
  const auto count = static_cast<std::int64_t>(keys.size());
  const float one = 1;
  const std::uint32_t block = 0;
  const std::array<std::int64_t, 2> offsets{0, 1};
  const std::array<std::int64_t, 1> lengths{count};
  attention::Problem problem;
  problem.batch = 1;
  problem.query_heads = 1;
  problem.q = reinterpret_cast<const std::byte*>(&one);
  problem.query_offsets = offsets;
  problem.key_lengths = lengths;
  const auto rows = [&](const Numbers& numbers, std::int64_t size) {
    attention::PagedRows result;
    result.data = reinterpret_cast<const std::byte*>(numbers.data());
    result.blocks = 1;
    result.page_size = count;
    result.heads = 1;
    result.head_size = size;
    result.block_stride = count * size;
    result.token_stride = result.head_stride = size;
    result.table = &block;
    result.table_stride = 1;
    return result;
  };
  problem.k = rows(keys, 1);
  problem.v = rows(values, made.dim);
  problem.options.mask = MaskKind::none;
  const attention::Result golden = attention::reference(problem);
  attention::Rounding rounding = attention::rounding_of(DType::f32);
  rounding.tile_keys = made.tile;
  const attention::RowTerms terms = attention::row_terms(golden, 0, 0, 1);
  for (std::int64_t d = 0; d < made.dim; ++d) {
    const auto i = static_cast<std::size_t>(d);
    allowed.value[i] = golden.o(0, 0, i);
    allowed.error[i] = attention::output_budget(rounding, terms, attention::element_terms(golden, 0, 0, i)).total();
  }
  allowed.value.back() = golden.lse(0, 0);
  allowed.error.back() = attention::lse_budget(rounding, terms).total();
  if (made.repeats > 1) add_repeats(allowed, made);
  return allowed;
}

// merge_row in double. In float32 with u = 2^-24: each weight has a relative error of 4 u (exp) and d u (its argument
// -d), sums, products and the quotient one of 6 u. d <= 8 where a weight matters, so 32 u cover them; below, the weight
// itself is under e^-8 of the other one.
Allowed expected_merge(const SoftmaxCase& made) {
  constexpr double kUnit = 0x1p-24;
  std::vector<double> o, other;
  for (std::int64_t d = 0; d < made.dim; ++d) {
    o.push_back(made.value(0, d));
    other.push_back(made.value(1, d));
  }
  double lse = made.lse[0];
  attention::merge_row(o, lse, other, made.lse[1], attention::LseBase::natural);
  Allowed allowed{o, {}};
  allowed.value.push_back(lse);
  const double largest = std::max(made.lse[0], made.lse[1]);
  for (std::int64_t d = 0; d < made.dim; ++d) {
    double sum = 0, weights = 0;
    for (int part = 0; part < 2; ++part) {
      if (made.part_lse(part) == kMinusInfinity) continue;
      const double weight = std::exp(made.part_lse(part) - largest);
      sum += weight * std::abs(made.value(part, d));
      weights += weight;
    }
    allowed.error.push_back(weights > 0 ? 32 * kUnit * sum / weights : 0);
  }
  allowed.error.push_back(std::isfinite(lse) ? 8 * kUnit * (1 + std::abs(largest)) : 0);
  return allowed;
}

}  // namespace

SoftmaxCase make_softmax_case(Scores kind, const CounterRng& random, std::size_t number) {
  std::uint64_t at = number * 100000;
  const auto uniform = [&](double low, double high) {
    return static_cast<float>(low + (high - low) * random.uniform(at++));
  };
  SoftmaxCase made;
  made.dim = number < 4 ? 2 : random.integer(at++, 2, 16);
  if (kind == Scores::merge) {
    made.values.resize(static_cast<std::size_t>(2 * made.dim));
    for (float& value : made.values) value = uniform(0.5, 2.0) * (random.bits(at++) % 2 == 0 ? 1.0F : -1.0F);
    // The first cases: equal weights, a large and a small lse, an empty part, two empty parts, one far below the other.
    const float base = number % 2 == 0 ? uniform(-4, 4) : uniform(150, 700);
    made.lse[0] = number == 2 || number == 3 ? kMinusInfinity : base;
    made.lse[1] = number == 3 || number == 4 ? kMinusInfinity : number == 5 ? base - 200 : base + uniform(1, 6);
    for (int part = 0; part < 2; ++part) {
      for (std::int64_t d = 0; d < made.dim && made.part_lse(part) == kMinusInfinity; ++d) {
        made.values[static_cast<std::size_t>(part * made.dim + d)] = 0;
      }
    }
    return made;
  }
  if (kind == Scores::once) return make_one_pass_case(random, number, made.dim);
  made.tile = number < 4 ? 4 : random.integer(at++, 2, 32);
  const std::int64_t tiles = kind == Scores::small ? 1 : random.integer(at++, 3, 6);
  // The last tile is partial in every second case.
  const std::int64_t keys = tiles * made.tile - (number % 2 == 1 ? random.integer(at++, 1, made.tile - 1) : 0);
  // Some rows overflow without any maximum, others only with that of the first tile.
  const float first_tile = number % 4 == 0 ? 200.0F : 0.0F, steep = number % 4 == 2 ? 50.0F : 1.5F;
  for (std::int64_t key = 0; key < keys; ++key) {
    const auto rise = static_cast<double>(key / made.tile);
    made.scores.push_back(kind == Scores::large    ? 700 + uniform(-2, 2)
                          : kind == Scores::rising ? first_tile + static_cast<float>(rise) * steep + uniform(0, 1)
                                                   : uniform(-2, 2));
  }
  if (kind == Scores::masked) {
    // A tile without a visible key at the beginning, one in the middle, single keys, and once the whole row.
    for (std::int64_t key = 0; key < keys; ++key) {
      const bool hidden = number == 3 || (number % 3 == 0 && key < made.tile) ||
                          (key >= made.tile && key < 2 * made.tile) || (key % 5 == 2);
      if (hidden) made.scores[static_cast<std::size_t>(key)] = kMinusInfinity;
    }
    if (number != 3) made.scores.back() = 1;
  }
  for (std::int64_t i = 0; i < keys * made.dim; ++i) {
    made.values.push_back(uniform(0.5, 2.0) * (random.bits(at++) % 2 == 0 ? 1.0F : -1.0F));
  }
  return made;
}

Words words_of(const SoftmaxCase& made) {
  Words words{made.is_merge() ? 1 : 0, made.period(), made.dim, made.tile, made.repeats, made.taken ? 1 : 0};
  for (const float score : made.scores) words.push_back(word_of(score));
  if (made.is_merge()) words.insert(words.end(), {word_of(made.lse[0]), word_of(made.lse[1])});
  for (const float value : made.values) words.push_back(word_of(value));
  return words;
}

Allowed expected_result(const SoftmaxCase& made) {
  return made.is_merge() ? expected_merge(made) : expected_attend(made);
}

}  // namespace kvscope::labs
