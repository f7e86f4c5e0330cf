#include "core/staging/lds/lds_swizzle.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <optional>

#include "core/staging/lds/kv_buffer_config.h"

namespace kvscope::lds_swizzle_test {
namespace {

const Swizzle kAll[] = {{3, 0, 4}, {3, 0, 3}, {2, 0, 2}, {2, 0, 3}};

TEST(LdsSwizzle, MovesVectorsAsThePublishedTableSays) {
  const std::array<std::int64_t, 19> x{0, 4, 8, 9, 15, 16, 17, 21, 31, 32, 47, 48, 63, 64, 68, 80, 96, 112, 127};
  const std::array<std::array<std::int64_t, 19>, 4> expected{{
      {0, 4, 8, 9, 15, 17, 16, 20, 30, 34, 45, 51, 60, 68, 64, 85, 102, 119, 120},
      {0, 4, 9, 8, 14, 18, 19, 23, 28, 36, 42, 54, 56, 64, 68, 82, 100, 118, 120},
      {0, 5, 10, 11, 12, 16, 17, 20, 28, 32, 44, 48, 60, 64, 69, 80, 96, 112, 124},
      {0, 4, 9, 8, 14, 18, 19, 23, 28, 32, 46, 50, 60, 64, 68, 82, 96, 114, 124},
  }};
  for (std::size_t s = 0; s < 4; ++s) {
    for (std::size_t n = 0; n < x.size(); ++n) {
      EXPECT_EQ(swizzled_vector(kAll[s], x[n]), expected[s][n]) << kAll[s].text() << " of " << x[n];
    }
  }
  EXPECT_EQ(swizzled_vector(std::nullopt, 17), 17);
}

// On bytes it is (bits, base + 4, shift): the offset inside the vector is unchanged.
TEST(LdsSwizzle, KeepsThePlaceInsideAVector) {
  EXPECT_EQ(swizzled_byte(kAll[0], 340), 324);
  for (const Swizzle& s : kAll) {
    const Swizzle on_bytes(s.bits(), s.base() + 4, s.shift());
    for (std::int64_t byte = 0; byte < 8192; ++byte) ASSERT_EQ(swizzled_byte(s, byte), on_bytes(byte));
  }
  EXPECT_EQ(swizzled_byte(std::nullopt, 340), 340);
}

TEST(LdsSwizzle, ExchangesRowsTooWhereARowIsFourVectors) {
  EXPECT_EQ(swizzle_effect(kAll[0], 64), "c0^=r2, c1^=r3, r0^=r4");
  EXPECT_EQ(swizzle_effect(kAll[1], 64), "c0^=r1, c1^=r2, r0^=r3");
  EXPECT_EQ(swizzle_effect(kAll[2], 64), "c0^=r0, c1^=r1");
  EXPECT_EQ(swizzle_effect(kAll[3], 64), "c0^=r1, c1^=r2");
  EXPECT_EQ(swizzle_effect(kAll[0], 128), "c0^=r1, c1^=r2, c2^=r3");
  EXPECT_EQ(swizzle_effect(kAll[1], 128), "c0^=r0, c1^=r1, c2^=r2");
  EXPECT_EQ(swizzle_effect(kAll[2], 128), "c0^=c2, c1^=r0");
  EXPECT_EQ(swizzle_effect(kAll[3], 128), "c0^=r0, c1^=r1");
}

TEST(LdsSwizzle, IsTheOneTheKernelsUse) {
  const std::optional<Swizzle> none, wide = kAll[0], narrow = kAll[1];
  EXPECT_EQ(usual_swizzle(LdsKernel::prefill, true, 32), wide);
  EXPECT_EQ(usual_swizzle(LdsKernel::prefill, true, 16), none);
  EXPECT_EQ(usual_swizzle(LdsKernel::prefill, false, 32), none);
  EXPECT_EQ(usual_swizzle(LdsKernel::latent_prefill_fp8, false, 32), wide);
  EXPECT_EQ(usual_swizzle(LdsKernel::latent_prefill_fp8, false, 16), none);
  EXPECT_EQ(usual_swizzle(LdsKernel::decode, true, 32), wide);
  EXPECT_EQ(usual_swizzle(LdsKernel::decode, true, 16), narrow);
  EXPECT_EQ(usual_swizzle(LdsKernel::decode, false, 16), none);
  EXPECT_EQ(usual_swizzle(LdsKernel::latent_decode, false, 16), narrow);
  EXPECT_EQ(usual_swizzle(LdsKernel::latent_decode, true, 32), wide);
  EXPECT_EQ(usual_swizzle(LdsKernel::streaming_decode, true, 16), kAll[2]);
  EXPECT_EQ(usual_swizzle(LdsKernel::streaming_decode, false, 16), none);
}

// Why the period of a swizzle must fit in a reader's rows: 16 rows of 64 bytes are 64 vectors, but (3,0,4) has a period
// of 128. The reader counts from its sub-tile, the writer from one of 32 rows: half of all lane reads would find the
// vector of another element.
TEST(LdsSwizzle, LosesHalfTheReadsWhenItDoesNotCloseWithinTheReadersRows) {
  const Swizzle s = kAll[0];
  int wrong = 0, all = 0;
  for (int wave = 0; wave < 4; ++wave) {
    for (int strip = 0; strip < 2; ++strip) {
      for (int i = 0; i < 2; ++i) {
        for (int lane = 0; lane < 64; ++lane, ++all) {
          const int row = 32 * wave + 16 * i + lane % 16, column = lane / 16;
          const std::int64_t in_reader = (row % 16) * 4 + column, in_writer = (row % 32) * 4 + column;
          const std::int64_t read = row / 16 * 64 + s(in_reader), written = row / 32 * 128 + s(in_writer);
          wrong += read != written ? 1 : 0;
        }
      }
    }
  }
  EXPECT_EQ(all, 1024);
  EXPECT_EQ(wrong, 512);
}

}  // namespace
}  // namespace kvscope::lds_swizzle_test
