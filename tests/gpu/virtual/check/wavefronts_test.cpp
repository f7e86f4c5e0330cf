// Wavefronts and sectors against tables of the profilers' rules, and against core/smem, which names the lanes.
#include "gpu/virtual/check/wavefronts.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "core/smem/banks.h"
#include "tests/property.h"

namespace kvscope::ptx::wavefronts_test {
namespace {

using Addresses = std::array<std::uint64_t, kLanes>;

Addresses strided(std::uint64_t stride, std::uint64_t base = 0) {
  Addresses out{};
  for (std::uint64_t lane = 0; lane < kLanes; ++lane) out[lane] = base + lane * stride;
  return out;
}

struct SharedRow {
  const char* what;
  int bytes;
  Addresses addresses;
  LaneMask lanes;
  int wavefronts;
  int ideal;
};

Addresses quarters() {
  Addresses out{};
  for (std::uint64_t lane = 0; lane < kLanes; ++lane) out[lane] = lane / 4 * 512 + lane % 4 * 8;
  return out;
}

TEST(SharedWavefronts, AreThoseOfTheTableOfAccesses) {
  const std::vector<SharedRow> rows = {
      {"b32, stride 4", 4, strided(4), kAllLanes, 1, 1},
      {"b32, stride 8", 4, strided(8), kAllLanes, 2, 1},
      {"b32, stride 12", 4, strided(12), kAllLanes, 1, 1},
      {"b32, stride 132", 4, strided(132), kAllLanes, 1, 1},
      {"b32, stride 128", 4, strided(128), kAllLanes, 32, 1},
      {"b32, one word", 4, strided(0, 64), kAllLanes, 1, 1},
      {"b8, stride 1", 1, strided(1), kAllLanes, 1, 1},
      {"b16, stride 2", 2, strided(2), kAllLanes, 1, 1},
      {"b16, stride 66", 2, strided(66), kAllLanes, 1, 1},
      {"b8, stride 128", 1, strided(128), kAllLanes, 32, 1},
      {"v4.b32, stride 16", 16, strided(16), kAllLanes, 4, 4},
      {"v4.b32, stride 32", 16, strided(32), kAllLanes, 8, 4},
      {"v4.b32, stride 128", 16, strided(128), kAllLanes, 32, 4},
      {"v4.b32, stride 144", 16, strided(144), kAllLanes, 4, 4},
      {"b64, stride 8", 8, strided(8), kAllLanes, 2, 2},
      {"b64, stride 16", 8, strided(16), kAllLanes, 4, 2},
      {"b64, one address", 8, strided(0), kAllLanes, 2, 2},
      {"v2.f32, quarters of rows", 8, quarters(), kAllLanes, 8, 2},
      {"b32, stride 8, lanes 0-15", 4, strided(8), 0xffff, 1, 1},
  };
  for (const SharedRow& row : rows) {
    const Wavefronts cost = shared_wavefronts(row.addresses, row.lanes, row.bytes);
    EXPECT_EQ(cost.wavefronts, row.wavefronts) << row.what;
    EXPECT_EQ(cost.ideal, row.ideal) << row.what;
  }
}

// ldmatrix.x4 over 16 rows of a pitch: lanes 0-15 address the rows, lanes 16-31 the same rows 16 bytes further.
Addresses matrix_rows(std::uint64_t pitch, std::uint64_t swizzle_rows) {
  Addresses out{};
  for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
    const std::uint64_t row = lane % 16;
    const std::uint64_t plain = row * pitch + lane / 16 * 16;
    // 128B swizzle: address bits 7-9 onto 4-6; 64B: 7-8 onto 4-5.
    out[lane] = plain ^ ((plain >> 7 & (swizzle_rows - 1)) << 4);
  }
  return out;
}

TEST(SharedWavefronts, OfLdmatrixFollowPitchAndSwizzle) {
  const auto cost = [](std::uint64_t pitch, std::uint64_t swizzle_rows) {
    return shared_wavefronts(matrix_rows(pitch, swizzle_rows), kAllLanes, 16).wavefronts;
  };
  EXPECT_EQ(cost(64, 1), 16);
  EXPECT_EQ(cost(128, 1), 32);
  EXPECT_EQ(cost(256, 1), 32);
  EXPECT_EQ(cost(64, 4), 4);
  EXPECT_EQ(cost(128, 8), 4);
  EXPECT_EQ(cost(80, 1), 4);
  EXPECT_EQ(cost(144, 1), 4);
  EXPECT_EQ(cost(272, 1), 4);
}

TEST(SharedWavefronts, OfAtomicsCountLanesAtOneWordOneByOne) {
  EXPECT_EQ(shared_wavefronts(strided(0), kAllLanes, 4, true).wavefronts, 32);
  EXPECT_EQ(shared_wavefronts(strided(4), kAllLanes, 4, true).wavefronts, 1);
  EXPECT_EQ(shared_wavefronts(strided(0), 0xff, 4, true).wavefronts, 8);
}

TEST(SharedWavefronts, WithoutLanesAreNone) {
  EXPECT_EQ(shared_wavefronts(strided(4), 0, 4), Wavefronts{});
}

// core/smem names every lane of a conflict and shares no code with the count.
TEST(SharedWavefronts, AgreeWithTheModelThatNamesLanes) {
  EXPECT_TRUE(prop::check([] {
    const int bytes = 1 << prop::in_range(0, 5);
    const auto lanes = prop::any<LaneMask>();
    const int span = prop::one_of(4, 40, 400);
    Addresses addresses{};
    SharedAccess access{.width = bytes, .addresses = std::vector<std::optional<std::int64_t>>(kLanes)};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      addresses[lane] = static_cast<std::uint64_t>(prop::in_range(0, span) * bytes);
      if ((lanes >> lane & 1) != 0) access.addresses[lane] = static_cast<std::int64_t>(addresses[lane]);
    }
    const BankReport report = bank_report(bank_profile(SharedTarget::nvidia, SharedOp::read, bytes), access);
    const Wavefronts cost = shared_wavefronts(addresses, lanes, bytes);
    RC_ASSERT(cost.wavefronts == report.cycles());
    RC_ASSERT(cost.ideal == report.ideal());
  }));
}

// Cached shapes: few, so that they repeat, each time at another address.
TEST(WavefrontMemory, AgreesWithCounting) {
  EXPECT_TRUE(prop::check([] {
    WavefrontMemory memory;
    const auto seed = static_cast<std::uint64_t>(prop::in_range(0, 1000));
    for (int n = 0; n < 60; ++n) {
      const int bytes = 1 << prop::in_range(0, 5);
      const LaneMask lanes = prop::in_range(0, 3) == 0 ? prop::any<LaneMask>() : kAllLanes;
      const bool atomic = prop::in_range(0, 4) == 0;
      const auto size = static_cast<std::uint64_t>(bytes);
      const std::uint64_t base = static_cast<std::uint64_t>(prop::in_range(0, 4096)) * size + 0x0100'0400;
      const auto shape = static_cast<std::uint64_t>(prop::in_range(0, 3));
      Addresses addresses{};
      for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
        addresses[lane] = base + (lane * (shape + 1) + (lane * lane * (seed + 7) >> shape) % 64) * size;
      }
      RC_ASSERT(memory.cost(addresses, lanes, bytes, atomic) == shared_wavefronts(addresses, lanes, bytes, atomic));
    }
  }));
}

struct GlobalRow {
  const char* what;
  int bytes;
  Addresses addresses;
  Sectors expected;
};

TEST(GlobalSectors, AreThoseOfTheTableOfAccesses) {
  const std::vector<GlobalRow> rows = {
      {"b32 stride 4", 4, strided(4), {4, 4, 1}},
      {"b32 stride 4, base + 4", 4, strided(4, 4), {5, 4, 2}},
      {"b32 stride 4, base + 16", 4, strided(4, 16), {5, 4, 2}},
      {"b32 stride 8", 4, strided(8), {8, 4, 2}},
      {"b32 stride 128", 4, strided(128), {32, 4, 32}},
      {"b64 stride 8", 8, strided(8), {8, 8, 2}},
      {"v4.b32 stride 16", 16, strided(16), {16, 16, 4}},
      {"b16 stride 2", 2, strided(2), {2, 2, 1}},
      {"b8 stride 1", 1, strided(1), {1, 1, 1}},
      {"one address", 4, strided(0), {1, 1, 1}},
  };
  for (const GlobalRow& row : rows)
    EXPECT_EQ(global_sectors(row.addresses, kAllLanes, row.bytes), row.expected) << row.what;
}

TEST(GlobalSectors, AreTheDistinctSectorsOfEveryByte) {
  EXPECT_TRUE(prop::check([] {
    const int bytes = 1 << prop::in_range(0, 6);
    const auto lanes = prop::any<LaneMask>();
    const int span = prop::one_of(4, 40, 400);
    Addresses addresses{};
    std::set<std::uint64_t> all, sectors, lines;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      addresses[lane] = 0x2'0000'0000 + static_cast<std::uint64_t>(prop::in_range(0, span) * bytes);
      if ((lanes >> lane & 1) == 0) continue;
      for (std::uint64_t byte = 0; byte < static_cast<std::uint64_t>(bytes); ++byte) {
        all.insert(addresses[lane] + byte);
        sectors.insert((addresses[lane] + byte) / 32);
        lines.insert((addresses[lane] + byte) / 128);
      }
    }
    const Sectors cost = global_sectors(addresses, lanes, bytes);
    RC_ASSERT(cost.sectors == static_cast<std::int64_t>(sectors.size()));
    RC_ASSERT(cost.lines == static_cast<std::int64_t>(lines.size()));
    RC_ASSERT(cost.ideal == static_cast<std::int64_t>((all.size() + 31) / 32));
  }));
}

TEST(LocalSectors, OfEqualOffsetsAreFourPerWord) {
  EXPECT_EQ(local_sectors(strided(0, 40), kAllLanes, 4).sectors, 4);
  EXPECT_EQ(local_sectors(strided(0, 48), kAllLanes, 16).sectors, 16);
  // Each lane accesses a different word: no two lanes share a sector.
  EXPECT_EQ(local_sectors(strided(4), kAllLanes, 4).sectors, 32);
  EXPECT_EQ(local_sectors(strided(0), 0x1, 4).sectors, 1);
}

TEST(RangeSectors, CountTheSectorsOfARow) {
  EXPECT_EQ(range_sectors(0x200, 128), (Sectors{4, 4, 1}));
  EXPECT_EQ(range_sectors(0x210, 128), (Sectors{5, 4, 2}));
  EXPECT_EQ(range_sectors(0x210, 0), Sectors{});
}

}  // namespace
}  // namespace kvscope::ptx::wavefronts_test
