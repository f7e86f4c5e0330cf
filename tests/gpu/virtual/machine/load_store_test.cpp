#include <gmock/gmock.h>

#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::load_store_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kOwnWord = R"(
  mul.wide.u32 %rd2, %r0, 4;
  add.s64 %rd3, %rd0, %rd2;
  add.s64 %rd4, %rd1, %rd2;
)";

// Detects a handler that copies a whole row although some lanes are inactive.
TEST(Loads, GuardedLanesTouchNothing) {
  std::vector<std::uint32_t> in(32);
  for (std::uint32_t i = 0; i < 32; ++i) in[i] = 100 + i;
  const Ran ran = run({.body = std::string(kOwnWord) + R"(
    setp.lt.u32 %p0, %r0, 5;
    mov.u32 %r1, 9;
    @%p0 ld.global.u32 %r1, [%rd4];
    st.global.u32 [%rd3], %r1;)",
                       .in = words(in),
                       .out_bytes = 128});
  EXPECT_THAT(ran.messages, IsEmpty());
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(ran.word(i), i < 5 ? 100 + i : 9) << i;
}

// A lane whose guard is false may have any address.
TEST(Loads, GuardedLanesMayPointAnywhere) {
  const Ran ran = run({.body = R"(
    setp.eq.u32 %p0, %r0, 3;
    mov.u64 %rd5, 12345;
    selp.b64 %rd5, %rd1, %rd5, %p0;
    @%p0 ld.global.u32 %r1, [%rd5];
    @%p0 st.global.u32 [%rd0], %r1;)",
                       .in = words({7})});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.word(0), 7u);
}

// Sign and zero extension depend on the instruction's type, up to the width of the register.
TEST(Loads, NarrowTypesFillTheirRegister) {
  const Ran ran = run({.body = R"(
    ld.global.s8 %r1, [%rd1];       st.global.u32 [%rd0], %r1;
    ld.global.u8 %r2, [%rd1];       st.global.u32 [%rd0+4], %r2;
    ld.global.s16 %r3, [%rd1];      st.global.u32 [%rd0+8], %r3;
    ld.global.u16 %r4, [%rd1];      st.global.u32 [%rd0+12], %r4;
    ld.global.s8 %rs1, [%rd1];      st.global.u16 [%rd0+16], %rs1;
    ld.global.s32 %rd2, [%rd1];     st.global.u64 [%rd0+24], %rd2;
    ld.global.u32 %rd3, [%rd1];     st.global.u64 [%rd0+32], %rd3;
    ld.global.s8 %rd4, [%rd1];      st.global.u64 [%rd0+40], %rd4;
    mov.u32 %r5, 0x12345678;        st.global.u8 [%rd0+48], %r5;
    st.global.u16 [%rd0+50], %r5;)",
                       .in = words({0x8001'fe80}),
                       .threads = 1});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.word(0), 0xffffff80u);
  EXPECT_EQ(ran.word(1), 0x80u);
  EXPECT_EQ(ran.word(2), 0xfffffe80u);
  EXPECT_EQ(ran.word(3), 0xfe80u);
  EXPECT_EQ(ran.at<std::uint16_t>(8), 0xff80u);
  EXPECT_EQ(ran.at<std::uint64_t>(3), 0xffffffff8001fe80u);
  EXPECT_EQ(ran.at<std::uint64_t>(4), 0x8001fe80u);
  EXPECT_EQ(ran.at<std::uint64_t>(5), 0xffffffffffffff80u);
  EXPECT_EQ(ran.word(12), 0x56780078u);
}

// ptxas accepts the address of a variable as an operand of 128 bits.
TEST(Loads, AnAddressOf128BitsHasZerosAbove) {
  const Ran ran = run({.body = R"(
    mov.b128 %rq1, s;
    mov.b128 {%rd2, %rd3}, %rq1;
    mov.u64 %rd4, s;
    setp.eq.u32 %p0, %r0, 31;
    @%p0 st.global.u64 [%rd0], %rd2;
    @%p0 st.global.u64 [%rd0+8], %rd3;
    @%p0 st.global.u64 [%rd0+16], %rd4;)"});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.at<std::uint64_t>(0), ran.at<std::uint64_t>(2));
  EXPECT_NE(ran.at<std::uint64_t>(0), 0u);
  EXPECT_EQ(ran.at<std::uint64_t>(1), 0u);
}

// In a cluster the address depends on the rank, so it is filled in when the CTA begins.
TEST(Loads, AnAddressOf128BitsInAClusterHasTheRank) {
  const Ran ran = run({.body = R"(
    mov.b128 %rq1, s;
    mov.b128 {%rd2, %rd3}, %rq1;
    mov.u64 %rd4, s;
    mov.u32 %r1, %cluster_ctarank;
    mul.wide.u32 %rd5, %r1, 24;
    add.u64 %rd5, %rd5, %rd0;
    setp.eq.u32 %p0, %r0, 31;
    @%p0 st.global.u64 [%rd5], %rd2;
    @%p0 st.global.u64 [%rd5+8], %rd3;
    @%p0 st.global.u64 [%rd5+16], %rd4;)",
                       .grid = 2,
                       .cluster = {2, 1, 1}});
  EXPECT_THAT(ran.messages, IsEmpty());
  for (const std::size_t rank : {0, 1}) {
    EXPECT_EQ(ran.at<std::uint64_t>(3 * rank), ran.at<std::uint64_t>(3 * rank + 2)) << rank;
    EXPECT_EQ(ran.at<std::uint64_t>(3 * rank + 1), 0u) << rank;
  }
  EXPECT_EQ(ran.at<std::uint64_t>(3) - ran.at<std::uint64_t>(0), std::uint64_t{1} << 24);
}

TEST(Loads, VectorsOfEveryLaneComeApartInOrder) {
  const Ran ran = run({.body = R"(
    mul.wide.u32 %rd2, %r0, 16;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.v4.u32 {%r1, %r2, _, %r4}, [%rd3];
    add.s64 %rd4, %rd0, %rd2;
    st.global.v4.u32 [%rd4], {%r4, %r2, %r1, 77};)",
                       .in = counted(512),
                       .out_bytes = 512});
  EXPECT_THAT(ran.messages, IsEmpty());
  const std::vector<std::byte> in = counted(512);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    std::array<std::uint32_t, 4> v;
    std::memcpy(v.data(), in.data() + 16 * lane, 16);
    EXPECT_EQ(ran.word(4 * lane), v[3]) << lane;
    EXPECT_EQ(ran.word(4 * lane + 1), v[1]);
    EXPECT_EQ(ran.word(4 * lane + 2), v[0]);
    EXPECT_EQ(ran.word(4 * lane + 3), 77u);
  }
}

// Eight bytes of a 16-byte access in one lane only: every lane is checked, including the last one.
TEST(Bounds, OneByteBehindAnAllocationIsReported) {
  const Ran ran = run({.body = std::string(kOwnWord) + R"(
    ld.global.u32 %r1, [%rd4+4];
    st.global.u32 [%rd3], %r1;)",
                       .in = std::vector<std::byte>(128),
                       .out_bytes = 128});
  EXPECT_THAT(ran.messages, ElementsAre("OUT_OF_BOUNDS 4 bytes at in + 128 (size 128)"));
  EXPECT_EQ(ran.word(31), 0xffffffffu);  // the lane with the invalid access: ff
  EXPECT_EQ(ran.word(30), 0u);
  EXPECT_EQ(ran.result.reports[0].parties[0].actor, "thread 31 (warp 0 lane 31)");
}

TEST(Bounds, InFrontOfAnAllocationAndNowhere) {
  const Ran ran = run({.body = R"(
    ld.global.u32 %r1, [%rd1+-16];
    mov.u64 %rd2, 16;
    ld.global.u32 %r2, [%rd2];
    mov.u64 %rd3, 0x100000000;
    ld.global.u32 %r3, [%rd3];)",
                       .threads = 1});
  EXPECT_THAT(ran.messages, ElementsAre("OUT_OF_BOUNDS 4 bytes at in - 16 (size 64)", "OUT_OF_BOUNDS 4 bytes at 0x10",
                                        "OUT_OF_BOUNDS 4 bytes at 0x100000000, where nothing is allocated"));
  EXPECT_EQ(ran.result.reports[1].hint, "a null pointer, or a small offset from one");
}

TEST(Bounds, SharedMemoryEndsWhereTheCtasDoes) {
  const Ran ran = run({.body = R"(
    mov.u32 %r1, s;
    st.shared.u32 [%r1+4096], %r0;
    mov.u32 %r2, 16;
    st.shared.u32 [%r2], %r0;)",
                       .threads = 1});
  EXPECT_THAT(ran.messages,
              ElementsAre("OUT_OF_BOUNDS 4 bytes at shared 0x01400: the CTA has 0x00400 to 0x01400 (size 4096)",
                          "OUT_OF_BOUNDS 4 bytes at shared 0x00010: the CTA has 0x00400 to 0x01400 (size 4096)"));
}

TEST(Alignment, AnAccessIsAtAMultipleOfItsSize) {
  const Ran ran = run({.body = R"(
    ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+4];
    ld.shared.u64 %rd5, [s+4];)",
                       .threads = 1});
  ASSERT_EQ(ran.messages.size(), 2u);
  EXPECT_EQ(ran.messages[0].substr(0, 25), "MISALIGNED 16-byte access");
  EXPECT_EQ(ran.messages[0].substr(ran.messages[0].find('(')), "(in + 4): not a multiple of 16");
  EXPECT_EQ(ran.messages[1], "MISALIGNED 8-byte access at shared 0x00404 (s + 4): not a multiple of 8");
}

TEST(Windows, AGenericAddressFindsItsSpace) {
  const Ran ran = run({.body = R"(
    .local .align 8 .b8 mine[16];
    cvta.shared.u64 %rd2, s;
    mov.u64 %rd3, s;
    cvta.shared.u64 %rd2, %rd3;
    mov.u64 %rd4, mine;
    cvta.local.u64 %rd5, %rd4;
    st.u32 [%rd2+8], 11;
    st.u32 [%rd5+4], 12;
    ld.shared.u32 %r1, [s+8];
    ld.local.u32 %r2, [mine+4];
    ld.u32 %r3, [%rd1];
    st.u32 [%rd0], %r1;
    st.u32 [%rd0+4], %r2;
    st.u32 [%rd0+8], %r3;
    st.u64 [%rd0+16], %rd2;
    cvta.to.shared.u64 %rd6, %rd2;
    st.u64 [%rd0+24], %rd6;)",
                       .in = words({13}),
                       .threads = 1});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.word(0), 11u);
  EXPECT_EQ(ran.word(1), 12u);
  EXPECT_EQ(ran.word(2), 13u);
  EXPECT_EQ(ran.at<std::uint64_t>(2), 0x7f0000000400u);
  EXPECT_EQ(ran.at<std::uint64_t>(3), 0x400u);
}

// Lanes of one load in four spaces: each accesses its own space.
TEST(Windows, LanesOfOneLoadMayBeInSeveralSpaces) {
  const Ran ran = run({.body = R"(
    .local .align 8 .b8 mine[16];
    st.local.u32 [mine], 31;
    st.shared.u32 [s], 41;
    mov.u64 %rd3, s;       cvta.shared.u64 %rd3, %rd3;
    mov.u64 %rd4, mine;    cvta.local.u64 %rd4, %rd4;
    and.b32 %r1, %r0, 3;
    setp.eq.u32 %p0, %r1, 0;   selp.b64 %rd5, %rd3, %rd4, %p0;
    setp.eq.u32 %p1, %r1, 2;   selp.b64 %rd5, %rd1, %rd5, %p1;
    ld.u32 %r2, [%rd5];
    mul.wide.u32 %rd6, %r0, 4; add.s64 %rd6, %rd0, %rd6;
    st.global.u32 [%rd6], %r2;)",
                       .in = words({51}),
                       .out_bytes = 128});
  EXPECT_THAT(ran.messages, IsEmpty());
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(ran.word(i), i % 4 == 0 ? 41u : i % 4 == 2 ? 51u : 31u) << i;
}

TEST(Windows, IsspacepReportsTheWindowOfAnAddress) {
  const Ran ran = run({.body = R"(
    mov.u64 %rd3, s;       cvta.shared.u64 %rd3, %rd3;
    mov.u64 %rd4, map;     cvta.param.u64 %rd4, %rd4;
    isspacep.shared %p0, %rd3;          selp.u32 %r1, 1, 0, %p0;  st.global.u32 [%rd0], %r1;
    isspacep.shared::cluster %p0, %rd3; selp.u32 %r1, 1, 0, %p0;  st.global.u32 [%rd0+4], %r1;
    isspacep.global %p0, %rd3;          selp.u32 %r1, 1, 0, %p0;  st.global.u32 [%rd0+8], %r1;
    isspacep.global %p0, %rd1;          selp.u32 %r1, 1, 0, %p0;  st.global.u32 [%rd0+12], %r1;
    isspacep.global %p0, %rd4;          selp.u32 %r1, 1, 0, %p0;  st.global.u32 [%rd0+16], %r1;
    isspacep.local %p0, %rd3;           selp.u32 %r1, 1, 0, %p0;  st.global.u32 [%rd0+20], %r1;)",
                       .threads = 1});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.word(0), 1u);
  EXPECT_EQ(ran.word(1), 1u);
  EXPECT_EQ(ran.word(2), 0u);
  EXPECT_EQ(ran.word(3), 1u);
  EXPECT_EQ(ran.word(4), 1u);  // a parameter counts as global
  EXPECT_EQ(ran.word(5), 0u);
}

TEST(Windows, AnAddressOfAnotherSpaceIsReported) {
  const Ran ran = run({.body = R"(
    mov.u64 %rd3, s;       cvta.shared.u64 %rd3, %rd3;
    ld.global.u32 %r1, [%rd3];
    cvta.to.shared.u64 %rd4, %rd1;
    mov.u32 %r2, 0x03000400;
    ld.shared::cluster.u32 %r3, [%r2];)",
                       .threads = 1});
  EXPECT_THAT(
      ran.messages,
      ElementsAre("BAD_WINDOW 4 bytes at 0x7f0000000400, which is an address of shared and not of global",
                  ::testing::MatchesRegex("BAD_WINDOW 0x3000.*, which is an address of global and not of shared|"
                                          "BAD_WINDOW 0x3000.* is an address of global and not of shared"),
                  "BAD_WINDOW 4 bytes at shared 0x03000400: rank 3 of a cluster of 1"));
}

// CUTLASS converts the pointer of an absent source operand, and does not use the result.
TEST(Windows, ANullPointerConvertsToSharedMemoryAndOnlyAnAccessIsReported) {
  const Ran ran = run({.body = R"(
    mov.u64 %rd3, 0;       cvta.to.shared.u64 %rd4, %rd3;
    cvt.u32.u64 %r1, %rd4; st.global.u32 [%rd0], %r1;)",
                       .threads = 1});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.word(0), 0u);
  const Ran used = run({.body = R"(
    mov.u64 %rd3, 0;       cvta.to.shared.u64 %rd4, %rd3;
    ld.shared.u32 %r1, [%rd4];)",
                        .threads = 1});
  EXPECT_THAT(used.messages, ElementsAre(::testing::StartsWith("OUT_OF_BOUNDS 4 bytes at shared 0x00000")));
}

TEST(Stores, TheHighestLaneStaysAndACollisionIsReported) {
  const Ran ran = run({.body = "st.global.u32 [%rd0], %r0;"});
  EXPECT_THAT(
      ran.messages,
      ElementsAre("STORE_COLLISION lanes 0 and 31 store different bytes to one address: the highest lane's stay"));
  EXPECT_EQ(ran.word(0), 31u);
}

// Lanes 1 KiB apart, in the order of the lanes and in another: far apart in steps of a power of two is not together.
TEST(Stores, LanesFarApartDoNotCollideAndOnePairAmongThemDoes) {
  const auto store = [](const std::string& index) {
    return run({.body = index + "shl.b32 %r2, %r1, 10;  cvt.u64.u32 %rd2, %r2;  add.u64 %rd3, %rd0, %rd2;  "
                                "st.global.u32 [%rd3], %r0;",
                .out_bytes = 32 * 1024})
        .messages;
  };
  EXPECT_THAT(store("mov.u32 %r1, %r0;  "), IsEmpty());
  EXPECT_THAT(store("xor.b32 %r1, %r0, 13;  "), IsEmpty());
  // Lane 22 stores where lane 9 does.
  EXPECT_THAT(
      store("setp.eq.u32 %p0, %r0, 22;  selp.u32 %r1, 9, %r0, %p0;  xor.b32 %r1, %r1, 13;  "),
      ElementsAre("STORE_COLLISION lanes 9 and 22 store different bytes to one address: the highest lane's stay"));
}

TEST(Stores, EqualBytesInOnePlaceAreNoCollision) {
  const Ran ran = run({.body = "mov.u32 %r1, 5; st.global.u32 [%rd0], %r1;"});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.word(0), 5u);
}

TEST(Stores, AStackGrowsAndGoesBack) {
  const Ran ran = run({.body = R"(
    stacksave.u64 %rd2;
    alloca.u64 %rd3, 24, 16;
    alloca.u64 %rd4, 8, 64;
    st.local.u64 [%rd3+16], %rd1;
    st.local.u64 [%rd4], %rd0;
    ld.local.u64 %rd5, [%rd3+16];
    stackrestore.u64 %rd2;
    alloca.u64 %rd6, 24, 16;
    st.global.u64 [%rd0], %rd3;   st.global.u64 [%rd0+8], %rd4;
    st.global.u64 [%rd0+16], %rd6;
    sub.s64 %rd5, %rd5, %rd1;     st.global.u64 [%rd0+24], %rd5;
    createpolicy.fractional.L2::evict_first.b64 %rd7;
    st.global.u64 [%rd0+32], %rd7;)",
                       .threads = 1});
  EXPECT_THAT(ran.messages, IsEmpty());
  EXPECT_EQ(ran.at<std::uint64_t>(1) % 64, 0u);
  EXPECT_GE(ran.at<std::uint64_t>(1), ran.at<std::uint64_t>(0) + 24);
  EXPECT_EQ(ran.at<std::uint64_t>(2), ran.at<std::uint64_t>(0));
  EXPECT_EQ(ran.at<std::uint64_t>(3), 0u);
  EXPECT_EQ(ran.at<std::uint64_t>(4), 0x1000000000000000u);
}

}  // namespace
}  // namespace kvscope::ptx::test::load_store_test
