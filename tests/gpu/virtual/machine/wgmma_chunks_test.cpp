// Where an operand of wgmma is read: the worked descriptors, element by element out of 16-byte chunks.
#include <gtest/gtest.h>

#include "gpu/virtual/machine/matrix/wgmma.h"

namespace kvscope::ptx::wgmma_chunks_test {
namespace {

// Byte of bf16 element (mn, k), by the chunk that holds it.
std::uint64_t byte_of(std::uint64_t descriptor, bool mn_major, int mn, int k) {
  for (const WgmmaChunk& c : wgmma_chunks(descriptor, mn_major, 16, 0, 128, 16)) {
    const int along = mn_major ? mn - c.mn : k - c.k, across = mn_major ? k - c.k : mn - c.mn;
    if (across == 0 && along >= 0 && along < 8) return c.offset + 2 * static_cast<std::uint64_t>(along);
  }
  return ~std::uint64_t{0};
}

TEST(WgmmaChunks, ContainTheWorkedPoints) {
  EXPECT_EQ(byte_of(0x4000004000010040, false, 9, 5), 2202u);
  EXPECT_EQ(byte_of(0x4000004000010040, false, 63, 15), 9198u);
  EXPECT_EQ(byte_of(0x4000004000010042, false, 9, 5), 2234u);
  EXPECT_EQ(byte_of(0x4000004002000040, true, 70, 9), 10396u);
  EXPECT_EQ(byte_of(0x4000004002000040, true, 5, 15), 3066u);
  EXPECT_EQ(byte_of(0x4000004002000040, true, 64, 0), 9216u);
  EXPECT_EQ(byte_of(0x8000002000010040, false, 9, 5), 1610u);
  EXPECT_EQ(byte_of(0x8000002000010040, false, 13, 15), 1918u);
  EXPECT_EQ(byte_of(0xc000001000010040, false, 9, 5), 1322u);
  EXPECT_EQ(byte_of(0xc000001000010040, false, 15, 15), 1518u);
  EXPECT_EQ(byte_of(0x0000001000080040, false, 9, 5), 1306u);
  EXPECT_EQ(byte_of(0x0000001000080040, false, 15, 15), 1534u);
  EXPECT_EQ(byte_of(0x0000000800400040, true, 9, 5), 1234u);
  EXPECT_EQ(byte_of(0x0000000800400040, true, 15, 15), 2302u);
}

}  // namespace
}  // namespace kvscope::ptx::wgmma_chunks_test
