// Four rows by one instruction, and by four: the same bytes wherever four loads are possible.
#include "core/tma/gather4.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/core/tma/gold.h"
#include "tests/property.h"

namespace kvscope::gather4_test {
namespace {

using test::fnv1a;
using test::hex;
using test::map_of;
using test::message_of;
using test::Tensor;

struct Gold {
  const char* id;
  TmaSwizzle swizzle;
  std::uint32_t width;
  TmaCoord at;
  std::int64_t dst, buffer, tx;
  std::uint64_t checksum;
  std::int64_t first;                // offset of the first row's first 4 bytes
  std::array<const char*, 4> bytes;  // of row i, at first + i * pitch
  bool loads_can;                    // every row's destination is a multiple of 128 B
};

const std::vector<Gold>& gold_cases() {
  static const std::vector<Gold> kCases = {
      {"Q1",
       TmaSwizzle::b128,
       64,
       {0, 5, -1, 19, 20},
       0,
       512,
       512,
       0x68f4d1a584ec93a5,
       0,
       {"daf91837", "00000000", "a8c7e605", "00000000"},
       true},
      {"Q2",
       TmaSwizzle::b128,
       64,
       {0, 7, 7, 2, 0},
       0,
       512,
       512,
       0x9502d1908cd3e825,
       0,
       {"fc1b3a59", "ec0b2a49", "07264564", "d5f41332"},
       true},
      {"Q3",
       TmaSwizzle::b64,
       32,
       {32, 3, 1, 2, 0},
       0,
       256,
       256,
       0xee5c2faf6c48e0e5,
       0,
       {"7897b6d5", "567594b3", "d7f61534", "b5d4f312"},
       false},
      {"Q4",
       TmaSwizzle::none,
       64,
       {0, 19, 0, -5, 1000000},
       0,
       512,
       512,
       0x09d48a3143c66925,
       0,
       {"c8e70625", "05244362", "00000000", "00000000"},
       true},
      {"Q5",
       TmaSwizzle::b128,
       64,
       {0, 5, -1, 19, 0},
       512,
       4096,
       512,
       0x71789d99e92d6fa5,
       512,
       {"9ab9d8f7", "00000000", "6887a6c5", "95b4d3f2"},
       true},
  };
  return kCases;
}

TEST(Gather4, BringsThePublishedRows) {
  for (const Gold& gold : gold_cases()) {
    SCOPED_TRACE(gold.id);
    const TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {gold.width, 1}, gold.swizzle);
    const Tensor tensor(map);
    SharedImage image(gold.buffer);
    const BoxLoad load = gather4(map, gold.at, tensor.memory, image, gold.dst, CopyIdx{5});
    EXPECT_EQ(load.tx_bytes, gold.tx);
    EXPECT_EQ(fnv1a(image.bytes()), gold.checksum);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(hex(image.bytes(), gold.first + static_cast<std::int64_t>(i) * gold.tx / 4, 4), gold.bytes[i]) << i;
    }
  }
}

TEST(Gather4ByLoads, BringsTheSameBytesWhereEveryRowIsAligned) {
  for (const Gold& gold : gold_cases()) {
    SCOPED_TRACE(gold.id);
    const TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {gold.width, 1}, gold.swizzle);
    const Tensor tensor(map);
    SharedImage image(gold.buffer);
    if (!gold.loads_can) {
      EXPECT_EQ(message_of<GeometryError>(
                    [&] { (void)gather4_by_loads(map, gold.at, tensor.memory, image, gold.dst, CopyIdx{0}); }),
                "load of a box rejected: shared address: 64 is not a multiple of 128 B (error 716): use 128");
      EXPECT_THAT(image.writers(), testing::Each(-1));
      continue;
    }
    const auto loads = gather4_by_loads(map, gold.at, tensor.memory, image, gold.dst, CopyIdx{5});
    EXPECT_EQ(fnv1a(image.bytes()), gold.checksum);
    std::int64_t tx = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      tx += loads[i].tx_bytes;
      EXPECT_EQ(loads[i].copy, CopyIdx{5 + static_cast<std::int64_t>(i)});
      EXPECT_EQ(image.writer(gold.dst + static_cast<std::int64_t>(i) * 128), loads[i].copy);
    }
    EXPECT_EQ(tx, gold.tx);
  }
}

TEST(Gather4Chunks, TellOfEachRowWhereItGoes) {
  const TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 1}, TmaSwizzle::b128);
  const auto chunks = gather4_chunks(map, {0, 5, -1, 19, 0}, 512);
  ASSERT_EQ(chunks.size(), 32U);
  EXPECT_EQ(chunks[0], (BoxChunk{.row = 0, .global = test::kBase + 5 * 128, .shared = 512 + 64, .data_bytes = 16}));
  EXPECT_TRUE(chunks[8].filled());
  EXPECT_EQ(chunks[8].row, 1);
  EXPECT_EQ(chunks[31],
            (BoxChunk{.row = 3, .column = 56, .global = test::kBase + 112, .shared = 512 + 384, .data_bytes = 16}));
}

// A gather of rows r, r + 1, r + 2, r + 3 is a box of four rows.
TEST(Gather4, OfConsecutiveRowsIsABox) {
  EXPECT_TRUE(prop::check("gather4 is load_box", [] {
    const auto swizzle = static_cast<TmaSwizzle>(prop::uniform(0, 7));
    const auto width = static_cast<std::uint32_t>(std::min(64, 8 << static_cast<int>(swizzle)));
    const TensorMap rows = map_of(TmaDataType::bf16, {72, 20}, {144}, {width, 1}, swizzle);
    TensorMap box = rows;
    box.box[1] = 4;
    const Tensor tensor(rows);
    const std::int32_t row = prop::uniform(-6, 24), column = 8 * prop::uniform(-2, 10);
    const std::int64_t dst = 128 * prop::uniform<std::int64_t>(0, 9);
    SharedImage by_gather(4096), by_box(4096);
    const BoxLoad gathered =
        gather4(rows, {column, row, row + 1, row + 2, row + 3}, tensor.memory, by_gather, dst, CopyIdx{0});
    const BoxLoad loaded =
        load_box(box, {column, row}, tensor.memory, by_box, dst, CopyIdx{0}, {.target = TmaTarget::sm_100});
    RC_ASSERT(gathered == loaded);
    RC_ASSERT(std::equal(by_gather.bytes().begin(), by_gather.bytes().end(), by_box.bytes().begin()));
  }));
}

TEST(Gather4, IsNoInstructionOfHopper) {
  const TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 1}, TmaSwizzle::b128);
  const Tensor tensor(map);
  SharedImage image(512);
  EXPECT_EQ(message_of<UnsupportedError>([&] {
              (void)gather4(map, {0, 1, 2, 3, 4}, tensor.memory, image, 0, CopyIdx{0}, {.target = TmaTarget::sm_90});
            }),
            "gather4 is not an instruction of sm_90: use four loads (gather4_by_loads)");
}

TEST(Gather4, RejectsMapsAndStartsOfAnotherShape) {
  const TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 1}, TmaSwizzle::b128);
  const Tensor tensor(map);
  SharedImage image(1024);
  const auto rejected = [&](const TensorMap& m, const TmaCoord& at, std::int64_t dst = 0) {
    return message_of<GeometryError>([&] { (void)gather4(m, at, tensor.memory, image, dst, CopyIdx{0}); });
  };
  TensorMap box = map;
  box.box[1] = 4;
  EXPECT_EQ(rejected(box, {0, 1}),
            "gather4 rejected, 2 faults:\n"
            "  box[1]: 4: a gather's box is one row, {w, 1}\n"
            "  coordinates: 2: a gather takes 5, the column and four rows");
  EXPECT_EQ(
      rejected(map_of(TmaDataType::bf16, {64, 20, 2}, {128, 2560}, {64, 1, 1}, TmaSwizzle::b128), {0, 1, 2, 3, 4}),
      "gather4 rejected: rank: 3: a gather takes rows of a map of rank 2");
  EXPECT_THAT(rejected(map, {4, 1, 2, 3, 4}), testing::HasSubstr("coordinate 0: 4 x bf16 = 8 B"));
  EXPECT_THAT(rejected(map, {0, 1, 2, 3, 4}, 64), testing::HasSubstr("64 is not a multiple of 128 B"));
  EXPECT_THAT(rejected(map, {0, 1, 2, 3, 4}, 640),
              testing::HasSubstr("the window of 512 bytes at 640 leaves the 1024"));
  EXPECT_NO_THROW((void)gather4(map, {0, 1, 2, 3, 4}, tensor.memory, image, 512, CopyIdx{0}));
}

TEST(Gather4ByLoads, WritesNothingWhenARowIsNotThere) {
  TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 1}, TmaSwizzle::b128);
  const Tensor tensor(map);
  map.dims[1] = 21;
  SharedImage image(512);
  EXPECT_THROW((void)gather4_by_loads(map, {0, 1, 2, 3, 20}, tensor.memory, image, 0, CopyIdx{0}), IllegalAddress);
  EXPECT_THROW((void)gather4(map, {0, 1, 2, 3, 20}, tensor.memory, image, 0, CopyIdx{0}), IllegalAddress);
  EXPECT_THAT(image.writers(), testing::Each(-1));
}

}  // namespace
}  // namespace kvscope::gather4_test
