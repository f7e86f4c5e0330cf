// Known pattern tables and CuTe's notation: two descriptions of the same permutation.
#include "core/tma/tma_swizzle.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "core/layout/swizzle.h"
#include "tests/core/tma/gold.h"

namespace kvscope::tma_swizzle_test {
namespace {

using Table = std::vector<std::vector<std::int64_t>>;  // [row][chunk]: bytes from dst

constexpr std::array<TmaSwizzle, 6> kModes = {TmaSwizzle::b32,         TmaSwizzle::b64,
                                              TmaSwizzle::b128,        TmaSwizzle::b128_atom32,
                                              TmaSwizzle::b128_atom64, TmaSwizzle::b128_atom32_flip8};

// `rows` rows of `units` units of `unit` bytes, `pitch` apart, written from dst on.
Table pattern(TmaSwizzle mode, std::int64_t dst, int rows, int units, std::int64_t unit, std::int64_t pitch) {
  Table table;
  for (int r = 0; r < rows; ++r) {
    auto& row = table.emplace_back();
    for (int c = 0; c < units; ++c) row.push_back(swizzle_address(mode, dst + r * pitch + c * unit) - dst);
  }
  return table;
}

TEST(TmaSwizzleTables, AreThePublishedPatterns) {
  EXPECT_EQ(pattern(TmaSwizzle::b32, 0, 8, 2, 16, 32),
            (Table{{0, 16}, {32, 48}, {64, 80}, {96, 112}, {144, 128}, {176, 160}, {208, 192}, {240, 224}}));
  EXPECT_EQ(pattern(TmaSwizzle::b64, 0, 8, 4, 16, 64), (Table{{0, 16, 32, 48},
                                                              {64, 80, 96, 112},
                                                              {144, 128, 176, 160},
                                                              {208, 192, 240, 224},
                                                              {288, 304, 256, 272},
                                                              {352, 368, 320, 336},
                                                              {432, 416, 400, 384},
                                                              {496, 480, 464, 448}}));
  const Table b128 = {{0, 16, 32, 48, 64, 80, 96, 112},         {144, 128, 176, 160, 208, 192, 240, 224},
                      {288, 304, 256, 272, 352, 368, 320, 336}, {432, 416, 400, 384, 496, 480, 464, 448},
                      {576, 592, 608, 624, 512, 528, 544, 560}, {720, 704, 752, 736, 656, 640, 688, 672},
                      {864, 880, 832, 848, 800, 816, 768, 784}, {1008, 992, 976, 960, 944, 928, 912, 896}};
  EXPECT_EQ(pattern(TmaSwizzle::b128, 0, 8, 8, 16, 128), b128);
  EXPECT_EQ(pattern(TmaSwizzle::b128, 7 * 1024, 8, 8, 16, 128), b128);  // the period, once more
  EXPECT_EQ(pattern(TmaSwizzle::b128_atom32, 0, 8, 8, 16, 128), (Table{{0, 16, 32, 48, 64, 80, 96, 112},
                                                                       {160, 176, 128, 144, 224, 240, 192, 208},
                                                                       {320, 336, 352, 368, 256, 272, 288, 304},
                                                                       {480, 496, 448, 464, 416, 432, 384, 400},
                                                                       {512, 528, 544, 560, 576, 592, 608, 624},
                                                                       {672, 688, 640, 656, 736, 752, 704, 720},
                                                                       {832, 848, 864, 880, 768, 784, 800, 816},
                                                                       {992, 1008, 960, 976, 928, 944, 896, 912}}));
  EXPECT_EQ(pattern(TmaSwizzle::b128_atom64, 0, 8, 8, 16, 128), (Table{{0, 16, 32, 48, 64, 80, 96, 112},
                                                                       {192, 208, 224, 240, 128, 144, 160, 176},
                                                                       {256, 272, 288, 304, 320, 336, 352, 368},
                                                                       {448, 464, 480, 496, 384, 400, 416, 432},
                                                                       {512, 528, 544, 560, 576, 592, 608, 624},
                                                                       {704, 720, 736, 752, 640, 656, 672, 688},
                                                                       {768, 784, 800, 816, 832, 848, 864, 880},
                                                                       {960, 976, 992, 1008, 896, 912, 928, 944}}));
  EXPECT_EQ(pattern(TmaSwizzle::b128_atom32_flip8, 0, 4, 16, 8, 128),
            (Table{{0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120},
                   {168, 160, 184, 176, 136, 128, 152, 144, 232, 224, 248, 240, 200, 192, 216, 208},
                   {320, 328, 336, 344, 352, 360, 368, 376, 256, 264, 272, 280, 288, 296, 304, 312},
                   {488, 480, 504, 496, 456, 448, 472, 464, 424, 416, 440, 432, 392, 384, 408, 400}}));
}

// A destination that is not a multiple of the period has the pattern rotated: a model that swizzles offsets within the
// tile would give the tables above.
TEST(TmaSwizzleTables, RotateWithTheDestination) {
  EXPECT_EQ(pattern(TmaSwizzle::b128, 128, 8, 8, 16, 128), (Table{{16, 0, 48, 32, 80, 64, 112, 96},
                                                                  {160, 176, 128, 144, 224, 240, 192, 208},
                                                                  {304, 288, 272, 256, 368, 352, 336, 320},
                                                                  {448, 464, 480, 496, 384, 400, 416, 432},
                                                                  {592, 576, 624, 608, 528, 512, 560, 544},
                                                                  {736, 752, 704, 720, 672, 688, 640, 656},
                                                                  {880, 864, 848, 832, 816, 800, 784, 768},
                                                                  {896, 912, 928, 944, 960, 976, 992, 1008}}));
  EXPECT_EQ(pattern(TmaSwizzle::b128, 512, 4, 8, 16, 128), (Table{{64, 80, 96, 112, 0, 16, 32, 48},
                                                                  {208, 192, 240, 224, 144, 128, 176, 160},
                                                                  {352, 368, 320, 336, 288, 304, 256, 272},
                                                                  {496, 480, 464, 448, 432, 416, 400, 384}}));
  EXPECT_EQ(pattern(TmaSwizzle::b64, 128, 8, 4, 16, 64), (Table{{16, 0, 48, 32},
                                                                {80, 64, 112, 96},
                                                                {160, 176, 128, 144},
                                                                {224, 240, 192, 208},
                                                                {304, 288, 272, 256},
                                                                {368, 352, 336, 320},
                                                                {384, 400, 416, 432},
                                                                {448, 464, 480, 496}}));
  EXPECT_EQ(pattern(TmaSwizzle::b32, 128, 8, 2, 16, 32),
            (Table{{16, 0}, {48, 32}, {80, 64}, {112, 96}, {128, 144}, {160, 176}, {192, 208}, {224, 240}}));
  EXPECT_EQ(pattern(TmaSwizzle::b128_atom32, 128, 8, 1, 16, 128),
            (Table{{32}, {192}, {352}, {384}, {544}, {704}, {864}, {896}}));
  EXPECT_EQ(pattern(TmaSwizzle::b128_atom64, 128, 8, 1, 16, 128),
            (Table{{64}, {128}, {320}, {384}, {576}, {640}, {832}, {896}}));
}

// Rows shorter than the span keep the span as their pitch.
TEST(TmaSwizzleTables, KeepTheSpanBetweenShortRows) {
  EXPECT_EQ(pattern(TmaSwizzle::b128, 0, 8, 1, 16, 128),
            (Table{{0}, {144}, {288}, {432}, {576}, {720}, {864}, {1008}}));
  EXPECT_EQ(pattern(TmaSwizzle::b64, 0, 8, 2, 16, 64),
            (Table{{0, 16}, {64, 80}, {144, 128}, {208, 192}, {288, 304}, {352, 368}, {432, 416}, {496, 480}}));
  EXPECT_EQ(pattern(TmaSwizzle::b32, 0, 8, 1, 16, 32), (Table{{0}, {32}, {64}, {96}, {144}, {176}, {208}, {240}}));
}

TEST(TmaSwizzle, IsCuTesPermutationAndItsOwnInverse) {
  for (const TmaSwizzle mode : kModes) {
    for (std::int64_t a = 0; a < (1 << 14); ++a) {
      const std::int64_t swizzled = swizzle_address(mode, a);
      ASSERT_EQ(swizzled, static_cast<std::int64_t>(test::cute_swizzle(mode, static_cast<std::uint64_t>(a))))
          << name(mode) << " " << a;
      ASSERT_EQ(swizzle_address(mode, swizzled), a) << name(mode);
      ASSERT_EQ(swizzled / swizzle_span(mode), a / swizzle_span(mode)) << name(mode);  // stays in its span
    }
  }
  EXPECT_EQ(swizzle_address(TmaSwizzle::none, 12345), 12345);
  EXPECT_EQ(swizzle_address(TmaSwizzle::b128, 1016), 904);
}

// The modes of core/layout on element offsets equal these on bytes, at phase 0 and at any other.
TEST(TmaSwizzle, AgreesWithTheLayoutsModesOnElementOffsets) {
  for (const DType dtype : {DType::e4m3, DType::bf16, DType::f32}) {
    const std::int64_t size = size_of(dtype);
    for (int m = 0; m <= 3; ++m) {
      const Swizzle on_elements = make_swizzle(dtype, static_cast<SwizzleMode>(m));
      for (std::int64_t e = 0; e < 4096; ++e) {
        ASSERT_EQ(on_elements(e) * size, swizzle_address(static_cast<TmaSwizzle>(m), e * size)) << m << " " << e;
      }
      EXPECT_EQ(swizzle_span(static_cast<TmaSwizzle>(m)), bytes(static_cast<SwizzleMode>(m)));
    }
  }
  const Swizzle atom32(2, 5, 2), atom64(1, 6, 1);
  for (std::int64_t a = 0; a < 4096; ++a) {
    ASSERT_EQ(swizzle_address(TmaSwizzle::b128_atom32, a), atom32(a));
    ASSERT_EQ(swizzle_address(TmaSwizzle::b128_atom64, a), atom64(a));
  }
}

TEST(TmaSwizzle, RepeatsAfterItsPeriodAndNoSooner) {
  struct Expected {
    TmaSwizzle mode;
    std::int64_t period;
  };
  constexpr std::array<Expected, 5> kTable = {{{TmaSwizzle::b32, 256},
                                               {TmaSwizzle::b64, 512},
                                               {TmaSwizzle::b128, 1024},
                                               {TmaSwizzle::b128_atom32, 512},
                                               {TmaSwizzle::b128_atom64, 256}}};
  for (const auto& [mode, period] : kTable) {
    EXPECT_EQ(swizzle_period(mode), period);
    for (std::int64_t shift = 128; shift <= 2048; shift += 128) {
      bool same = true;
      for (std::int64_t a = 0; a < 1024; a += 8) {
        same = same && swizzle_address(mode, a + shift) == swizzle_address(mode, a) + shift;
      }
      EXPECT_EQ(same, shift % period == 0) << name(mode) << " " << shift;
    }
  }
  EXPECT_EQ(swizzle_period(TmaSwizzle::none), 128);
}

// Eight rows read at one logical chunk, as ldmatrix reads an 8 x 8 matrix: the number of 16-byte bank groups in use.
TEST(TmaSwizzle, SpreadsEightRowsOverTheBanks) {
  const auto groups = [](TmaSwizzle mode, std::int64_t pitch, std::int64_t chunk) {
    std::set<std::int64_t> distinct;
    for (std::int64_t r = 0; r < 8; ++r) distinct.insert(swizzle_address(mode, r * pitch + chunk * 16) / 16 % 8);
    return distinct.size();
  };
  EXPECT_EQ(groups(TmaSwizzle::none, 16, 0), 8U);
  EXPECT_EQ(groups(TmaSwizzle::none, 32, 0), 4U);
  EXPECT_EQ(groups(TmaSwizzle::none, 64, 0), 2U);
  EXPECT_EQ(groups(TmaSwizzle::none, 128, 0), 1U);
  EXPECT_EQ(groups(TmaSwizzle::none, 256, 0), 1U);
  for (std::int64_t chunk = 0; chunk < 8; ++chunk) {
    EXPECT_EQ(groups(TmaSwizzle::b32, 32, chunk % 2), 8U);
    EXPECT_EQ(groups(TmaSwizzle::b64, 64, chunk % 4), 8U);
    EXPECT_EQ(groups(TmaSwizzle::b128, 128, chunk), 8U);
    EXPECT_EQ(groups(TmaSwizzle::b128_atom32, 128, chunk), 4U);
    EXPECT_EQ(groups(TmaSwizzle::b128_atom64, 128, chunk), 2U);
  }
}

}  // namespace
}  // namespace kvscope::tma_swizzle_test
