#include "core/tma/global_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tests/core/tma/gold.h"

namespace kvscope::global_memory_test {
namespace {

using test::message_of;

TEST(GlobalMemory, FindsBytesByTheirAddressUpToTheLast) {
  std::array<std::byte, 32> pool{}, scales{};
  pool[31] = std::byte{7};
  GlobalMemory memory;
  memory.add("scales", 0x2000, scales);
  memory.add("pool", 0x1000, pool);
  EXPECT_EQ(memory.read(0x101F, 1)[0], std::byte{7});
  EXPECT_EQ(memory.read(0x1000, 32).data(), pool.data());
  EXPECT_EQ(memory.read(0x1020, 0).size(), 0U);
  memory.at(0x2004, 1)[0] = std::byte{9};
  EXPECT_EQ(scales[4], std::byte{9});
}

// One byte past the end, a gap, and a range that begins inside and ends outside: error 700 of the model.
TEST(GlobalMemory, StopsAtWhatIsNotThere) {
  std::array<std::byte, 32> pool{}, next{};
  GlobalMemory memory;
  EXPECT_EQ(message_of<IllegalAddress>([&] { (void)memory.read(0x1000, 16); }),
            "illegal address (error 700): 16 bytes at 0x1000 are in no allocation; there is none");
  memory.add("pool", 0x1000, pool);
  memory.add("next", 0x1020, next);  // an adjacent allocation without a gap is still another allocation
  EXPECT_EQ(message_of<IllegalAddress>([&] { (void)memory.read(0x1018, 16); }),
            "illegal address (error 700): 16 bytes at 0x1018 are in no allocation; the nearest is 'pool', 32 bytes at "
            "0x1000: check the map's base, dims and strides");
  try {
    (void)memory.read(0x1041, 2);
    ADD_FAILURE();
  } catch (const IllegalAddress& error) {
    EXPECT_EQ(error.code(), 700);
    EXPECT_EQ(error.address(), 0x1041U);
    EXPECT_EQ(error.count(), 2);
    EXPECT_THAT(error.what(), testing::HasSubstr("'next'"));
  }
  EXPECT_THROW((void)memory.read(0xFFF, 1), IllegalAddress);
  EXPECT_THROW((void)memory.at(~std::uint64_t{0}, 16), IllegalAddress);
  EXPECT_THROW((void)memory.read(0x1000, -1), GeometryError);
}

TEST(GlobalMemory, RejectsAllocationsThatOverlapOrDoNotFit) {
  std::array<std::byte, 32> pool{}, other{};
  GlobalMemory memory;
  memory.add("pool", 0x1000, pool);
  EXPECT_EQ(
      message_of<GeometryError>([&] { memory.add("other", 0x101F, other); }),
      "allocation 'other' at 0x101f, 32 bytes rejected: overlaps allocation 'pool' at 0x1000, 32 bytes: move one");
  EXPECT_THROW(memory.add("other", 0xFE1, other), GeometryError);
  EXPECT_THROW(memory.add("other", 0x1000, other), GeometryError);
  memory.add("before", 0xFE0, other);
  EXPECT_EQ(message_of<GeometryError>([&] { memory.add("none", 0x5000, {}); }),
            "allocation 'none' at 0x5000, 0 bytes rejected: has no bytes: give 1 or more");
  std::array<std::byte, 32> top{};
  EXPECT_EQ(message_of<GeometryError>([&] { memory.add("top", ~std::uint64_t{0} - 30, top); }),
            "allocation 'top' at 0xffffffffffffffe1, 32 bytes rejected: ends past 2^64: move it down");
  memory.add("top", ~std::uint64_t{0} - 31, top);
  EXPECT_EQ(memory.read(~std::uint64_t{0}, 1).data(), top.data() + 31);
}

TEST(GlobalMemory, KnowsBytesAtTheirOwnAddress) {
  std::vector<std::byte> pool(64);
  GlobalMemory memory;
  memory.add("pool", pool);
  EXPECT_EQ(memory.read(reinterpret_cast<std::uintptr_t>(pool.data()) + 8, 4).data(), pool.data() + 8);
}

}  // namespace
}  // namespace kvscope::global_memory_test
