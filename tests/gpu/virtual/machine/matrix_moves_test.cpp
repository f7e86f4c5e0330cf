#include <gmock/gmock.h>

#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::matrix_moves_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Copies 512 bytes of `in` to s, 16 bytes per lane, and computes the row address of each lane in %r10.
constexpr const char* kFill = R"(
  mul.lo.u32 %r9, %r0, 16;
  cvt.u64.u32 %rd9, %r9;
  add.s64 %rd8, %rd1, %rd9;
  ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd8];
  mov.u32 %r10, s;
  add.u32 %r10, %r10, %r9;
  st.shared.v4.u32 [%r10], {%r20, %r21, %r22, %r23};
  bar.sync 0;
  add.s64 %rd7, %rd0, %rd9;
)";

TEST(Ldmatrix, GivesThePublishedRegisters) {
  for (const bool trans : {false, true}) {
    const Ran ran = run({.body = std::string(kFill) + "ldmatrix.sync.aligned.m8n8.x4" + (trans ? ".trans" : "") +
                                 ".shared.b16 {%r1, %r2, %r3, %r4}, [%r10];"
                                 "st.global.v4.u32 [%rd7], {%r1, %r2, %r3, %r4};",
                         .in = counted(512),
                         .out_bytes = 512});
    EXPECT_THAT(ran.messages, IsEmpty());
    EXPECT_EQ(ran.word(4 * 5 + 1), trans ? 0xb3b2a3a2u : 0x97969594u);
    EXPECT_EQ(ran.word(4 * 31 + 3), trans ? 0x0908f4f3u : 0x09080706u);
  }
}

// Word t of row g, or halfwords (2t, g) and (2t + 1, g), for each matrix: plain loops.
TEST(Ldmatrix, EveryLaneOfEveryMatrixFollowsTheDefinition) {
  const std::vector<std::byte> in = counted(512);
  for (const int count : {1, 2, 4}) {
    for (const bool trans : {false, true}) {
      const std::string regs = count == 1 ? "{%r1}" : count == 2 ? "{%r1, %r2}" : "{%r1, %r2, %r3, %r4}";
      // Lanes past the rows name no rows: their addresses are not checked.
      const Ran ran = run({.body = std::string(kFill) + "setp.ge.u32 %p0, %r0, " + std::to_string(8 * count) +
                                   "; @%p0 mov.u32 %r10, 3; ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) +
                                   (trans ? ".trans" : "") + ".shared.b16 " + regs +
                                   ", [%r10]; st.global.v4.u32 [%rd7], {%r1, %r2, %r3, %r4};",
                           .in = in,
                           .out_bytes = 512});
      EXPECT_THAT(ran.messages, IsEmpty());
      for (std::size_t lane = 0; lane < 32; ++lane) {
        const std::size_t g = lane / 4, t = lane % 4;
        for (std::size_t m = 0; m < static_cast<std::size_t>(count); ++m) {
          std::array<std::uint16_t, 2> expected;
          for (std::size_t h = 0; h < 2; ++h) {
            const std::size_t row = trans ? 2 * t + h : g, column = trans ? g : 2 * t + h;
            std::memcpy(&expected[h], in.data() + 16 * (8 * m + row) + 2 * column, 2);
          }
          EXPECT_EQ(ran.word(4 * lane + m), expected[0] | static_cast<std::uint32_t>(expected[1]) << 16);
        }
      }
    }
  }
}

TEST(Stmatrix, IsTheWayBack) {
  for (const char* trans : {"", ".trans"}) {
    const Ran ran = run({.body = std::string(kFill) + "ldmatrix.sync.aligned.m8n8.x4" + trans +
                                 ".shared.b16 {%r1, %r2, %r3, %r4}, [%r10]; bar.sync 0;"
                                 "mov.u32 %r30, 0; st.shared.v4.u32 [%r10], {%r30, %r30, %r30, %r30}; bar.sync 0;"
                                 "stmatrix.sync.aligned.m8n8.x4" +
                                 trans +
                                 ".shared.b16 [%r10], {%r1, %r2, %r3, %r4}; bar.sync 0;"
                                 "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r10];"
                                 "st.global.v4.u32 [%rd7], {%r1, %r2, %r3, %r4};",
                         .in = counted(512),
                         .out_bytes = 512});
    EXPECT_THAT(ran.messages, IsEmpty());
    EXPECT_EQ(ran.out, counted(512));
  }
}

TEST(Ldmatrix, ARowIsSixteenBytesAtAMultipleOfSixteen) {
  const Ran ran = run({.body = R"(
    mov.u32 %r1, s;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1+8];
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1+4096];)"});
  EXPECT_THAT(ran.messages,
              ElementsAre("MISALIGNED 16-byte access at shared 0x00408 (s + 8): not a multiple of 16",
                          "OUT_OF_BOUNDS 16 bytes at shared 0x01400: the CTA has 0x00400 to 0x01400 (size 4096)"));
}

}  // namespace
}  // namespace kvscope::ptx::test::matrix_moves_test
