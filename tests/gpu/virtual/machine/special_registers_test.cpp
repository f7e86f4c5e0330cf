// Every supported special register: its value in every thread of a grid, and its width; others are rejected by name.
#include "gpu/virtual/machine/warp/special_registers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::test::special_registers_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

using Extents = std::array<std::int64_t, 3>;
constexpr Extents kBlock{5, 4, 3}, kGrid{4, 2, 3}, kCluster{2, 1, 3};
constexpr std::int64_t kThreads = 60, kCtas = 24;
constexpr std::int64_t kStatic = 100, kDynamic = 48;

// A thread of the grid: its coordinates, and numbers derived from them.
struct Thread {
  Extents tid{}, ctaid{};
  std::int64_t linear = 0, cta = 0;
  [[nodiscard]] std::int64_t lane() const { return linear % 32; }
  [[nodiscard]] std::int64_t in_cluster(std::size_t i) const { return ctaid[i] % kCluster[i]; }
};

// [CTA][thread]: the value of `word` (of `bits`).
std::vector<std::uint64_t> read(const std::string& word, int bits, Extents cluster, int target = 90) {
  const std::string move = bits == 1    ? "mov.pred %p1, " + word + "; selp.u64 %rd3, 1, 0, %p1;"
                           : bits == 64 ? "mov.u64 %rd3, " + word + ";"
                                        : "mov.u32 %r1, " + word + "; cvt.u64.u32 %rd3, %r1;";
  const std::string text = R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p0) {
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .pred %p<2>; .shared .align 4 .b8 s[100];
  mov.u32 %r7, s;
  ld.param.u64 %rd1, [p0];
  mov.u32 %r2, %ctaid.z; mov.u32 %r3, %nctaid.y; mov.u32 %r4, %ctaid.y; mad.lo.s32 %r2, %r2, %r3, %r4;
  mov.u32 %r3, %nctaid.x; mov.u32 %r4, %ctaid.x; mad.lo.s32 %r2, %r2, %r3, %r4;
  mov.u32 %r3, %ntid.z; mov.u32 %r4, %tid.z; mad.lo.s32 %r2, %r2, %r3, %r4;
  mov.u32 %r3, %ntid.y; mov.u32 %r4, %tid.y; mad.lo.s32 %r2, %r2, %r3, %r4;
  mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r2, %r2, %r3, %r4;
  mad.wide.u32 %rd1, %r2, 8, %rd1;
  )" + move + R"(
  st.global.u64 [%rd1], %rd3;
  ret;
})";
  Device device(ProgramOptions{.target = target});
  const LoadedModule& module = device.load(parse_module(text, "k.ptx"));
  const std::uint64_t out = device.memory().allocate(8 * kThreads * kCtas, "out");
  LaunchConfig config;
  config.kernel = "k";
  config.grid = kGrid;
  config.block = kBlock;
  config.cluster = cluster;
  config.dynamic_shared = kDynamic;
  config.params = pack_params(module, "k", {out});
  EXPECT_TRUE(device.launch(module, config).clean()) << word;
  std::vector<std::uint64_t> values(static_cast<std::size_t>(kThreads * kCtas));
  const std::vector<std::byte> bytes = device.memory().read(out, 8 * kThreads * kCtas);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void expect(const std::string& word, const std::function<std::int64_t(const Thread&)>& expected, int bits = 32,
            Extents cluster = kCluster) {
  const std::vector<std::uint64_t> got = read(word, bits, cluster);
  for (std::int64_t cta = 0; cta < kCtas; ++cta) {
    for (std::int64_t linear = 0; linear < kThreads; ++linear) {
      Thread t;
      t.linear = linear;
      t.cta = cta;
      t.tid = {linear % kBlock[0], linear / kBlock[0] % kBlock[1], linear / (kBlock[0] * kBlock[1])};
      t.ctaid = {cta % kGrid[0], cta / kGrid[0] % kGrid[1], cta / (kGrid[0] * kGrid[1])};
      ASSERT_EQ(got[static_cast<std::size_t>(cta * kThreads + linear)], static_cast<std::uint64_t>(expected(t)))
          << word << " of thread " << linear << " of CTA " << cta;
    }
  }
}

TEST(SpecialRegisters, CoordinatesAndExtents) {
  const char* const axes[] = {".x", ".y", ".z"};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string axis = axes[i];
    expect("%tid" + axis, [i](const Thread& t) { return t.tid[i]; });
    expect("%ntid" + axis, [i](const Thread&) { return kBlock[i]; });
    expect("%ctaid" + axis, [i](const Thread& t) { return t.ctaid[i]; });
    expect("%nctaid" + axis, [i](const Thread&) { return kGrid[i]; });
    expect("%cluster_ctaid" + axis, [i](const Thread& t) { return t.in_cluster(i); });
    expect("%cluster_nctaid" + axis, [i](const Thread&) { return kCluster[i]; });
    expect("%clusterid" + axis, [i](const Thread& t) { return t.ctaid[i] / kCluster[i]; });
    expect("%nclusterid" + axis, [i](const Thread&) { return kGrid[i] / kCluster[i]; });
  }
  expect("%cluster_ctarank", [](const Thread& t) {
    return t.in_cluster(0) + kCluster[0] * (t.in_cluster(1) + kCluster[1] * t.in_cluster(2));
  });
  expect("%cluster_nctarank", [](const Thread&) { return 6; });
  expect(
      "%is_explicit_cluster", [](const Thread&) { return 1; }, 1);
}

TEST(SpecialRegisters, WithoutAClusterEachCtaIsOne) {
  expect("%cluster_ctaid.x", [](const Thread&) { return 0; }, 32, {});
  expect("%clusterid.z", [](const Thread& t) { return t.ctaid[2]; }, 32, {});
  expect("%nclusterid.x", [](const Thread&) { return kGrid[0]; }, 32, {});
  expect("%cluster_nctarank", [](const Thread&) { return 1; }, 32, {});
  expect("%is_explicit_cluster", [](const Thread&) { return 0; }, 1, {});
}

TEST(SpecialRegisters, LanesAndTheirMasks) {
  expect("%laneid", [](const Thread& t) { return t.lane(); });
  expect("%warpid", [](const Thread& t) { return t.linear / 32; });
  expect("%lanemask_eq", [](const Thread& t) { return std::int64_t{1} << t.lane(); });
  expect("%lanemask_lt", [](const Thread& t) { return (std::int64_t{1} << t.lane()) - 1; });
  expect("%lanemask_le", [](const Thread& t) { return (std::int64_t{2} << t.lane()) - 1; });
  expect("%lanemask_ge", [](const Thread& t) { return 0xffffffff - ((std::int64_t{1} << t.lane()) - 1); });
  expect("%lanemask_gt", [](const Thread& t) { return 0xffffffff - ((std::int64_t{2} << t.lane()) - 1); });
}

TEST(SpecialRegisters, WarpsOfAMultiprocessorAreThoseOfItsThreads) {
  for (const auto& [target, warps] : {std::pair{90, 64U}, {100, 64U}, {120, 48U}}) {
    EXPECT_THAT(read("%nwarpid", 32, {}, target), Each(warps)) << target;
  }
}

TEST(SpecialRegisters, TheMachineTheGridAndSharedMemory) {
  expect("%nwarpid", [](const Thread&) { return 64; });
  expect("%nsmid", [](const Thread&) { return 132; });
  expect("%smid", [](const Thread& t) { return t.cta % 132; });
  expect(
      "%gridid", [](const Thread&) { return 1; }, 64);
  expect("%dynamic_smem_size", [](const Thread&) { return kDynamic; });
  // The dynamic part begins at a multiple of 16.
  expect("%total_smem_size", [](const Thread&) { return (kStatic + 15) / 16 * 16 + kDynamic; });
  expect("%aggr_smem_size", [](const Thread&) { return (kStatic + 15) / 16 * 16 + kDynamic + 1024; });
  for (const char* end : {"%reserved_smem_offset_end", "%reserved_smem_offset_cap"})
    expect(end, [](const Thread&) { return 1024; });
  for (const char* begin : {"%reserved_smem_offset_begin", "%reserved_smem_offset_0", "%reserved_smem_offset_1"})
    expect(begin, [](const Thread&) { return 0; });
  expect("%envreg0", [](const Thread&) { return 0; });
  expect("%envreg31", [](const Thread&) { return 0; });
}

// Clocks count instructions: every read returns a different number, and 64 bits are not truncated.
TEST(SpecialRegisters, ClocksCountInstructions) {
  for (const std::string word : {"%clock64", "%globaltimer"}) {
    const std::vector<std::uint64_t> values = read(word, 64, {});
    const std::set<std::uint64_t> different(values.begin(), values.end());
    // Both warps of a CTA read different counts; the count of a CTA begins at 0, the timer continues.
    EXPECT_EQ(different.size(), word == "%clock64" ? 2U : 2U * kCtas) << word;
    EXPECT_GE(*different.begin(), word == "%clock64" ? 10U : 1010U) << word;
  }
  for (const char* word : {"%clock", "%globaltimer_lo"}) EXPECT_GT(read(word, 32, {})[0], 0U) << word;
  for (const char* word : {"%clock_hi", "%globaltimer_hi"}) EXPECT_EQ(read(word, 32, {})[0], 0U) << word;
}

TEST(SpecialRegisters, EachHasItsName) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(SpecialRegister::count); ++i) {
    const auto special = static_cast<SpecialRegister>(i);
    EXPECT_EQ(special_from_name(name(special)), special) << name(special);
  }
}

std::string rejection(const std::string& statement) {
  try {
    static_cast<void>(make_program(
        parse_module(".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k() { .reg .b32 %r<4>; .reg .b64 "
                     "%rd<4>;\n" +
                         statement + "\nret; }\n",
                     "k.ptx"),
        {}));
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(SpecialRegisters, AnUnsupportedOneIsRejectedByNameAndPlace) {
  for (const std::string word : {"%pm0", "%pm3_64", "%current_graph_exec", "%envreg32", "%tid.q", "%lanemask_ne"}) {
    SCOPED_TRACE(word);
    const std::string said = rejection("mov.u32 %r1, " + word + ";");
    EXPECT_THAT(said, HasSubstr("5:14: "));
    EXPECT_THAT(said, HasSubstr("'" + word + "'"));
  }
  EXPECT_THAT(rejection("mov.u32 %r1, %clock64;"), HasSubstr("'%clock64' is 64 bits wide, expected 32"));
  EXPECT_THAT(rejection("mov.u64 %rd1, %tid.x;"), HasSubstr("'%tid.x' is 32 bits wide, expected 64"));
  EXPECT_THAT(rejection("add.u32 %r1, %tid.x, 1;"), HasSubstr("'%tid.x' is a special register, expected a register"));
}

}  // namespace
}  // namespace kvscope::ptx::test::special_registers_test
