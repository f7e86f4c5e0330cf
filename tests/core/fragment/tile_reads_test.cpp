#include "core/fragment/tile_reads.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/errors.h"

namespace kvscope::tile_reads_test {
namespace {

// The cycles of each read on the tile without a swizzle: the common number of all reads, or -1.
int cycles_of_each(const AccessPattern& pattern, const TileRows& tile) {
  std::set<int> cycles;
  for (const auto& access : pattern.accesses) {
    SharedAccess placed{pattern.width, {}};
    for (const auto& at : access) placed.addresses.emplace_back(at->row * tile.pitch + at->byte);
    cycles.insert(bank_report(pattern.profile, placed).cycles());
  }
  return cycles.size() == 1 ? *cycles.begin() : -1;
}

TEST(TileReads, CostWhatTheirInstructionsCostOnAPlainTile) {
  using Row = std::tuple<Mfma, std::int64_t, int, int>;  // pitch, gfx942, gfx950
  for (const auto& [mfma, pitch, gfx942, gfx950] : std::vector<Row>{{Mfma::bf16_32x32x16, 64, 32, 16},
                                                                    {Mfma::bf16_32x32x8, 64, 32, 16},
                                                                    {Mfma::fp8_32x32x64, 64, 32, 16},
                                                                    {Mfma::bf16_32x32x16, 128, 64, 32},
                                                                    {Mfma::bf16_16x16x32, 64, 16, 8},
                                                                    {Mfma::bf16_16x16x32, 128, 32, 16},
                                                                    {Mfma::fp8_16x16x128, 128, 32, 16}}) {
    const TileRows tile{64, pitch};
    EXPECT_EQ(cycles_of_each(mfma_k_reads(mfma, SharedTarget::gfx942, tile), tile), gfx942) << pitch;
    EXPECT_EQ(cycles_of_each(mfma_k_reads(mfma, SharedTarget::gfx950, tile), tile), gfx950) << pitch;
  }
  for (const auto& [use, bytes] : std::vector<std::pair<LdmatrixUse, int>>{
           {LdmatrixUse::k_as_b, 1}, {LdmatrixUse::k_as_b, 2}, {LdmatrixUse::v_as_b, 2}, {LdmatrixUse::v_fp8, 1}}) {
    EXPECT_EQ(cycles_of_each(ldmatrix_reads(use, bytes, {64, 64}), {64, 64}), 16);
    EXPECT_EQ(cycles_of_each(ldmatrix_reads(use, bytes, {64, 128}), {64, 128}), 32);
  }
}

// All reads together read every byte of the tile once, in pieces of 16 that no two lanes share.
TEST(TileReads, TakeEveryVectorOfTheTileOnce) {
  const TileRows tile{64, 128};
  std::vector<AccessPattern> patterns;
  for (const MfmaShape& shape : all_mfma_shapes())
    patterns.push_back(mfma_k_reads(shape.id, SharedTarget::gfx950, tile));
  for (const int bytes : {1, 2}) patterns.push_back(ldmatrix_reads(LdmatrixUse::k_as_a, bytes, tile));
  patterns.push_back(ldmatrix_reads(LdmatrixUse::v_as_a, 2, tile));
  patterns.push_back(ldmatrix_reads(LdmatrixUse::v_fp8, 1, tile));
  for (const AccessPattern& pattern : patterns) {
    std::set<std::pair<std::int64_t, std::int64_t>> vectors;
    std::size_t reads = 0;
    for (const auto& access : pattern.accesses) {
      for (const auto& at : access) {
        vectors.emplace(at->row, at->byte);
        ++reads;
        EXPECT_EQ(at->byte % 16, 0) << pattern.name;
      }
    }
    EXPECT_EQ(reads, 64u * 8) << pattern.name;
    EXPECT_EQ(vectors.size(), reads) << pattern.name;
  }
}

// From an instruction to its swizzles: TMA's modes are conflict-free for K and V; gfx950 needs another swizzle.
TEST(TileReads, AreSolvedByTheKnownSwizzles) {
  const TileRows tile{64, 64};
  const std::vector both = {ldmatrix_reads(LdmatrixUse::k_as_b, 2, tile), ldmatrix_reads(LdmatrixUse::v_as_b, 2, tile)};
  const LayoutSolutions nvidia = solve_layout(tile, both);
  EXPECT_EQ(nvidia.swizzles.at(0).swizzle, Swizzle(2, 4, 3));
  EXPECT_TRUE(nvidia.swizzles.at(0).tma_writes_it);
  const auto gfx950 = solve_layout(tile, std::vector{mfma_k_reads(Mfma::bf16_32x32x16, SharedTarget::gfx950, tile)});
  bool found = false;
  for (const SwizzleSolution& s : gfx950.swizzles) found = found || s.swizzle == Swizzle(3, 4, 4);
  EXPECT_TRUE(found);
}

TEST(TileReads, RejectATileOfBrokenPieces) {
  const auto message = [](auto f) {
    try {
      (void)f();
    } catch (const std::exception& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(message([] {
              return mfma_k_reads(Mfma::fp8_32x32x64, SharedTarget::gfx950, {40, 0});
            }),
            "tile read by mfma 32x32x64 fp8, K rejected, 2 faults:\n"
            "  rows: 40 is not a multiple of 32, what one read takes: use 64\n"
            "  pitch: 0 is not a multiple of 64, what one read takes: use 64");
  EXPECT_EQ(message([] {
              return ldmatrix_reads(LdmatrixUse::k_as_b, 2, {16, 48});
            }),
            "tile read by ldmatrix.x4, K as B, 2 B elements rejected: pitch: 48 is not a multiple of 32, what one read "
            "takes: "
            "use 64");
  EXPECT_EQ(message([] {
              return mfma_k_reads(Mfma::fp8_32x32x64, SharedTarget::nvidia, {64, 64});
            }),
            "mfma is an instruction of AMD: use gfx942 or gfx950");
}

}  // namespace
}  // namespace kvscope::tile_reads_test
