// The fast path against the reference: every element within the stated error, and the error small enough to be useful.
#include "core/attention/fast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "core/attention/bounds.h"
#include "core/attention/detail/reference_kernels.h"
#include "core/attention/detail/row_reader.h"
#include "core/base/convert.h"
#include "core/base/portable_math.h"
#include "core/layout/filled.h"
#include "tests/core/attention/paged_case.h"

namespace kvscope::attention::fast_test {
namespace {

using testing::PagedCase;
using testing::Spec;

bool same_bits(const auto& a, const auto& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

struct Largest {
  double o = 0, lse = 0;  // error / stated error
};

// [query, query_head] the largest |v| of all keys of the sequence and the KV head.
xt::xtensor<double, 2> largest_values(const PagedCase& c) {
  const Spec& spec = c.spec;
  xt::xtensor<double, 2> largest = filled(0.0, c.query_offsets.back(), spec.query_heads);
  for (std::size_t sequence = 0; sequence < spec.lengths.size(); ++sequence) {
    for (std::int64_t kv_head = 0; kv_head < spec.kv_heads; ++kv_head) {
      double most = 0;
      for (std::int64_t token = 0; token < spec.lengths[sequence]; ++token) {
        for (std::int64_t dim = 0; dim < spec.value_size; ++dim) {
          most = std::max(most, std::fabs(c.value(static_cast<std::int64_t>(sequence), token, kv_head, dim)));
        }
      }
      const std::int64_t group = spec.query_heads / spec.kv_heads;
      for (std::int64_t query = c.query_offsets[sequence]; query < c.query_offsets[sequence + 1]; ++query) {
        for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) largest(query, head) = most;
      }
    }
  }
  return largest;
}

// Compares all outputs, with every instruction set. `added`: the most that the test added to the case's values of V.
// Precondition: the case's values fit floats.
Largest expect_within_stated_error(const PagedCase& c, const std::string& text, double added = 0) {
  Largest largest;
  const Result want = reference(c.problem);
  const xt::xtensor<double, 2> largest_v = largest_values(c);
  for (const InstructionSet set : available_instruction_sets()) {
    SCOPED_TRACE(text + ", " + std::string(name(set)));
    const Result have = fast_reference(c.problem, set);
    // o and lse alone are the same numbers. Their errors have the largest |v| in place of a1 and |o|: they are at least
    // those of each element, and not much more.
    const Output output = fast_output(c.problem, set);
    EXPECT_EQ(output.o, have.o);
    EXPECT_EQ(output.lse, have.lse);
    const bool base_two = c.problem.options.lse_base == LseBase::two;
    for (std::size_t query = 0; query < want.o.shape(0); ++query) {
      for (std::size_t head = 0; head < want.o.shape(1); ++head) {
        const RowTerms row = row_terms(have, query, head, 1, base_two);
        EXPECT_DOUBLE_EQ(output.lse_error(query, head), lse_budget({}, row).golden);
        EXPECT_LE(output.o_error(query, head),
                  (2.02 * row.score_error + row.sum_error) * (1 + 0x1p-20) * (largest_v(query, head) + added));
        if (want.keys(query, head) == 0) {
          EXPECT_EQ(have.lse(query, head), want.lse(query, head));
          continue;
        }
        EXPECT_GT(row.score_error, 0);
        EXPECT_LT(row.sum_error, 4.2e-6);
        const double lse_allowed = lse_budget({}, row).golden + 1e-15 * (1 + std::fabs(want.lse(query, head)));
        const double lse_error = std::fabs(have.lse(query, head) - want.lse(query, head));
        EXPECT_LE(lse_error, lse_allowed);
        largest.lse = std::max(largest.lse, lse_error / lse_allowed);
        EXPECT_NEAR(have.smax(query, head), want.smax(query, head), row.score_error + 1e-15);
        EXPECT_EQ(have.keys(query, head), want.keys(query, head));
        EXPECT_NEAR(have.p2(query, head), want.p2(query, head), 2.1 * row.score_error);
        for (std::size_t k = 0; k < kLostTerms; ++k) EXPECT_GE(have.lost(query, head, k), 0);  // measured
        for (std::size_t dim = 0; dim < want.o.shape(2); ++dim) {
          const ElementTerms element = element_terms(have, query, head, dim);
          const double allowed = output_budget({}, row, element).golden + 1e-15 * element.a1;
          EXPECT_GE(output.o_error(query, head) * (1 + 1e-12), output_budget({}, row, element).golden);
          const double error = std::fabs(element.o - want.o(query, head, dim));
          EXPECT_LE(error, allowed) << query << ' ' << head << ' ' << dim;
          largest.o = std::max(largest.o, allowed > 0 ? error / allowed : 0);
          EXPECT_NEAR(element.a1, want.a1(query, head, dim), 1.01 * (2 * row.score_error + row.sum_error) * element.a1);
          EXPECT_NEAR(element.a2, want.a2(query, head, dim), 1.01 * (2 * row.score_error + row.sum_error) * element.a2);
          EXPECT_NEAR(element.running, want.running(query, head, dim),
                      1.01 * (2 * row.score_error + row.sum_error) * element.a1);
        }
      }
    }
  }
  return largest;
}

// Sizes with remainders: rows, dims and keys are not multiples of 4, 16, a block of 64 keys or a page.
Spec uneven(DType dtype = DType::f32) {
  Spec spec;
  spec.lengths = {77, 0, 130, 1};
  spec.queries = {3, 1, 2, 1};
  spec.query_heads = 12;
  spec.kv_heads = 2;
  spec.head_size = 21;
  spec.value_size = 19;
  spec.page_size = 6;
  spec.dtype = dtype;
  spec.options.scale = 0.22;
  return spec;
}

TEST(FastReference, StaysWithinItsStatedErrorForEveryTypeAndGroupSize) {
  Largest largest;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    for (const DType q_dtype : {DType::f64, DType::f32, DType::bf16}) {
      for (const auto& [query_heads, kv_heads] : {std::pair{12, 2}, {3, 3}, {5, 1}, {8, 1}}) {
        Spec spec = uneven(dtype);
        spec.q_dtype = q_dtype;
        spec.query_heads = query_heads;
        spec.kv_heads = kv_heads;
        spec.hnd = kv_heads == 3;
        const Largest one = expect_within_stated_error(PagedCase(spec), testing::describe(spec));
        largest.o = std::max(largest.o, one.o);
        largest.lse = std::max(largest.lse, one.lse);
      }
    }
  }
  // An error that no data comes near would hide faults of a kernel.
  EXPECT_GT(largest.o, 0.02);
  EXPECT_GT(largest.lse, 0.02);
}

TEST(FastReference, StaysWithinItsStatedErrorForEveryHeadSizeAroundTheLanes) {
  for (const std::int64_t size : {1, 15, 16, 17, 33, 64, 128, 200}) {
    for (const std::int64_t keys : {1, 2, 63, 64, 65, 127, 129, 300}) {
      Spec spec = uneven(DType::bf16);
      spec.head_size = size;
      spec.value_size = std::max<std::int64_t>(1, size - 1);
      spec.lengths = {keys};
      spec.queries = {1};
      spec.options.scale = 1 / std::sqrt(static_cast<double>(size));
      static_cast<void>(expect_within_stated_error(PagedCase(spec), testing::describe(spec)));
    }
  }
}

TEST(FastReference, StaysWithinItsStatedErrorForEveryOption) {
  for (const MaskKind mask : {MaskKind::none, MaskKind::causal, MaskKind::sliding_window, MaskKind::chunked}) {
    for (const double scale : {0.05, 0.3, -1.5}) {
      for (const bool more : {false, true}) {
        Spec spec = uneven();
        spec.options.mask = mask;
        spec.options.scale = scale;
        spec.options.window_left = 40;
        spec.options.chunk = 50;
        if (more) {
          spec.options.lse_base = LseBase::two;
          spec.options.soft_cap = 5.0;
          spec.slopes.assign(12, 0.03125);
          spec.sinks.assign(12, -0.5);
        }
        static_cast<void>(expect_within_stated_error(PagedCase(spec), testing::describe(spec)));
      }
    }
  }
}

// K and V of a multiple of 32 elements are read where they are, in tiles of keys and in steps of two vectors. Every type
// has its own loops; sizes of one and of several steps, groups of one row, of a tile of rows and of both.
TEST(FastReference, StaysWithinItsStatedErrorForRowsReadInPlace) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    for (const auto& [size, value_size] : {std::pair{32, 96}, {64, 32}}) {
      for (const auto& [query_heads, kv_heads] : {std::pair{12, 2}, {3, 3}, {5, 1}}) {
        Spec spec = uneven(dtype);
        spec.query_heads = query_heads;
        spec.kv_heads = kv_heads;
        spec.head_size = size;
        spec.value_size = value_size;
        spec.hnd = kv_heads == 3;
        static_cast<void>(expect_within_stated_error(PagedCase(spec), testing::describe(spec)));
      }
    }
  }
}

// Tokens of many bytes are read a few at a time: 16 keys of 21 heads of V, 8 of 40. The sums of a block of 64 keys are
// then made in several calls, and `running` still looks at its end. Blocks begin at the first visible key.
TEST(FastReference, StaysWithinItsStatedErrorForTokensOfManyBytes) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const auto& [query_heads, kv_heads, size] :
         {std::tuple{21, 21, 64}, {42, 42, 64}, {105, 21, 64}, {40, 40, 128}}) {
      for (const std::int64_t queries : {1, 3}) {
        Spec spec = uneven(dtype);
        spec.lengths = {77, 66, 201};  // of 64 keys, two that become equal floats would be many (equal_weights.h)
        spec.queries = {queries, 1, queries};
        spec.query_heads = query_heads;
        spec.kv_heads = kv_heads;
        spec.head_size = spec.value_size = size;
        spec.options.scale = 0.125;
        spec.options.mask = MaskKind::sliding_window;
        spec.options.window_left = 150;
        const PagedCase c(spec);
        static_cast<void>(expect_within_stated_error(c, testing::describe(spec)));
        const Result want = reference(c.problem);
        const Result have = fast_reference(c.problem);
        for (std::size_t query = 0; query < want.o.shape(0); ++query) {
          for (std::size_t head = 0; head < want.o.shape(1); ++head) {
            if (want.largest_value(query, head) >= 0 && have.largest_value(query, head) >= 0) {
              EXPECT_EQ(have.largest_value(query, head), want.largest_value(query, head)) << query << ' ' << head;
            }
          }
        }
      }
    }
  }
}

// More queries than are computed together, of which the later ones see keys that the first ones do not: `running` looks
// at the same places as the reference.
TEST(FastReference, StaysWithinItsStatedErrorForManyQueries) {
  for (const MaskKind mask : {MaskKind::causal, MaskKind::sliding_window}) {
    Spec spec = uneven(DType::bf16);
    spec.lengths = {300};
    spec.queries = {70};
    spec.head_size = spec.value_size = 32;
    spec.options.mask = mask;
    spec.options.window_left = 90;
    static_cast<void>(expect_within_stated_error(PagedCase(spec), testing::describe(spec)));
  }
}

// The score error has the largest |k|, which the loops find beside the products: of rows read in place and of decoded
// ones, in tiles of keys and single keys, for a group of four rows and for one row.
TEST(FastReference, TheScoreErrorHasTheLengthsOfQueryAndKey) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::e4m3}) {
    for (const std::int64_t size : {32, 96, 21}) {
      for (const std::int64_t query_heads : {8, 2}) {
        Spec spec = uneven(dtype);
        spec.lengths = {61, 1, 7, 64, 18};
        spec.queries = {1, 1, 1, 3, 1};
        spec.query_heads = query_heads;
        spec.head_size = size;
        spec.options.mask = MaskKind::none;
        const PagedCase c(spec);
        for (const InstructionSet set : available_instruction_sets()) {
          SCOPED_TRACE(testing::describe(spec) + ", " + std::string(name(set)));
          const Result have = fast_reference(c.problem, set);
          for (std::int64_t sequence = 0; sequence < std::ssize(spec.lengths); ++sequence) {
            const auto query = c.query_offsets[static_cast<std::size_t>(sequence)];
            for (std::int64_t head = 0; head < query_heads; ++head) {
              double q = 0, largest = 0;
              for (std::int64_t d = 0; d < size; ++d) q += c.query(query, head, d) * c.query(query, head, d);
              for (std::int64_t token = 0; token < spec.lengths[static_cast<std::size_t>(sequence)]; ++token) {
                double k = 0;
                for (std::int64_t d = 0; d < size; ++d) {
                  const double x = c.key(sequence, token, head / (query_heads / spec.kv_heads), d);
                  k += x * x;
                }
                largest = std::max(largest, k);
              }
              const double terms = static_cast<double>((size + 15) / 16 + 6);
              const double want = (spec.options.scale * std::sqrt(q * largest) * terms + 3) * 0x1p-24 * 1.01;
              EXPECT_NEAR(have.score_error(static_cast<std::size_t>(query), static_cast<std::size_t>(head)), want,
                          1e-5 * want);
            }
          }
        }
      }
    }
  }
}

TEST(LargestLanes, TheLargestOfAllLanesAndInfinityForNaN) {
  LargestLanes lanes;
  EXPECT_EQ(lanes.value(), 0);
  lanes.bits[7] = std::bit_cast<std::int32_t>(3.0F);
  lanes.raise(2.0F);
  EXPECT_EQ(lanes.value(), 3);
  lanes.raise(INFINITY);
  EXPECT_EQ(lanes.value(), INFINITY);
  LargestLanes with_nan;
  with_nan.raise(5);
  with_nan.bits[3] = std::bit_cast<std::int32_t>(std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(with_nan.value(), INFINITY);
}

// Scores and biases are added in double, by both paths, and round in proportion to their sum. Biases so large that this
// would exceed the errors of floats are left to the reference.
TEST(FastReference, StaysWithinItsStatedErrorForLargeBiases) {
  for (const double size : {0x1p20, 0x1p28, -0x1p28, 0x1p36}) {
    Spec spec = uneven();
    spec.lengths = {30};
    spec.queries = {600};
    spec.options.mask = MaskKind::none;
    spec.slopes.assign(12, 0.25);
    PagedCase c(spec);
    const Result plain = fast_reference(c.problem);
    std::vector<double> biases(30);
    for (std::size_t t = 0; t < biases.size(); ++t) {
      // Positive, because engines hide keys by biases of -10000 and less.
      biases[t] = std::fabs(size) + (size < 0 ? 3.0 : 0.0) + static_cast<double>(t % 7) / 3;
    }
    c.problem.options.bias.data = reinterpret_cast<const std::byte*>(biases.data());
    c.problem.options.bias.dtype = DType::f64;
    const Result want = reference(c.problem), have = fast_reference(c.problem);
    const Output output = fast_output(c.problem);
    EXPECT_EQ(output.o, have.o);
    const bool strict = size == 0x1p36;
    for (std::size_t query = 0; query < want.o.shape(0); ++query) {
      for (std::size_t head = 0; head < want.o.shape(1); ++head) {
        const double stated = have.score_error(query, head);
        EXPECT_EQ(stated == 0, strict) << size;
        if (!strict) {
          const double added = stated - plain.score_error(query, head);
          EXPECT_NEAR(added, 10 * 0x1p-53 * std::fabs(size), 1e-6 * std::fabs(size) * 0x1p-28);
          EXPECT_GE(added, 10 * 0x1p-53 * std::fabs(size));
        }
        EXPECT_LE(std::fabs(have.lse(query, head) - want.lse(query, head)), stated) << size << ' ' << query;
        EXPECT_EQ(output.lse_error(query, head), stated);
        for (std::size_t dim = 0; dim < want.o.shape(2); ++dim) {
          EXPECT_LE(std::fabs(output.o(query, head, dim) - want.o(query, head, dim)), output.o_error(query, head));
        }
      }
    }
  }
}

// Sums over the keys do not grow: a double takes them every 64 keys.
TEST(FastReference, StaysWithinItsStatedErrorForLongRows) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Spec spec = uneven(dtype);
    spec.lengths = {65536};
    spec.queries = {1};
    spec.query_heads = 5;
    spec.kv_heads = 1;
    spec.head_size = spec.value_size = 32;
    spec.page_size = 64;
    static_cast<void>(expect_within_stated_error(PagedCase(spec), testing::describe(spec)));
  }
}

// Values near 1000 with alternating signs: outputs are small differences of large sums. The stated error follows a1.
TEST(FastReference, StaysWithinItsStatedErrorForLargeValuesThatCancel) {
  Spec spec = uneven();
  spec.head_size = spec.value_size = 32;
  spec.lengths = {400};
  spec.queries = {2};
  PagedCase c(spec);
  for (std::size_t at = 0; at < c.v_pool.size(); at += sizeof(float)) {
    float x = 0;
    std::memcpy(&x, c.v_pool.data() + at, sizeof x);
    x += at / sizeof x / 32 % 2 == 0 ? 1000.0F : -1000.0F;
    std::memcpy(c.v_pool.data() + at, &x, sizeof x);
  }
  EXPECT_GT(expect_within_stated_error(c, "alternating values", 1000).o, 0.001);
}

// Alone, because the score error would hide a wrong coefficient of the polynomial.
TEST(FastReference, WeightsAreWithinThreeUnitsOfTheExponential) {
  std::vector<double> scores;
  for (int i = 0; i <= 200000; ++i) scores.push_back(3.0 - 86.9 * i / 200000);
  for (const InstructionSet set : available_instruction_sets()) {
    for (const std::size_t count : {scores.size(), std::size_t{1}, std::size_t{17}}) {
      std::vector<float> e(count + 1, -1.0F);
      WeightSums sums;
      reference_kernels(set)->fast.weigh(scores.data(), static_cast<std::int64_t>(count), 3.0, e.data(), &sums);
      double largest = 0, row_sum = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const double want = portable_exp(scores[i] - 3.0);
        largest = std::max(largest, std::fabs(static_cast<double>(e[i]) - want) / want);
        row_sum += want;
      }
      EXPECT_LE(largest, 3 * 0x1p-24) << name(set) << ' ' << count;
      EXPECT_NEAR(sums.row_sum, row_sum, 3 * 0x1p-24 * row_sum) << name(set) << ' ' << count;
      // The terms of the bound, against the loop of the reference over the same weights.
      const std::vector<double> exact(e.begin(), e.begin() + static_cast<std::ptrdiff_t>(count));
      WeightSums want;
      reference_kernels(set)->exact.weigh(exact.data(), static_cast<std::int64_t>(count), &want);
      const double tolerance = 1e-5 * want.row_sum;
      EXPECT_NEAR(sums.squares, want.squares, 1e-5 * want.squares);
      EXPECT_NEAR(sums.repeats, want.repeats, 1e-3 * static_cast<double>(count));
      EXPECT_NEAR(sums.faint_squares, want.faint_squares, 1e-5 * want.faint_squares);
      for (std::size_t i = 0; i < kFaintTerms; ++i) EXPECT_NEAR(sums.faint[i], want.faint[i], 1e-5 * want.faint[i]);
      for (std::size_t move = 0; move < kPhaseMoves; ++move) {
        for (std::size_t i = 0; i < kClumpTypes; ++i) {
          EXPECT_NEAR(sums.phases[i][move], want.phases[i][move], 0x1p31 * tolerance) << i << ' ' << move;
        }
        for (std::size_t i = 0; i < kLostTypes; ++i) {
          EXPECT_NEAR(sums.subnormal_errors[i][move], want.subnormal_errors[i][move], tolerance) << i << ' ' << move;
        }
      }
      for (std::size_t i = 0; i < kLostTypes; ++i) {
        EXPECT_NEAR(sums.subnormal_squares[i], want.subnormal_squares[i], 1e-5 * want.subnormal_squares[i]) << i;
      }
      EXPECT_EQ(e[count], -1.0F) << name(set) << ": the weight after the last one was written";
    }
  }
}

TEST(FastReference, EveryPatternOfTheNarrowTypesWidensToItsValue) {
  for (const InstructionSet set : available_instruction_sets()) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
      const std::int64_t count = (std::int64_t{1} << bits(dtype)) - 1;  // not a multiple of any vector
      const std::int64_t size = size_of(dtype);
      std::vector<std::byte> patterns(static_cast<std::size_t>(count * size));
      for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(patterns.data() + i * size, &i, static_cast<std::size_t>(size));
      }
      std::vector<float> values(static_cast<std::size_t>(count));
      RowReader::widen(*reference_kernels(set), dtype, patterns.data(), count, values.data());
      for (std::int64_t i = 0; i < count; ++i) {
        const double want = load_as_double(dtype, patterns.data() + i * size);
        const auto have = static_cast<double>(values[static_cast<std::size_t>(i)]);
        ASSERT_TRUE(std::isnan(want) ? std::isnan(have) : have == want && std::signbit(have) == std::signbit(want))
            << name(set) << ' ' << name(dtype) << ' ' << i << ": " << have << ", not " << want;
      }
    }
  }
}

// A scale is one more rounding of an element.
TEST(FastReference, StaysWithinItsStatedErrorForQuantizedCaches) {
  for (const DType dtype : {DType::e4m3, DType::e5m2, DType::i8}) {
    for (const std::int64_t granularity : {4, 21}) {
      Spec spec = uneven(dtype);
      spec.granularity = granularity;
      static_cast<void>(expect_within_stated_error(PagedCase(spec), testing::describe(spec)));
    }
  }
}

// Sums of floats overflow, vanish or become NaN here: the reference computes these queries, bit for bit.
TEST(FastReference, ValuesThatFloatsDoNotHoldAreComputedByTheReference) {
  for (const float odd : {0x1p100F, 0x1p-100F, INFINITY, NAN}) {
    Spec spec = uneven();
    spec.lengths = {70};
    spec.queries = {1};
    PagedCase c(spec);
    if (std::fabs(odd) < 1) {  // all values are tiny
      for (std::size_t at = 0; at < c.v_pool.size(); at += sizeof odd)
        std::memcpy(c.v_pool.data() + at, &odd, sizeof odd);
    } else {
      const PagedRows& v = c.problem.v;
      std::memcpy(const_cast<std::byte*>(v.data) + c.table[2] * v.block_stride * 4, &odd, sizeof odd);
    }
    const Result have = fast_reference(c.problem);
    EXPECT_EQ(testing::bits_of(have), testing::bits_of(reference(c.problem))) << odd;
    EXPECT_EQ(have.score_error(0, 0), 0) << odd;
    const Output output = fast_output(c.problem), strict = reference_output(c.problem);
    if (odd == 0x1p100F) {  // whose square a float does not hold; o has no square
      EXPECT_GT(output.o_error(0, 0), 0x1p70);
      for (std::size_t i = 0; i < output.o.size(); ++i) {
        const double error = std::fabs(output.o.data()[i] - strict.o.data()[i]);
        EXPECT_LE(error, output.o_error.data()[i / output.o.shape(2)]);
      }
      continue;
    }
    EXPECT_TRUE(same_bits(output.o, strict.o) && same_bits(output.lse, strict.lse)) << odd;
    EXPECT_EQ(output.o_error(0, 0), 0) << odd;
    EXPECT_EQ(output.lse_error(0, 0), 0) << odd;
  }
  Spec spread = uneven();  // weights below float's normal range
  spread.lengths = {130};
  spread.queries = {2};
  spread.options.scale = 200;
  const PagedCase c(spread);
  EXPECT_EQ(testing::bits_of(fast_reference(c.problem)), testing::bits_of(reference(c.problem)));
  EXPECT_EQ(fast_output(c.problem).o, reference(c.problem).o);
}

// Keys whose squares overflow a float, and queries that make small scores of them.
TEST(FastReference, KeysWithoutAnErrorInFloatAreComputedByTheReference) {
  Spec spec = uneven();
  spec.lengths = {70};
  spec.queries = {1};
  PagedCase c(spec);
  for (const auto& [bytes, factor] : {std::pair{&c.k_pool, 0x1p70F}, {&c.q, 0x1p-70F}}) {
    for (std::size_t at = 0; at < bytes->size(); at += sizeof factor) {
      float x = 0;
      std::memcpy(&x, bytes->data() + at, sizeof x);
      x *= factor;
      std::memcpy(bytes->data() + at, &x, sizeof x);
    }
  }
  const Result have = fast_reference(c.problem);
  EXPECT_EQ(testing::bits_of(have), testing::bits_of(reference(c.problem)));
  EXPECT_EQ(have.score_error(0, 0), 0);
  EXPECT_EQ(fast_output(c.problem).o, reference(c.problem).o);
}

TEST(FastReference, MemoryOfNoSequenceIsNeverRead) {
  Spec spec = uneven(DType::bf16);
  spec.options.mask = MaskKind::sliding_window;
  spec.options.window_left = 9;
  spec.row_padding = 2;
  spec.poison = testing::Poison::plausible;
  const auto clean = testing::bits_of(fast_reference(PagedCase(spec).problem));
  const Output output = fast_output(PagedCase(spec).problem);
  spec.poison = testing::Poison::nan;
  EXPECT_EQ(testing::bits_of(fast_reference(PagedCase(spec).problem)), clean);
  const Output poisoned = fast_output(PagedCase(spec).problem);
  EXPECT_EQ(poisoned.o, output.o);
  EXPECT_EQ(poisoned.o_error, output.o_error);
}

// The worked number of the header: head size 128, |q| = |k| = sqrt(128).
TEST(FastReference, WorkedNumberOfTheHeader) {
  Spec spec;
  spec.head_size = spec.value_size = 128;
  spec.lengths = {64};
  spec.queries = {1};
  spec.options.scale = 1 / std::sqrt(128.0);
  PagedCase c(spec);
  const float one = 1;
  for (std::size_t at = 0; at < c.q.size(); at += 4) std::memcpy(c.q.data() + at, &one, 4);
  for (std::size_t at = 0; at < c.k_pool.size(); at += 4) std::memcpy(c.k_pool.data() + at, &one, 4);
  EXPECT_NEAR(fast_reference(c.problem).score_error(0, 0), 9.72e-6, 0.01e-6);
}

}  // namespace
}  // namespace kvscope::attention::fast_test
