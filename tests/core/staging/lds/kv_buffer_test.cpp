// A whole block of waves over one region: the contents of registers, the contents of a stage, and rejected calls.
#include "core/staging/lds/kv_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "core/staging/lds/register_map.h"
#include "tests/core/staging/lds/support.h"

namespace kvscope::kv_buffer_test {
namespace {

using test::Block;
using test::cache_for;
using test::message_of;
using test::named;
using test::p16;
using test::register_bits;

static_assert(!std::is_copy_constructible_v<KVBuffer> && !std::is_move_constructible_v<KVBuffer> &&
              !std::is_copy_assignable_v<KVBuffer> && !std::is_move_assignable_v<KVBuffer>);

struct Sample {
  std::int64_t wave, lane, row, e, key, depth;
};

TEST(Registers, HoldThePublishedSamplesOfBf16KAndV) {
  const auto expect = [](const char* id, const std::vector<Sample>& samples) {
    const test::TokenCache tokens = cache_for(named(id), p16);
    Block block(named(id), tokens, named(id).BN);
    block.load(0);
    (void)block.registers(0);
    for (const Sample& s : samples) {
      EXPECT_EQ(register_bits(block.wave(static_cast<std::size_t>(s.wave)), s.lane, s.row, s.e), s.key * 256 + s.depth)
          << id << ": wave " << s.wave << ", lane " << s.lane << ", row " << s.row << ", e " << s.e;
    }
  };
  expect("A K", {{0, 0, 0, 7, 0, 7},
                 {0, 5, 1, 3, 5, 19},
                 {0, 37, 2, 0, 5, 40},
                 {1, 63, 7, 7, 63, 127},
                 {2, 32, 4, 2, 0, 74},
                 {3, 9, 5, 1, 41, 81}});
  expect("B V", {{0, 0, 0, 4, 8, 0},
                 {0, 17, 0, 5, 9, 17},
                 {0, 32, 0, 0, 4, 0},
                 {0, 63, 3, 7, 15, 127},
                 {0, 33, 4, 4, 28, 1},
                 {0, 0, 8, 0, 32, 0},
                 {2, 50, 15, 6, 62, 114}});
}

// Keys and depths of 8-bit values come from two patterns.
TEST(Registers, HoldThePublishedSamplesOfFp8V) {
  for (const bool keys : {true, false}) {
    const test::TokenCache tokens = cache_for(named("C V"), keys ? test::p8k : test::p8d);
    Block block(named("C V"), tokens, 64);
    block.load(0);
    (void)block.registers(0);
    for (const Sample& s : std::vector<Sample>{{0, 0, 0, 4, 8, 0},
                                               {0, 9, 0, 0, 0, 9},
                                               {0, 32, 0, 0, 4, 0},
                                               {0, 47, 1, 13, 29, 47},
                                               {0, 63, 3, 31, 63, 127}}) {
      EXPECT_EQ(register_bits(block.wave(0), s.lane, s.row, s.e), keys ? s.key : s.depth);
    }
  }
}

TEST(Registers, OfAWavesSliceHoldThePublishedSamples) {
  const auto expect = [](const char* copy, const char* slice, const test::Pattern& pattern,
                         const std::vector<Sample>& samples, const std::function<std::int64_t(const Sample&)>& value) {
    const test::TokenCache tokens = cache_for(named(copy), pattern);
    Block block(named(copy), tokens, 128);
    block.load(0);
    for (const Sample& s : samples) {
      const auto wave = block.over(named(slice), tokens, WaveIdx{s.wave});
      wave->load_from_shared(StageIdx{0});
      EXPECT_EQ(register_bits(*wave, s.lane, s.row, s.e), value(s)) << slice << " wave " << s.wave;
    }
  };
  const auto both = [](const Sample& s) { return s.key * 256 + s.depth; };
  expect("F-Vd", "F-Vw", p16,
         {{0, 17, 0, 5, 21, 1}, {1, 0, 0, 0, 0, 16}, {2, 63, 1, 7, 63, 47}, {3, 31, 3, 2, 102, 63}}, both);
  const std::vector<Sample> g{{0, 1, 0, 0, 0, 1}, {0, 8, 0, 9, 9, 8}, {0, 17, 1, 31, 63, 17}, {3, 63, 1, 31, 127, 127}};
  expect("G-Vd", "G-Vw", test::p8k, g, [](const Sample& s) { return s.key; });
  expect("G-Vd", "G-Vw", test::p8d, g, [](const Sample& s) { return s.depth; });
}

// The other order of the 8-bit transposing read: registers hold other columns, as in the closed form.
TEST(Registers, HoldInterleavedColumnsUnderTheOtherOrder) {
  for (const char* id : {"C V", "G-Vd"}) {
    KVBufferParams p = named(id);
    p.tr8_order = Tr8Order::interleaved;
    const test::TokenCache tokens = cache_for(p, test::p8d);
    Block block(p, tokens, p.BN);
    block.load(0);
    block.wave(0).load_from_shared(StageIdx{0});
    EXPECT_EQ(register_bits(block.wave(0), 1, 0, 0), 8U);
    EXPECT_EQ(register_bits(block.wave(0), 2, 0, 0), 1U);
    for (int lane = 0; lane < 64; ++lane) {
      const auto element = register_element(block.config(), WaveIdx{0}, {StripIdx{0}, 0, 1, lane, 3});
      EXPECT_EQ(register_bits(block.wave(0), lane, 1, 3), element->depth.value);
    }
  }
}

// Poison where nothing was loaded: loading one strip fills only its slot.
TEST(KVBuffer, LoadsOneStripIntoItsSlotAndLeavesTheRest) {
  const test::TokenCache tokens = cache_for(named("B K"), p16);
  Block block(named("B K"), tokens, 64);
  block.load(0);
  KVBuffer& wave = block.wave(0);
  wave.load_from_shared<2>(StageIdx{0});
  for (std::int64_t row = 0; row < 16; ++row) {
    EXPECT_EQ(register_bits(wave, 5, row, 0) == 0xCDCDU, row / 4 != 2) << row;
  }
  EXPECT_EQ(register_bits(wave, 5, 8, 0), 5U * 256 + 64);
}

// Registers for two strips of four: strip 3 overwrites slot 3 % 2, and a whole load is rejected.
TEST(KVBuffer, WalksStripsThroughACappedRegisterTile) {
  KVBufferParams p = named("B K");
  p.reg_chunk_depth = 64;
  const test::TokenCache tokens = cache_for(p, p16);
  Block block(p, tokens, 64);
  block.load(1);
  KVBuffer& wave = block.wave(1);
  wave.load_from_shared<1>(StageIdx{1});
  const AnyView<3> tile = wave.get_mma_tile<1, 1>();
  EXPECT_EQ(tile.extents, (Shape<3>{64, 2, 8}));
  const auto bits_of = [](const AnyView<3>& view, std::int64_t lane, std::int64_t mma, std::int64_t e) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, view.at(lane, mma, e), 2);
    return bits;
  };
  EXPECT_EQ(bits_of(tile, 40, 1, 3), (32 + 8) * 256 + 32 + 16 + 8 + 3);
  wave.load_from_shared<3>(StageIdx{1});
  EXPECT_EQ(bits_of(tile, 40, 1, 3), (32 + 8) * 256 + 96 + 16 + 8 + 3);
  EXPECT_EQ((wave.mma_subtile<1, 3>().data), tile.data);
  EXPECT_EQ((wave.get_mma_tile<0, 2>().data), wave.registers().data);
  EXPECT_EQ(message_of<UnsupportedError>([&] { wave.load_from_shared(StageIdx{1}); }),
            "KVBuffer (K): registers hold 2 strips, a tile has 4: load one strip at a time");
  EXPECT_THROW((void)wave.get_mma_tile(2, StripIdx{0}), IndexError);
  EXPECT_THROW((void)wave.get_mma_tile(0, StripIdx{4}), IndexError);
  EXPECT_EQ(message_of<IndexError>([&] { wave.load_from_shared(StripIdx{4}, StageIdx{0}); }),
            "strip 4 is outside [0, 4): num_k_tiles of the buffer");
}

// Filling one stage must not change a byte of the other; rows past the end are overwritten with zeros.
TEST(KVBuffer, FillsOneStageAndLeavesTheOther) {
  const test::TokenCache tokens = cache_for(
      named("A K"), [](auto, auto, auto) { return 0x1234U; }, 128);
  Block block(named("A K"), tokens, 64 + 50);
  block.load(0);
  const std::vector<std::byte> before(block.image().bytes().begin(), block.image().bytes().begin() + 16384);
  block.load(1);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), block.image().bytes().begin()));
  std::int64_t zeros = 0, data = 0;
  for (std::int64_t byte = 16384; byte < 32768; byte += 16) {
    const auto vector = block.image().read(byte, 16);
    const bool zero = std::all_of(vector.begin(), vector.end(), [](std::byte b) { return b == std::byte{0}; });
    zeros += zero ? 1 : 0;
    data += vector[0] == std::byte{0x34} ? 1 : 0;
  }
  EXPECT_EQ(zeros, 14 * 16);
  EXPECT_EQ(data, 50 * 16);
  // A third tile is past the end: all zeros, and the cursor advances.
  block.load(0);
  EXPECT_EQ(block.wave(3).kv_cache_iter().tile_start_row(), TokIdx{192});
  for (const std::byte byte : block.image().read(0, 16384)) ASSERT_EQ(byte, std::byte{0});
}

// Memory past the valid rows may belong to other data: poison there must not reach LDS.
TEST(KVBuffer, NeverReadsRowsPastTheEnd) {
  for (const std::int64_t valid : {0, 1, 31, 32, 33, 50, 63, 64}) {
    const test::TokenCache tokens =
        cache_for(named("B V"), [&](std::int64_t t, auto, auto) { return t < valid ? 0x0101U : 0xFFFFU; });
    Block block(named("B V"), tokens, valid);
    block.load(0);
    const auto bytes = block.image().read(0, 16384);
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{1}), valid * 256) << valid;
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{0}), (64 - valid) * 256) << valid;
  }
}

TEST(KVBuffer, ReadsItsHeadsColumnsOfTheCacheRow) {
  KVBufferParams p = named("I K");
  p.kv_num_heads = 3;
  p.cache_depth = 192;
  p.head_dim_offset = 128;
  const test::TokenCache tokens = cache_for(p, [](std::int64_t t, std::int64_t h, std::int64_t d) {
    return static_cast<std::uint32_t>(t * 1000 + h * 300 + d);
  });
  Block block(p, tokens, 64, 2);
  block.load(1);
  (void)block.registers(1);
  EXPECT_EQ(register_bits(block.wave(0), 33, 0, 5), 1U * 1000 + 2 * 300 + 128 + 8 + 5);
}

// Latent attention: V is the first 512 columns of K's image, read by each wave in its slice, through K's swizzle.
TEST(KVBuffer, ReadsVFromKsImage) {
  KVBufferParams k = named("F K");
  k.BN = 64;
  k.BK = 64;
  k.depth = 576;
  KVBufferParams v = named("F-Vw");
  v.BN = v.WN = 64;
  v.BK = 64;
  v.depth = v.smem_depth.emplace(128);
  v.cache_depth = 576;
  v.swizzle = k.swizzle;
  const test::TokenCache tokens = cache_for(k, test::p16_of_512);
  Block block(k, tokens, 64);
  block.load(0);
  for (std::int64_t w = 0; w < 4; ++w) {
    const auto wave = block.over(v, tokens, WaveIdx{w});
    wave->load_from_shared(StageIdx{0});
    // Lane 37: group 2, column 5; strip 0, step 1, MMA 6: keys 32 + 8.., depth 128 w + 96 + 5.
    for (const std::int64_t e : {0, 3, 4, 7}) {
      const std::int64_t key = 32 + 16 * (e / 4) + 8 + e % 4;
      EXPECT_EQ(register_bits(*wave, 37, 8 + 6, e), (key * 512 + 128 * w + 101) % 65536) << w;
    }
  }
}

// A head of 512 columns through stages of one block of 32: the row cursor stays until the last block.
TEST(KVBuffer, WalksTheDepthThroughStagesOfOneBlock) {
  const KVBufferParams e = named("E K");
  const test::TokenCache tokens = cache_for(e, test::p16_of_512, 256);
  Block block(e, tokens, 128);
  for (std::int64_t b = 0; b < 16; ++b) {
    EXPECT_EQ(block.wave(0).kv_cache_iter().tile_start_row(), TokIdx{0});
    block.load_block(b % 2, b);
    for (std::size_t w = 0; w < block.waves(); ++w) block.wave(w).load_block_from_shared(StageIdx{b % 2}, b);
  }
  EXPECT_EQ(block.wave(0).kv_cache_iter().tile_start_row(), TokIdx{128});
  // Registers are those of a buffer whose stages hold the whole head.
  KVBufferParams whole = e;
  whole.full_kv = true;
  Block full(whole, tokens, 128);
  full.load(0);
  const std::vector<std::byte> expected = full.registers(0);
  std::size_t at = 0;
  for (std::size_t w = 0; w < block.waves(); ++w) {
    const auto registers = block.wave(w).register_bytes();
    EXPECT_TRUE(std::equal(registers.begin(), registers.end(), expected.begin() + static_cast<std::ptrdiff_t>(at)));
    at += registers.size();
  }
  // A plain load copies the first block and advances.
  block.wave(0).kv_cache_iter().set_tile_start_row(TokIdx{0});
  block.wave(0).load_from_dram<0>();
  EXPECT_EQ(block.wave(0).kv_cache_iter().tile_start_row(), TokIdx{128});
}

TEST(KVBuffer, WalksVsDepthLikewise) {
  for (const char* id : {"F-Vd", "G-Vd"}) {
    KVBufferParams p = named(id);
    p.depth = p.BK == 32 ? 80 : 256;  // the last block of 80 columns is half of one
    p.smem_depth = p.BK == 32 ? 96 : 256;
    const test::TokenCache tokens = cache_for(p, p16);
    Block full(p, tokens, 128);
    full.load(0);
    const std::vector<std::byte> expected = full.registers(0);
    p.full_kv = false;
    Block block(p, tokens, 128);
    std::vector<std::byte> registers;
    for (std::int64_t b = 0; b < (p.BK == 32 ? 3 : 2); ++b) {
      block.load_block(1, b);
      for (std::size_t w = 0; w < block.waves(); ++w) block.wave(w).load_block_from_shared(StageIdx{1}, b);
    }
    for (std::size_t w = 0; w < block.waves(); ++w) {
      const auto bytes = block.wave(w).register_bytes();
      registers.insert(registers.end(), bytes.begin(), bytes.end());
    }
    EXPECT_EQ(registers, expected) << id;
    EXPECT_EQ(block.wave(0).kv_cache_iter().tile_start_row(), TokIdx{128});
  }
}

TEST(KVBuffer, RejectsWhatItsConfigurationDoesNotHave) {
  const test::TokenCache tokens = cache_for(named("A K"), p16);
  Block block(named("A K"), tokens, 64);
  KVBuffer& wave = block.wave(0);
  EXPECT_EQ(message_of<GeometryError>([&] { wave.load_from_dram<2>(); }),
            "KVBuffer (K): stage 2 is outside [0, 2): num_smem_stages of the buffer");
  EXPECT_THROW(wave.load_from_dram(StageIdx{-1}), GeometryError);
  EXPECT_THROW(wave.load_from_shared(StageIdx{2}), GeometryError);
  EXPECT_THROW(wave.load_from_shared<0>(StageIdx{2}), GeometryError);
  EXPECT_THROW(wave.load_block(StageIdx{0}, 0), GeometryError);
  EXPECT_THROW(wave.load_block_from_shared(StageIdx{0}, 0), GeometryError);
  EXPECT_EQ(wave.kv_cache_iter().tile_start_row(), TokIdx{0});  // rejected calls do not move the cursor
  EXPECT_EQ(wave.smem_block_tile<32>(1, 6).offset, 13312);

  const auto slice = block.over(
      [] {
        KVBufferParams p = named("B V");
        p.depth_slices = 4;
        p.cache_depth = 128;
        p.depth = 32;
        return p;
      }(),
      tokens, WaveIdx{0});
  EXPECT_EQ(message_of<UnsupportedError>([&] { slice->load_from_dram(StageIdx{0}); }),
            "KVBuffer (V) of one wave never copies: load through the buffer that covers all of V");

  const test::TokenCache fp8 = cache_for(named("G-Vd"), test::p8k);
  Block v(named("G-Vd"), fp8, 128);
  v.load(0);
  EXPECT_EQ(message_of<UnsupportedError>([&] { v.wave(0).load_from_shared<0>(StageIdx{0}); }),
            "KVBuffer (V): 8-bit V of 16x16x128 is not loaded strip by strip: load the whole stage");
}

TEST(KVBuffer, RejectsACacheAWaveOrARegionThatDoesNotFitAllAtOnce) {
  const test::TokenCache tokens(DType::f16, 64, 1, 128, p16);
  SharedImage image(32768 + 8);
  PendingCopies pending(image, 4);
  const KVBufferConfig config(named("A K"));
  EXPECT_EQ(message_of<GeometryError>([&] {
              KVBuffer(config, tokens.cache(), SeqIdx{0}, HeadIdx{0}, {&pending, 24}, TokIdx{64}, WaveIdx{4});
            }),
            "KVBuffer (K) rejected, 4 faults:\n"
            "  k_cache: elements are f16, not bf16: use a cache of the buffer's type\n"
            "  warp_id: 4 is outside [0, 4): num_threads / 64 waves\n"
            "  smem_tile: byte 24 is not on a vector of 16: use 16\n"
            "  smem_tile: 32768 B from byte 24 on are not inside an image of 32776 B");
  EXPECT_THROW(KVBuffer(config, cache_for(named("D K"), p16).cache(), SeqIdx{0}, HeadIdx{0}, {&pending, 0}, TokIdx{64},
                        WaveIdx{0}),
               GeometryError);
}

// Two buffers in one image: K's region, then V's.
TEST(KVBuffer, KeepsToItsRegion) {
  const test::TokenCache tokens = cache_for(named("B V"), p16);
  SharedImage image(65536, std::byte{0xEE});
  PendingCopies pending(image, 4);
  const KVBufferConfig config(named("B V"));
  for (std::int64_t w = 0; w < 4; ++w) {
    KVBuffer v(config, tokens.cache(), SeqIdx{0}, HeadIdx{0}, {&pending, 32768}, TokIdx{64}, WaveIdx{w});
    v.load_from_dram<1>();
    pending.wait(WaveIdx{w}, 0);
  }
  for (std::int64_t byte = 0; byte < 65536; byte += 16) {
    ASSERT_EQ(image.writer(byte) == SharedImage::kNoCopy, byte < 32768 + 16384) << byte;
  }
  KVBuffer v(config, tokens.cache(), SeqIdx{0}, HeadIdx{0}, {&pending, 32768}, TokIdx{64}, WaveIdx{2});
  v.load_from_shared(StageIdx{1});
  EXPECT_EQ(register_bits(v, 50, 15, 6), 0x3e72U);
  EXPECT_EQ(v.last_sources().size(), 16U);  // every wave's four copies
  EXPECT_THAT(v.last_sources(), testing::Not(testing::Contains(SharedImage::kNoCopy)));
  v.load_from_shared(StageIdx{0});
  EXPECT_THAT(v.last_sources(), testing::ElementsAre(SharedImage::kNoCopy));
}

}  // namespace
}  // namespace kvscope::kv_buffer_test
