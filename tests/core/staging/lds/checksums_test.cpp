// Whole images of LDS and registers against known checksums: 64-bit FNV-1a over the bytes, two stages prefilled with
// 0xEE and stage 0 loaded; registers wave by wave, lane by lane, row by row.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/staging/lds/kv_buffer.h"
#include "tests/core/staging/lds/support.h"

namespace kvscope::checksums_test {
namespace {

using test::Block;
using test::cache_for;
using test::named;
using test::p16;
using test::p16_of_512;
using test::p8d;
using test::p8k;
using test::Pattern;

std::uint64_t fnv(std::span<const std::byte> bytes) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211U;
  return hash;
}

TEST(Fnv, IsThePublishedHash) {
  EXPECT_EQ(fnv({}), 14695981039346656037U);
  const std::byte a{'a'};
  EXPECT_EQ(fnv(std::span(&a, 1)), 0xaf63dc4c8601ec8cU);
}

struct Image {
  const char* id;
  Pattern pattern;
  std::size_t lds_bytes, register_bytes;
  std::uint64_t lds, registers;
};

void expect_image(const Image& image, const KVBufferParams& params) {
  SCOPED_TRACE(image.id);
  const test::TokenCache tokens = cache_for(params, image.pattern);
  Block block(params, tokens, params.BN);
  block.load(0);
  if (image.lds != 0) {
    EXPECT_EQ(block.image().bytes().size(), image.lds_bytes);
    EXPECT_EQ(fnv(block.image().bytes()), image.lds);
  }
  if (image.registers == 0) return;
  const std::vector<std::byte> registers = block.registers(0);
  EXPECT_EQ(registers.size(), image.register_bytes);
  EXPECT_EQ(fnv(registers), image.registers);
  EXPECT_TRUE(block.pending().races().empty());
}

TEST(Checksums, OfStagesAndRegistersAreThePublishedOnes) {
  const Image images[] = {
      {"A K", p16, 32768, 32768, 0x76c8f81dc7f28c25, 0x449ef18fde5fe925},
      {"A V", p16, 32768, 32768, 0, 0xb9d91409e68b5f25},  // keys 0..31 only
      {"B K", p16, 32768, 65536, 0, 0x64b99fbdcf8c9725},
      {"B V", p16, 32768, 65536, 0x6d87dbba6473ee25, 0xec3ba7cfd3977725},
      {"C K", p8k, 16384, 32768, 0x4eb8b86c155cf325, 0x7d61a85c97ade325},
      {"C K", p8d, 16384, 32768, 0x96b5e8e41a574325, 0x5004fe2709cea325},
      {"C V", p8k, 16384, 32768, 0x6f12c359fee4f325, 0x1d68ab47e993a325},
      {"C V", p8d, 16384, 32768, 0x9ff62c055da08325, 0x48f16874be12f325},
      {"D K", p16, 65536, 131072, 0x8055c4d2b6d36d25, 0x0d3d314c57b9c325},
      {"E2 K", p16_of_512, 65536, 131072, 0x3a4a493b22d1a525, 0xa789cc2606606b25},
      {"F K", p16, 32768, 16384, 0x96fcc5bbdb511525, 0x19f54cc70eba0425},
      {"F-Vd", p16, 32768, 0, 0xcbd35f56ae823125, 0},
      {"G K", p8k, 32768, 16384, 0xe07905d6c7cac325, 0x105e60417b60d325},
      {"G K", p8d, 32768, 16384, 0xbb4c9f01e58c6325, 0x13e38dbe68ab6325},
      {"G-Vd", p8k, 32768, 0, 0xe07905d6c7cac325, 0},
      {"G-Vd", p8d, 32768, 0, 0x4e9366da64fbe325, 0},
      {"H K", p8k, 147456, 81920, 0x340da4206ab9d925, 0xab2afaf54169a325},
      {"H K", p8d, 147456, 81920, 0xf214cc44af77c325, 0x9c0560ccb2724325},
      {"I K", p16, 16384, 32768, 0xdd2179708904f025, 0xa8147934b46d9325},
  };
  for (const Image& image : images) expect_image(image, named(image.id));
}

// The swizzle moves bytes of LDS; the registers are those of the image without one.
TEST(Checksums, OfRegistersDoNotKnowTheSwizzle) {
  KVBufferParams swizzled = named("C V");
  swizzled.swizzle = test::kWide;
  expect_image({"C V", p8k, 16384, 32768, 0x4eb8b86c155cf325, 0x1d68ab47e993a325}, swizzled);
  expect_image({"C V", p8d, 16384, 32768, 0x96b5e8e41a574325, 0x48f16874be12f325}, swizzled);
}

TEST(Checksums, OfTailsHeadsAndBothStagesAreThePublishedOnes) {
  const auto lds_of = [](std::int64_t valid, std::int64_t heads) {
    KVBufferParams p = named("A K");
    p.kv_num_heads = heads;
    const test::TokenCache tokens = cache_for(p, p16);
    Block block(p, tokens, valid);
    block.load(0);
    return fnv(block.image().bytes());
  };
  EXPECT_EQ(lds_of(64, 1), 0x76c8f81dc7f28c25U);
  EXPECT_EQ(lds_of(50, 1), 0x3d69c55edf76f2a5U);
  EXPECT_EQ(lds_of(50, 2), 0x3d69c55edf76f2a5U);
  EXPECT_EQ(lds_of(0, 1), 0xf767f1a60ca82325U);

  // The same tile into both stages.
  const test::TokenCache tokens = cache_for(named("A K"), p16);
  Block block(named("A K"), tokens, 64);
  block.load(0);
  for (std::size_t w = 0; w < block.waves(); ++w) block.wave(w).kv_cache_iter().set_tile_start_row(TokIdx{0});
  block.load(1);
  EXPECT_EQ(fnv(block.image().bytes()), 0xc75712fe6280f525U);
}

// One copy buffer fills the image for all waves; each wave reads its columns through a separate buffer.
TEST(Checksums, OfPerWaveVAreThePublishedOnes) {
  const auto registers_of = [](const char* copy, const char* slice, const Pattern& pattern) {
    const test::TokenCache tokens = cache_for(named(copy), pattern);
    Block block(named(copy), tokens, 128);
    block.load(0);
    std::vector<std::byte> all;
    for (std::int64_t w = 0; w < 4; ++w) {
      const auto wave = block.over(named(slice), tokens, WaveIdx{w});
      wave->load_from_shared(StageIdx{0});
      all.insert(all.end(), wave->register_bytes().begin(), wave->register_bytes().end());
    }
    EXPECT_EQ(all.size(), 16384U);
    return fnv(all);
  };
  EXPECT_EQ(registers_of("F-Vd", "F-Vw", p16), 0x4307c91647c7ee25U);
  EXPECT_EQ(registers_of("G-Vd", "G-Vw", p8k), 0x44a2dd6d5ee16325U);
  EXPECT_EQ(registers_of("G-Vd", "G-Vw", p8d), 0x105e60417b60d325U);
}

}  // namespace
}  // namespace kvscope::checksums_test
