// Tiles that begin inside a page, at a token that is not a multiple of BN: windows of a sliding mask, or a cursor set
// to the first token that is not cached. Every element of the registers is compared with the pool by formulas written
// here.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/core/staging/lds/support.h"

namespace kvscope::unaligned_tile_test {
namespace {

constexpr std::int64_t kPage = 64, kHeads = 2, kDepth = 128, kBN = 32, kHead = 1;
constexpr std::int64_t kBlockElements = 2 * kPage * kHeads * kDepth;  // K, then V

// A pool [3 blocks, K and V, page 64, 2 heads, 128 columns] of bf16 bits; the pages of the sequence are blocks 2, 0, 1.
struct Pool {
  std::vector<std::uint16_t> bits = std::vector<std::uint16_t>(3 * kBlockElements);
  std::vector<std::uint32_t> lengths{0}, table{2, 0, 1};

  Pool() {
    std::uint32_t state = 12345;
    for (std::uint16_t& element : bits) {
      state = state * 1664525U + 1013904223U;
      element = static_cast<std::uint16_t>(state >> 16);
    }
  }
  [[nodiscard]] PagedKVCache cache(bool v) {
    std::uint16_t* first = bits.data() + (v ? kBlockElements / 2 : 0);
    const AnyView<4> blocks{reinterpret_cast<std::byte*>(first),
                            DType::bf16,
                            {3, kPage, kHeads, kDepth},
                            {kBlockElements, kHeads * kDepth, kDepth, 1}};
    return {{.dtype = DType::bf16, .kv_params = {kHeads, kDepth, false}, .page_size = kPage},
            {.blocks = blocks, .cache_lengths = {lengths.data(), {1}}, .lookup_table = {table.data(), {1, 3}}}};
  }
  [[nodiscard]] std::uint16_t expected(bool v, std::int64_t token, std::int64_t column) const {
    const std::int64_t block = std::vector<std::int64_t>{2, 0, 1}[static_cast<std::size_t>(token / 64)];
    const std::int64_t row = (block * 2 + (v ? 1 : 0)) * 64 + token % 64;
    return bits[static_cast<std::size_t>((row * 2 + kHead) * 128 + column)];
  }
};

KVBufferParams params_of(bool v) {
  KVBufferParams p = test::named(v ? "B V" : "A K");
  p.BN = p.WN = kBN;
  p.kv_num_heads = kHeads;
  return p;
}

// One block of waves that stages the tile at token `base`, `end` the first token that is not read.
struct Staged {
  KVBufferConfig config;
  SharedImage image;
  PendingCopies pending;
  std::vector<std::unique_ptr<KVBuffer>> waves;

  Staged(Pool& pool, bool v, std::int64_t base, std::int64_t end)
      : config(params_of(v)),
        image(config.constants().region_bytes, std::byte{0xEE}),
        pending(image, config.constants().waves) {
    for (std::int64_t w = 0; w < config.constants().waves; ++w) {
      waves.push_back(std::make_unique<KVBuffer>(config, pool.cache(v), SeqIdx{0}, HeadIdx{kHead},
                                                 LdsRegion{&pending, 0}, TokIdx{end}, WaveIdx{w}));
      waves.back()->kv_cache_iter().set_tile_start_row(TokIdx{base});
    }
    for (const auto& wave : waves) wave->load_from_dram(StageIdx{1});
    for (std::int64_t w = 0; w < pending.waves(); ++w) pending.wait(WaveIdx{w}, 0);
  }
};

// Lane, row and element of the registers to key and column of the tile: the fragments of MMA 32x32x16, bf16.
struct Element {
  std::int64_t key, column;
  auto operator<=>(const Element&) const = default;
};
Element element_of(bool v, std::int64_t lane, std::int64_t row, std::int64_t e) {
  if (!v) return {lane % 32, 16 * row + 8 * (lane / 32) + e};
  return {16 * (row / 4) + 8 * (e / 4) + 4 * (lane / 32) + e % 4, 32 * (row % 4) + lane % 32};
}

TEST(UnalignedTile, IsStagedWhereItFitsInItsPage) {
  Pool pool;
  for (const bool v : {false, true}) {
    for (const std::int64_t base : {1, 20, 32, 64 + 12, 128 + 31}) {
      Staged staged(pool, v, base, 3 * kPage);
      for (const auto& wave : staged.waves) {
        wave->load_from_shared(StageIdx{1});
        std::set<Element> seen;
        for (std::int64_t lane = 0; lane < 64; ++lane) {
          for (std::int64_t row = 0; row < 8; ++row) {
            for (std::int64_t e = 0; e < 8; ++e) {
              const Element at = element_of(v, lane, row, e);
              seen.insert(at);
              ASSERT_EQ(test::register_bits(*wave, lane, row, e), pool.expected(v, base + at.key, at.column))
                  << (v ? "V" : "K") << ", base " << base << ", lane " << lane << ", row " << row << ", element " << e;
            }
          }
        }
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(kBN * kDepth));
        EXPECT_EQ(wave->kv_cache_iter().tile_start_row(), TokIdx{base + kBN});
      }
    }
  }
}

// 11 of 32 keys exist: the rest arrives as zeros, though the page holds other bytes there.
TEST(UnalignedTile, IsFilledWithZerosPastTheEnd) {
  Pool pool;
  Staged staged(pool, false, 20, 31);
  KVBuffer& wave = *staged.waves.front();
  wave.load_from_shared(StageIdx{1});
  for (std::int64_t lane = 0; lane < 64; ++lane) {
    for (std::int64_t row = 0; row < 8; ++row) {
      for (std::int64_t e = 0; e < 8; ++e) {
        const Element at = element_of(false, lane, row, e);
        ASSERT_EQ(test::register_bits(wave, lane, row, e),
                  at.key < 11 ? pool.expected(false, 20 + at.key, at.column) : 0);
      }
    }
  }
}

// 33 + 32 = 65: the last key would be row 0 of another layer or of V.
TEST(UnalignedTile, IsRejectedWhereItLeavesItsPage) {
  Pool pool;
  EXPECT_EQ(test::message_of<GeometryError>([&] { Staged(pool, false, 64 + 33, 3 * kPage); }),
            "PagedKVCache.block_paged_ptr: a tile of 32 tokens from token 97, row 33 of its page, leaves the page of "
            "64: begin at token 96 at the latest");
}

}  // namespace
}  // namespace kvscope::unaligned_tile_test
