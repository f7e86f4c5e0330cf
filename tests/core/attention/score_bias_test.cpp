// Biases of single keys: the reference against a computation from the definition, and the tiled algorithm and the fast
// path against the reference. Hidden keys are at the ends, in the middle, and all keys of a row.
#include "core/attention/score_bias.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/attention/bounds.h"
#include "core/attention/fast.h"
#include "core/attention/reference.h"
#include "core/attention/tiled.h"
#include "core/base/random.h"
#include "tests/core/attention/paged_case.h"

namespace kvscope::attention::score_bias_test {
namespace {

using testing::PagedCase;
using testing::Spec;

constexpr double kHidden = -std::numeric_limits<double>::infinity();
constexpr std::int64_t kDims = 32;
constexpr double kScale = 0.2, kSink = 0.5;

// [sequence, head, query, column], with columns before key 0 of each sequence.
struct Biases {
  std::vector<double> values;
  std::vector<std::int64_t> first_key;
  std::int64_t heads, queries = 0, columns = 0;

  Biases(const Spec& spec, std::uint64_t seed) : heads(spec.query_heads) {
    for (std::size_t b = 0; b < spec.lengths.size(); ++b) {
      first_key.push_back(static_cast<std::int64_t>(b) + 1);
      queries = std::max(queries, spec.queries[b]);
      columns = std::max(columns, spec.lengths[b] + first_key.back());
    }
    const CounterRng rng(seed, 9);
    const auto count = std::ssize(spec.lengths) * heads * queries * columns;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
      values.push_back(rng.integer(2 * i, 0, 2) == 0 ? kHidden : 2 * rng.bell(2 * i + 1));
    }
  }
  [[nodiscard]] double& at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t t) {
    const std::int64_t column = first_key[static_cast<std::size_t>(b)] + t;
    return values[static_cast<std::size_t>(((b * heads + h) * queries + i) * columns + column)];
  }
  [[nodiscard]] ScoreBias view() const {
    return {reinterpret_cast<const std::byte*>(values.data()),
            DType::f64,
            heads * queries * columns,
            queries * columns,
            columns,
            first_key,
            1,
            {},
            {}};
  }
};

Spec shaped() {
  Spec spec;
  spec.lengths = {150, 0, 40};
  spec.queries = {3, 1, 2};
  spec.query_heads = 6;
  spec.kv_heads = 2;
  spec.head_size = spec.value_size = kDims;
  spec.page_size = 8;
  spec.options.scale = kScale;
  return spec;
}

// One row from the definition.
struct Row {
  std::int64_t keys = 0;
  double lse = kHidden, smax = 0;
  std::vector<double> o = std::vector<double>(kDims);
};
Row row_of(const PagedCase& c, Biases& biases, std::int64_t b, std::int64_t i, std::int64_t row, std::int64_t h) {
  const std::int64_t keys = c.spec.lengths[static_cast<std::size_t>(b)];
  const std::int64_t queries = c.spec.queries[static_cast<std::size_t>(b)];
  Row want;
  double sum = 0;
  for (std::int64_t t = 0; t < keys; ++t) {
    const double bias = biases.at(b, h, i, t);
    if (!testing::sees(c.spec.options, i, queries, keys, t) || std::isinf(bias)) continue;
    double s = 0;
    for (std::int64_t d = 0; d < kDims; ++d) s += c.query(row, h, d) * c.key(b, t, h / 3, d);
    s = kScale * s + bias;
    want.smax = std::max(want.smax, std::fabs(s));
    sum += std::exp(s);
    for (std::int64_t d = 0; d < kDims; ++d) {
      want.o[static_cast<std::size_t>(d)] += std::exp(s) * c.value(b, t, h / 3, d);
    }
    ++want.keys;
  }
  if (want.keys == 0) return want;
  if (!c.spec.sinks.empty()) sum += std::exp(kSink);
  want.lse = std::log(sum);
  for (double& x : want.o) x /= sum;
  return want;
}

TEST(ScoreBias, ReferenceFastAndTiledAgreeWithTheDefinition) {
  for (const bool sinks : {false, true}) {
    for (const MaskKind mask : {MaskKind::none, MaskKind::causal}) {
      Spec spec = shaped();
      spec.options.mask = mask;
      if (sinks) spec.sinks.assign(6, kSink);
      PagedCase c(spec);
      Biases biases(spec, 3);
      for (std::int64_t t = 0; t < 150; ++t) biases.at(0, 4, 1, t) = kHidden;  // a row without a key
      for (std::int64_t t = 0; t < 100; ++t) biases.at(0, 2, 2, t) = kHidden;  // whole tiles of hidden keys
      c.problem.options.bias = biases.view();
      const Result golden = reference(c.problem);
      const Result fast = fast_reference(c.problem);
      const PartialState candidate = tiled(c.problem, {.tile_keys = 16, .splits = 2});
      std::size_t at = 0;
      for (std::size_t b = 0; b < spec.lengths.size(); ++b) {
        for (std::int64_t i = 0; i < spec.queries[b]; ++i, ++at) {
          for (std::size_t h = 0; h < 6; ++h) {
            SCOPED_TRACE(std::to_string(b) + " " + std::to_string(i) + " " + std::to_string(h));
            const Row want = row_of(c, biases, static_cast<std::int64_t>(b), i, static_cast<std::int64_t>(at),
                                    static_cast<std::int64_t>(h));
            EXPECT_EQ(golden.keys(at, h), static_cast<double>(want.keys));
            EXPECT_EQ(fast.keys(at, h), static_cast<double>(want.keys));
            EXPECT_NEAR(golden.smax(at, h), want.smax, 1e-12);
            EXPECT_LT(golden.repeats(at, h), 5);  // hidden keys, a third of all, are no equal weights
            const Rounding rounding = rounding_of(DType::f32);
            const RowTerms terms = row_terms(golden, at, h, kDims);
            EXPECT_TRUE(lse_within(rounding, terms, candidate.lse(at, h)));
            if (want.keys == 0) {
              EXPECT_EQ(golden.lse(at, h), kHidden);
              EXPECT_EQ(fast.lse(at, h), kHidden);
            } else {
              EXPECT_NEAR(golden.lse(at, h), want.lse, 1e-12);
              EXPECT_NEAR(fast.lse(at, h), want.lse, 1e-5);
            }
            for (std::size_t d = 0; d < kDims; ++d) {
              EXPECT_NEAR(golden.o(at, h, d), want.o[d], 1e-12);
              EXPECT_NEAR(fast.o(at, h, d), want.o[d], 1e-5);
              EXPECT_NEAR(candidate.o(at, h, d), want.o[d], 1e-5);
            }
          }
        }
      }
    }
  }
}

// A weight of 0 is below the normal numbers of floats, but hidden keys must not send their rows to the reference.
TEST(ScoreBias, HiddenKeysStayOnTheFastPath) {
  PagedCase c(shaped());
  const Biases biases(c.spec, 4);
  c.problem.options.bias = biases.view();
  EXPECT_GT(fast_reference(c.problem).score_error(0, 0), 0);
}

TEST(ScoreBias, IntegersOf0AndTheLowestFloatsHideTheKey) {
  const std::vector<std::uint8_t> flags{0, 1, 2};
  const ScoreBias mask{reinterpret_cast<const std::byte*>(flags.data()), DType::u8, 0, 0, 3, {}, 1, {}, {}};
  EXPECT_EQ(mask.at(5, 7, 0, 0), kHidden);
  EXPECT_EQ(mask.at(0, 0, 0, 1), 0);
  EXPECT_EQ(mask.at(0, 0, 0, 2), 0);
  const std::vector<float> numbers{-1e4F, -9999.0F, std::numeric_limits<float>::lowest(), 0.5F};
  const ScoreBias bias{reinterpret_cast<const std::byte*>(numbers.data()), DType::f32, 0, 1, 2, {}, 1, {}, {}};
  EXPECT_EQ(bias.at(0, 0, 0, 0), kHidden);
  EXPECT_EQ(bias.at(0, 1, 0, 0), -9999.0);
  EXPECT_EQ(bias.at(0, 0, 1, 0), kHidden);
  EXPECT_EQ(bias.at(0, 1, 1, 0), 0.5);
}

// -10000 is -9984 in bf16, the pattern C61C; the next number, -9920, is a bias.
TEST(ScoreBias, Minus10000HidesTheKeyInBf16) {
  const std::vector<std::uint16_t> bits{0xC61C, 0xC61B};
  const ScoreBias bias{reinterpret_cast<const std::byte*>(bits.data()), DType::bf16, 0, 0, 2, {}, 1, {}, {}};
  EXPECT_EQ(bias.at(0, 0, 0, 0), kHidden);
  EXPECT_EQ(bias.at(0, 0, 0, 1), -9920);
}

// Two sequences in one list: 2 queries of 3 keys, and 3 queries with a stride of 5 whose biases start at key 4.
TEST(ScoreBias, SequencesMayHaveStridesAndOriginsOfTheirOwn) {
  std::vector<float> numbers(6 + 15);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const std::vector<std::int64_t> first{0, 6 - 4}, rows{3, 5}, origin{0, 4};
  ScoreBias bias{reinterpret_cast<const std::byte*>(numbers.data()), DType::f32, 0, 0, 0, first, 1, rows, origin};
  EXPECT_EQ(bias.at(0, 0, 1, 2), 5);
  EXPECT_EQ(bias.at(1, 0, 0, 4), 6);
  EXPECT_EQ(bias.at(1, 0, 2, 8), 6 + 10 + 4);
  EXPECT_EQ(bias.at(1, 0, 2, 3), 0);  // before the origin
  bias.key_stride = 0;                // one number for all keys
  EXPECT_EQ(bias.at(0, 0, 1, 2), 3);
}

// Query 1, key 3 of rows of 5 bits that start at bit 3: bit 3 + 5 + 3 = 11, the fourth of the second byte.
TEST(ScoreBias, BitsAreReadLowestFirst) {
  const std::vector<std::uint8_t> bytes{0x00, 0x08, 0xFF};
  const std::vector<std::int64_t> first{3}, rows{5};
  ScoreBias bias{reinterpret_cast<const std::byte*>(bytes.data()), DType::u8, 0, 0, 0, first, 1, rows, {}};
  bias.bits = true;
  EXPECT_EQ(bias.at(0, 0, 1, 3), 0);
  EXPECT_EQ(bias.at(0, 0, 1, 2), kHidden);
  EXPECT_EQ(bias.at(0, 0, 1, 4), kHidden);
  EXPECT_EQ(bias.at(0, 0, 2, 3), 0);  // bit 16
}

}  // namespace
}  // namespace kvscope::attention::score_bias_test
