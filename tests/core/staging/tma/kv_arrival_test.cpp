// Executes the list of issues: shared memory holds the tile, the barrier's phase ends with the last byte, and each byte
// leads back to its element.
#include "core/staging/tma/kv_arrival.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/tma/tile_map.h"
#include "core/tma/tile_sizes.h"
#include "tests/core/cache/fixtures.h"
#include "tests/core/tma/gold.h"
#include "tests/property.h"

namespace kvscope::kv_arrival_test {
namespace {

using test::cute_swizzle;
using test::head;
using test::message_of;

PagedRowIndices row_list(std::int64_t BN, std::int64_t page, const std::vector<std::uint32_t>& rows) {
  PagedRowIndices list({.BN = BN}, page);
  std::copy(rows.begin(), rows.end(), list.rows().begin());
  return list;
}

// Rows of 2 heads of 128 16-bit values, all different.
struct Cache {
  static constexpr std::int64_t kRows = 512;
  std::vector<std::uint16_t> values;
  GlobalMemory memory;
  TmaRows rows;
  Cache() : values(kRows * 256) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i * 40503U >> 4);
    auto* base = reinterpret_cast<std::byte*>(values.data());
    memory.add("cache", {base, values.size() * 2});
    rows = {"rows", base, DType::bf16, kRows, 2, 128};
  }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  [[nodiscard]] std::uint16_t at(std::int64_t row, std::int64_t h, std::int64_t d) const {
    return row >= kRows ? std::uint16_t{0} : values[static_cast<std::size_t>((row * 2 + h) * 128 + d)];
  }
  [[nodiscard]] TmaTile tile(std::int64_t BN, SwizzleMode mode = SwizzleMode::b128, bool fold = false,
                             bool row_major = false) const {
    const std::int64_t chunks = 128 / swizzle_granularity(DType::bf16, mode);
    return make_tma_tile(rows,
                         {.mode = mode, .BN = BN, .BK = 128, .fold_chunks = fold ? chunks : 1, .row_major = row_major});
  }
};

// Element (r, d) of a plain tile, found as in a kernel's consumer: chunk, row, column, then CuTe's swizzle.
std::uint16_t plain_element(const SharedImage& image, TmaSwizzle swizzle, std::int64_t dst, std::int64_t chunk_stride,
                            std::int64_t gran, std::int64_t r, std::int64_t d) {
  const std::int64_t linear = dst + 2 * (d / gran * chunk_stride * gran + r * gran + d % gran);
  std::uint16_t value = 0;
  std::memcpy(&value, image.bytes().data() + cute_swizzle(swizzle, static_cast<std::uint64_t>(linear)), 2);
  return value;
}

// A whole tile, executed.
TEST(KvArrival, BringsTheTileAndEndsThePhaseWithItsLastByte) {
  const Cache cache;
  const TmaTile tile = cache.tile(32);
  const KvCopy copy = tma_copy_k(tile, row_list(64, 32, {320, 64}), {.head = head(1)});
  SharedImage image(16384 + 2048);
  ArrivalBarrier barrier(1);
  const auto loads = carry_out(copy, tensor_map_of("K", tile), cache.memory, image, 1024, barrier, CopyIdx{10});
  ASSERT_EQ(loads.size(), 4U);
  EXPECT_EQ(loads[3].copy, CopyIdx{13});
  EXPECT_EQ(loads[2].dst, 1024 + 2 * 2048);
  EXPECT_EQ(barrier.state(), (BarrierState{1, 1, 0}));
  EXPECT_TRUE(barrier.wait(0));
  EXPECT_TRUE(barrier.diagnoses().empty());
  for (std::int64_t r = 0; r < 64; ++r) {
    for (std::int64_t d = 0; d < 128; ++d) {
      const std::int64_t row = (r < 32 ? 320 : 64) + r % 32;
      ASSERT_EQ(plain_element(image, TmaSwizzle::b128, 1024, 64, 64, r, d), cache.at(row, 1, d)) << r << " " << d;
    }
  }
  EXPECT_EQ(image.writer(1023), SharedImage::kNoCopy);
  EXPECT_EQ(image.writer(1024 + 16384), SharedImage::kNoCopy);
  EXPECT_EQ(kv_shared_address(copy, 0, 1, 0), 144);
  EXPECT_EQ(kv_element_at_address(copy, 1024, 1024 + 2 * 64 + 17), (KvElement{0, 1, 0, 0, 321}));
  EXPECT_FALSE(kv_element_at_address(copy, 1024, 1023));
  EXPECT_FALSE(kv_element_at_address(copy, 1024, -1));
}

// Filled pages are zero and counted; skipped pages keep their old bytes, and fewer bytes are announced to the barrier.
TEST(KvArrival, FillsOrKeepsThePagesPastTheValidOnes) {
  const Cache cache;
  const TmaTile tile = cache.tile(32);
  for (const bool fill : {true, false}) {
    const KvCopy copy = tma_copy_v(tile, row_list(128, 32, {11, 22, 33, 44}),
                                   {.head = head(0), .needs_partial = true, .valid_pages = 1, .oob_fill_pages = fill});
    SharedImage image(32768);
    ArrivalBarrier barrier(1);
    (void)carry_out(copy, tensor_map_of("V", tile), cache.memory, image, 0, barrier, CopyIdx{0});
    EXPECT_EQ(barrier.state(), (BarrierState{1, 1, 0}));
    for (std::int64_t r = 0; r < 128; ++r) {
      const std::uint16_t rest = fill ? 0 : 0xCDCD;
      const std::uint16_t element = plain_element(image, TmaSwizzle::b128, 0, 128, 64, r, 70);
      EXPECT_EQ(element, r < 32 ? cache.at(11 + r, 0, 70) : rest) << r;
      const auto source = kv_element_at_address(copy, 0, kv_shared_address(copy, 0, r, 70));
      EXPECT_EQ(source->issue < 0, r >= 32 && !fill);
    }
  }
}

// All bytes are announced before any lands, so a copy that is announced but not issued leaves the phase incomplete.
TEST(KvArrival, LeavesADeadlockWhenTheExpectationIsTooLarge) {
  const Cache cache;
  const TmaTile tile = cache.tile(32);
  KvCopy copy = tma_copy_k(tile, row_list(64, 32, {320, 64}), {.head = head(0)});
  copy.issues.pop_back();  // a producer that skips a copy and still announces it
  SharedImage image(16384);
  ArrivalBarrier barrier(1);
  (void)carry_out(copy, tensor_map_of("K", tile), cache.memory, image, 0, barrier, CopyIdx{0});
  EXPECT_FALSE(barrier.wait(0));
  EXPECT_EQ(barrier.diagnoses().back().message,
            "a wait for phase 0 never ends: 0 of 1 arrivals and 4096 bytes are missing: expect no more bytes than are "
            "copied");
}

TEST(KvArrival, RejectsATileThatBeginsInsideThePattern) {
  const Cache cache;
  const TmaTile tile = cache.tile(32);
  const KvCopy copy = tma_copy_k(tile, row_list(64, 32, {320, 64}), {.head = head(0)});
  SharedImage image(32768);
  ArrivalBarrier barrier(1);
  EXPECT_EQ(
      message_of<GeometryError>(
          [&] { (void)carry_out(copy, tensor_map_of("K", tile), cache.memory, image, 512, barrier, CopyIdx{0}); }),
      "TMA copy of K: the tile begins at 512, which is not a multiple of 1024 B, where the pattern of the 128B swizzle "
      "begins: align the buffer");
  EXPECT_EQ(barrier.state(), (BarrierState{0, 1, 0}));
}

// One folded copy equals the two plain ones byte for byte, also where the box overruns the rows of the cache.
TEST(KvArrival, OfAChunkOuterFoldIsThePlainTile) {
  const Cache cache;
  for (const std::uint32_t row : {64U, 496U}) {  // 496 + 32 rows leave the 512
    SharedImage plain_image(8192), folded_image(8192);
    ArrivalBarrier barrier(1);
    const TmaTile plain = cache.tile(32), folded = cache.tile(32, SwizzleMode::b128, true);
    const auto rows = row_list(32, 64, {row});
    (void)carry_out(tma_copy_k(plain, rows, {.head = head(1)}), tensor_map_of("K", plain), cache.memory, plain_image, 0,
                    barrier, CopyIdx{0});
    EXPECT_TRUE(barrier.wait(0));
    (void)carry_out(tma_copy_k(folded, rows, {.head = head(1)}), tensor_map_of("K", folded), cache.memory, folded_image,
                    0, barrier, CopyIdx{0});
    EXPECT_TRUE(barrier.wait(1));
    EXPECT_TRUE(std::equal(plain_image.bytes().begin(), plain_image.bytes().end(), folded_image.bytes().begin()));
    EXPECT_TRUE(barrier.diagnoses().empty());
  }
}

// Any swizzle, fold, page and number of valid pages: each element of the tile equals that of the cache, and each byte
// of shared memory leads back to its element.
TEST(KvArrival, HoldsForEveryGeometryBothWays) {
  const Cache cache;
  EXPECT_TRUE(prop::check("carry_out brings the cache's elements", [&cache] {
    const auto mode = static_cast<SwizzleMode>(prop::uniform(1, 4));
    const std::int64_t page = prop::one_of<std::int64_t>(0, 8, 16, 32, 64);
    const std::int64_t BN = prop::one_of<std::int64_t>(32, 64);
    const std::int64_t issue = kv_sub_tile_rows(BN, page), pages = BN / issue;
    const bool fold = prop::any<bool>();
    std::vector<std::uint32_t> rows;
    for (std::int64_t i = 0; i < pages; ++i) rows.push_back(static_cast<std::uint32_t>(8 * prop::uniform(0, 62)));
    const TmaTile tile = cache.tile(issue, mode, fold, true);
    const std::int64_t valid = prop::uniform<std::int64_t>(0, pages + 1);
    const bool fill = prop::any<bool>();
    const std::int64_t h = prop::uniform(0, 2);
    const KvCopy copy =
        tma_copy_v(tile, row_list(BN, page, rows),
                   {.head = HeadIdx{h}, .needs_partial = true, .valid_pages = valid, .oob_fill_pages = fill});
    const std::int64_t dst = 1024 * prop::uniform<std::int64_t>(0, 3);
    SharedImage image(dst + BN * 256);
    ArrivalBarrier barrier(1);
    (void)carry_out(copy, tensor_map_of("V", tile), cache.memory, image, dst, barrier, CopyIdx{0});
    RC_ASSERT(barrier.state() == (BarrierState{1, 1, 0}));
    bool holds = true;  // one RC_ASSERT: one a byte takes seconds under the sanitizers
    for (std::int64_t a = dst + prop::uniform(0, 3); a < image.size(); a += 3) {
      const auto element = kv_element_at_address(copy, dst, a);
      holds = holds && element && image.writer(a).value == element->issue &&
              kv_shared_address(copy, dst, element->row, element->depth) == a / 2 * 2;
      if (!holds) break;
      const std::int64_t p = element->row / issue;
      const std::int64_t row = rows[static_cast<std::size_t>(p)] + element->row % issue;
      const int value = p < valid ? cache.at(row, h, element->depth) : fill ? 0 : 0xCDCD;
      holds = std::to_integer<int>(image.bytes()[static_cast<std::size_t>(a)]) == (value >> (a % 2 * 8) & 0xFF);
    }
    RC_ASSERT(holds);
  }));
}

// The boxes of a matrix tile, K-major and as the transpose, from a row that is not a multiple of 8 and past the last
// row: each element is read back with the formula of kv_copy.h and CuTe's swizzle.
TEST(KvArrival, AMatrixTileArrivesInBoxesOfAllRowsOrOfEight) {
  const Cache cache;
  for (const bool k_major : {true, false})
    for (const std::uint32_t first : {5U, 500U}) {
      const TmaTile tile = make_matrix_tma_tile(cache.rows, 24, 128, SwizzleMode::b128, k_major);
      const KvCopy copy = tma_copy_matrix(tile, KOrV::v, RowIdx{first}, head(1), DimIdx{0});
      const std::int64_t box = k_major ? 24 : 8;
      ASSERT_EQ(copy.issues.size(), static_cast<std::size_t>(2 * 24 / box));
      EXPECT_EQ(copy.issues[1].at, (TmaCoord{128 + 64, static_cast<std::int32_t>(first)}));
      EXPECT_EQ(copy.expected_bytes, 24 * 128 * 2);
      EXPECT_EQ(copy.smem_elements(), 24 * 128);
      SharedImage image(1024 + 24 * 128 * 2);
      ArrivalBarrier barrier(1);
      (void)carry_out(copy, tensor_map_of("V", tile), cache.memory, image, 1024, barrier, CopyIdx{0});
      EXPECT_EQ(barrier.state(), (BarrierState{1, 1, 0}));
      for (std::int64_t r = 0; r < 24; ++r)
        for (std::int64_t d = 0; d < 128; ++d) {
          const std::int64_t element = r / box * 2 * box * 64 + d / 64 * box * 64 + r % box * 64 + d % 64;
          const auto address =
              static_cast<std::int64_t>(cute_swizzle(TmaSwizzle::b128, static_cast<std::uint64_t>(1024 + 2 * element)));
          std::uint16_t value = 0;
          std::memcpy(&value, image.bytes().data() + address, 2);
          ASSERT_EQ(value, cache.at(std::int64_t{first} + r, 1, d)) << r << " " << d;
          const auto back = kv_element_at_address(copy, 1024, address);
          ASSERT_TRUE(back);
          ASSERT_EQ((std::vector{back->row, back->depth, back->matrix_row}),
                    (std::vector{r, d, std::int64_t{first} + r}));
          ASSERT_EQ(image.writer(address).value, back->issue);
          ASSERT_EQ(kv_shared_address(copy, 1024, r, d), address);
        }
    }
}

TEST(KvArrival, AMatrixTileIsOfAContinuousCacheOnly) {
  const Cache cache;
  const TmaTile matrix = make_matrix_tma_tile(cache.rows, 16, 64, SwizzleMode::b128, true);
  EXPECT_EQ(message_of<GeometryError>(
                [&] { (void)tma_copy_matrix(cache.tile(32), KOrV::k, RowIdx{0}, head(0), DimIdx{-1}); }),
            "TMA copy of K rejected, 2 faults:\n"
            "  tile: a plain tile: use create_tma_tile(tile_m, tile_n, ..) of a continuous cache\n"
            "  depth_offset: -1 is below 0: use a column of the head");
  EXPECT_THROW((void)tma_copy_matrix(matrix, KOrV::k, RowIdx{0}, head(2), DimIdx{0}), IndexError);
  EXPECT_THROW((void)tma_copy_k(matrix, row_list(16, 16, {0}), {.head = head(0)}), UnsupportedError);
}

}  // namespace
}  // namespace kvscope::kv_arrival_test
