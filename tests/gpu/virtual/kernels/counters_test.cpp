// The memory costs of K01, K05 and K08, compared with counts by hand and with sets.
#include "gpu/virtual/check/counters.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/gpu/virtual/kernels/bugs.h"
#include "tests/gpu/virtual/kernels/qk_case.h"

namespace kvscope::ptx::test::counters_test {
namespace {

// Sum over all instructions that begin with these words.
OpCounts counts_of(const Program& program, const Counters& counters, std::string_view words) {
  OpCounts sum;
  for (std::size_t pc = 0; pc < program.ops.size(); ++pc)
    if (program.sources[pc].statement >= 0 && program.text(static_cast<std::int32_t>(pc)).starts_with(words))
      sum += counters.ops()[pc];
  return sum;
}

// Blocks of 100 threads begin at byte 16 of a 32-byte sector: full warps touch five sectors there.
TEST(CountersOfK01, SectorsAreThoseThatTheLanesOfAWarpTouch) {
  std::int64_t sectors = 0, requests = 0;
  for (std::uint64_t cta = 0; cta < 3; ++cta)
    for (std::uint64_t warp = 0; warp < 4; ++warp) {
      std::set<std::uint64_t> touched;
      for (std::uint64_t thread = 32 * warp; thread < 32 * warp + 32 && thread < 100; ++thread)
        if (100 * cta + thread < 250) touched.insert((100 * cta + thread) * 4 / 32);
      sectors += static_cast<std::int64_t>(touched.size());
      requests += touched.empty() ? 0 : 1;
    }
  Gpu gpu("elementwise.ptx");
  Counters counters(gpu.program());
  const std::uint64_t in = gpu.zeros("x", 1000), out = gpu.zeros("y", 1000);
  const LaunchResult result = gpu.run(
      {.kernel = "scale", .grid = {3, 1, 1}, .block = {100, 1, 1}, .values = {out, in, float_bits(1.7F), value(250)}},
      &counters);
  ASSERT_TRUE(result.clean()) << reports_text(result);
  for (const char* words : {"ld.global", "st.global"}) {
    const OpCounts counts = counts_of(gpu.program(), counters, words);
    EXPECT_EQ(counts.requests, requests) << words;
    EXPECT_EQ(counts.sectors, sectors) << words;
    EXPECT_EQ(counts.lanes, 250) << words;
  }
}

TEST(CountersOfK05, AColumnTakesThirtyTwoWavefrontsOrOne) {
  for (const std::int64_t pitch : {32, 33}) {
    Gpu gpu("transpose.ptx");
    Counters counters(gpu.program());
    const LaunchResult result = gpu.run({.kernel = "transpose_pitch_" + std::to_string(pitch),
                                         .block = {256, 1, 1},
                                         .values = {gpu.zeros("out", 4096), gpu.zeros("in", 4096)}},
                                        &counters);
    ASSERT_TRUE(result.clean()) << reports_text(result);
    const OpCounts loads = counts_of(gpu.program(), counters, "ld.shared"),
                   stores = counts_of(gpu.program(), counters, "st.shared");
    EXPECT_EQ(loads.runs, 32) << pitch;
    EXPECT_EQ(loads.wavefronts, pitch == 32 ? 32 * 32 : 32) << pitch;
    EXPECT_EQ(stores.wavefronts, 32) << pitch;
  }
}

OpCounts ldmatrix_of_qk(const char* file, const char* kernel, int bug) {
  const QkCase data;
  Gpu gpu(file);
  Counters counters(gpu.program());
  const LaunchResult result = gpu.run(data.by_tensor_copies(gpu, kernel, bug).run, &counters);
  EXPECT_TRUE(result.clean()) << reports_text(result);
  return counts_of(gpu.program(), counters, "ldmatrix");
}

// Four matrices, one wavefront each: 128-byte swizzle and rows of 272 bytes put eight rows in different banks.
TEST(CountersOfK08, EachLdmatrixTakesFourWavefronts) {
  const OpCounts counts = ldmatrix_of_qk("qk.ptx", "qk_tensor", -1);
  EXPECT_EQ(counts.runs, 4 * 8 * 5);
  EXPECT_EQ(counts.wavefronts, 4 * counts.runs);
  EXPECT_EQ(counts.ideal_wavefronts, 4 * counts.runs);
}

// B21: not reported as an error, but two rows of each eight share their banks.
TEST(CountersOfB21, AWrongSwizzleShowsAsConflicts) {
  const OpCounts counts = ldmatrix_of_qk("qk_bugs.ptx", "qk_tensor_wrong", 21);
  EXPECT_GT(counts.conflicts(), 0);
}

}  // namespace
}  // namespace kvscope::ptx::test::counters_test
