// The fast path against the reference: every element within the stated error, and the error small enough to be useful.
#include "core/attention/fast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/attention/bounds.h"
#include "tests/core/attention/paged_case.h"

namespace kvscope::attention::fast_test {
namespace {

using testing::PagedCase;
using testing::Spec;

struct Largest {
  double o = 0, lse = 0;  // error / stated error
};

// Compares all outputs, with every instruction set. Precondition: the case's values fit floats.
Largest expect_within_stated_error(const PagedCase& c, const std::string& text) {
  Largest largest;
  const Result want = reference(c.problem);
  for (const InstructionSet set : available_instruction_sets()) {
    SCOPED_TRACE(text + ", " + std::string(name(set)));
    const Result have = fast_reference(c.problem, set);
    const bool base_two = c.problem.options.lse_base == LseBase::two;
    for (std::size_t query = 0; query < want.o.shape(0); ++query) {
      for (std::size_t head = 0; head < want.o.shape(1); ++head) {
        const RowTerms row = row_terms(have, query, head, 1, base_two);
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
        for (std::size_t dim = 0; dim < want.o.shape(2); ++dim) {
          const ElementTerms element = element_terms(have, query, head, dim);
          const double allowed = output_budget({}, row, element).golden + 1e-15 * element.a1;
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
  }
  Spec spread = uneven();  // weights below float's normal range
  spread.lengths = {130};
  spread.queries = {2};
  spread.options.scale = 200;
  const PagedCase c(spread);
  EXPECT_EQ(testing::bits_of(fast_reference(c.problem)), testing::bits_of(reference(c.problem)));
}

TEST(FastReference, MemoryOfNoSequenceIsNeverRead) {
  Spec spec = uneven(DType::bf16);
  spec.options.mask = MaskKind::sliding_window;
  spec.options.window_left = 9;
  spec.row_padding = 2;
  spec.poison = testing::Poison::plausible;
  const auto clean = testing::bits_of(fast_reference(PagedCase(spec).problem));
  spec.poison = testing::Poison::nan;
  EXPECT_EQ(testing::bits_of(fast_reference(PagedCase(spec).problem)), clean);
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
