// Arrays are gigabytes apart: an index of -1, 0xffffffff, one row or one page past the end is out of bounds of every
// array. If arrays were adjacent, each of these addresses would be in `out`, and the kernel would compute with its
// bytes.
#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::far_arrays_test {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kRowBytes = 4096, kRows = 4;  // of `in`: 16384 bytes, like `out`

// All reports as "message / hint"; %rd2 is the byte offset of the row in the table entry.
std::vector<std::string> reports(const std::string& offset, std::string_view access) {
  const Ran ran =
      run({.body = "mov.u32 %r10, s; mov.u32 %r1, 4096;" + offset + "add.s64 %rd3, %rd1, %rd2;" + std::string(access),
           .in = std::vector<std::byte>(kRowBytes * kRows),
           .out_bytes = kRowBytes * kRows,
           .threads = 1});
  EXPECT_EQ(ran.out, std::vector<std::byte>(kRowBytes * kRows)) << "the other array was written";
  std::vector<std::string> texts;
  for (const Report& r : ran.result.reports) texts.push_back(r.message + (r.hint.empty() ? "" : " / ") + r.hint);
  return texts;
}

constexpr std::string_view kAccesses[] = {
    "ld.global.u32 %r2, [%rd3];",
    "st.global.u32 [%rd3], %r1;",
    "red.global.add.u32 [%rd3], %r1;",
};
constexpr std::string_view kCopies[] = {
    "mbarrier.init.shared.b64 [%r10+2048], 1;"
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r10], [%rd3], 16, [%r10+2048];",
    "cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r10], 16;"
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
    "cp.async.cg.shared.global [%r10], [%rd3], 16; cp.async.wait_all;",
};

void expect_all(const std::string& offset, const std::string& place) {
  for (const std::string_view access : kAccesses) {
    EXPECT_THAT(reports(offset, access), ElementsAre("4 bytes at " + place)) << access;
  }
  for (const std::string_view copy : kCopies) {
    EXPECT_THAT(reports(offset, copy), ElementsAre("16 bytes at " + place)) << copy;
  }
}

TEST(FarArrays, AnEntryOfMinusOneIsOneRowBeforeTheArray) {
  expect_all("mov.s32 %r3, -1; mul.wide.s32 %rd2, %r3, 4096;", "in - 4096 (size 16384)");
}

// The same entry read as unsigned: 0xffffffff rows of 4096 bytes are 2^44 - 4096 bytes.
TEST(FarArrays, AnEntryOfMinusOneReadAsUnsignedIsTerabytesBehindTheArray) {
  expect_all("mov.u32 %r3, 0xffffffff; mul.wide.u32 %rd2, %r3, 4096;",
             "0x1002fffff000, where nothing is allocated / the nearest array is 'in' (size 16384), which ends "
             "17592186023936 bytes before this address");
}

TEST(FarArrays, OneRowPastTheEndIsOutOfBounds) {
  expect_all("mov.u64 %rd2, 16384;", "in + 16384 (size 16384)");
}

// One page past the array's end: of 64 rows, and of 128 MiB.
TEST(FarArrays, OnePagePastTheEndIsOutOfBounds) {
  expect_all("mov.u64 %rd2, 278528;", "in + 278528 (size 16384)");
  expect_all("mov.u64 %rd2, 134234112;", "in + 134234112 (size 16384)");
}

// `out` is allocated first: its end is where `in` would begin if arrays were packed.
TEST(FarArrays, ThePrecedingArrayIsNotReachedEither) {
  EXPECT_THAT(reports("mov.s64 %rd2, -16384;", kAccesses[0]), ElementsAre("4 bytes at in - 16384 (size 16384)"));
  EXPECT_THAT(reports("mov.s64 %rd2, -20480;", kAccesses[1]), ElementsAre("4 bytes at in - 20480 (size 16384)"));
}

}  // namespace
}  // namespace kvscope::ptx::test::far_arrays_test
