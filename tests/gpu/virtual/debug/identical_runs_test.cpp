// The same launch a hundred times: the same trace, events, reports, steps and bytes. Detects any influence of host
// addresses, the clock or the order of a hash table.
#include <gtest/gtest.h>

#include <string>

#include "core/trace/event_text.h"
#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/debug/event_list.h"
#include "gpu/virtual/debug/tile_trace.h"
#include "gpu/virtual/machine/diagnosis/report.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::identical_runs_test {
namespace {

// Two warps: copies of both kinds, an intentional race, a read of uninitialized bytes.
const test::OneKernel kKernel = {.body = R"(
  mov.u32 %r1, s;
  add.u32 %r2, %r1, 2048;
  shl.b32 %r3, %r0, 4;
  add.u32 %r4, %r1, %r3;
  cvt.u64.u32 %rd2, %r3;
  add.s64 %rd3, %rd1, %rd2;
  cp.async.cg.shared.global [%r4], [%rd3], 16;
  cp.async.commit_group;
  setp.eq.u32 %p1, %r0, 0;
  @%p1 mbarrier.init.shared.b64 [%r2], 1;
  bar.sync 0;
  @!%p1 bra WAIT;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1+1024], [%rd1], 256, [%r2];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra WAIT;
  cp.async.wait_group 0;
  xor.b32 %r5, %r3, 512;
  add.u32 %r5, %r1, %r5;
  ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r5];
  ld.shared.u32 %r14, [%r4+1024];
  st.shared.u32 [%r1+3072], %r10;
  shl.b32 %r6, %r0, 2;
  cvt.u64.u32 %rd4, %r6;
  add.s64 %rd4, %rd0, %rd4;
  add.u32 %r10, %r10, %r14;
  st.global.u32 [%rd4], %r10;
)",
                                 .in = test::counted(1024),
                                 .out_bytes = 256,
                                 .threads = 64};

std::string everything(Policy policy, std::uint64_t seed) {
  std::string out;
  trace::MemoryRecorder recorder;
  TileTrace tiles(recorder, {.lanes = true});
  EventFilter all;
  all.lane_addresses = true;
  EventList events(all, [&](const MachineEvent& e, LaneAddressSpan at) {
    out += std::string(name(e.kind)) + ' ' + std::to_string(e.step) + ' ' + std::to_string(e.address) + ' ' +
           std::to_string(e.object) + ' ' + std::to_string(e.value) + ' ' + std::to_string(e.lanes);
    for (const std::uint64_t address : at) out += ' ' + std::to_string(address);
    out += '\n';
  });
  Checks checks;
  checks.add(tiles);
  checks.add(events);
  test::OneKernel kernel = kKernel;
  kernel.monitor = checks.monitor();
  kernel.options.policy = policy;
  kernel.options.seed = seed;
  const test::Ran ran = test::run(kernel);
  for (const trace::Event& event : recorder.events()) out += trace::to_text(event) + '\n';
  for (const Report& report : ran.result.reports) out += to_text(report) + '\n';
  out += std::to_string(ran.result.steps) + ' ' + std::to_string(test::fnv(ran.out.data(), ran.out.size()));
  return out;
}

TEST(IdenticalRuns, AHundredRunsTellTheSame) {
  const std::string first = everything(Policy::late, 0);
  EXPECT_NE(first.find("RACE"), std::string::npos);
  EXPECT_NE(first.find("UNINITIALIZED"), std::string::npos);
  EXPECT_NE(first.find("box_copied"), std::string::npos);
  EXPECT_NE(first.find("lds_copied"), std::string::npos);
  for (int run = 1; run < 100; ++run) ASSERT_EQ(everything(Policy::late, 0), first) << "run " << run;
}

TEST(IdenticalRuns, AHundredRunsOfASeedTellTheSameAndAnotherSeedTellsOtherwise) {
  const std::string first = everything(Policy::seeded, 11);
  for (int run = 1; run < 100; ++run) ASSERT_EQ(everything(Policy::seeded, 11), first) << "run " << run;
  EXPECT_NE(everything(Policy::seeded, 12), first);
}

}  // namespace
}  // namespace kvscope::ptx::identical_runs_test
