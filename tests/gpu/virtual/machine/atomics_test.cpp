#include <gmock/gmock.h>

#include <algorithm>
#include <bit>

#include "gpu/virtual/machine/memory/detail/reduction.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::atomics_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One thread, one element: the old and the new value.
struct Row {
  std::string word;
  std::uint32_t memory, b, c, after;
};

TEST(Atomics, EveryOperationOfOneWord) {
  const std::vector<Row> rows = {
      {"add.u32", 0xffffffff, 2, 0, 1},
      {"add.s32", 0x7fffffff, 1, 0, 0x80000000},
      {"min.u32", 0x80000000, 1, 0, 1},
      {"min.s32", 0x80000000, 1, 0, 0x80000000},
      {"max.u32", 0x80000000, 1, 0, 0x80000000},
      {"max.s32", 0x80000000, 1, 0, 1},
      {"inc.u32", 4, 5, 0, 5},
      {"inc.u32", 5, 5, 0, 0},
      {"inc.u32", 6, 5, 0, 0},
      {"dec.u32", 0, 5, 0, 5},
      {"dec.u32", 6, 5, 0, 5},
      {"dec.u32", 5, 5, 0, 4},
      {"and.b32", 0xff00ff00, 0x0ff00ff0, 0, 0x0f000f00},
      {"or.b32", 0xff00ff00, 0x0ff00ff0, 0, 0xfff0fff0},
      {"xor.b32", 0xff00ff00, 0x0ff00ff0, 0, 0xf0f0f0f0},
      {"exch.b32", 1, 2, 0, 2},
      {"cas.b32", 7, 7, 9, 9},
      {"cas.b32", 8, 7, 9, 8},
      {"add.f32", 0x3f800000, 0x40000000, 0, 0x40400000},
      {"add.noftz.f16x2", 0x3c003c01, 0x3c001400, 0, 0x40003c02},
      {"add.noftz.bf16x2", 0x3f803f80, 0x3f803b80, 0, 0x40003f80},
  };
  for (const Row& row : rows) {
    const bool cas = row.word.starts_with("cas");
    const std::string type = row.word.ends_with("f32") ? "%f" : "%r";
    const std::string load = row.word.ends_with("f32") ? "f32" : "u32";
    for (const std::string space : {"global", "shared"}) {
      const std::string at = space == "global" ? "[%rd1]" : "[s]";
      const Ran ran = run({.body = "ld.global." + load + " " + type + "2, [%rd1+4]; ld.global.u32 %r3, [%rd1+8];" +
                                   (space == "shared" ? "ld.global.u32 %r5, [%rd1]; st.shared.u32 [s], %r5;" : "") +
                                   "atom." + space + "." + row.word + " " + type + "1, " + at + ", " + type + "2" +
                                   (cas ? ", %r3" : "") + "; st.global." + load + " [%rd0], " + type + "1; ld." +
                                   space + ".u32 %r4, " + at + "; st.global.u32 [%rd0+4], %r4;",
                           .in = words({row.memory, row.b, row.c}),
                           .threads = 1});
      EXPECT_THAT(ran.messages, IsEmpty()) << row.word;
      EXPECT_EQ(ran.word(0), row.memory) << row.word << ' ' << space;
      EXPECT_EQ(ran.word(1), row.after) << row.word << ' ' << space;
    }
  }
}

// f32 add in global memory flushes subnormals, in shared memory it keeps them.
TEST(Atomics, F32AddFlushesSubnormalsInGlobalMemoryOnly) {
  const Ran ran = run({.body = R"(
    ld.global.f32 %f1, [%rd1+4];
    red.global.add.f32 [%rd1], %f1;
    ld.global.f32 %f2, [%rd1+4];
    st.shared.f32 [s], %f2;
    red.shared.add.f32 [s], %f1;
    ld.shared.f32 %f3, [s];
    st.global.f32 [%rd0], %f3;)",
                       .in = words({0x00000200, 0x00000200}),
                       .threads = 1});  // 2^-140
  EXPECT_THAT(ran.messages, IsEmpty());
  std::uint32_t global;
  std::memcpy(&global, ran.in.data(), 4);
  EXPECT_EQ(global, 0u);
  EXPECT_EQ(ran.word(0), 0x00000400u);  // 2^-139
}

// Normal numbers with a subnormal sum: 1.5 * 2^-126 - 2^-126 = 2^-127.
TEST(Atomics, F32AddFlushesASubnormalSumInGlobalMemoryOnly) {
  const Ran ran = run({.body = R"(
    ld.global.f32 %f2, [%rd1];
    ld.global.f32 %f1, [%rd1+4];
    red.global.add.f32 [%rd1], %f1;
    st.shared.f32 [s], %f2;
    red.shared.add.f32 [s], %f1;
    ld.shared.f32 %f3, [s];
    st.global.f32 [%rd0], %f3;)",
                       .in = words({0x00c00000, 0x80800000}),
                       .threads = 1});
  EXPECT_THAT(ran.messages, IsEmpty());
  std::uint32_t global;
  std::memcpy(&global, ran.in.data(), 4);
  EXPECT_EQ(global, 0u);
  EXPECT_EQ(ran.word(0), 0x00400000u);
}

// Lanes execute one after the other, in ascending order: each reads the results of earlier lanes.
TEST(Atomics, LanesOfOneInstructionComeInOrder) {
  const Ran ran = run({.body = R"(
    atom.global.add.u32 %r1, [%rd1], %r0;
    mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd2, %rd0, %rd2;
    st.global.u32 [%rd2], %r1;)",
                       .in = words({100}),
                       .out_bytes = 128});
  EXPECT_THAT(ran.messages, IsEmpty());
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(ran.word(i), 100 + i * (i - 1) / 2) << i;
}

TEST(Atomics, VectorsAndWideOnes) {
  const Ran ran = run({.body = R"(
    mov.f32 %f1, 0f3F800000;
    atom.global.add.v4.f32 {%f2, %f3, %f4, %f5}, [%rd1], {%f1, %f1, %f1, %f1};
    st.global.v4.f32 [%rd0], {%f2, %f3, %f4, %f5};
    red.global.add.v2.f32 [%rd1], {%f1, %f1};
    mov.u64 %rd2, 0x100000002; mov.u64 %rd3, 5;
    atom.global.add.u64 %rd4, [%rd1+16], %rd2;
    atom.global.cas.b64 %rd5, [%rd1+16], %rd2, %rd3;
    st.global.u64 [%rd0+16], %rd5;
    mov.b128 %rq1, {%rd3, %rd2};
    atom.global.exch.b128 %rq2, [%rd1+32], %rq1;
    mov.b16 %rs1, 0x0000; mov.b16 %rs2, 0x1234;
    atom.global.cas.b16 %rs3, [%rd1+50], %rs1, %rs2;
    atom.global.min.s64 %rd7, [%rd1+24], -3;)",
                       .in = std::vector<std::byte>(64),
                       .threads = 1});
  EXPECT_THAT(ran.messages, IsEmpty());
  std::array<std::uint32_t, 16> in;
  std::memcpy(in.data(), ran.in.data(), 64);
  EXPECT_EQ(in[0], 0x40000000u);
  EXPECT_EQ(in[1], 0x40000000u);
  EXPECT_EQ(in[2], 0x3f800000u);
  EXPECT_EQ(in[3], 0x3f800000u);
  EXPECT_EQ(ran.word(0), 0u);
  EXPECT_EQ(ran.at<std::uint64_t>(2), 0x100000002u);
  EXPECT_EQ(in[4], 5u);
  EXPECT_EQ(in[6], 0xfffffffdu);
  EXPECT_EQ(in[8], 5u);
  EXPECT_EQ(in[10], 2u);
  EXPECT_EQ(in[11], 1u);
  EXPECT_EQ(in[12], 0x12340000u);
}

TEST(Atomics, ALocalOrMisalignedAddressIsReported) {
  const Ran ran = run({.body = R"(
    .local .align 8 .b8 mine[16];
    mov.u64 %rd4, mine;    cvta.local.u64 %rd5, %rd4;
    atom.add.u32 %r1, [%rd5], 1;
    atom.global.add.u64 %rd6, [%rd1+4], 1;)",
                       .threads = 1});
  ASSERT_EQ(ran.messages.size(), 2u);
  EXPECT_EQ(ran.messages[0], "BAD_WINDOW atomic of 4 bytes in local, which no two threads share");
  EXPECT_TRUE(ran.messages[1].starts_with("MISALIGNED 8-byte access at 0x3")) << ran.messages[1];
}

// If one operand is a NaN the other is the result, and -0 is below +0.
TEST(Reductions, HalvesOrderZerosAndDropNan) {
  const auto half = [](ReduceOp op, std::uint16_t r, std::uint16_t x) {
    std::byte memory[2], b[2];
    std::memcpy(memory, &r, 2);
    std::memcpy(b, &x, 2);
    find_reduce(op, Type::f16)(memory, b, nullptr, false);
    std::uint16_t result;
    std::memcpy(&result, memory, 2);
    return result;
  };
  EXPECT_EQ(half(ReduceOp::min, 0x0000, 0x8000), 0x8000);
  EXPECT_EQ(half(ReduceOp::min, 0x8000, 0x0000), 0x8000);
  EXPECT_EQ(half(ReduceOp::max, 0x0000, 0x8000), 0x0000);
  EXPECT_EQ(half(ReduceOp::max, 0x8000, 0x0000), 0x0000);
  EXPECT_EQ(half(ReduceOp::max, 0x7e01, 0x3c00), 0x3c00);
  EXPECT_EQ(half(ReduceOp::max, 0x3c00, 0x7e01), 0x3c00);
  EXPECT_EQ(half(ReduceOp::add, 0x7c00, 0xfc00), 0x7fff);
  EXPECT_EQ(half(ReduceOp::add, 0x7bff, 0x7bff), 0x7c00);
}

}  // namespace
}  // namespace kvscope::ptx::test::atomics_test
