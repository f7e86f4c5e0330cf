#include "core/smem/swizzle_solver.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/errors.h"

namespace kvscope::swizzle_solver_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Bms = std::tuple<int, int, int>;

std::vector<Bms> found(const LayoutSolutions& solutions) {
  std::vector<Bms> result;
  for (const auto& s : solutions.swizzles) {
    result.emplace_back(s.swizzle.bits(), s.swizzle.base(), s.swizzle.shift());
  }
  return result;
}

std::vector<std::int64_t> paddings(const LayoutSolutions& solutions) {
  std::vector<std::int64_t> result;
  for (const auto& p : solutions.paddings) result.push_back(p.padding);
  return result;
}

// K read by ldmatrix.x4 as the B operand: 16 keys, two chunks; every place of the tile.
AccessPattern k_by_ldmatrix(const TileRows& tile, std::int64_t row_bytes) {
  AccessPattern pattern{"K, ldmatrix.x4", bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16, 4), 16, {}};
  for (std::int64_t key = 0; key + 16 <= tile.rows; key += 16) {
    for (std::int64_t byte = 0; byte < row_bytes; byte += 32) {
      auto& access = pattern.accesses.emplace_back();
      for (int l = 0; l < 32; ++l) {
        access.push_back(RowByte{key + l % 8 + (l / 16) * 8, byte + (l / 8 % 2) * 16});
      }
    }
  }
  return pattern;
}

// K read as an MFMA operand of M keys: 16 bytes a lane.
AccessPattern k_by_mfma(SharedTarget target, const TileRows& tile, int M) {
  AccessPattern pattern{"K, 128-bit read", bank_profile(target, SharedOp::read, 16), 16, {}};
  for (std::int64_t key = 0; key + M <= tile.rows; key += M) {
    for (std::int64_t byte = 0; byte < tile.pitch; byte += 16 * (64 / M)) {
      auto& access = pattern.accesses.emplace_back();
      for (int l = 0; l < 64; ++l) access.push_back(RowByte{key + l % M, byte + l / M * 16});
    }
  }
  return pattern;
}

// An independent computation: the swizzle by division and remainder, the banks by sorting words. Returns the cycles
// beyond the minimum.
int extra_cycles(const AccessPattern& pattern, const std::function<std::int64_t(std::int64_t, std::int64_t)>& address) {
  int extra = 0;
  for (const auto& access : pattern.accesses) {
    for (const auto& phase : pattern.profile.phases) {
      std::vector<std::int64_t> words;
      for (const int lane : phase) {
        const auto& place = access[static_cast<std::size_t>(lane)];
        for (int byte = 0; byte < pattern.width; byte += 4) {
          words.push_back((address(place->row, place->byte) + byte) / 4);
        }
      }
      std::sort(words.begin(), words.end());
      words.erase(std::unique(words.begin(), words.end()), words.end());
      std::vector<int> wanted(static_cast<std::size_t>(pattern.profile.banks));
      for (const std::int64_t word : words) ++wanted[static_cast<std::size_t>(word % pattern.profile.banks)];
      extra += *std::max_element(wanted.begin(), wanted.end()) - 1;
    }
  }
  return extra;
}

std::int64_t by_division(std::int64_t a, int bits, int base, int shift) {
  const auto power = [](int exponent) { return std::int64_t{1} << exponent; };
  const std::int64_t y = a / power(base + shift) % power(bits), z = a / power(base) % power(bits);
  return a + ((y ^ z) - z) * power(base);
}

// The expected result of the search: tries every (b, m, s) that permutes the bytes of the tile by bits of the tile.
std::set<Bms> by_brute_force(const TileRows& tile, const std::vector<AccessPattern>& patterns, int max_bits,
                             int max_base, int max_shift) {
  std::set<Bms> result;
  const std::int64_t size = tile.rows * tile.pitch;
  for (int b = 1; b <= max_bits; ++b) {
    for (int m = 4; m <= max_base; ++m) {
      for (int s = b; s <= max_shift; ++s) {
        bool stays = true;
        std::set<std::int64_t> reads;  // values of the bits read: all 2^b must occur in the tile
        for (std::int64_t a = 0; a < size; a += 16) {
          stays = stays && by_division(a, b, m, s) < size;
          reads.insert(a / (std::int64_t{1} << (m + s)) % (std::int64_t{1} << b));
        }
        if (!stays || reads.size() <= std::size_t{1} << (b - 1)) continue;
        const bool free = std::all_of(patterns.begin(), patterns.end(), [&](const AccessPattern& pattern) {
          return extra_cycles(pattern, [&](std::int64_t row, std::int64_t byte) {
                   return by_division(row * tile.pitch + byte, b, m, s);
                 }) == 0;
        });
        if (free) result.insert({b, m, s});
      }
    }
  }
  return result;
}

TEST(SwizzleSolver, FindsTmasModeForRowsOfItsOwnWidth) {
  const TileRows tile{64, 64};
  const LayoutSolutions solutions = solve_layout(tile, std::vector{k_by_ldmatrix(tile, 64)});
  EXPECT_EQ(solutions.cycles, 8 * 16);
  EXPECT_EQ(solutions.ideal, 8 * 4);
  EXPECT_FALSE(solutions.is_free());
  ASSERT_THAT(solutions.swizzles, Not(IsEmpty()));
  const SwizzleSolution& first = solutions.swizzles[0];
  EXPECT_EQ(first.swizzle, Swizzle(2, 4, 3));
  EXPECT_EQ(first.mode, SwizzleMode::b64);
  EXPECT_TRUE(first.tma_writes_it);
  EXPECT_EQ(
      first.why,
      "bits 7-8 (row bits 1-2) XORed into bits 4-5: lanes 0 2 4 6, which all read bank 0, now start at banks 0 4 8 "
      "12");
  EXPECT_EQ(
      solutions.current,
      "K, ldmatrix.x4: in phase 0 of access 0, lanes 0 2 4 6 read 4 words of bank 0: their addresses 0 128 256 384 "
      "differ in bits 7-8 (row bits 1-2) only, which do not select the bank (32 banks, address bits 2-6)");
  // The 128B mode frees these rows as well, but a box of that mode puts rows 128 bytes apart.
  const auto wide = std::find_if(solutions.swizzles.begin(), solutions.swizzles.end(),
                                 [](const SwizzleSolution& s) { return s.swizzle == Swizzle(3, 4, 3); });
  ASSERT_NE(wide, solutions.swizzles.end());
  EXPECT_EQ(wide->mode, SwizzleMode::b128);
  EXPECT_FALSE(wide->tma_writes_it);
  // A solution for AMD's phases is not one for ldmatrix.
  EXPECT_THAT(found(solutions), Not(testing::Contains(Bms{3, 4, 4})));
  EXPECT_THAT(found(solutions), Not(testing::Contains(Bms{2, 4, 2})));
}

TEST(SwizzleSolver, FindsTheHardwareModesOf32And128ByteRows) {
  const TileRows narrow{32, 32}, wide{64, 128};
  const auto solutions32 = solve_layout(narrow, std::vector{k_by_ldmatrix(narrow, 32)});
  EXPECT_EQ(solutions32.swizzles.at(0).swizzle, Swizzle(1, 4, 3));
  EXPECT_EQ(solutions32.swizzles.at(0).mode, SwizzleMode::b32);
  const auto solutions128 = solve_layout(wide, std::vector{k_by_ldmatrix(wide, 128)});
  EXPECT_EQ(solutions128.swizzles.at(0).swizzle, Swizzle(3, 4, 3));
  EXPECT_EQ(solutions128.swizzles.at(0).mode, SwizzleMode::b128);
  EXPECT_TRUE(solutions128.swizzles.at(0).tma_writes_it);
  EXPECT_EQ(solutions128.cycles, 16 * 32);
}

// On 64 banks in four phases of non-consecutive lanes, 32 keys of 64 bytes need (3,4,4); 16 keys need (3,4,3).
TEST(SwizzleSolver, FindsWhatSuitsGfx950) {
  const TileRows tile{64, 64};
  const auto m32 = found(solve_layout(tile, std::vector{k_by_mfma(SharedTarget::gfx950, tile, 32)}, {.max_bits = 3}));
  EXPECT_THAT(m32, testing::Contains(Bms{3, 4, 4}));
  EXPECT_THAT(m32, Not(testing::Contains(Bms{3, 4, 3})));
  const auto m16 = found(solve_layout(tile, std::vector{k_by_mfma(SharedTarget::gfx950, tile, 16)}, {.max_bits = 3}));
  EXPECT_THAT(m16, testing::Contains(Bms{3, 4, 3}));
  const auto older = found(solve_layout(tile, std::vector{k_by_mfma(SharedTarget::gfx942, tile, 32)}, {.max_bits = 3}));
  EXPECT_THAT(older, testing::Contains(Bms{2, 4, 3}));
  EXPECT_THAT(older, Not(testing::Contains(Bms{3, 4, 4})));
}

// One layout for both machines: no swizzle of the family works; padding does, but no TMA box writes it.
TEST(SwizzleSolver, SaysWhenNoSwizzleSuitsBothMachines) {
  const TileRows tile{64, 64};
  const std::vector both = {k_by_mfma(SharedTarget::gfx950, tile, 32), k_by_ldmatrix(tile, 64)};
  EXPECT_EQ(solve_layout(tile, both, {.max_bits = 3}).no_swizzle,
            "none of 42 swizzles up to 3 bits avoids all conflicts: the best is (2,4,3) with 64 cycles instead of 48");
  EXPECT_EQ(
      to_text(solve_layout(tile, both, {.max_padding = 48})),
      "64 rows of 64 B: 192 cycles, 48 without conflicts\n"
      "  K, 128-bit read: in phase 0 of access 0, lanes 0 12 20 24 read 4 words of bank 0: their addresses 0 768 "
      "1280 1536 "
      "differ in bits 8-10 (row bits 2-4) only, which do not select the bank (64 banks, address bits 2-7)\n"
      "swizzles of byte offsets without conflicts:\n"
      "  none of 43 swizzles up to 4 bits avoids all conflicts: the best is (2,4,3) with 64 cycles instead of 48\n"
      "row paddings without conflicts:\n"
      "  16 B, 1024 B in all: a row begins 80 B after the one before: lanes 0 12 20 24, which all read bank 0, "
      "now start "
      "at banks 0 48 16 32\n"
      "  48 B, 3072 B in all: a row begins 112 B after the one before: lanes 0 12 20 24, which all read bank "
      "0, now start "
      "at banks 0 16 48 32\n");
}

TEST(SwizzleSolver, MarksTmasModesInItsText) {
  const TileRows tile{16, 64};
  EXPECT_THAT(to_text(solve_layout(tile, std::vector{k_by_ldmatrix(tile, 64)})),
              testing::AllOf(HasSubstr("\n  (2,4,3), TMA's 64B swizzle: bits 7-8"),
                             HasSubstr("\n  (3,4,3), TMA's 128B swizzle (whose rows are 128 B apart): bits 7-9")));
}

TEST(SwizzleSolver, LeavesAFreeTileAsItIs) {
  const TileRows tile{32, 80};
  const LayoutSolutions solutions = solve_layout(tile, std::vector{k_by_ldmatrix(tile, 64)});
  EXPECT_TRUE(solutions.is_free());
  ASSERT_THAT(solutions.swizzles, Not(IsEmpty()));
  EXPECT_EQ(solutions.swizzles[0].swizzle.bits(), 0);
  EXPECT_EQ(solutions.swizzles[0].mode, SwizzleMode::none);
  EXPECT_EQ(solutions.swizzles[0].why,
            "no conflicts without a swizzle: in every phase, each bank serves at most one word");
  EXPECT_EQ(solutions.paddings.at(0).padding, 0);
  EXPECT_EQ(solutions.no_swizzle, "");
}

// A single lane never conflicts, so every swizzle of the family is a solution: TMA's modes come before others with the
// same number of bits.
TEST(SwizzleSolver, PutsTmasModesBeforeOthersOfAsManyBits) {
  AccessPattern pattern{"one lane", bank_profile(SharedTarget::nvidia, SharedOp::read, 16), 16, {}};
  pattern.accesses.emplace_back(32)[5] = RowByte{7, 16};
  const auto solutions = solve_layout({32, 128}, std::vector{pattern});
  const auto all = found(solutions);
  const auto position = [&](const Bms& bms) { return std::find(all.begin(), all.end(), bms) - all.begin(); };
  EXPECT_EQ(position({0, 4, 0}), 0);
  EXPECT_EQ(position({1, 4, 3}), 1);
  EXPECT_LT(position({2, 4, 3}), position({2, 4, 2}));
  EXPECT_LT(position({1, 7, 4}), position({2, 4, 3}));
  EXPECT_LT(position({2, 7, 3}), position({3, 4, 3}));
  EXPECT_LT(position({3, 4, 3}), position({3, 4, 4}));
  EXPECT_EQ(solutions.swizzles.at(1).why, "bit 7 (row bit 0) XORed into bit 4: no phase has a conflict");
}

// Rows of 64, 128 and 256 bytes are conflict-free with 16 bytes of padding per row, and with any odd number of chunks.
TEST(SwizzleSolver, PadsByAnOddNumberOfChunks) {
  for (const std::int64_t pitch : {64, 128, 256}) {
    const TileRows tile{32, pitch};
    const LayoutSolutions solutions = solve_layout(tile, std::vector{k_by_ldmatrix(tile, pitch)});
    EXPECT_EQ(paddings(solutions), (std::vector<std::int64_t>{16, 48, 80, 112})) << pitch;
    EXPECT_EQ(solutions.paddings[0].pitch, pitch + 16);
    EXPECT_EQ(solutions.paddings[0].extra_bytes, 32 * 16);
  }
  const TileRows tile{32, 128};
  EXPECT_EQ(
      solve_layout(tile, std::vector{k_by_ldmatrix(tile, 128)}).paddings[0].why,
      "a row begins 144 B after the one before: lanes 0 1 2 3 4 5 6 7, which all read bank 0, now start at banks 0 "
      "4 8 12 16 20 24 28");
}

// Every proposed swizzle is conflict-free and none is missing, for several tiles, machines and both machines together.
TEST(SwizzleSolver, ProposesExactlyWhatBruteForceFinds) {
  struct Case {
    TileRows tile;
    std::vector<AccessPattern> patterns;
  };
  std::vector<Case> cases;
  for (const std::int64_t rows : {32, 96}) {  // 96 and 192: no powers of two
    for (const std::int64_t pitch : {32, 64, 192}) {
      const TileRows tile{rows, pitch};
      cases.push_back({tile, {k_by_ldmatrix(tile, pitch)}});
      if (pitch % 64 == 0) {
        cases.push_back({tile, {k_by_mfma(SharedTarget::gfx950, tile, 32)}});
        cases.push_back({tile, {k_by_mfma(SharedTarget::gfx942, tile, 16), k_by_ldmatrix(tile, pitch)}});
      }
    }
  }
  // Conflict-free without a swizzle, and short: (2,7,2) would move its last row out of the tile.
  const TileRows padded{16, 80};
  cases.push_back({padded, {k_by_ldmatrix(padded, 64)}});
  for (const Case& c : cases) {
    const auto where = testing::Message() << c.tile.rows << " rows of " << c.tile.pitch << ", " << c.patterns[0].name;
    const LayoutSolutions solutions = solve_layout(c.tile, c.patterns, {.max_shift = 6});
    const std::set<Bms> expected = by_brute_force(c.tile, c.patterns, 4, 7, 6);
    std::set<Bms> proposed;
    for (const Bms& bms : found(solutions)) {
      const bool is_new =
          std::get<0>(bms) == 0 || proposed.insert(bms).second;  // the identity is no member of the family
      EXPECT_TRUE(is_new) << where;
    }
    EXPECT_EQ(proposed, expected) << where;
    EXPECT_EQ(solutions.no_swizzle.empty(), !solutions.swizzles.empty()) << where;
    for (std::size_t i = 1; i < solutions.swizzles.size(); ++i) {
      EXPECT_LE(solutions.swizzles[i - 1].swizzle.bits(), solutions.swizzles[i].swizzle.bits()) << where;
    }
    std::vector<std::int64_t> free_paddings;
    for (std::int64_t padding = 0; padding <= 128; padding += 16) {
      const bool free = std::all_of(c.patterns.begin(), c.patterns.end(), [&](const AccessPattern& pattern) {
        return extra_cycles(pattern, [&](std::int64_t row, std::int64_t byte) {
                 return row * (c.tile.pitch + padding) + byte;
               }) == 0;
      });
      if (free) free_paddings.push_back(padding);
    }
    EXPECT_EQ(paddings(solutions), free_paddings) << where;
  }
}

// Two rows of 16 bytes have no bits that can be XORed within the tile.
TEST(SwizzleSolver, HasNoCandidatesForATileOfAFewChunks) {
  const TileRows tile{3, 128};
  AccessPattern pattern{"three rows", bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16, 1), 16, {}};
  auto& access = pattern.accesses.emplace_back(32);
  for (std::int64_t row = 0; row < 3; ++row) access[static_cast<std::size_t>(row)] = RowByte{row, 0};
  const LayoutSolutions solutions = solve_layout(tile, std::vector{pattern}, {.chunk = 256, .max_padding = 0});
  EXPECT_THAT(solutions.swizzles, IsEmpty());
  EXPECT_EQ(solutions.no_swizzle, "no swizzle keeps chunks of 256 B whole and stays in the 384 B of the tile");
  EXPECT_THAT(to_text(solutions), HasSubstr("row paddings without conflicts:\n  none within the limit\n"));
}

TEST(SwizzleSolver, NamesEveryFaultOfAQuestion) {
  const auto message = [](const TileRows& tile, const std::vector<AccessPattern>& patterns,
                          const SolverBounds& bounds) {
    try {
      (void)solve_layout(tile, patterns, bounds);
    } catch (const GeometryError& e) {
      return std::string(e.what());
    }
    return std::string("no GeometryError");
  };
  EXPECT_EQ(message({0, 64}, {}, {.max_bits = 11, .chunk = 24}),
            "layout to solve rejected, 4 faults:\n"
            "  rows: 0 is outside [1, 1048576]\n"
            "  max_bits: 11 is outside [0, 10]\n"
            "  chunk: 24 B is not a power of two in [1, 1024]\n"
            "  patterns: no pattern is given: add the one that reads the tile");
  AccessPattern pattern{"K", bank_profile(SharedTarget::nvidia, SharedOp::read, 16), 16, {}};
  pattern.accesses.emplace_back(32)[3] = RowByte{64, 8};
  EXPECT_EQ(message({64, 64}, {pattern}, {.chunk = 8}),
            "layout to solve rejected, 2 faults:\n"
            "  K: reads 16 B at a time, but chunks of 8 B may be torn apart: use a chunk of 16\n"
            "  K, access 0, lane 3: row 64, byte 8 is outside 64 rows of 64 B");
}

}  // namespace
}  // namespace kvscope::swizzle_solver_test
