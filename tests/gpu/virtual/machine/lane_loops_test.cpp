// The loops over 32 addresses, in every instruction set of this processor, against one formula per lane.
#include "gpu/virtual/machine/memory/lane_loops.h"

#include <gmock/gmock.h>

#include <array>
#include <set>
#include <vector>

namespace kvscope::ptx::test {
namespace {

using Addresses = std::array<std::uint64_t, kLanes>;

std::vector<Simd> sets() {
  std::vector<Simd> there{Simd::baseline};
  if (best_simd() >= Simd::avx2) there.push_back(Simd::avx2);
  if (best_simd() >= Simd::avx512) there.push_back(Simd::avx512);
  return there;
}

Addresses row(std::uint64_t first, std::uint64_t step) {
  Addresses at;
  for (std::uint64_t i = 0; i < kLanes; ++i) at[i] = first + i * step;
  return at;
}

TEST(LaneLoops, AddExtendsBasesOf32BitsWithZeros) {
  std::array<std::uint32_t, kLanes> narrow;
  Addresses wide, out;
  for (std::uint32_t i = 0; i < kLanes; ++i) narrow[i] = 0xffffffe0 + i, wide[i] = narrow[i];
  for (const Simd simd : sets()) {
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{36}, ~std::uint64_t{7}}) {
      Addresses expected;
      for (std::size_t i = 0; i < kLanes; ++i) expected[i] = wide[i] + offset;
      lane_loops(simd).add32(narrow.data(), offset, out.data());
      EXPECT_EQ(out, expected);
      lane_loops(simd).add64(wide.data(), offset, out.data());
      EXPECT_EQ(out, expected);
    }
  }
}

TEST(LaneLoops, FillGivesLanesOutsideTheAddressOfTheFirstInside) {
  const Addresses at = row(0x200000000, 20);
  for (const Simd simd : sets()) {
    for (const LaneMask lanes : {LaneMask{1}, LaneMask{0x80000000}, LaneMask{0x00f0a000}, kAllLanes}) {
      Addresses out;
      lane_loops(simd).fill(at.data(), lanes, out.data());
      const auto lead = static_cast<std::size_t>(__builtin_ctz(lanes));
      for (std::size_t i = 0; i < kLanes; ++i) EXPECT_EQ(out[i], (lanes >> i & 1) != 0 ? at[i] : at[lead]);
    }
  }
}

// One lane that differs, each in turn: a loop that leaves out a lane, or a bit above the low 32, fails for it.
TEST(LaneLoops, PatternFindsRowsAndSingleAddresses) {
  for (const Simd simd : sets()) {
    const LaneLoops& loops = lane_loops(simd);
    const auto is_row = [&](const Addresses& at, std::uint64_t bytes) {
      return loops.pattern(at.data(), bytes).from_row == 0;
    };
    const auto is_one = [&](const Addresses& at) { return loops.pattern(at.data(), 4).from_one == 0; };
    EXPECT_TRUE(is_row(row(0x1f00, 8), 8));
    EXPECT_FALSE(is_row(row(0x1f00, 8), 4));
    EXPECT_TRUE(is_one(row(0x1f00, 0)));
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      for (const std::uint64_t bit :
           {std::uint64_t{1}, std::uint64_t{1} << 31, std::uint64_t{1} << 40, std::uint64_t{1} << 63}) {
        Addresses strays = row(0x1f00, 8), differs = row(0x1f00, 0);
        strays[lane] ^= bit;
        differs[lane] ^= bit;
        EXPECT_FALSE(is_row(strays, 8)) << lane << ' ' << bit;
        EXPECT_EQ(loops.pattern(differs.data(), 4).from_one, bit) << lane;
      }
    }
  }
}

TEST(LaneLoops, LocateAcceptsTheFirstAndTheLastByteAndNothingBeside) {
  constexpr std::uint64_t kStart = 0x300000000, kLast = 4092;
  std::vector<std::byte> bytes(4096);
  for (const Simd simd : sets()) {
    const LaneLoops& loops = lane_loops(simd);
    std::array<std::byte*, kLanes> out;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      Addresses at = row(kStart + 4, 4);
      for (const std::uint64_t inside : {kStart, kStart + kLast}) {
        at[lane] = inside;
        EXPECT_TRUE(loops.locate(at.data(), kStart, kLast, bytes.data(), out.data())) << lane;
        for (std::size_t i = 0; i < kLanes; ++i) EXPECT_EQ(out[i], bytes.data() + (at[i] - kStart));
      }
      for (const std::uint64_t beside :
           {kStart - 1, kStart + kLast + 1, std::uint64_t{0}, ~std::uint64_t{0}, kStart ^ std::uint64_t{1} << 63}) {
        at[lane] = beside;
        EXPECT_FALSE(loops.locate(at.data(), kStart, kLast, bytes.data(), out.data())) << lane << ' ' << beside;
      }
    }
  }
}

TEST(LaneLoops, AnyWithinFindsOneLaneAtEitherEnd) {
  for (const Simd simd : sets()) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      Addresses at = row(0x400, 0x100);
      EXPECT_FALSE(lane_loops(simd).any_within(at.data(), 0x3001, 6));
      for (const std::uint64_t inside : {0x3001, 0x3007}) {
        at[lane] = inside;
        EXPECT_TRUE(lane_loops(simd).any_within(at.data(), 0x3001, 6)) << lane;
      }
      for (const std::uint64_t beside : {0x3000, 0x3008}) {
        at[lane] = beside;
        EXPECT_FALSE(lane_loops(simd).any_within(at.data(), 0x3001, 6)) << lane;
      }
    }
  }
}

TEST(LaneLoops, ApartNeedsEveryLaneToBeThatFarAboveTheOneBefore) {
  for (const Simd simd : sets()) {
    EXPECT_TRUE(lane_loops(simd).apart(row(0x1000, 1).data(), 1));
    EXPECT_TRUE(lane_loops(simd).apart(row(0x1000, 16).data(), 16));
    for (std::size_t lane = 1; lane < kLanes; ++lane) {
      Addresses at = row(0x1000, 256);
      at[lane] = at[lane - 1] + 15;
      EXPECT_TRUE(lane_loops(simd).apart(at.data(), 15)) << lane;
      EXPECT_FALSE(lane_loops(simd).apart(at.data(), 16)) << lane;
      at[lane] = at[lane - 1];
      EXPECT_FALSE(lane_loops(simd).apart(at.data(), 1)) << lane;
    }
  }
}

// Every pair of lanes in turn: the loop compares each lane with the 16 behind it.
TEST(LaneLoops, AnyEqualFindsEveryPair) {
  for (const Simd simd : sets()) {
    const Addresses apart = row(0x7000'0000'0000, 4096);
    EXPECT_FALSE(lane_loops(simd).any_equal(apart.data()));
    for (std::size_t i = 0; i < kLanes; ++i) {
      for (std::size_t j = i + 1; j < kLanes; ++j) {
        Addresses at = apart;
        at[j] = at[i];
        EXPECT_TRUE(lane_loops(simd).any_equal(at.data())) << i << ' ' << j;
      }
    }
  }
}

// Against sets: accesses of every size in blocks up to the largest that is counted, and just beyond.
TEST(LaneLoops, SectorsCountsWhatSetsCount) {
  std::uint64_t random = 1;
  const auto below = [&](std::uint64_t n) {
    random = random * 6364136223846793005 + 1442695040888963407;
    return (random >> 33) % n;
  };
  for (const Simd simd : sets()) {
    int counted = 0, rejected = 0;
    for (int n = 0; n < 4000; ++n) {
      const int shift = static_cast<int>(below(6));
      const std::uint64_t block = std::uint64_t{0x200000000} + below(3) * 1024, size = std::uint64_t{1} << shift;
      const std::uint64_t span = size << below(9);
      Addresses at;
      std::set<std::uint64_t> accesses, sectors, lines, blocks, pages;
      for (std::uint64_t& a : at) {
        a = (block + below(span + size)) / size * size;
        accesses.insert(a), sectors.insert(a / 32), lines.insert(a / 128), blocks.insert(a / (128 * size)),
            pages.insert(a / 2048);
      }
      LaneSectors found;
      const bool near = blocks.size() == 1 && pages.size() == 1;
      ASSERT_EQ(lane_loops(simd).sectors(at.data(), shift, found), near);
      (near ? counted : rejected) += 1;
      if (!near) continue;
      ASSERT_EQ(found.accesses, static_cast<int>(accesses.size()));
      ASSERT_EQ(found.sectors, static_cast<int>(sectors.size()));
      ASSERT_EQ(found.lines, static_cast<int>(lines.size()));
    }
    EXPECT_GT(counted, 1000);
    EXPECT_GT(rejected, 100);
  }
}

TEST(LaneLoops, ExtentIsTheSmallestAndTheLargestOffset) {
  for (const Simd simd : sets()) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      for (std::size_t j = 0; j < kLanes; ++j) {
        std::array<std::int32_t, kLanes> offsets;
        offsets.fill(500);
        offsets[i] = 16;
        if (j != i) offsets[j] = 70000;
        const LaneExtent extent = lane_loops(simd).extent(offsets.data());
        EXPECT_EQ(extent.low, 16);
        EXPECT_EQ(extent.high, j != i ? 70000 : 500);
      }
    }
  }
}

TEST(LaneLoops, OffsetsAndTheirDifferences) {
  for (const Simd simd : sets()) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      Addresses at = row(0x5000, 16);
      at[lane] = 0x5000 + (std::uint64_t{1} << 34) + 8;
      std::array<std::int32_t, kLanes> out;
      std::uint64_t bits = 0;
      std::uint32_t differing = 0;
      for (const std::uint64_t a : at) bits |= a - 0x5000;
      EXPECT_EQ(lane_loops(simd).offsets(at.data(), 0x5000, out.data()), bits);
      for (std::size_t i = 0; i < kLanes; ++i) {
        EXPECT_EQ(out[i], static_cast<std::int32_t>(at[i] - 0x5000));
        differing |= static_cast<std::uint32_t>(out[i] ^ out[0]);
      }
      EXPECT_EQ(lane_loops(simd).differing(out.data()), differing);
    }
  }
}

}  // namespace
}  // namespace kvscope::ptx::test
