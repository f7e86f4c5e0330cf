#include "apps/labs/barrier_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "apps/labs/kernel_run.h"

namespace kvscope::labs::barrier_log_test {
namespace {

using testing::HasSubstr;

// One thread makes the barrier with `arrivals`, executes `body`, and waits for `parity`.
KernelRun run_barrier(BarrierLog& log, int arrivals, const std::string& body, int parity) {
  LabKernel kernel;
  kernel.file = "tile.ptx";
  kernel.ptx =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry tile() {\n"
      ".shared .align 8 .b64 full; .reg .b32 %r<3>; .reg .pred %p<2>;\nmov.u32 %r1, full;\n"
      "mbarrier.init.shared::cta.b64 [%r1], " +
      std::to_string(arrivals) + ";\n" + body + "mov.u32 %r2, " + std::to_string(parity) +
      ";\nWAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;\n@!%p1 bra WAIT;\nret;\n}\n";
  LabCall call;
  call.entry = "tile";
  call.monitor = &log;
  KernelRun run = run_kernel(kernel, call);
  EXPECT_EQ(run.failure, "");
  return run;
}

const std::string& arrive() {
  static const std::string text = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 0;\n";
  return text;
}

TEST(BarrierLog, CountsArrivalsAgainstThoseAskedFor) {
  BarrierLog log;
  const KernelRun run = run_barrier(log, 128, arrive(), 0);
  ASSERT_FALSE(run.reports.empty());
  EXPECT_EQ(log.asked(), 128);
  ASSERT_EQ(log.phases().size(), 1U);
  EXPECT_EQ(log.phases()[0].arrivals, 1);
  EXPECT_THAT(log.cause(run.reports.front(), 1), HasSubstr("asks for 128 arrivals, and 1 arrives"));
  EXPECT_THAT(log.text(1), HasSubstr("phase 0: 1 of 128 arrivals; 0 bytes announced, 0 landed"));
  EXPECT_EQ(log.grid(1).rows[0].cells[0].mark, CellMark::wrong);
}

TEST(BarrierLog, NamesBytesThatNeverLand) {
  BarrierLog log;
  const KernelRun run = run_barrier(log, 1, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 4096;\n", 0);
  ASSERT_FALSE(run.reports.empty());
  EXPECT_THAT(log.cause(run.reports.front(), 1), HasSubstr("4096 bytes are announced, and 0 land"));
}

TEST(BarrierLog, NamesASecondArrivalAndASecondInit) {
  BarrierLog twice, made_twice;
  const KernelRun second =
      run_barrier(twice, 1, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;\n" + arrive(), 0);
  ASSERT_FALSE(second.reports.empty());
  EXPECT_THAT(twice.cause(second.reports.front(), 1), HasSubstr("more often than the 1 time"));
  const KernelRun made = run_barrier(made_twice, 1, "mbarrier.init.shared::cta.b64 [%r1], 1;\n" + arrive(), 0);
  ASSERT_FALSE(made.reports.empty());
  EXPECT_THAT(made_twice.cause(made.reports.front(), 1), HasSubstr("barrier_init is called again"));
}

// A right kernel has no report, and one complete phase before the empty one.
TEST(BarrierLog, RecordsCompletePhasesAndParities) {
  BarrierLog log, odd;
  EXPECT_TRUE(run_barrier(log, 1, arrive(), 0).reports.empty());
  ASSERT_EQ(log.phases().size(), 2U);
  EXPECT_EQ(log.phases()[0].arrivals, 1);
  EXPECT_EQ(log.largest_parity(), 0U);
  EXPECT_TRUE(run_barrier(odd, 1, arrive(), 2).reports.empty());
  EXPECT_EQ(odd.largest_parity(), 2U);
}

}  // namespace
}  // namespace kvscope::labs::barrier_log_test
