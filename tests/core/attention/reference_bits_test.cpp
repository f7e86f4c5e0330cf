// The same bytes on every instruction set, for each placement of the pages, for any contents of unread memory, in
// every run, and on every compiler (compared with a checksum in this file).
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/attention/detail/reference_kernels.h"
#include "core/attention/detail/row_reader.h"
#include "core/attention/reference.h"
#include "core/base/convert.h"
#include "tests/core/attention/paged_case.h"
#include "tests/property.h"

namespace kvscope::attention::reference_bits_test {
namespace {

using testing::bits_of;
using testing::PagedCase;
using testing::Poison;
using testing::Spec;

// Sizes with remainders: 6 rows, 21 dims and 77 keys are not multiples of 4, 8, or a block or page.
Spec uneven(DType dtype = DType::f32) {
  Spec spec;
  spec.lengths = {77, 0, 130};
  spec.queries = {3, 1, 2};
  spec.query_heads = 12;
  spec.kv_heads = 2;
  spec.head_size = 21;
  spec.value_size = 19;
  spec.page_size = 6;
  spec.dtype = dtype;
  spec.options.scale = 0.22;
  spec.options.soft_cap = 5.0;
  spec.slopes.assign(12, 0.03125);
  spec.sinks.assign(12, -0.5);
  return spec;
}

std::uint64_t fnv1a(const std::vector<std::uint64_t>& words) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::uint64_t word : words) {
    for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ ((word >> shift) & 0xff)) * 0x100000001b3u;
  }
  return hash;
}

// Without the terms of the bound, o and lse have the same bits.
void expect_output_of(const Problem& problem, InstructionSet set, const Result& expected) {
  const Output output = reference_output(problem, set);
  Result alone = expected;
  alone.o = output.o;
  alone.lse = output.lse;
  EXPECT_EQ(bits_of(alone), bits_of(expected)) << name(set);
  for (const double error : output.o_error) EXPECT_EQ(error, 0);
  for (const double error : output.lse_error) EXPECT_EQ(error, 0);
}

TEST(ReferenceBits, EveryInstructionSetGivesTheSame) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::e4m3}) {
    const PagedCase c(uneven(dtype));
    const auto expected = bits_of(reference(c.problem, InstructionSet::baseline));
    for (const InstructionSet set : available_instruction_sets()) {
      const Result result = reference(c.problem, set);
      EXPECT_EQ(bits_of(result), expected) << name(set) << ' ' << name(dtype);
      EXPECT_EQ(testing::term_bits_of(result), testing::term_bits_of(reference(c.problem))) << name(set);
      expect_output_of(c.problem, set, result);
    }
    EXPECT_EQ(bits_of(reference(c.problem)), expected);
  }
}

// Every instruction set gives the output and the terms of the bound that `baseline` gives, which decodes all rows.
void expect_equal_bits(const Spec& spec) {
  const PagedCase c(spec);
  const Result expected = reference(c.problem, InstructionSet::baseline);
  for (const InstructionSet set : available_instruction_sets()) {
    const Result result = reference(c.problem, set);
    EXPECT_EQ(bits_of(result), bits_of(expected)) << name(set) << ' ' << testing::describe(spec);
    EXPECT_EQ(testing::term_bits_of(result), testing::term_bits_of(expected)) << name(set);
    expect_output_of(c.problem, set, expected);
  }
}

// Rows of a multiple of eight elements are read where they are by some instruction sets and decoded first by others:
// sizes of one step of sixteen elements, of a step and a half, and of several; groups of 6 rows, of 3 and of one.
TEST(ReferenceBits, RowsReadInPlaceGiveTheBitsOfDecodedRows) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (const auto& [size, value_size] : {std::pair{8, 24}, {16, 8}, {24, 64}, {64, 40}}) {
      for (const std::int64_t kv_heads : {2, 4, 12}) {
        Spec spec = uneven(dtype);
        spec.kv_heads = kv_heads;
        spec.head_size = size;
        spec.value_size = value_size;
        spec.hnd = kv_heads == 4;
        expect_equal_bits(spec);
      }
    }
  }
}

// Rows that are read where they are come in blocks of fewer keys if their tokens have many bytes: 16 keys of 21 heads, 8
// of 60, where decoded rows come in blocks of 32. The terms look at the ends of blocks of 64.
TEST(ReferenceBits, TokensOfManyBytesGiveTheBitsOfDecodedRows) {
  for (const std::int64_t kv_heads : {21, 60}) {
    for (const std::int64_t window : {1000, 150}) {
      Spec spec = uneven(DType::f32);
      spec.lengths = {77, 64, 201};
      spec.queries = {1, 1, 2};
      spec.query_heads = spec.kv_heads = kv_heads;
      spec.slopes.clear();
      spec.sinks.clear();
      spec.head_size = spec.value_size = 64;
      spec.options.mask = MaskKind::sliding_window;
      spec.options.window_left = window;
      expect_equal_bits(spec);
    }
  }
}

// A difference in compiler or library, or a fused multiply-add, would change the last digits of some output.
TEST(ReferenceBits, ChecksumIsTheOneEveryCompilerGives) {
  EXPECT_EQ(fnv1a(bits_of(reference(PagedCase(uneven()).problem))), 0x3bf6de0bc62afcc8u);
  Spec quantized = uneven(DType::e4m3);
  quantized.granularity = 4;
  quantized.options.lse_base = LseBase::two;
  quantized.options.mask = MaskKind::sliding_window;
  quantized.options.window_left = 40;
  EXPECT_EQ(fnv1a(bits_of(reference(PagedCase(quantized).problem))), 0xfd3182bb3fa808b9u);
}

TEST(ReferenceBits, TwoRunsAreTheSame) {
  const PagedCase c(uneven());
  EXPECT_EQ(bits_of(reference(c.problem)), bits_of(reference(c.problem)));
}

TEST(ReferenceBits, PhysicalPlacementOfThePagesCannotShow) {
  EXPECT_TRUE(prop::check("any permutation of the blocks", [] {
    Spec spec = uneven();
    const auto expected = bits_of(reference(PagedCase(spec).problem));
    spec.placement = prop::in_range<std::uint64_t>(2, 1u << 30);
    RC_ASSERT(bits_of(reference(PagedCase(spec).problem)) == expected);
  }));
}

TEST(ReferenceBits, PageSizeAndLayoutCannotShow) {
  Spec spec = uneven();
  const auto expected = bits_of(reference(PagedCase(spec).problem));
  const auto expected_terms = testing::term_bits_of(reference(PagedCase(spec).problem));
  for (const std::int64_t page : {1, 3, 16, 64, 200}) {
    for (const bool hnd : {false, true}) {
      spec.page_size = page;
      spec.hnd = hnd;
      spec.layers = page == 3 ? 1 : 4;
      const Result result = reference(PagedCase(spec).problem);
      EXPECT_EQ(bits_of(result), expected) << page << ' ' << hnd;
      EXPECT_EQ(testing::term_bits_of(result), expected_terms) << page << ' ' << hnd;
    }
  }
}

// Slots past a sequence's end, other layers, row padding, unowned blocks, keys outside every window, tables' tails and
// their scales: NaN and infinity there would reach the output through a single wrong read, even one with weight zero.
TEST(ReferenceBits, MemoryOfNoSequenceIsNeverRead) {
  for (const MaskKind mask : {MaskKind::causal, MaskKind::sliding_window, MaskKind::chunked}) {
    for (const std::int64_t granularity : {0, 5}) {
      Spec spec = uneven(granularity == 0 ? DType::bf16 : DType::e5m2);
      spec.options.mask = mask;
      spec.options.window_left = 9;
      spec.options.window_right = 1;
      spec.options.chunk = 50;
      spec.granularity = granularity;
      spec.own_scales_table = true;
      spec.row_padding = 2;
      spec.poison = Poison::plausible;
      const auto clean = bits_of(reference(PagedCase(spec).problem));
      for (const Poison poison : {Poison::nan, Poison::infinity}) {
        spec.poison = poison;
        EXPECT_EQ(bits_of(reference(PagedCase(spec).problem)), clean) << static_cast<int>(mask) << ' ' << granularity;
      }
    }
  }
}

// NaN payloads depend on operand order, which compilers may change: the result is always the same NaN.
TEST(ReferenceBits, VisibleNanComesOutAsTheOneQuietNan) {
  Spec spec;
  spec.lengths = {5};
  spec.queries = {1};
  PagedCase c(spec);
  const std::uint32_t odd_nan = 0xffc12345u;
  const PagedRows& k = c.problem.k;
  const std::int64_t offset = c.table[1] * k.block_stride;  // token 4, KV head 0: query heads 0 and 1
  std::memcpy(const_cast<std::byte*>(k.data) + offset * 4, &odd_nan, 4);
  const Result r = reference(c.problem);
  const auto quiet = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN());
  for (const std::size_t head : {0u, 1u}) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(r.o(0, head, 3)), quiet);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(r.lse(0, head)), quiet);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(r.smax(0, head)), quiet);
  }
  EXPECT_FALSE(std::isnan(r.o(0, 2, 3)));
}

TEST(ReferenceBits, EveryPatternOfTheNarrowTypesWidensToItsValue) {
  for (const InstructionSet set : available_instruction_sets()) {
    const ReferenceKernels& kernels = *reference_kernels(set);
    for (const DType dtype : {DType::f16, DType::bf16, DType::e4m3, DType::e5m2, DType::e8m0, DType::i8, DType::u16}) {
      const std::int64_t count = std::int64_t{1} << bits(dtype);
      const std::int64_t size = size_of(dtype);
      std::vector<std::byte> patterns(static_cast<std::size_t>(count * size) + 1);
      for (std::int64_t i = 0; i < count; ++i)
        std::memcpy(patterns.data() + 1 + i * size, &i, static_cast<std::size_t>(size));
      std::vector<double> values(static_cast<std::size_t>(count));
      RowReader::widen(kernels, dtype, patterns.data() + 1, count, values.data());
      for (std::int64_t i = 0; i < count; ++i) {
        const double expected = load_as_double(dtype, patterns.data() + 1 + i * size);
        const double got = values[static_cast<std::size_t>(i)];
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(got)) << name(set) << ' ' << name(dtype) << ' ' << i;
        } else {
          ASSERT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(expected))
              << name(set) << ' ' << name(dtype) << ' ' << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::attention::reference_bits_test
