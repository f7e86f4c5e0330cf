#include "core/staging/lds/pending_copies.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/core/staging/lds/support.h"

namespace kvscope::pending_copies_test {
namespace {

using test::Block;
using test::cache_for;
using test::message_of;
using test::named;
using test::p16;

// The old bytes stay until the copy lands. Copies land in the order of issue, until `count` of them remain.
TEST(PendingCopies, LandOldestFirstAndOnlyDownToTheCount) {
  const test::TokenCache tokens = cache_for(named("A K"), p16, 128);
  Block block(named("A K"), tokens, 128);
  PendingCopies& pending = block.pending();
  block.wave(0).load_from_dram<0>();
  block.wave(0).load_from_dram<1>();
  EXPECT_EQ(pending.outstanding(WaveIdx{0}), 8);
  EXPECT_EQ(pending.outstanding(WaveIdx{1}), 0);
  EXPECT_EQ(block.image().writer(0), SharedImage::kNoCopy);

  pending.wait(WaveIdx{0}, 8);
  EXPECT_EQ(block.image().writer(0), SharedImage::kNoCopy);
  pending.wait(WaveIdx{0}, 7);
  EXPECT_EQ(block.image().writer(0), CopyIdx{0});
  EXPECT_EQ(block.image().writer(1024), SharedImage::kNoCopy);
  pending.wait(WaveIdx{1}, 0);  // another wave's wait lands nothing of this one's
  EXPECT_EQ(pending.outstanding(WaveIdx{0}), 7);
  pending.wait(WaveIdx{0}, 4);
  EXPECT_EQ(block.image().writer(3072), CopyIdx{3});
  EXPECT_EQ(block.image().writer(16384), SharedImage::kNoCopy);
  EXPECT_EQ(block.image().bytes()[0], std::byte{0});
  EXPECT_TRUE(pending.land_oldest(WaveIdx{0}));
  EXPECT_EQ(block.image().writer(16384), CopyIdx{4});
  pending.wait(WaveIdx{0}, 0);
  EXPECT_FALSE(pending.land_oldest(WaveIdx{0}));
  EXPECT_EQ(pending.record(CopyIdx{4}).origin,
            (CopyOrigin{.operand = KOrV::k, .tile_start = TokIdx{64}, .stage = StageIdx{1}}));
  EXPECT_EQ(pending.record(CopyIdx{4}).first_byte, 16384);
  EXPECT_TRUE(pending.races().empty());
}

TEST(PendingCopies, BringTheTileAsItWasWhenIssued) {
  test::TokenCache tokens = cache_for(named("A K"), p16);
  Block block(named("A K"), tokens, 64);
  block.wave(0).load_from_dram<0>();
  for (std::byte& byte : tokens.pool) byte = std::byte{0x77};
  block.pending().wait(WaveIdx{0}, 0);
  EXPECT_EQ(block.image().bytes()[65], std::byte{1});  // key 1
}

// The reader has waited for its own copies; another wave's part of the tile is still in flight.
TEST(PendingCopies, ReportAReadOfWhatAnotherWaveHasToBring) {
  const test::TokenCache tokens = cache_for(named("A K"), p16);
  Block block(named("A K"), tokens, 64);
  for (std::size_t w = 0; w < 4; ++w) block.wave(w).load_from_dram<0>();
  for (std::int64_t w = 0; w < 3; ++w) block.pending().wait(WaveIdx{w}, 0);
  block.wave(2).load_from_shared<2>(StageIdx{0});  // block 2 is wave 2's
  EXPECT_TRUE(block.pending().races().empty());
  block.wave(2).load_from_shared<3>(StageIdx{0});  // keys 0..31 of block 3
  ASSERT_EQ(block.pending().races().size(), 2U);
  EXPECT_EQ(to_text(block.pending().races()[0]),
            "wave 2 reads byte 0x3000 before copy 12 of wave 3 has written it (K, tile at token 0, stage 0)");
  EXPECT_EQ(block.pending().races()[1].copy, CopyIdx{13});
  EXPECT_EQ(block.pending().races()[1].writer, WaveIdx{3});
  EXPECT_EQ(test::register_bits(block.wave(2), 0, 6, 0), 0xEEEEU);  // the old bytes
  block.wave(2).load_from_shared<3>(StageIdx{0});
  EXPECT_EQ(block.pending().races().size(), 2U);  // once a (reader, copy)
  block.wave(0).load_from_shared<3>(StageIdx{0});
  EXPECT_EQ(block.pending().races().size(), 4U);
}

// A copy that has landed does not make a read safe while the next copy to the same bytes is pending.
TEST(PendingCopies, ReportAStageThatIsBeingOverwritten) {
  const test::TokenCache tokens = cache_for(named("A K"), p16, 128);
  Block block(named("A K"), tokens, 128);
  block.load(0);
  block.wave(1).load_from_dram<0>();
  block.wave(0).load_from_shared<0>(StageIdx{0});
  EXPECT_TRUE(block.pending().races().empty());  // wave 1 brings block 1
  block.wave(0).load_from_shared<1>(StageIdx{0});
  ASSERT_EQ(block.pending().races().size(), 2U);
  EXPECT_EQ(block.pending().races()[0].origin.tile_start, TokIdx{64});
}

TEST(PendingCopies, RejectCountsTheFieldCannotHoldAndWavesThereAreNot) {
  SharedImage image(4096);
  PendingCopies pending(image, 2);
  EXPECT_EQ(message_of<GeometryError>([&] { pending.wait(WaveIdx{0}, 64); }),
            "vmcnt(64) is outside [0, 63], the 6 bits of its field: wait for fewer");
  EXPECT_THROW(pending.wait(WaveIdx{0}, -1), GeometryError);
  EXPECT_NO_THROW(pending.wait(WaveIdx{0}, 63));
  EXPECT_EQ(message_of<IndexError>([&] { pending.wait(WaveIdx{2}, 0); }),
            "wave 2 is outside [0, 2): waves of the block");
  EXPECT_THROW((void)pending.outstanding(WaveIdx{-1}), IndexError);
  EXPECT_THROW((void)pending.record(CopyIdx{0}), IndexError);
  EXPECT_EQ(message_of<GeometryError>([&] { PendingCopies none(image, 0); }), "PendingCopies: 0 waves: give 1 or more");
  // An instruction that leaves the image is not queued.
  const KVBufferConfig config(named("A K"));
  const test::TokenCache tokens = cache_for(named("A K"), p16);
  const auto copies =
      copy_instructions(config, WaveIdx{1}, StageIdx{0}, {.valid_rows = 64, .row_stride = 128, .depth = 128});
  EXPECT_THROW(pending.issue({}, copies[0], 0, tokens.pool.data()), IndexError);
  EXPECT_EQ(pending.outstanding(WaveIdx{1}), 0);
}

}  // namespace
}  // namespace kvscope::pending_copies_test
