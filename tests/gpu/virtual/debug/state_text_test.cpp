// The exact text of a stopped launch.
#include "gpu/virtual/debug/state_text.h"

#include <gtest/gtest.h>

#include "tests/gpu/virtual/debug/kernel_text.h"

namespace kvscope::ptx::state_text_test {
namespace {

using test::steps_launch;

TEST(StateText, ListsThePlaceAndTheWaitOfEachLaneGroup) {
  const auto launch = steps_launch(1);
  ControlledRun run(launch->device, *launch->module, launch->config);
  // Warp 0 has arrived at the barrier, warp 1 is at its beginning.
  while (run.position().warp == 0) static_cast<void>(run.steps(1));
  const Position next = run.position();
  EXPECT_EQ(where_text(run.launch(), &next),
            "cta (0,0,0)\n"
            "  warp 0   lanes ffffffff  waits  steps.cu:4  bar.sync 0  waits for barrier 0\n"
            "  warp 1   lanes ffffffff  next   steps.cu:1  ld.param.u64 %rd1, [out]\n");
  EXPECT_EQ(barriers_text(run.launch(), 0), "barrier 0  arrived: warps 0\n");
  EXPECT_EQ(copies_text(run.launch(), 0), "");
}

TEST(StateText, ShowsARegisterByDistinctValues) {
  const auto launch = steps_launch(1);
  ControlledRun run(launch->device, *launch->module, launch->config);
  static_cast<void>(run.add_breakpoint(run.pcs_of("steps.cu", 3)));
  static_cast<void>(run.run());
  const auto rounds = read_register(run.launch(), 0, 0, kAllLanes, "%r1");
  ASSERT_TRUE(rounds);
  EXPECT_EQ(to_text(*rounds), "%r1  .b32\n  all lanes         0x00000000  0\n");
  const auto even = read_register(run.launch(), 0, 0, kAllLanes, "%p1");
  ASSERT_TRUE(even);
  // x = 4 t: always even.
  EXPECT_EQ(to_text(*even), "%p1  .pred\n  all lanes         true\n");
  const auto x = read_register(run.launch(), 0, 0, kAllLanes, "%r3");
  ASSERT_TRUE(x);
  for (std::uint64_t lane = 0; lane < kLanes; ++lane) EXPECT_EQ(x->bits[lane], 4 * lane);
  EXPECT_EQ(to_text(*x),
            "%r3  .b32\n"
            "  lanes 0-7                   0           4           8          12          16          20          24"
            "          28\n"
            "  lanes 8-15                 32          36          40          44          48          52          56"
            "          60\n"
            "  lanes 16-23                64          68          72          76          80          84          88"
            "          92\n"
            "  lanes 24-31                96         100         104         108         112         116         120"
            "         124\n");
  EXPECT_FALSE(read_register(run.launch(), 0, 0, kAllLanes, "%r77"));
  EXPECT_FALSE(read_register(run.launch(), 7, 0, kAllLanes, "%r3"));
}

TEST(StateText, ShowsBytesOfSharedAndGlobalMemory) {
  const auto launch = steps_launch(1);
  ControlledRun run(launch->device, *launch->module, launch->config);
  static_cast<void>(run.to(StopReason::barrier));
  // Words 0 and 1 are 0 and 4; before the window there is no memory.
  EXPECT_EQ(bytes_text(run.launch(), run.memory(), Space::shared, 0, 0x3fc, 12),
            "0x003fc  ........ 00000000 04000000\n");
  static_cast<void>(run.run());
  EXPECT_EQ(bytes_text(run.launch(), run.memory(), Space::global, 0, launch->out + 128, 8),
            "0x200000080  00000000 04000000\n");
}

// 32 bits may be either; a small integer is not printed as a float of 1e-43.
TEST(StateText, TellsFloatsFromIntegersByTheirSize) {
  RegisterValue value{.name = "%r9", .type = Type::b32, .lanes = 7, .alive = true, .bits = {}};
  value.bits.resize(kLanes);
  value.bits[0] = 0x40200000;
  value.bits[1] = 33;
  value.bits[2] = 0xfffffffb;
  EXPECT_EQ(to_text(value),
            "%r9  .b32\n  lane 0            0x40200000  2.5f\n  lane 1            0x00000021  33\n"
            "  lane 2            0xfffffffb  -5\n");
  value.type = Type::b64;
  value.bits[0] = 0x200000100;
  EXPECT_TRUE(to_text(value).starts_with("%r9  .b64\n  lane 0            0x200000100\n"));
}

}  // namespace
}  // namespace kvscope::ptx::state_text_test
