// Addresses of wmma loads and stores: strides, spaces, and reports of invalid ones. For values see
// kernels/wmma_test.cpp.
#include <gmock/gmock.h>

#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::wmma_memory_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kRegisters = "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}";

// Copies a tile of 16 x 16 floats from `from` to out, with these strides; 0: no stride operand.
Ran moved(const std::string& load, const std::string& from, int stride, int stride_of_out) {
  const auto tail = [](int s) { return s == 0 ? std::string() : ", " + std::to_string(s); };
  return run({.body = "mov.u32 %r10, s; mov.u64 %rd9, s; cvta.shared.u64 %rd10, %rd9;" + load + " " + kRegisters +
                      ", [" + from + "]" + tail(stride) + ";wmma.store.d.sync.aligned.row.m16n16k16.f32 [%rd0], " +
                      kRegisters + tail(stride_of_out) + ";",
              .in = counted(2048),
              .out_bytes = 2048});
}

TEST(WmmaMemory, WithoutAStrideLinesTouch) {
  const Ran ran = moved("wmma.load.c.sync.aligned.row.m16n16k16.f32", "%rd1", 0, 20);
  EXPECT_THAT(ran.messages, IsEmpty());
  const std::vector<std::byte> in = counted(2048);
  for (std::size_t i = 0; i < 2048; ++i) {
    const std::size_t row = i / 80, at = i % 80;
    EXPECT_EQ(ran.out[i], at < 64 && row < 16 ? in[64 * row + at] : std::byte{0}) << i;
  }
}

TEST(WmmaMemory, ColumnsOfOneAreRowsOfTheOther) {
  const Ran ran = moved("wmma.load.c.sync.aligned.col.m16n16k16.global.f32", "%rd1", 16, 16);
  EXPECT_THAT(ran.messages, IsEmpty());
  const std::vector<std::byte> in = counted(2048);
  for (std::size_t i = 0; i < 1024; ++i) EXPECT_EQ(ran.out[i], in[i / 4 % 16 * 64 + i / 64 * 4 + i % 4]) << i;
}

// Shared memory by its own address and by the generic one; only that of the own CTA.
TEST(WmmaMemory, ReachesSharedMemoryBothWays) {
  for (const char* way : {".shared", ""}) {
    const bool generic = *way == '\0';
    const Ran ran = run({.body = "mul.lo.u32 %r9, %r0, 32; mov.u32 %r10, s; add.u32 %r9, %r9, %r10;"
                                 "mad.lo.u32 %r1, %r0, 8, 1; mov.u64 %rd9, s; cvta.shared.u64 %rd10, %rd9;"
                                 "st.shared.v4.u32 [%r9], {%r1, %r1, %r1, %r1};"
                                 "st.shared.v4.u32 [%r9+16], {%r1, %r1, %r1, %r1}; bar.sync 0;" +
                                 std::string("wmma.load.c.sync.aligned.row.m16n16k16") + way + ".f32 " + kRegisters +
                                 (generic ? ", [%rd10];" : ", [%r10];") +
                                 "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd0], " + kRegisters + ";",
                         .out_bytes = 1024});
    EXPECT_THAT(ran.messages, IsEmpty());
    for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(ran.word(i), i / 8 * 8 + 1) << way << i;
  }
}

TEST(WmmaMemory, ABaseAndADistanceThatAreNotAlignedAreSaid) {
  EXPECT_THAT(moved("wmma.load.c.sync.aligned.row.m16n16k16.f32", "%rd1+16", 16, 16).messages,
              ElementsAre("MISALIGNED a matrix at 0x300000010: not a multiple of its fragment's 32 bytes"));
  EXPECT_THAT(moved("wmma.load.c.sync.aligned.row.m16n16k16.f32", "%rd1", 18, 16).messages,
              ElementsAre("MISALIGNED rows of a matrix 72 bytes apart: not a multiple of 16"));
  EXPECT_THAT(moved("wmma.load.c.sync.aligned.col.m16n16k16.f32", "%rd1", 17, 16).messages,
              ElementsAre("MISALIGNED columns of a matrix 68 bytes apart: not a multiple of 16"));
}

TEST(WmmaMemory, ATilePastAnArrayIsOutOfBoundsAndReadsAsFf) {
  const Ran ran = moved("wmma.load.c.sync.aligned.row.m16n16k16.f32", "%rd1+1088", 16, 16);
  EXPECT_THAT(ran.messages, ElementsAre("OUT_OF_BOUNDS 16 bytes at in + 2048 (size 2048)"));
  EXPECT_EQ(ran.word(239), 0x27262524u);
  EXPECT_EQ(ran.word(240), 0xffffffffu);
}

TEST(WmmaMemory, AllLanesNameOneMatrix) {
  EXPECT_THAT(moved("setp.eq.u32 %p1, %r0, 5; @%p1 add.u64 %rd1, %rd1, 32; wmma.load.c.sync.aligned.row.m16n16k16.f32",
                    "%rd1", 16, 16)
                  .messages,
              ElementsAre("DIVERGED lanes of a warp name different addresses of one matrix: 0x300000000 in lane 0, "
                          "0x300000020 in lane 5"));
}

}  // namespace
}  // namespace kvscope::ptx::test::wmma_memory_test
