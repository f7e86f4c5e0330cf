// All events of a launch: no duplicates, in order, and filtered events are omitted.
#include "gpu/virtual/debug/event_list.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/virtual/machine/diagnosis/report.h"
#include "tests/gpu/virtual/debug/kernel_text.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::event_list_test {
namespace {

using Kind = MachineEventKind;
using ::testing::ElementsAre;

struct Told {
  std::vector<MachineEvent> events;
  std::vector<std::vector<std::uint64_t>> addresses;
  LaunchResult result;
  [[nodiscard]] std::int64_t count(Kind kind) const {
    return std::count_if(events.begin(), events.end(), [&](const MachineEvent& e) { return e.kind == kind; });
  }
};

Told steps_events(EventFilter filter, Policy policy = Policy::late, std::uint64_t seed = 0) {
  Told told;
  EventList list(std::move(filter), [&](const MachineEvent& e, LaneAddressSpan at) {
    told.events.push_back(e);
    told.addresses.emplace_back(at.begin(), at.end());
  });
  const auto launch = test::steps_launch(3, policy, seed);
  told.result = launch->device.launch(*launch->module, launch->config, &list);
  EXPECT_EQ(list.count(), static_cast<std::int64_t>(told.events.size()));
  return told;
}

// Three CTAs of two warps; each thread stores a word to shared memory, reads one and stores one to global memory.
TEST(EventList, TellsEachInstructionOnceAndEachAccessOnce) {
  for (const std::uint64_t seed : {0u, 4u}) {
    const Told told = steps_events({}, seed == 0 ? Policy::late : Policy::seeded, seed);
    std::uint64_t last = 0;
    std::set<std::uint64_t> steps;  // lanes that reach a barrier separately execute it more than once, in one step
    for (const MachineEvent& e : told.events) {
      EXPECT_GE(e.step, last);
      last = e.step;
      if (e.kind == Kind::instruction || e.kind == Kind::retry) steps.insert(e.step);
    }
    EXPECT_EQ(steps.size(), told.result.steps);
    EXPECT_EQ(*steps.rbegin() + 1, told.result.steps);
    if (seed == 0) {
      EXPECT_EQ(told.count(Kind::instruction), static_cast<std::int64_t>(told.result.steps));
    }
    EXPECT_EQ(told.count(Kind::cta_start), 3);
    EXPECT_EQ(told.count(Kind::cta_exit), 3);
    EXPECT_EQ(told.count(Kind::barrier_done), 3);
    std::map<std::pair<Kind, Space>, int> lanes;
    for (const MachineEvent& e : told.events) lanes[{e.kind, e.space}] += std::popcount(e.lanes);
    EXPECT_EQ((lanes[{Kind::store, Space::shared}]), 3 * 64);
    EXPECT_EQ((lanes[{Kind::load, Space::shared}]), 3 * 64);
    EXPECT_EQ((lanes[{Kind::store, Space::global}]), 3 * 64);
    EXPECT_EQ((lanes[{Kind::exit, Space::generic}]), 3 * 64);
  }
}

TEST(EventList, AddressesOfAllLanesAreThereWhenAskedFor) {
  EventFilter filter{.kinds = {Kind::store}, .cta = 1, .warp = 1};
  EXPECT_TRUE(steps_events(filter).addresses.at(0).empty());
  filter.lane_addresses = true;
  const Told told = steps_events(filter);
  ASSERT_EQ(told.events.size(), 2u);
  const MachineEvent& e = told.events[0];
  EXPECT_EQ(e.space, Space::shared);
  EXPECT_EQ(e.address, 0x480u);
  EXPECT_EQ(e.value, 4);
  EXPECT_EQ(e.lanes, kAllLanes);
  for (std::uint64_t lane = 0; lane < 32; ++lane) EXPECT_EQ(told.addresses[0][lane], 0x480 + 4 * lane);
}

// Compares with the whole list, filtered by the test.
TEST(EventList, AFilterKeepsExactlyTheSelectedEvents) {
  const Told all = steps_events({});
  const std::uint64_t end = all.result.steps;
  const std::vector<EventFilter> filters = {
      {.kinds = {Kind::split, Kind::merge}},
      {.kinds = {Kind::instruction}, .cta = 2},
      {.warp = 0},
      {.first_step = end / 3, .last_step = end / 2},
      {.kinds = {Kind::load, Kind::store}, .cta = 0, .warp = 1, .first_step = 5, .last_step = end - 5}};
  for (const EventFilter& filter : filters) {
    std::vector<MachineEvent> expected;
    for (const MachineEvent& e : all.events) {
      const bool kind =
          filter.kinds.empty() || std::find(filter.kinds.begin(), filter.kinds.end(), e.kind) != filter.kinds.end();
      const bool place = (filter.cta < 0 || e.cta == filter.cta) && (filter.warp < 0 || e.warp == filter.warp);
      if (kind && place && e.step >= filter.first_step && e.step <= filter.last_step) expected.push_back(e);
    }
    ASSERT_FALSE(expected.empty());
    EXPECT_TRUE(steps_events(filter).events == expected);
  }
}

// A divergent branch: odd and even lanes split, and merge after it.
TEST(EventList, LanesThatSplitMergeAgain) {
  const Told told = steps_events({.kinds = {Kind::split, Kind::merge}, .cta = 0, .warp = 0});
  ASSERT_GE(told.events.size(), 2u);
  EXPECT_EQ(told.events[0].kind, Kind::split);
  EXPECT_GT(told.events[0].value, told.events[0].pc);
  EXPECT_EQ(told.events[1].kind, Kind::merge);
  EXPECT_EQ(told.count(Kind::split), told.count(Kind::merge));
}

std::vector<std::string> names_of(const test::OneKernel& of, EventFilter filter) {
  std::vector<std::string> out;
  EventList list(std::move(filter), [&](const MachineEvent& e, LaneAddressSpan) {
    out.push_back(std::string(name(e.kind)) + (e.value != 0 ? " " + std::to_string(e.value) : ""));
  });
  test::OneKernel kernel = of;
  kernel.monitor = &list;
  static_cast<void>(test::run(kernel));
  return out;
}

const test::OneKernel kBulk = {.body = R"(
  mov.u32 %r1, s;
  add.u32 %r2, %r1, 2048;
  setp.eq.u32 %p1, %r0, 0;
  @%p1 mbarrier.init.shared.b64 [%r2], 1;
  bar.warp.sync 0xffffffff;
  @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 64;
  @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r2];
AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra AGAIN;
)",
                               .in = test::counted(64)};
const std::vector<Kind> kOfCopies = {Kind::mbarrier_init,
                                     Kind::mbarrier_arrive,
                                     Kind::mbarrier_expect,
                                     Kind::mbarrier_complete,
                                     Kind::mbarrier_phase,
                                     Kind::mbarrier_passed,
                                     Kind::mbarrier_not_yet,
                                     Kind::engine_issue,
                                     Kind::engine_moves,
                                     Kind::engine_done,
                                     Kind::park,
                                     Kind::resume};

// The copy is performed when no lane group can continue, and credits its bytes; policy early: before the wait.
TEST(EventList, TellsACopyFromItsIssueToTheWaitThatItEnds) {
  EXPECT_THAT(names_of(kBulk, {.kinds = kOfCopies}),
              ElementsAre("mbarrier_init 1", "mbarrier_expect 64", "mbarrier_arrive 1", "engine_issue 64",
                          "mbarrier_not_yet", "park", "engine_moves 64", "engine_done 64", "mbarrier_complete 64",
                          "mbarrier_phase", "resume", "mbarrier_passed"));
  test::OneKernel early = kBulk;
  early.options.policy = Policy::early;
  EXPECT_THAT(
      names_of(early, {.kinds = kOfCopies}),
      ElementsAre("mbarrier_init 1", "mbarrier_expect 64", "mbarrier_arrive 1", "engine_issue 64", "engine_moves 64",
                  "engine_done 64", "mbarrier_complete 64", "mbarrier_phase", "mbarrier_passed"));
}

TEST(EventList, AReportIsAnEventOfItsKindAndPlace) {
  std::vector<MachineEvent> reports;
  EventList list({.kinds = {Kind::report}}, [&](const MachineEvent& e, LaneAddressSpan) { reports.push_back(e); });
  test::OneKernel kernel{.body = "add.s64 %rd1, %rd1, 4096;  ld.global.u32 %r1, [%rd1];"};
  kernel.monitor = &list;
  static_cast<void>(test::run(kernel));
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].object, static_cast<std::uint64_t>(ReportKind::out_of_bounds));
  EXPECT_EQ(reports[0].cta, 0);
  EXPECT_EQ(reports[0].warp, 0);
}

TEST(EventList, KindsHaveNamesOfTheirOwn) {
  for (std::size_t kind = 0; kind < kMachineEventKinds; ++kind) {
    EXPECT_EQ(find_machine_event(name(static_cast<Kind>(kind))), static_cast<Kind>(kind)) << kind;
  }
  EXPECT_EQ(find_machine_event("stores"), std::nullopt);
}

TEST(EventList, ALineContainsAllFields) {
  std::vector<std::string> text, lines;
  const auto launch = test::steps_launch(1);
  const Program& program = *launch->module->program;
  EventFilter filter{.kinds = {Kind::store, Kind::barrier_arrive, Kind::barrier_done}, .cta = 0, .last_step = 40};
  filter.lane_addresses = true;
  EventList list(filter, [&](const MachineEvent& e, LaneAddressSpan at) {
    text.push_back(to_text(e, e.warp == 0 ? LaneAddressSpan{} : at, program));
    lines.push_back(to_json_line(e, LaneAddressSpan{}, program));
  });
  static_cast<void>(launch->device.launch(*launch->module, launch->config, &list));
  ASSERT_GE(text.size(), 5u);
  EXPECT_EQ(text[0],
            "      14  cta 0  warp 0  lanes ffffffff  store  shared 0x00400 4 bytes a lane  st.shared.u32  steps.cu:3");
  EXPECT_EQ(text[1], "      15  cta 0  warp 0  lanes ffffffff  barrier_arrive 0 and waits  bar.sync  steps.cu:4");
  EXPECT_THAT(text[2], ::testing::HasSubstr(" 4 bytes a lane  at 480 484 488 48c "));
  EXPECT_THAT(text[4], ::testing::HasSubstr("cta 0  barrier_done 0 threads 64"));
  EXPECT_EQ(lines[0],
            R"({"step":14,"kind":"store","cta":0,"warp":0,"lanes":"ffffffff","space":"shared","address":1024,)"
            R"("bytes_a_lane":4,"pc":15,"opcode":"st.shared.u32","source":"steps.cu:3"})");
  EXPECT_THAT(lines[4], ::testing::HasSubstr(R"("kind":"barrier_done","cta":0,"barrier":0,"threads":64})"));
}

}  // namespace
}  // namespace kvscope::ptx::event_list_test
