// discard: bytes of global memory that are undefined until they are written again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gpu/virtual/check/watched.h"

namespace kvscope::ptx::test::discard_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One thread; %rd0 points to memory that the host has written.
std::vector<std::string> said(const std::string& body) {
  return watch({.body = body, .threads = 1, .checks = {.init = true}}).races;
}

TEST(Discard, BytesAreUninitializedUntilTheyAreWritten) {
  EXPECT_THAT(said("discard.global.L2 [%rd0+128], 128;\nld.global.u32 %r4, [%rd0+132];\nst.global.u32 [%rd0], %r4;"),
              ElementsAre("UNINITIALIZED x+132 4: read thread 0 (warp 0 lane 0) k.ptx:2; used thread 0 (warp 0 lane 0) "
                          "k.ptx:3"));
  EXPECT_THAT(
      said("discard.global.L2 [%rd0+128], 128;\nst.global.u32 [%rd0+132], %r0;\nld.global.u32 %r4, [%rd0+132];\n"
           "st.global.u32 [%rd0], %r4;"),
      IsEmpty());
}

TEST(Discard, AffectsExactlyItsHundredAndTwentyEightBytes) {
  EXPECT_THAT(
      said("discard.global.L2 [%rd0+128], 128;\nld.global.u32 %r4, [%rd0+124];\nld.global.u32 %r5, [%rd0+256];\n"
           "add.u32 %r4, %r4, %r5;\nst.global.u32 [%rd0], %r4;"),
      IsEmpty());
  EXPECT_THAT(said("discard.global.L2 [%rd0+128], 128;\nld.global.u64 %rd4, [%rd0+248];\nst.global.u64 [%rd0], %rd4;"),
              ElementsAre("UNINITIALIZED x+248 8: read thread 0 (warp 0 lane 0) k.ptx:2; used thread 0 (warp 0 lane 0) "
                          "k.ptx:3"));
}

TEST(Discard, WithoutOneMemoryOfTheHostIsWritten) {
  EXPECT_THAT(said("ld.global.u32 %r4, [%rd0+132];\nst.global.u32 [%rd0], %r4;"), IsEmpty());
}

}  // namespace
}  // namespace kvscope::ptx::test::discard_test
