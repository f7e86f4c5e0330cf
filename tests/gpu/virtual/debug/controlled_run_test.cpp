// Forward, backward and by position: every way to reach a step leads to the same state.
#include "gpu/virtual/debug/controlled_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gpu/virtual/check/checks.h"
#include "tests/gpu/virtual/debug/kernel_text.h"
#include "tests/property.h"

namespace kvscope::ptx::controlled_run_test {
namespace {

using test::steps_launch;
using test::StepsLaunch;

// The state at a position as bytes; it must be equal however the position is reached.
std::string state_of(const ControlledRun& run) {
  std::string out = std::to_string(run.step());
  const auto add = [&out](const void* from, std::size_t bytes) { out.append(static_cast<const char*>(from), bytes); };
  for (const Cta& cta : run.launch().ctas) {
    out += "|cta " + std::to_string(cta.index);
    add(cta.shared.data(), cta.shared.size());
    for (const Warp& warp : cta.warps) {
      out += "|warp " + std::to_string(warp.exited);
      for (const LaneGroup& f : warp.lane_groups) {
        if (f.lanes == 0) continue;  // merged into another, and in the list until the warp's next turn
        out += "|" + std::to_string(f.pc) + " " + std::to_string(f.lanes) + " " +
               std::to_string(static_cast<int>(f.state));
      }
      for (const Activation& a : warp.activations) add(a.registers.data(), a.registers.size());
    }
  }
  for (const Allocation& a : run.memory().allocations()) add(a.bytes.data(), a.bytes.size());
  return out;
}

std::uint64_t end_of(int rounds) {
  const auto launch = steps_launch(rounds);
  ControlledRun run(launch->device, *launch->module, launch->config);
  static_cast<void>(run.run());
  return run.step();
}

std::uint32_t word(std::uint32_t thread, int rounds) {
  std::uint32_t x = thread;
  for (int i = 0; i < rounds; ++i) {
    x = 3 * x + thread;
    if (x & 1) x >>= 1;
  }
  return x;
}

TEST(ControlledRun, RunsToTheEndAsALaunchDoes) {
  const auto launch = steps_launch(9);
  ControlledRun run(launch->device, *launch->module, launch->config);
  EXPECT_EQ(run.run().reason, StopReason::finished);
  EXPECT_TRUE(run.ended());
  EXPECT_TRUE(run.reports().empty());
  for (std::uint32_t t = 0; t < 64; ++t) {
    std::uint32_t got = 0;
    std::memcpy(&got, launch->device.memory().read(launch->out + 4 * t, 4).data(), 4);
    EXPECT_EQ(got, word(t ^ 32, 9)) << t;
  }
  const auto again = steps_launch(9);
  EXPECT_EQ(again->device.launch(*again->module, again->config).steps, run.step());
}

// Snapshots are taken during the run, so a long run has snapshots other than the beginning.
TEST(ControlledRun, EveryWayToAStepLeadsToTheSameState) {
  for (const std::uint64_t seed : {0u, 5u}) {
    const Policy policy = seed == 0 ? Policy::late : Policy::seeded;
    const auto forwards = steps_launch(700, policy, seed);
    ControlledRun reference(forwards->device, *forwards->module, forwards->config);
    std::vector<std::pair<std::uint64_t, std::string>> states;
    while (!reference.ended()) {
      states.emplace_back(reference.step(), state_of(reference));
      static_cast<void>(reference.steps(101));
    }
    ASSERT_GT(states.size(), 100u);
    const auto other = steps_launch(700, policy, seed);
    ControlledRun run(other->device, *other->module, other->config);
    static_cast<void>(run.run());
    for (int i = 0; i < 60; ++i) {
      const std::size_t to = static_cast<std::size_t>(i) * 7919 % states.size();
      static_cast<void>(run.seek(states[to].first));
      ASSERT_EQ(state_of(run), states[to].second) << "step " << states[to].first << ", seed " << seed;
    }
  }
}

TEST(ControlledRun, ForwardsAndBackAgainIsWhereItWas) {
  const auto launch = steps_launch(40);
  ControlledRun run(launch->device, *launch->module, launch->config);
  EXPECT_TRUE(prop::check([&] {
    static_cast<void>(run.seek(prop::in_range<std::uint64_t>(0, 900)));
    const std::string before = state_of(run);
    const std::uint64_t here = run.step();
    static_cast<void>(run.steps(prop::in_range<std::uint64_t>(1, 400)));
    static_cast<void>(run.back(run.step() - here));
    RC_ASSERT(state_of(run) == before);
  }));
}

TEST(ControlledRun, StopsBeforeTheFirstInstructionOfALine) {
  const auto launch = steps_launch(2);
  ControlledRun run(launch->device, *launch->module, launch->config);
  const std::vector<std::int32_t> pcs = run.pcs_of("steps.cu", 3);
  ASSERT_EQ(pcs.size(), 1u);
  EXPECT_EQ(run.add_breakpoint(pcs), 1);
  // Three CTAs of two warps reach it.
  for (int time = 0; time < 6; ++time) {
    const Stop stop = run.run();
    ASSERT_EQ(stop.reason, StopReason::breakpoint);
    EXPECT_EQ(stop.what, "breakpoint 1");
    EXPECT_EQ(stop.at.pc, pcs[0]);
    EXPECT_EQ(run.position().pc, pcs[0]);
    EXPECT_EQ(run.position().warp, time % 2);
    EXPECT_EQ(run.position().cta, time / 2);
  }
  EXPECT_EQ(run.run().reason, StopReason::finished);
  static_cast<void>(run.seek(0));
  EXPECT_TRUE(run.remove(1));
  EXPECT_FALSE(run.remove(1));
  EXPECT_EQ(run.run().reason, StopReason::finished);
}

TEST(ControlledRun, StopsBehindTheStoreThatChangedWhatIsWatched) {
  const auto launch = steps_launch(3);
  ControlledRun run(launch->device, *launch->module, launch->config);
  EXPECT_EQ(run.add_watch({.space = Space::global, .address = launch->out + 4, .bytes = 4}), 1);
  const Stop stop = run.run();
  EXPECT_EQ(stop.reason, StopReason::watchpoint);
  EXPECT_EQ(run.launch().program->statement(stop.at.pc).opcode, "st.global.u32");
  const std::uint32_t value = word(33, 3);
  std::uint32_t now = 0;
  std::memcpy(&now, run.memory().read(launch->out + 4, 4).data(), 4);
  EXPECT_EQ(now, value);
  static_cast<void>(run.back(1));
  std::memcpy(&now, run.memory().read(launch->out + 4, 4).data(), 4);
  EXPECT_EQ(now, 0u);
}

TEST(ControlledRun, StopsWhereABarrierIsComplete) {
  const auto launch = steps_launch(3);
  ControlledRun run(launch->device, *launch->module, launch->config);
  const Stop stop = run.to(StopReason::barrier);
  EXPECT_EQ(stop.reason, StopReason::barrier);
  EXPECT_EQ(stop.what, "barrier 0");
  for (const Warp& warp : run.launch().ctas.front().warps) {
    for (const LaneGroup& f : warp.lane_groups) {
      EXPECT_TRUE(f.lanes == 0 || f.state == LaneGroupState::ready);
    }
  }
}

TEST(ControlledRun, StepsByLineInOneWarp) {
  const auto launch = steps_launch(2);
  ControlledRun run(launch->device, *launch->module, launch->config);
  std::vector<std::int32_t> lines;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(run.line().reason, StopReason::line);
    const Program& program = *run.launch().program;
    lines.push_back(program.module->frames[static_cast<std::size_t>(program.statement(run.position().pc).frame)].line);
    EXPECT_EQ(run.position().warp, 0);
  }
  EXPECT_EQ(lines, (std::vector<std::int32_t>{2, 3, 4, 5, 6}));
  ASSERT_EQ(run.back_line().reason, StopReason::line);
  EXPECT_EQ(run.position().warp, 0);
}

TEST(ControlledRun, AtTheBeginningThereIsNothingFurtherBack) {
  const auto launch = steps_launch(2);
  ControlledRun run(launch->device, *launch->module, launch->config);
  EXPECT_EQ(run.back(1).reason, StopReason::beginning);
  static_cast<void>(run.steps(3));
  static_cast<void>(run.back(100));
  EXPECT_EQ(run.step(), 0u);
}

// A checker that received a step twice would find races between an access and itself.
TEST(ControlledRun, CheckersReceiveEveryStepOnce) {
  const auto launch = steps_launch(30);
  class Listener final : public Monitor {
   public:
    [[nodiscard]] bool wants_instructions() const override { return true; }
    void instruction(const Exec& exec, const Op&, LaneMask) override {
      fresh = fresh && seen.insert({exec.launch.step, exec.cta.index, exec.warp.index, exec.lane_group.pc}).second;
    }
    std::set<std::tuple<std::uint64_t, int, int, int>> seen;
    bool fresh = true;
  } listener;
  ControlledRun run(launch->device, *launch->module, launch->config, &listener);
  for (int i = 0; i < 20; ++i) {
    static_cast<void>(run.steps(50));
    static_cast<void>(run.back(30));
  }
  static_cast<void>(run.run());
  static_cast<void>(run.seek(10));
  static_cast<void>(run.run());
  EXPECT_TRUE(listener.fresh);
  EXPECT_GE(listener.seen.size(), end_of(30));
}

// The kernel without its barrier: the second warp's store races with the first warp's load, and the other way around.
std::unique_ptr<StepsLaunch> racing_launch() {
  std::string text = test::steps_ptx();
  const std::string barrier = "  bar.sync 0;\n";
  text.erase(text.find(barrier), barrier.size());
  return steps_launch(3, Policy::late, 0, text);
}

// The position and the kind of each report at which run() stops, up to the end of the launch.
std::vector<std::pair<std::uint64_t, std::string>> report_stops(ControlledRun& run) {
  std::vector<std::pair<std::uint64_t, std::string>> out;
  for (Stop stop = run.run(); stop.reason == StopReason::report; stop = run.run()) {
    out.emplace_back(run.step(), stop.what);
    EXPECT_EQ(stop.at.step + 1, run.step());
  }
  EXPECT_TRUE(run.ended());
  return out;
}

// A search that runs past its stop gives the reports behind it to the checkers, which do not repeat them.
TEST(ControlledRun, StopsAtReportsThatAnEarlierSearchRanPast) {
  const auto launch = racing_launch();
  Checks checks;
  ControlledRun run(launch->device, *launch->module, launch->config, checks.monitor());
  const auto stops = report_stops(run);
  ASSERT_GE(stops.size(), 2u);

  const auto again = racing_launch();
  Checks other;
  ControlledRun ahead(again->device, *again->module, again->config, other.monitor());
  ahead.add_breakpoint(ahead.pcs_of("steps.cu", 3));
  ASSERT_EQ(ahead.run().reason, StopReason::breakpoint);
  ASSERT_LT(ahead.step(), stops.front().first);
  EXPECT_TRUE(ahead.reports().empty());
  ahead.remove(1);
  EXPECT_EQ(report_stops(ahead), stops);
  static_cast<void>(ahead.seek(0));
  EXPECT_EQ(report_stops(ahead), stops);
  static_cast<void>(ahead.seek(0));
  EXPECT_EQ(ahead.to(StopReason::report).what, stops.front().second);
  EXPECT_EQ(ahead.step(), stops.front().first);
}

TEST(ControlledRun, StopsAtABreakpointThatComesBeforeAReport) {
  const auto launch = racing_launch();
  Checks checks;
  ControlledRun run(launch->device, *launch->module, launch->config, checks.monitor());
  const auto stops = report_stops(run);
  run.add_breakpoint(run.pcs_of("steps.cu", 3));
  static_cast<void>(run.seek(0));
  EXPECT_EQ(run.run().reason, StopReason::breakpoint);
  EXPECT_LT(run.step(), stops.front().first);
}

TEST(ControlledRun, ListsAReportOnlyAfterItsInstruction) {
  const auto launch = racing_launch();
  Checks checks;
  ControlledRun run(launch->device, *launch->module, launch->config, checks.monitor());
  const auto stops = report_stops(run);
  static_cast<void>(run.seek(stops.front().first));
  EXPECT_EQ(run.reports().size(), 1u);
  static_cast<void>(run.back(1));
  EXPECT_TRUE(run.reports().empty());
}

// The repeated steps lack the checkers' reports, which decide whether a later mistake is a repetition.
TEST(ControlledRun, AStepBackDoesNotMakeARepetitionNew) {
  const auto launch = racing_launch();
  Checks checks;
  ControlledRun run(launch->device, *launch->module, launch->config, checks.monitor());
  const auto stops = report_stops(run);

  const auto again = racing_launch();
  Checks other;
  ControlledRun back(again->device, *again->module, again->config, other.monitor());
  static_cast<void>(back.steps(stops.back().first));
  static_cast<void>(back.seek(0));
  EXPECT_EQ(report_stops(back), stops);
  EXPECT_EQ(back.reports().size(), stops.size());
}

// Shared memory appears with the CTA, at the first step: that is not a change of the watched bytes.
TEST(ControlledRun, SharedMemoryCanBeWatchedBeforeTheFirstStep) {
  const auto launch = steps_launch(3);
  ControlledRun run(launch->device, *launch->module, launch->config);
  run.add_watch({.space = Space::shared, .cta = 0, .address = 0x404, .bytes = 4});
  const Stop stop = run.run();
  EXPECT_EQ(stop.reason, StopReason::watchpoint);
  ASSERT_GT(run.step(), 0u);
  EXPECT_EQ(run.launch().program->statement(stop.at.pc).opcode, "st.shared.u32");
  // The CTA ends, and its shared memory with it.
  EXPECT_EQ(run.run().reason, StopReason::finished);
}

// A breakpoint on the way does not end it. Bytes that no instruction writes lead to the end.
TEST(ControlledRun, GoesToTheNextWriteOfBytes) {
  const auto launch = steps_launch(3);
  ControlledRun run(launch->device, *launch->module, launch->config);
  run.add_breakpoint({1});
  const Stop stop = run.to_write({.space = Space::shared, .cta = 0, .address = 0x404, .bytes = 4});
  EXPECT_EQ(stop.reason, StopReason::write);
  EXPECT_EQ(stop.what.find("shared 0x00404: "), 0u);
  EXPECT_EQ(run.launch().program->statement(stop.at.pc).opcode, "st.shared.u32");
  EXPECT_EQ(stop.at.step + 1, run.step());
  EXPECT_EQ(run.to_write({.space = Space::shared, .cta = 7, .address = 0x404, .bytes = 4}).reason,
            StopReason::finished);
}

// Interrupted after any number of questions, forward and backward, the launch continues with the same states.
TEST(ControlledRun, AnInterruptedMovementCanBeContinued) {
  constexpr int kRounds = 20'000;
  const auto whole_launch = steps_launch(kRounds);
  ControlledRun whole(whole_launch->device, *whole_launch->module, whole_launch->config);
  ASSERT_EQ(whole.run().reason, StopReason::finished);
  const std::uint64_t end = whole.step();
  ASSERT_GT(end, std::uint64_t{4} << 16);
  const std::string at_end = state_of(whole);
  whole.back(end - 1000);
  const std::string at_1000 = state_of(whole);

  for (int questions = 0; questions < 6; ++questions) {
    const auto launch = steps_launch(kRounds);
    ControlledRun run(launch->device, *launch->module, launch->config);
    int left = questions;
    const auto keep_going = [&left] { return left-- > 0; };
    run.set_keep_going(keep_going);
    EXPECT_EQ((questions % 2 == 0 ? run.run() : run.seek(end)).reason, StopReason::interrupted);
    EXPECT_LE(run.step(), static_cast<std::uint64_t>(questions) << 16);
    EXPECT_FALSE(run.ended());
    EXPECT_EQ(run.position().step, run.step());
    left = 1000;
    EXPECT_EQ(run.run().reason, StopReason::finished);
    EXPECT_EQ(state_of(run), at_end);
    left = 0;
    EXPECT_EQ(run.back(1).reason, StopReason::interrupted);
    EXPECT_LT(run.step(), end);
    run.set_keep_going(nullptr);
    EXPECT_EQ(run.seek(1000).reason, StopReason::step);
    EXPECT_EQ(state_of(run), at_1000);
  }
}

// Memory for only one snapshot: the beginning is kept, so moving backward still works.
TEST(ControlledRun, GoesBackWithoutRoomForSnapshots) {
  const auto launch = steps_launch(900);
  ControlledRun run(launch->device, *launch->module, launch->config, nullptr, 1);
  static_cast<void>(run.seek(9000));
  const std::string there = state_of(run);
  static_cast<void>(run.seek(20));
  static_cast<void>(run.seek(9000));
  EXPECT_EQ(state_of(run), there);
}

}  // namespace
}  // namespace kvscope::ptx::controlled_run_test
