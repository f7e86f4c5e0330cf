// st.bulk against a plain array: ranges of any lanes, sizes and alignments, by generic and by shared addresses.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::bulk_fill_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t kBytes = 1024;  // of s that the kernel shows

// Each lane below 20 fills in[2 lane + 1] bytes from byte in[2 lane] on; then the words of s are copied to `out`.
std::string fills(const std::string& fill) {
  return "mov.u32 %r9, s; mad.lo.u32 %r1, %r0, 32, %r9; mov.u32 %r2, 0;\n"
         "SET: st.shared.u32 [%r1], 0xabababab; add.u32 %r1, %r1, 4; add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, 8;\n"
         "@%p0 bra SET; bar.warp.sync -1;\n"
         "mul.wide.u32 %rd2, %r0, 8; add.s64 %rd2, %rd1, %rd2; ld.global.v2.u32 {%r3, %r4}, [%rd2];\n"
         "add.u32 %r5, %r9, %r3; cvt.u64.u32 %rd4, %r4; cvt.u64.u32 %rd5, %r5; cvta.shared.u64 %rd5, %rd5;\n"
         "setp.lt.u32 %p1, %r0, 20; @%p1 " +
         fill +
         "\nbar.warp.sync -1; mad.lo.u32 %r1, %r0, 32, %r9; mul.wide.u32 %rd6, %r0, 32; add.s64 %rd6, %rd0, %rd6;\n"
         "mov.u32 %r2, 0;\n"
         "SHOW: ld.shared.u32 %r6, [%r1]; st.global.u32 [%rd6], %r6; add.u32 %r1, %r1, 4; add.s64 %rd6, %rd6, 4;\n"
         "add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, 8; @%p0 bra SHOW;";
}

Ran run_fill(const std::string& fill, const std::vector<std::uint32_t>& ranges) {
  return run({.body = fills(fill), .in = words(ranges), .out_bytes = kBytes, .target = "sm_100a"});
}

TEST(BulkFill, FillsTheRangesOfItsLanesWithZeros) {
  const CounterRng rng(11, 0);
  std::uint64_t next = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::uint32_t> ranges;
    std::vector<std::byte> expected(kBytes, std::byte{0xab});
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const auto from = static_cast<std::uint32_t>(8 * rng.integer(next++, 0, 120));
      const auto most = static_cast<std::int64_t>((kBytes - from) / 8);
      const auto size = static_cast<std::uint32_t>(8 * rng.integer(next++, 0, std::min<std::int64_t>(most, 5)));
      ranges.insert(ranges.end(), {from, size});
      if (lane < 20) std::fill_n(expected.begin() + from, size, std::byte{0});
    }
    for (const char* const fill : {"st.bulk.shared::cta [%r5], %rd4, 0;", "st.bulk.weak [%rd5], %rd4, 0;"}) {
      const Ran ran = run_fill(fill, ranges);
      EXPECT_THAT(ran.messages, IsEmpty());
      EXPECT_EQ(ran.out, expected) << fill;
    }
  }
}

TEST(BulkFill, ReportsSizesAddressesAndTheEndOfTheWindow) {
  std::vector<std::uint32_t> ranges(64);
  ranges[2 * 3] = 8, ranges[2 * 3 + 1] = 12;
  EXPECT_THAT(run_fill("st.bulk.shared::cta [%r5], %rd4, 0;", ranges).messages,
              ElementsAre("CP_ARG 12 bytes: a multiple of 8, at most 16777216"));
  ranges[2 * 3] = 4, ranges[2 * 3 + 1] = 16;
  EXPECT_THAT(run_fill("st.bulk.shared::cta [%r5], %rd4, 0;", ranges).messages,
              ElementsAre(HasSubstr("MISALIGNED 8-byte access at shared 0x00404")));
  ranges[2 * 3] = 4088;
  EXPECT_THAT(run_fill("st.bulk.shared::cta [%r5], %rd4, 0;", ranges).messages,
              ElementsAre(HasSubstr("OUT_OF_BOUNDS 8 bytes at shared 0x01400")));
  EXPECT_THAT(run_fill("st.bulk [%rd0], 8, 0;", ranges).messages,
              ElementsAre(HasSubstr("is an address of global: st.bulk fills shared memory of its CTA only")));
}

}  // namespace
}  // namespace kvscope::ptx::test::bulk_fill_test
