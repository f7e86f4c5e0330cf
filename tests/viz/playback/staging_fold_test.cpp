// A trace may have events of a tile that is loaded into registers; they do not change the state of the pool.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/staging/staging_events.h"
#include "tests/viz/playback/support.h"
#include "viz/playback/event_tape.h"

namespace kvscope::viz::staging_fold_test {
namespace {

using namespace testing_support;

Scenario staged_scenario() {
  Scenario scenario;
  scenario.name = "staged";
  scenario.model = {"custom", 2, 4, 2, 128, false, 128};
  scenario.cache.dtype = DType::bf16;
  scenario.cache.page_size = 64;
  scenario.cache.blocks = 8;
  scenario.requests.list = {Request{0, 70, 3, {}}, Request{0, 150, 3, {}}};
  scenario.tile = {.BN = 64, .BK = 128};
  scenario.focus = {.layer = 1, .head = 1, .tile = 2, .staging = StagingDetail::lanes};
  return scenario;
}

struct TwoRuns {
  Recorded plain, staged;  // without and with the tile's events, which come last
};

TwoRuns two_runs() {
  const Scenario scenario = staged_scenario();
  TwoRuns runs{record(scenario, scenario.requests.list), {}};
  trace::MemoryRecorder recorder;
  const EngineRun run = run_engine(scenario, scenario.requests.list, recorder);
  record_staging(scenario, scenario.requests.list, run.report, recorder);
  runs.staged = {scenario, scenario.requests.list, recorder.events()};
  return runs;
}

TEST(StagingFold, TheStateAfterEveryEventIsThatOfTheRunWithoutThem) {
  const TwoRuns runs = two_runs();
  ASSERT_GT(runs.staged.events.size(), runs.plain.events.size() + 1000);
  const auto plain = runs.plain.open(), staged = runs.staged.open();
  for (std::int64_t at = 0; at <= plain->facts().events; ++at) {
    ASSERT_EQ(staged->state_at(Position{at}), plain->state_at(Position{at})) << at;
  }
  const State last = plain->state_at(Position{plain->facts().events});
  const Marks marks = plain->marks_at(Position{plain->facts().events});
  for (std::int64_t at = plain->facts().events; at <= staged->facts().events; at += 97) {
    ASSERT_EQ(staged->state_at(Position{at}), last) << at;
    ASSERT_EQ(staged->marks_at(Position{at}), marks) << at;
  }
  EXPECT_EQ(staged->state_at(Position{staged->facts().events}), last);
}

TEST(StagingFold, CurvesAndSizesAreThoseOfTheRunWithoutThem) {
  const TwoRuns runs = two_runs();
  const auto plain = runs.plain.open(), staged = runs.staged.open();
  EXPECT_EQ(staged->timeline(), plain->timeline());
  EXPECT_EQ(staged->facts().rows, plain->facts().rows);
  EXPECT_EQ(staged->facts().blocks, plain->facts().blocks);
  EXPECT_EQ(staged->facts().sequences, plain->facts().sequences);
  EXPECT_EQ(staged->facts().table_columns, plain->facts().table_columns);
  EXPECT_EQ(staged->facts().events, static_cast<std::int64_t>(runs.staged.events.size()));
}

// A trace with only the events of a tile, as a kernel might write it, is a run without steps.
TEST(StagingFold, ATraceOfATileAloneHasNoSteps) {
  const TwoRuns runs = two_runs();
  Recorded tile = runs.staged;
  tile.events.erase(tile.events.begin(), tile.events.begin() + static_cast<std::ptrdiff_t>(runs.plain.events.size()));
  const auto run = tile.open();
  EXPECT_EQ(run->timeline().steps(), 0);
  EXPECT_EQ(run->state_at(Position{run->facts().events}), empty_state(run->facts()));
}

}  // namespace
}  // namespace kvscope::viz::staging_fold_test
