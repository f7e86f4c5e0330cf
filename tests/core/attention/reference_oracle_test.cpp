// The reference against plain long double loops, and the double tiled flow against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/reference.h"
#include "core/attention/tiled.h"
#include "core/base/errors.h"
#include "tests/core/attention/paged_case.h"

namespace kvscope::attention::reference_oracle_test {
namespace {

using testing::PagedCase;
using testing::Spec;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// Every element within 64 * 2^-53 * (1 + smax) * max |v|, the bound for two evaluations in double.
void expect_matches_oracle(const Spec& spec) {
  SCOPED_TRACE(testing::describe(spec));
  const PagedCase c(spec);
  const Result r = reference(c.problem);
  const PartialState other = tiled_double(c.problem, 5, 2);
  ASSERT_EQ(r.o.shape(0), at(c.problem.total_queries()));
  for (std::size_t b = 0; b < spec.lengths.size(); ++b) {
    for (std::int64_t i = 0; i < spec.queries[b]; ++i) {
      for (std::int64_t h = 0; h < spec.query_heads; ++h) {
        const testing::OracleRow want = testing::oracle(c, static_cast<std::int64_t>(b), i, h);
        const std::size_t row = at(c.query_offsets[b] + i);
        const std::size_t head = at(h);
        const double unit = 64 * 0x1p-53 * (1 + static_cast<double>(want.smax));
        const double bound = unit * static_cast<double>(want.largest_value);
        for (std::size_t d = 0; d < want.o.size(); ++d) {
          ASSERT_NEAR(r.o(row, head, d), static_cast<double>(want.o[d]), bound)
              << b << ' ' << i << ' ' << h << ' ' << d;
          ASSERT_NEAR(r.a1(row, head, d), static_cast<double>(want.a1[d]), bound);
          ASSERT_NEAR(r.a2(row, head, d), static_cast<double>(want.a2[d]), bound);
          ASSERT_NEAR(other.o(row, head, d), r.o(row, head, d), bound);
        }
        if (want.empty) {
          const double expected =
              (spec.options.empty_row == EmptyRow::minus_infinity ? -1 : 1) * std::numeric_limits<double>::infinity();
          ASSERT_EQ(r.lse(row, head), expected);
          ASSERT_EQ(other.lse(row, head), expected);
          ASSERT_EQ(r.smax(row, head), 0.0);
          continue;
        }
        const double lse_bound = unit * (1 + std::fabs(static_cast<double>(want.lse)));
        ASSERT_NEAR(r.lse(row, head), static_cast<double>(want.lse), lse_bound);
        ASSERT_NEAR(other.lse(row, head), r.lse(row, head), lse_bound);
        ASSERT_NEAR(r.smax(row, head), static_cast<double>(want.smax), unit);
        ASSERT_NEAR(r.p2(row, head), static_cast<double>(want.p2), unit);
        ASSERT_EQ(r.keys(row, head), static_cast<double>(want.keys));
        const double faint = r.faint(row, head, 0);
        if (faint > 0 && faint < kFewFaint) {  // of all keys that a query of the sequence sees, at least of these
          ASSERT_GE(r.largest_value(row, head), static_cast<double>(want.largest_value));
        } else {
          ASSERT_EQ(r.largest_value(row, head), -1);
        }
        for (std::size_t d = 0; d < want.o.size() && want.keys <= 64; ++d) {  // one block: the final sum alone
          ASSERT_NEAR(r.running(row, head, d), std::fabs(r.o(row, head, d)), bound);
        }
      }
    }
  }
}

Spec sized(double scale = 0.35) {
  Spec spec;
  spec.options.scale = scale;
  return spec;
}

// With one query a sequence, all keys are visible. Keys of more than one block, some rows with few faint keys.
TEST(ReferenceAgainstPlainLoops, TheLargestValueOfRowsWithFewFaintKeys) {
  std::int64_t measured = 0, others = 0;
  for (const double scale : {0.35, 3.0}) {
    Spec spec = sized(scale);
    spec.lengths = {70, 9, 33};
    spec.queries = {1, 1, 1};
    const PagedCase c(spec);
    const Result r = reference(c.problem);
    for (std::size_t b = 0; b < spec.lengths.size(); ++b) {
      for (std::int64_t h = 0; h < spec.query_heads; ++h) {
        const double largest = r.largest_value(b, at(h));
        largest < 0 ? ++others : ++measured;
        if (largest < 0) continue;
        const testing::OracleRow want = testing::oracle(c, static_cast<std::int64_t>(b), 0, h);
        EXPECT_EQ(largest, static_cast<double>(want.largest_value)) << b << ' ' << h;
      }
    }
  }
  EXPECT_GT(measured, 3);
  EXPECT_GT(others, 0);
}

TEST(ReferenceAgainstPlainLoops, OneKeyTwoThirdsOfTheWay) {
  // The header's worked number, without builder or oracle.
  const double q[] = {1}, k[] = {0, 0.69314718055994530942}, v[] = {0, 3};
  const std::uint32_t table[] = {0};
  const std::int64_t offsets[] = {0, 1}, lengths[] = {2};
  Problem p;
  p.batch = 1;
  p.query_heads = 1;
  p.q = reinterpret_cast<const std::byte*>(q);
  p.q_dtype = DType::f64;
  p.query_offsets = offsets;
  p.key_lengths = lengths;
  p.k = {.data = reinterpret_cast<const std::byte*>(k),
         .dtype = DType::f64,
         .blocks = 1,
         .page_size = 2,
         .heads = 1,
         .head_size = 1,
         .block_stride = 2,
         .token_stride = 1,
         .head_stride = 1,
         .table = table,
         .table_stride = 1};
  p.v = p.k;
  p.v.data = reinterpret_cast<const std::byte*>(v);
  const Result r = reference(p);
  EXPECT_NEAR(r.o(0, 0, 0), 2.0, 1e-15);
  EXPECT_NEAR(r.a1(0, 0, 0), 2.0, 1e-15);
  EXPECT_NEAR(r.a2(0, 0, 0), 2.0, 1e-15);
  EXPECT_NEAR(r.lse(0, 0), std::log(3.0), 1e-15);
  EXPECT_EQ(r.smax(0, 0), k[1]);
}

// A group of one hides a wrong head map; equal numbers of heads and groups hide a transposed one.
TEST(ReferenceAgainstPlainLoops, EveryGroupSizeFromMultiHeadToMultiQuery) {
  for (const auto& [query_heads, kv_heads] : {std::pair{3, 3}, {6, 3}, {6, 2}, {5, 1}, {12, 2}, {8, 1}}) {
    Spec spec = sized();
    spec.query_heads = query_heads;
    spec.kv_heads = kv_heads;
    spec.lengths = {7, 13};
    spec.queries = {1, 3};
    expect_matches_oracle(spec);
  }
}

TEST(ReferenceAgainstPlainLoops, LengthsAroundThePageSize) {
  for (const std::int64_t page : {1, 3, 16, 64}) {
    Spec spec = sized();
    spec.page_size = page;
    spec.lengths = {0, 1, std::max<std::int64_t>(1, page - 1), page, page + 1, 2 * page + 1};
    spec.queries = {1, 1, 1, 1, 1, 1};
    expect_matches_oracle(spec);
    spec.queries = {2, 1, 3, 0, 2, 4};
    expect_matches_oracle(spec);
  }
}

// 64 keys are decoded at a time: lengths and head sizes on both sides of that and of eight lanes.
TEST(ReferenceAgainstPlainLoops, LengthsAroundTheKeyBlockAndHeadSizesAroundTheLanes) {
  for (const std::int64_t size : {1, 7, 8, 9, 24}) {
    Spec spec = sized();
    spec.head_size = size;
    spec.value_size = size + 3;
    spec.page_size = 5;
    spec.lengths = {63, 64, 65, 129};
    spec.queries = {1, 2, 1, 1};
    expect_matches_oracle(spec);
  }
}

TEST(ReferenceAgainstPlainLoops, EveryMaskAndAlignment) {
  for (const CausalAlignment alignment : {CausalAlignment::bottom_right, CausalAlignment::top_left}) {
    for (const MaskKind mask : {MaskKind::none, MaskKind::causal, MaskKind::sliding_window, MaskKind::chunked}) {
      for (const auto& [left, right] : {std::pair{3, 0}, {0, 0}, {-1, 2}, {2, -1}, {5, 1}}) {
        Spec spec = sized();
        spec.lengths = {11, 2, 70, 0, 5};
        spec.queries = {4, 5, 3, 2, 5};
        spec.options.mask = mask;
        spec.options.alignment = alignment;
        spec.options.window_left = left;
        spec.options.window_right = right;
        spec.options.chunk = 4;
        spec.slopes = {0.5, 0.25, 0.125, 0.0625};
        expect_matches_oracle(spec);
        if (mask != MaskKind::sliding_window) break;
      }
    }
  }
}

TEST(ReferenceAgainstPlainLoops, SoftCapAlibiSinksBasesAndEmptyRows) {
  for (const bool cap : {false, true}) {
    for (const bool alibi : {false, true}) {
      for (const bool sinks : {false, true}) {
        Spec spec = sized(1.7);
        spec.lengths = {9, 1, 0};
        spec.queries = {3, 2, 1};
        if (cap) spec.options.soft_cap = 1.25;
        if (alibi) spec.slopes = {0.7, 0.3, 0.1, 0.9};
        if (sinks) spec.sinks = {3.0, -2.0, 0.0, 40.0};
        spec.options.lse_base = cap ? LseBase::two : LseBase::natural;
        spec.options.empty_row = alibi ? EmptyRow::plus_infinity : EmptyRow::minus_infinity;
        expect_matches_oracle(spec);
      }
    }
  }
}

TEST(ReferenceAgainstPlainLoops, EveryStoredType) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    for (const bool hnd : {false, true}) {
      Spec spec = sized();
      spec.dtype = dtype;
      spec.q_dtype = dtype == DType::f64 ? DType::f64 : DType::bf16;
      spec.hnd = hnd;
      spec.row_padding = 3;
      spec.lengths = {10, 21};
      spec.queries = {2, 1};
      expect_matches_oracle(spec);
    }
  }
}

// A granularity that does not divide the head size leaves a short last granule, which rounding up would miss.
TEST(ReferenceAgainstPlainLoops, QuantizedInEveryGranularityWithItsOwnScaleTable) {
  for (const std::int64_t granularity : {1, 3, 4, 8, 12}) {
    for (const DType scale : {DType::f32, DType::e8m0, DType::bf16}) {
      Spec spec = sized();
      spec.head_size = 12;
      spec.value_size = 10;
      spec.dtype = granularity == 3 ? DType::i8 : DType::e4m3;
      spec.granularity = granularity;
      spec.scale_dtype = scale;
      spec.own_scales_table = granularity % 2 == 0;
      spec.lengths = {10, 21};
      spec.queries = {2, 1};
      expect_matches_oracle(spec);
    }
  }
}

TEST(ReferenceAgainstPlainLoops, MlaReadsItsValuesFromTheKeys) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Spec spec = sized(0.1);
    spec.mla = true;
    spec.query_heads = 7;
    spec.kv_heads = 1;
    spec.head_size = 36;
    spec.value_size = 32;
    spec.dtype = dtype;
    spec.lengths = {33, 5};
    spec.queries = {1, 3};
    expect_matches_oracle(spec);
  }
}

// More queries than one block holds: the result must not depend on the boundary between blocks.
TEST(ReferenceAgainstPlainLoops, PrefillLongerThanOneBlockOfQueries) {
  Spec spec = sized();
  spec.lengths = {150};
  spec.queries = {131};
  spec.page_size = 16;
  expect_matches_oracle(spec);
}

TEST(ReferenceAgainstPlainLoops, NothingAtAll) {
  Spec spec = sized();
  spec.lengths = {};
  spec.queries = {};
  expect_matches_oracle(spec);
  spec.lengths = {0};
  spec.queries = {0};
  expect_matches_oracle(spec);
}

// Scores of +-1000: a softmax without its maximum overflows here.
TEST(ReferenceAgainstPlainLoops, LargeScoresNeitherOverflowNorVanish) {
  Spec spec = sized(300.0);
  spec.lengths = {40};
  spec.queries = {2};
  expect_matches_oracle(spec);
}

// A sink of 900 with scores near 0: a maximum over the scores alone makes exp(900), and lse infinite.
TEST(ReferenceAgainstPlainLoops, LargeSinkTakesAllTheWeightAndDoesNotOverflow) {
  Spec spec = sized();
  spec.sinks = {900.0, -900.0, 0.0, 720.0};
  expect_matches_oracle(spec);
}

TEST(Reference, RejectsAnInstructionSetThatIsNotThereOrRunsIt) {
  const PagedCase c((Spec()));
  for (const InstructionSet set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    const auto sets = available_instruction_sets();
    if (std::find(sets.begin(), sets.end(), set) != sets.end()) {
      EXPECT_NO_THROW(static_cast<void>(reference(c.problem, set)));
    } else {
      EXPECT_THROW(static_cast<void>(reference(c.problem, set)), UnsupportedError);
    }
  }
}

}  // namespace
}  // namespace kvscope::attention::reference_oracle_test
