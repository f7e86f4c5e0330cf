// Undefined values in shared memory: where their use is reported, how they move, and which reads are clean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gpu/virtual/check/watched.h"

namespace kvscope::ptx::test::undefined_uses_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr CheckOptions kInit{.init = true, .race = {.races = false, .proxy = false}, .wgmma = false};

// Lanes may store different values to one address: the machine's reports of that are left out.
std::vector<const Report*> undefined_in(const Seen& seen) {
  std::vector<const Report*> out;
  for (const Report& report : seen.result.reports) {
    if (report.kind == ReportKind::uninitialized) out.push_back(&report);
  }
  return out;
}
Seen watch_init(const std::string& body, std::int64_t threads = 32) {
  return watch({.body = body, .threads = threads, .launch = {.max_reports = 100}, .checks = kInit});
}
std::vector<std::string> said(const std::string& body, std::int64_t threads = 32) {
  std::vector<std::string> out;
  const Seen seen = watch_init(body, threads);
  for (const Report* report : undefined_in(seen)) out.push_back(line_of(*report));
  return out;
}
// The message of the only report, up to its colon; "" without one.
std::string use_in(const std::string& body) {
  const Seen seen = watch_init(body);
  const std::vector<const Report*> reports = undefined_in(seen);
  EXPECT_LE(reports.size(), 1U) << ::testing::PrintToString(seen.races);
  return reports.empty() ? "" : reports[0]->message.substr(0, reports[0]->message.find(':'));
}

TEST(UndefinedUses, NameTheReadTheUseAndTheFirstByte) {
  const Seen seen = watch_init(
      "@%p0 st.shared.v2.u32 [s+32], {%r0, %r0};\n@%p0 st.shared.u32 [s+40], %r0;\n@%p0 cvt.u16.u32 %h0, %r0;\n"
      "@%p0 st.shared.u16 [s+44], %h0;\n@%p0 st.shared.u8 [s+46], %r0;\n"
      "@%p0 ld.shared.v4.u32 {%r5,%r6,%r7,%r8}, [s+32];\n@%p0 st.global.u32 [%rd0], %r7;\n"
      "@%p0 st.global.u32 [%rd0], %r8;");
  EXPECT_EQ(seen.text,
            "UNINITIALIZED  shared 0x0042f (s + 47)  kernel k  cta (0,0,0)\n"
            "  read   thread 0 (warp 0 lane 0)  ld.shared.v4.u32          k.ptx:6\n"
            "  used   thread 0 (warp 0 lane 0)  st.global.u32             k.ptx:8\n"
            "  the value is stored to global memory: no thread and no copy had written this byte since the CTA began");
  EXPECT_EQ(seen.races.size(), 1U);
}

TEST(UndefinedUses, AReadAloneIsClean) {
  EXPECT_THAT(said("ld.shared.v4.u32 {%r5,%r6,%r7,%r8}, [s+32];\nadd.u32 %r9, %r5, %r6;"), IsEmpty());
}

// A row past the end.
TEST(UndefinedUses, AMaskedValueIsClean) {
  const std::string read = "setp.lt.u32 %p3, %r0, 7;\n@%p3 st.shared.u32 [%r3], %r0;\nld.shared.u32 %r5, [%r3];\n";
  EXPECT_EQ(use_in(read + "selp.b32 %r5, %r5, 0, %p3;\nst.global.u32 [%rd0], %r5;"), "");
  EXPECT_EQ(use_in(read + "@%p3 st.global.u32 [%rd0], %r5;"), "");
  EXPECT_EQ(use_in(read + "@!%p3 mov.u32 %r5, 0;\nst.global.u32 [%rd0], %r5;"), "");
  EXPECT_EQ(use_in(read + "selp.b32 %r6, -1, 0, %p3;\nand.b32 %r5, %r5, %r6;\nst.global.u32 [%rd0], %r5;"), "");
  EXPECT_EQ(use_in(read + "selp.u32 %r6, 1, 0, %p3;\nmul.lo.u32 %r5, %r5, %r6;\nst.global.u32 [%rd0], %r5;"), "");
  EXPECT_EQ(use_in(read + "setp.gt.and.u32 %p4, %r5, 3, %p3;\n@%p4 bra E;\nE:"), "");
  EXPECT_EQ(use_in(read + "setp.gt.u32 %p4, %r5, 3;\nand.pred %p4, %p4, %p3;\n@%p4 bra E;\nE:"), "");
  // One lane more.
  EXPECT_EQ(use_in(read + "setp.lt.u32 %p3, %r0, 8;\nselp.b32 %r5, %r5, 0, %p3;\nst.global.u32 [%rd0], %r5;"),
            "the value is stored to global memory");
}

TEST(UndefinedUses, BranchesPredicatesAndAddressesAreReported) {
  const std::string read = "ld.shared.u32 %r5, [s];\n";
  EXPECT_EQ(use_in(read + "setp.gt.u32 %p4, %r5, 3;\n@%p4 bra E;\nE:"), "the value decides a branch");
  EXPECT_EQ(use_in(read + "setp.gt.u32 %p4, %r5, 3;\n@%p4 st.shared.u32 [s+4], 1;"),
            "the value decides whether an instruction is executed");
  EXPECT_EQ(use_in(read + "and.b32 %r5, %r5, 60;\nadd.u32 %r5, %r5, %r60;\nld.shared.u32 %r6, [%r5];"),
            "the value is part of an address");
  // Under an undefined predicate, a result is one of two values.
  EXPECT_EQ(use_in(read + "setp.gt.u32 %p4, %r5, 3;\nmov.u32 %r6, 1;\n@%p4 mov.u32 %r6, 2;"), "");
  EXPECT_EQ(
      use_in(read + "setp.gt.u32 %p4, %r5, 3;\nmov.u32 %r6, 1;\n@%p4 mov.u32 %r6, 2;\nst.global.u32 [%rd0], %r6;"),
      "the value is stored to global memory");
  EXPECT_EQ(use_in(read + "bar.sync %r5;").substr(0, 30), "the value is an operand of bar");
}

TEST(UndefinedUses, OfAStoreToSharedOrLocalMemoryKeepTheirOrigin) {
  EXPECT_THAT(said("ld.shared.u32 %r5, [s+64];\n@%p0 st.shared.u32 [s], %r5;\nld.shared.u32 %r6, [s];\n"
                   "@%p0 st.global.u32 [%rd0], %r6;"),
              ElementsAre("UNINITIALIZED s+64 4: read thread 0 (warp 0 lane 0) k.ptx:1; used thread 0 (warp 0 lane 0) "
                          "k.ptx:4"));
  EXPECT_THAT(said(".local .align 4 .b8 l[8];\nld.shared.u32 %r5, [s+64];\nst.local.u32 [l+4], %r5;\n"
                   "ld.local.u32 %r6, [l+4];\n@%p0 st.global.u32 [%rd0], %r6;"),
              ElementsAre("UNINITIALIZED s+64 4: read thread 0 (warp 0 lane 0) k.ptx:2; used thread 0 (warp 0 lane 0) "
                          "k.ptx:5"));
  // A defined value over it.
  EXPECT_THAT(said("ld.shared.u32 %r5, [s+64];\n@%p0 st.shared.u32 [s], %r5;\n@%p0 st.shared.u32 [s], 1;\n"
                   "ld.shared.u32 %r6, [s];\n@%p0 st.global.u32 [%rd0], %r6;"),
              IsEmpty());
}

TEST(UndefinedUses, AtomicsReadTheOldValue) {
  EXPECT_THAT(said("@%p0 red.shared.add.u32 [s+8], 1;"), IsEmpty());
  EXPECT_THAT(said("@%p0 red.shared.add.u32 [s+8], 1;\nld.shared.u32 %r5, [s+8];\n@%p0 st.global.u32 [%rd0], %r5;"),
              ElementsAre("UNINITIALIZED s+8 4: read thread 0 (warp 0 lane 0) k.ptx:1; used thread 0 (warp 0 lane 0) "
                          "k.ptx:3"));
  EXPECT_THAT(said("@%p0 atom.shared.exch.b32 %r5, [s+8], 1;\nld.shared.u32 %r6, [s+8];\n"
                   "@%p0 st.global.u32 [%rd0], %r6;"),
              IsEmpty());
  EXPECT_THAT(said("@%p0 atom.shared.exch.b32 %r5, [s+8], 1;\n@%p0 st.global.u32 [%rd0], %r5;"),
              ElementsAre(HasSubstr("used thread 0 (warp 0 lane 0) k.ptx:2")));
  EXPECT_THAT(said("ld.shared.u32 %r5, [s];\n@%p0 red.global.add.u32 [%rd0], %r5;"),
              ElementsAre(HasSubstr("used thread 0 (warp 0 lane 0) k.ptx:2")));
}

TEST(UndefinedUses, ShufflesMoveThemAndVotesReportThem) {
  const std::string lane3 = "setp.ne.u32 %p3, %r0, 3;\nmov.u32 %r5, 0;\n@!%p3 ld.shared.u32 %r5, [s];\n";
  // Lane 3's value goes to lane 2.
  EXPECT_THAT(said(lane3 + "shfl.sync.down.b32 %r6, %r5, 1, 0x1f, -1;\nsetp.eq.u32 %p4, %r0, 2;\n"
                           "@!%p4 st.global.u32 [%rd0], %r6;"),
              IsEmpty());
  EXPECT_THAT(said(lane3 + "shfl.sync.down.b32 %r6, %r5, 1, 0x1f, -1;\nsetp.eq.u32 %p4, %r0, 2;\n"
                           "@%p4 st.global.u32 [%rd0], %r6;"),
              ElementsAre("UNINITIALIZED s+0 4: read thread 3 (warp 0 lane 3) k.ptx:3; used thread 2 (warp 0 lane 2) "
                          "k.ptx:6"));
  const std::string vote = lane3 + "setp.gt.u32 %p4, %r5, 3;\n";
  EXPECT_EQ(use_in(vote + "vote.sync.any.pred %p5, %p4, -1;"), "the value decides a vote");
  EXPECT_EQ(use_in(vote + "vote.sync.all.pred %p5, %p4, -1;"), "");  // other lanes are false
  EXPECT_EQ(use_in(vote + "vote.sync.ballot.b32 %r6, %p4, -1;\nand.b32 %r6, %r6, 0xfffffff7;\n"
                          "@%p0 st.global.u32 [%rd0], %r6;"),
            "");
  EXPECT_EQ(use_in(vote + "vote.sync.ballot.b32 %r6, %p4, -1;\nand.b32 %r6, %r6, 8;\n@%p0 st.global.u32 [%rd0], %r6;"),
            "the value is stored to global memory");
  EXPECT_EQ(use_in(lane3 + "match.any.sync.b32 %r6, %r5, -1;"), "the value is compared by match");
  EXPECT_EQ(use_in(lane3 + "redux.sync.add.u32 %r6, %r5, -1;\n@%p0 st.global.u32 [%rd0], %r6;"),
            "the value is stored to global memory");
}

// 16 rows of 32 bytes of A at s, rows 8 to 15 not written; B is zero.
std::string product(const std::string& store) {
  return "mul.lo.u32 %r4, %r0, 8;\nadd.u32 %r4, %r4, %r60;\nst.shared.v2.u32 [%r4], {%r0, %r0};\n"
         "and.b32 %r5, %r1, 15;\nshl.b32 %r5, %r5, 5;\nshr.u32 %r6, %r1, 4;\nshl.b32 %r6, %r6, 4;\n"
         "add.u32 %r5, %r5, %r6;\nadd.u32 %r5, %r5, %r60;\n"
         "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10,%r11,%r12,%r13}, [%r5];\n"
         "mov.f32 %f0, 0f00000000;\nmov.u32 %r14, 0;\n"
         "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r10,%r11,%r12,%r13}, {%r14,%r14}, "
         "{%f0,%f0,%f0,%f0};\nshl.b32 %r15, %r0, 2;\ncvt.u64.u32 %rd4, %r15;\nadd.u64 %rd4, %rd0, %rd4;\n" +
         store;
}

TEST(UndefinedUses, AProductIsUndefinedInTheRowsOfAThatAre) {
  EXPECT_THAT(said(product("st.global.f32 [%rd4], %f1;\nst.global.f32 [%rd4], %f2;")), IsEmpty());
  EXPECT_THAT(said(product("st.global.f32 [%rd4], %f3;\nst.global.f32 [%rd4], %f4;")).size(), 2U);
}

// Nothing has written rows k = 10 and 11 of B, which lanes 4 n + 1 hold in %r23. Metadata 0b0100 selects k = 8 and 9 of
// these four, 0b1110 k = 10 and 11. The metadata of rows g and g + 8 is in lane 4 g.
std::string sparse_product(const std::string& metadata, const std::string& b, const std::string& store) {
  return "and.b32 %r21, %r0, 3;\nsetp.eq.u32 %p3, %r21, 1;\nmov.b32 %r22, 0x3c003c00;\n" + b + "mov.b32 %r24, " +
         metadata + ";\nmov.b32 %r25, %r22;\n" +
         "mov.f32 %f0, 0f00000000;\n"
         "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r25,%r25}, {%r22,%r23}, "
         "{%f0,%f0,%f0,%f0}, %r24, 0;\n" +
         "shl.b32 %r15, %r0, 2;\ncvt.u64.u32 %rd4, %r15;\nadd.u64 %rd4, %rd0, %rd4;\n" + store;
}

TEST(UndefinedUses, ASparseProductDependsOnTheElementsThatItsMetadataSelects) {
  const std::string b = "mov.b32 %r23, %r22;\n@%p3 ld.shared.u32 %r23, [%r3];\n";
  EXPECT_THAT(said(sparse_product("0x44444444", b, "st.global.f32 [%rd4], %f1;\nst.global.f32 [%rd4], %f4;")),
              IsEmpty());
  EXPECT_EQ(said(sparse_product("0x44444e44", b, "st.global.f32 [%rd4], %f1;")).size(), 1U);  // rows 0 to 7
  EXPECT_THAT(said(sparse_product("0x44444e44", b, "st.global.f32 [%rd4], %f3;")), IsEmpty());
  EXPECT_EQ(said(sparse_product("0x4e444444", b, "st.global.f32 [%rd4], %f3;")).size(), 1U);  // rows 8 to 15
  EXPECT_THAT(said(sparse_product("0x4e444444", b, "st.global.f32 [%rd4], %f1;")), IsEmpty());
}

// Lane 0 has the metadata of rows 0 and 8, which lanes 0 to 3 hold.
TEST(UndefinedUses, UndefinedMetadataMakesItsRowsUndefined) {
  const std::string metadata = "0x44444444;\n@%p0 ld.shared.u32 %r24, [%r3]", b = "mov.b32 %r23, %r22;\n";
  const std::string first = "setp.lt.u32 %p4, %r0, 4;\n";
  EXPECT_EQ(said(sparse_product(metadata, b, first + "@%p4 st.global.f32 [%rd4], %f1;")).size(), 1U);
  EXPECT_EQ(said(sparse_product(metadata, b, first + "@%p4 st.global.f32 [%rd4], %f4;")).size(), 1U);
  EXPECT_THAT(said(sparse_product(metadata, b, first + "@!%p4 st.global.f32 [%rd4], %f1;")), IsEmpty());
}

// Nothing has written k = 16 and 17 of B: metadata 0b0100 of rows g selects them, 0b1110 of rows g + 8 the next two.
TEST(UndefinedUses, ASparseProductOfAWarpgroupDependsOnTheElementsThatItsMetadataSelects) {
  const auto run = [](const std::string& store) {
    return said(
        "shl.b32 %r4, %r0, 4;\nadd.u32 %r4, %r4, %r60;\nmov.u32 %r6, 0;\nshr.u32 %r5, %r0, 3;\n"
        "setp.ne.u32 %p3, %r5, 2;\nand.pred %p4, %p3, %p2;\n@%p2 st.shared.v2.u32 [%r4+8], {%r6,%r6};\n"
        "@%p2 st.shared.u32 [%r4+4], %r6;\n@%p4 st.shared.u32 [%r4], %r6;\nfence.proxy.async;\nbar.sync 0;\n"
        "shr.u32 %r7, %r60, 4;\ncvt.u64.u32 %rd4, %r7;\nmov.u64 %rd5, 0x0000001000080000;\n"
        "or.b64 %rd6, %rd4, %rd5;\nmov.b32 %r22, 0;\nmov.b32 %r24, 0xeeee4444;\nwgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f0,%f1,%f2,%f3}, {%r22,%r22,%r22,%r22}, %rd6, %r24, 0, "
        "0, 1, 1, 0;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
        "shl.b32 %r15, %r0, 2;\ncvt.u64.u32 %rd8, %r15;\nadd.u64 %rd8, %rd0, %rd8;\n" +
            store,
        128);
  };
  EXPECT_THAT(run("st.global.f32 [%rd8], %f2;\nst.global.f32 [%rd8], %f3;"), IsEmpty());
  EXPECT_FALSE(run("st.global.f32 [%rd8], %f0;").empty());
}

// Row 1 of a matrix is not written: transposed, it is the upper half of lanes 0, 4, 8 ...; stored transposed, row 1 again.
TEST(UndefinedUses, TransposedLoadsAndStoresOfAMatrixMoveItsElements) {
  const std::string load =
      "and.b32 %r4, %r0, 7;\nsetp.ne.u32 %p3, %r4, 1;\nshl.b32 %r4, %r4, 4;\nadd.u32 %r4, %r4, %r60;\n"
      "mov.u32 %r5, 0;\n@%p3 st.shared.v4.u32 [%r4], {%r5,%r5,%r5,%r5};\n"
      "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r10}, [%r4];\nand.b32 %r11, %r0, 3;\n"
      "setp.eq.u32 %p4, %r11, 0;\n";
  EXPECT_EQ(use_in(load + "and.b32 %r12, %r10, 0xffff;\nst.global.u32 [%rd0], %r12;"), "");
  EXPECT_EQ(use_in(load + "@!%p4 st.global.u32 [%rd0], %r10;"), "");
  EXPECT_EQ(use_in(load + "shr.u32 %r12, %r10, 16;\n@%p4 st.global.u32 [%rd0], %r12;"),
            "the value is stored to global memory");
  const std::string store = load + "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r4+256], {%r10};\n";
  EXPECT_THAT(said(store + "ld.shared.v4.u32 {%r5,%r6,%r7,%r8}, [s+256];\nst.global.u32 [%rd0], %r8;"), IsEmpty());
  EXPECT_EQ(said(store + "ld.shared.v4.u32 {%r5,%r6,%r7,%r8}, [s+272];\nst.global.u32 [%rd0], %r8;").size(), 1U);
}

// As the bytes of A above, in the layout of a descriptor without a swizzle; rows 8 to 15 are bytes 256 to 511.
TEST(UndefinedUses, AProductOfAWarpgroupIsUndefinedInTheRowsOfAThatAre) {
  const auto run = [](const std::string& store) {
    return said(
        "shl.b32 %r4, %r0, 4;\nadd.u32 %r4, %r4, %r60;\nshr.u32 %r5, %r0, 4;\nsetp.ne.u32 %p3, %r5, 1;\n"
        "mov.u32 %r6, 0;\n@%p3 st.shared.v4.u32 [%r4], {%r6,%r6,%r6,%r6};\n"
        "st.shared.v4.u32 [%r4+2048], {%r6,%r6,%r6,%r6};\nfence.proxy.async;\nbar.sync 0;\n"
        "shr.u32 %r7, %r60, 4;\ncvt.u64.u32 %rd4, %r7;\nmov.u64 %rd5, 0x0000001000080000;\n"
        "or.b64 %rd6, %rd4, %rd5;\nadd.u64 %rd7, %rd6, 128;\nwgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd6, %rd7, 0, 1, 1, 0, 0;\n"
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n"
        "shl.b32 %r15, %r0, 2;\ncvt.u64.u32 %rd8, %r15;\nadd.u64 %rd8, %rd0, %rd8;\n" +
            store,
        128);
  };
  EXPECT_THAT(run("st.global.f32 [%rd8], %f0;\nst.global.f32 [%rd8], %f1;"), IsEmpty());
  EXPECT_THAT(run("st.global.f32 [%rd8], %f2;"),
              ElementsAre(AllOf(HasSubstr("UNINITIALIZED s+256"), HasSubstr("warp 0"))));
}

TEST(UndefinedUses, CopiesMoveThemAndACopyToGlobalMemoryReportsThem) {
  const std::string copy =
      "@%p0 discard.global.L2 [%rd0+128], 128;\n"
      "@%p0 cp.async.ca.shared.global [s], [%rd0+252], 4;\n"
      "@%p0 cp.async.ca.shared.global [s+4], [%rd0+256], 4;\ncp.async.wait_all;\n";
  EXPECT_THAT(said(copy + "@%p0 ld.shared.u32 %r5, [s];\n@%p0 st.global.u32 [%rd0], %r5;"),
              ElementsAre("UNINITIALIZED x+252 4: read thread 0 (warp 0 lane 0) k.ptx:2; used thread 0 (warp 0 lane 0) "
                          "k.ptx:6"));
  EXPECT_THAT(said(copy + "@%p0 ld.shared.u32 %r5, [s+4];\n@%p0 st.global.u32 [%rd0], %r5;"), IsEmpty());
  EXPECT_EQ(use_in("@%p0 st.shared.v4.u32 [s], {%r0,%r0,%r0,%r0};\n"
                   "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [s], 32;\n"
                   "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"),
            "the value is copied to global memory");
}

class Instructions final : public Monitor {
 public:
  void instruction(const Exec&, const Op&, LaneMask) override { ++count; }
  int count = 0;
};

// 1000 rounds of a loop: before an undefined value is loaded, while it is alive, and after it is dead.
TEST(UndefinedUses, AWarpIsExaminedOnlyWhileItHasUndefinedRegisters) {
  const auto loop = [](int n) {
    const std::string label = "L" + std::to_string(n);
    return "mov.u32 %r4, 0;\n" + label + ": add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p6, %r4, 1000;\n@%p6 bra " + label +
           ";\n";
  };
  const auto count = [](const std::string& body) {
    Instructions seen;
    EXPECT_THAT(watch({.body = body, .threads = 32, .checks = kInit, .also = &seen}).races, IsEmpty());
    return seen.count;
  };
  EXPECT_EQ(count(loop(1) + loop(2)), 0);
  EXPECT_LT(count(loop(1) + "ld.shared.u32 %r5, [s];\nadd.u32 %r6, %r5, 1;\nmov.u32 %r5, 0;\n" + loop(2)), 300);
  EXPECT_GT(count("ld.shared.u32 %r5, [s];\n" + loop(1) + "@%p6 st.global.u32 [%rd0], %r5;"), 3000);
}

}  // namespace
}  // namespace kvscope::ptx::test::undefined_uses_test
