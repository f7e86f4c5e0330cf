#include "gpu/kernels/paged_decode/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace kvscope::gpu::decode_plan_test {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::Le;

DecodeShape step(const std::vector<std::uint32_t>& lengths) {
  return {.element_bytes = 2,
          .head_size = 128,
          .query_heads = 32,
          .kv_heads = 8,
          .page_size = 16,
          .lengths = lengths,
          .alignment = 16,
          .multiprocessors = 132};
}

// The shape of the performance targets: one wave of CTAs, two per multiprocessor.
TEST(DecodePlan, FillsTheGpuOnceAtEightSequencesOf4096Keys) {
  const std::vector<std::uint32_t> lengths(8, 4096);
  const DecodePlan plan = decode_plan(step(lengths));
  EXPECT_EQ(plan.keys_per_split, 1024);
  EXPECT_EQ(plan.splits, 4);
  EXPECT_EQ(plan.row_tiles, 1);
  EXPECT_EQ(plan.stages, 3);
  EXPECT_EQ(plan.box_rows, 16);
  EXPECT_EQ(plan.threads, 160);
  EXPECT_EQ(plan.barriers_at, 3 * 32768);
  EXPECT_EQ(plan.shared_bytes, 98944);
}

// 227 KB per multiprocessor, 1 KB per CTA reserved: a ring that is too large would halve the resident CTAs.
TEST(DecodePlan, TwoCtasOfAnyKindFitOneMultiprocessor) {
  const std::vector<std::uint32_t> lengths(1, 100);
  for (const int element : {1, 2})
    for (const int head_size : {64, 128}) {
      DecodeShape shape = step(lengths);
      shape.element_bytes = element;
      shape.head_size = head_size;
      EXPECT_THAT(decode_plan(shape), AllOf(Field(&DecodePlan::shared_bytes, Le((227 / 2 - 1) * 1024)),
                                            Field(&DecodePlan::stages, Le(kDecodeMaxStages))));
    }
}

// Runs are whole tiles: a sequence slightly longer than a run must keep its end, and no run may be empty.
TEST(DecodePlan, RunsCoverTheLongestSequenceAndNoMore) {
  for (const std::uint32_t longest : {0U, 1U, 63U, 64U, 65U, 128U, 1000U, 4095U, 4097U, 131072U}) {
    const std::vector<std::uint32_t> lengths = {longest, longest / 3};
    for (const int splits : {0, 1, 3}) {
      DecodeShape shape = step(lengths);
      shape.splits = splits;
      const DecodePlan plan = decode_plan(shape);
      EXPECT_EQ(plan.keys_per_split % kDecodeTile, 0);
      EXPECT_GE(std::int64_t{plan.splits} * plan.keys_per_split, longest);
      EXPECT_GE(plan.splits, 1);
      EXPECT_LE(std::int64_t{plan.splits - 1} * plan.keys_per_split, longest > 0 ? longest - 1 : 0);
      EXPECT_LE(plan.splits, splits > 0 ? splits : 64);
    }
  }
}

// A box that extended over the end of a page would load another sequence's keys.
TEST(DecodePlan, BoxesLieInsideAPage) {
  const std::vector<std::uint32_t> lengths(1, 100);
  const std::vector<std::pair<int, int>> expected = {{1, 0},   {8, 0},   {16, 16}, {24, 0},   {32, 32},
                                                     {48, 16}, {64, 64}, {96, 32}, {128, 64}, {256, 64}};
  for (const auto& [page, box] : expected) {
    DecodeShape shape = step(lengths);
    shape.page_size = page;
    EXPECT_EQ(decode_plan(shape).box_rows, box) << "page_size " << page;
    EXPECT_EQ(decode_plan(shape).copy_bytes, box > 0 ? 0 : 16) << "page_size " << page;
  }
  DecodeShape continuous = step(lengths);
  continuous.page_size = 100;
  continuous.one_page = true;
  EXPECT_EQ(decode_plan(continuous).box_rows, 64);
}

TEST(DecodePlan, RowsThatTheCopyEngineDoesNotTakeAreCopiedBySmallerPieces) {
  const std::vector<std::uint32_t> lengths(1, 100);
  DecodeShape shape = step(lengths);
  shape.alignment = 8;
  EXPECT_EQ(decode_plan(shape).box_rows, 0);
  EXPECT_EQ(decode_plan(shape).copy_bytes, 4);
  EXPECT_EQ(decode_plan(shape).threads, 192);
  shape.alignment = 2;
  EXPECT_THROW(static_cast<void>(decode_plan(shape)), std::invalid_argument);
}

TEST(DecodePlan, LargeGroupsAreSeveralCtas) {
  const std::vector<std::uint32_t> lengths(1, 100);
  DecodeShape shape = step(lengths);
  shape.kv_heads = 1;
  EXPECT_EQ(decode_plan(shape).row_tiles, 2);
  shape.any_size = true;
  EXPECT_EQ(decode_plan(shape).row_tiles, 4);
  EXPECT_EQ(decode_plan(shape).threads, 128);
  shape.query_heads = 33;
  shape.kv_heads = 2;
  EXPECT_THROW(static_cast<void>(decode_plan(shape)), std::invalid_argument);
}

TEST(DecodePlan, RejectsHeadSizesWithoutAKernel) {
  const std::vector<std::uint32_t> lengths(1, 100);
  DecodeShape shape = step(lengths);
  shape.head_size = 96;
  EXPECT_THROW(static_cast<void>(decode_plan(shape)), std::invalid_argument);
  shape.any_size = true;
  for (const int head_size : {8, 96, 248, 256}) {
    shape.head_size = head_size;
    EXPECT_EQ(decode_plan(shape).shared_bytes, 4 * 8 * (head_size + 6) * 4);
  }
  for (const int head_size : {0, 4, 100, 264}) {
    shape.head_size = head_size;
    EXPECT_THROW(static_cast<void>(decode_plan(shape)), std::invalid_argument) << head_size;
  }
  shape = step(lengths);
  shape.element_bytes = 4;  // no matrix instruction multiplies f32
  EXPECT_THROW(static_cast<void>(decode_plan(shape)), std::invalid_argument);
}

// Lanes load 16 bytes of a row at once, 8 for e4m3.
TEST(DecodePlan, AnyHeadSizeWantsRowsAlignedToALanesLoad) {
  const std::vector<std::uint32_t> lengths(1, 100);
  for (const auto& [element_bytes, alignment] : {std::pair(1, 8), std::pair(2, 16), std::pair(4, 16)}) {
    DecodeShape shape = step(lengths);
    shape.any_size = true;
    shape.element_bytes = element_bytes;
    shape.alignment = static_cast<std::uint64_t>(alignment);
    EXPECT_NO_THROW(static_cast<void>(decode_plan(shape)));
    shape.alignment /= 2;
    EXPECT_THROW(static_cast<void>(decode_plan(shape)), std::invalid_argument);
  }
}

}  // namespace
}  // namespace kvscope::gpu::decode_plan_test
