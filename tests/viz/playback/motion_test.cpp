// Motion against the events of the runs: the objects that move between two states are those that the events of the step
// have changed, and
// the flights of a tile land in the order and at the times of its events.
#include "viz/playback/motion.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>
#include <variant>

#include "tests/viz/geometry/staged_tile.h"
#include "tests/viz/view/runs.h"
#include "viz/playback/cursor.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz::motion_test {
namespace {

using Kind = BlockMove::Kind;

const std::vector<std::string> kRuns{"first_light",      "preemption",     "prefix_sharing",
                                     "parallel_samples", "sliding_window", "continuous"};

// The lookup table as the events write it, and how each page came to its block: the motion's oracle.
struct Table {
  using Page = std::pair<std::int64_t, std::int64_t>;  // sequence, page
  std::map<Page, std::int64_t> block;
  std::map<Page, Kind> came;  // since forget()
  std::map<std::int64_t, int> holders;
  std::set<std::int64_t> preempted, evicted;

  void forget() {
    came.clear();
    preempted.clear();
    evicted.clear();
  }
  void put(Page page, std::int64_t to, Kind kind) {
    block[page] = to;
    came[page] = kind;
    ++holders[to];
  }
  void apply(const trace::Event& event) {
    std::visit([this](const auto& e) { on(e); }, event);
  }
  template <class Other>
  void on(const Other&) {}
  void on(const trace::BlockAllocated& e) { put({e.seq.value, e.page.value}, e.block.value, Kind::taken); }
  void on(const trace::BlockShared& e) {
    put({e.seq.value, e.page.value}, e.block.value, holders[e.block.value] > 0 ? Kind::shared : Kind::found);
  }
  void on(const trace::BlockCopied& e) {
    --holders[e.from.value];
    put({e.seq.value, e.page.value}, e.to.value, Kind::copied);
  }
  void on(const trace::BlockReleased& e) {
    --holders[e.block.value];
    // A page that was copied has left the old block already.
    const auto page = block.find({e.seq.value, e.page.value});
    if (page != block.end() && page->second == e.block.value) block.erase(page);
  }
  void on(const trace::RequestPreempted& e) { preempted.insert(e.seq.value); }
  void on(const trace::BlockEvicted& e) { evicted.insert(e.block.value); }
};

TEST(Motion, MovesAreWhatTheEventsOfTheStepHaveChanged) {
  std::map<Kind, int> seen;
  for (const std::string& name : kRuns) {
    const auto run = gallery_run(name);
    Table table;
    for (std::int64_t row = 0; row < run->facts().rows; ++row) {
      const Table before = table;
      table.forget();
      for (const trace::Event& event : *run->events_of_row(row)) table.apply(event);
      std::map<Table::Page, BlockMove> moved;
      std::set<std::int64_t> evicted;
      const State was = run->state_at(row == 0 ? Position{0} : run->end_of_row(row - 1));
      const State is = run->state_at(run->end_of_row(row));
      for (const BlockMove& move : moves_between(was, is, 100'000)) {
        ++seen[move.kind];
        if (move.kind == Kind::evicted) {
          evicted.insert(move.block.value);
          continue;
        }
        ASSERT_TRUE(moved.emplace(Table::Page{move.seq.value, move.page.value}, move).second);
      }
      std::set<Table::Page> pages;
      for (const auto& [page, block] : before.block) pages.insert(page);
      for (const auto& [page, block] : table.block) pages.insert(page);
      for (const Table::Page& page : pages) {
        SCOPED_TRACE(testing::Message() << name << " row " << row << " seq " << page.first << " page " << page.second);
        const auto from = before.block.find(page);
        const auto to = table.block.find(page);
        const bool had = from != before.block.end(), has = to != table.block.end();
        if (had && has && from->second == to->second) {
          EXPECT_FALSE(moved.contains(page));
          continue;
        }
        ASSERT_TRUE(moved.contains(page));
        const BlockMove move = moved[page];  // a copy: the entry goes
        moved.erase(page);
        if (!has) {
          EXPECT_EQ(move.block.value, from->second);
          EXPECT_EQ(move.kind, table.preempted.contains(page.first) ? Kind::preempted : Kind::released);
        } else if (had) {
          EXPECT_EQ(move.kind, Kind::copied);
          EXPECT_EQ(move.from.value, from->second);
          EXPECT_EQ(move.block.value, to->second);
        } else {
          EXPECT_EQ(move.block.value, to->second);
          EXPECT_EQ(move.kind, table.came[page]);
        }
      }
      EXPECT_TRUE(moved.empty()) << name << " row " << row;
      for (const std::int64_t block : evicted) EXPECT_TRUE(table.evicted.contains(block));
    }
  }
  for (const Kind kind : {Kind::taken, Kind::found, Kind::shared, Kind::copied, Kind::released, Kind::preempted}) {
    EXPECT_GT(seen[kind], 0) << static_cast<int>(kind);
  }
}

TEST(Motion, BackwardsIsTheSameChangeReversed) {
  const auto run = gallery_run("preemption");
  for (std::int64_t row = 1; row < run->facts().rows; ++row) {
    const State a = run->state_at(run->end_of_row(row - 1)), b = run->state_at(run->end_of_row(row));
    std::set<std::pair<std::int64_t, std::int64_t>> forth, back;
    for (const BlockMove& move : moves_between(a, b, 1000)) {
      if (move.kind != Kind::evicted) forth.insert({move.seq.value, move.page.value});
    }
    for (const BlockMove& move : moves_between(b, a, 1000)) {
      if (move.kind != Kind::evicted) back.insert({move.seq.value, move.page.value});
    }
    EXPECT_EQ(forth, back) << row;
  }
}

TEST(Motion, EverySpanIsInsideTheMotionAndTheyStartInOrder) {
  const auto run = gallery_run("prefix_sharing");
  for (const std::size_t most : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{400}}) {
    for (std::int64_t row = 1; row < run->facts().rows; ++row) {
      const auto moves =
          moves_between(run->state_at(run->end_of_row(row - 1)), run->state_at(run->end_of_row(row)), most);
      std::set<Kind> kinds;
      for (const BlockMove& move : moves) kinds.insert(move.kind);
      EXPECT_LE(moves.size(), std::max(most, kinds.size()));  // one of each kind at least
      double last = 0;
      for (const BlockMove& move : moves) {
        EXPECT_GE(move.when.start, last);
        EXPECT_LT(move.when.start, move.when.end);
        EXPECT_LE(move.when.end, 1 + 1e-12);
        last = move.when.start;
      }
    }
  }
}

TEST(Motion, LocalTimeGoesFromZeroToOneInsideTheSpan) {
  const MotionSpan span{0.25, 0.75};
  EXPECT_EQ(local(span, 0), 0);
  EXPECT_EQ(local(span, 0.25), 0);
  EXPECT_DOUBLE_EQ(local(span, 0.5), 0.5);
  EXPECT_EQ(local(span, 0.75), 1);
  EXPECT_EQ(local(span, 1), 1);
  double last = 0;
  for (int n = 0; n <= 100; ++n) {
    const double now = local(span, n / 100.0);
    EXPECT_GE(now, last);
    last = now;
  }
}

// --- tiles -----------------------------------------------------------------------------------------------------------

// By TMA and through LDS, K and V; V is read by columns.
std::vector<Tile> tiles() {
  using testing_support::TileOrder;
  std::vector<Tile> all;
  for (const TileOrder& order : {TileOrder{}, TileOrder{.kv = KOrV::v}, TileOrder{.dtype = DType::e4m3},
                                 TileOrder{.path = StagingPath::lds, .page = 64},
                                 TileOrder{.path = StagingPath::lds, .kv = KOrV::v, .page = 64}}) {
    auto tile = testing_support::staged_tile(order);
    EXPECT_TRUE(tile);
    if (tile) all.push_back(std::move(*tile));
  }
  return all;
}

TEST(Motion, FlightsLandWithTheirEvents) {
  for (const Tile& tile : tiles()) {
    std::int64_t flown = 0;
    for (const TileAction& action : tile.actions) {
      const TileState before = tile_state(tile, action.first), after = tile_state(tile, action.end);
      const auto flights = flights_between(tile, before, after, 1'000'000);
      EXPECT_EQ(std::ssize(flights), after.landed - before.landed + after.fills - before.fills);
      for (const TileFlight& flight : flights) {
        ++flown;
        const auto index = static_cast<std::size_t>(flight.index);
        const std::int64_t event = flight.fill ? tile.fills[index].event : tile.chunks[index].event;
        EXPECT_GE(event, before.event);
        EXPECT_LT(event, after.event);
        ASSERT_GE(flight.when.start, -1e-12);
        ASSERT_LE(flight.when.end, 1 + 1e-12);
        ASSERT_NEAR(flight.when.end - flight.when.start, flight.fill ? kFlight * (1 - kWavefronts) : kFlight, 1e-12);
        // The panels show it as landed from the moment its flight ends, and not before.
        EXPECT_LE(event_at(tile, before, after, flight.when.end - 1e-6), event);
        EXPECT_GT(event_at(tile, before, after, std::min(flight.when.end + 1e-6, 1.0)), event);
      }
    }
    EXPECT_EQ(flown, std::ssize(tile.chunks) + std::ssize(tile.fills));
  }
}

TEST(Motion, TheEventNeverGoesBackAndEndsWhereTheActionEnds) {
  for (const Tile& tile : tiles()) {
    for (const TileAction& action : tile.actions) {
      const TileState before = tile_state(tile, action.first), after = tile_state(tile, action.end);
      std::int64_t last = before.event;
      EXPECT_EQ(event_at(tile, before, after, 0), before.event);
      for (int n = 1; n < 64; ++n) {
        const std::int64_t now = event_at(tile, before, after, n / 64.0);
        EXPECT_GE(now, last);
        EXPECT_LE(now, after.event);
        last = now;
      }
      EXPECT_EQ(event_at(tile, before, after, 1), after.event);
    }
  }
}

// A read's wavefronts light as many bytes of every bank as the trace says that it takes cycles.
TEST(Motion, LightsAreTheWavefrontsOfTheRead) {
  std::int64_t lights = 0;
  for (const Tile& tile : tiles()) {
    for (const TileAction& action : tile.actions) {
      const TileState before = tile_state(tile, action.first), after = tile_state(tile, action.end);
      const auto all = lights_between(tile, before, after);
      std::int64_t cycles = 0;
      for (std::int64_t n = before.reads; n < after.reads; ++n)
        cycles += tile.reads[static_cast<std::size_t>(n)].cycles;
      EXPECT_EQ(std::ssize(all), cycles);
      double end = 0;
      for (const BankLight& light : all) {
        EXPECT_NEAR(light.when.start, end, 1e-12);
        end = light.when.end;
        EXPECT_FALSE(light.chunks.empty());
        ++lights;
      }
      EXPECT_NEAR(end, all.empty() ? 0 : kWavefronts, 1e-12);
    }
  }
  EXPECT_GT(lights, 100);
}

// Two tiles of one key and one dim; the second raises m by ln 2, so that c = 1/2. Written out by hand:
//   l: 2 -> 1 -> 4      o: {6, -2} -> {3, -1} -> {12, 4}      o / l: {3, -1} -> {3, -1} -> {3, 1}
AttentionFlow two_tiles() {
  AttentionFlow flow;
  const double m = std::log(2.0);
  flow.tiles = {{0, 1, -INFINITY, 0, 0, 2, 2, {6, -2}}, {1, 2, 0, m, 0.5, 3, 4, {12, 4}}};
  flow.o = {3, 1};
  return flow;
}

TEST(FlowBetween, FirstMRisesAndRescalesThenTheTileIsAdded) {
  const AttentionFlow flow = two_tiles();
  EXPECT_EQ(flow_between(flow, 1, 2, 0), std::nullopt);
  EXPECT_EQ(flow_between(flow, 1, 2, 1), std::nullopt);
  EXPECT_EQ(flow_between(flow, 0, 2, 0.5), std::nullopt) << "two tiles at once";

  const FlowBetween quarter = flow_between(flow, 1, 2, kFlowRescale / 2).value();  // half of the first part
  EXPECT_EQ(quarter.tile, 1);
  EXPECT_NEAR(quarter.largest, std::log(2.0) / 2, 1e-12);
  EXPECT_NEAR(quarter.rescale, 0.75, 1e-12);
  EXPECT_NEAR(quarter.sum, 1.5, 1e-12);
  EXPECT_EQ(quarter.tile_sum, 0);
  EXPECT_EQ(quarter.o, (std::vector<double>{3, -1})) << "l and o have the same factor";

  const FlowBetween rescaled = flow_between(flow, 1, 2, kFlowRescale).value();
  EXPECT_NEAR(rescaled.largest, std::log(2.0), 1e-12);
  EXPECT_NEAR(rescaled.sum, 1, 1e-12);

  const FlowBetween half = flow_between(flow, 1, 2, (1 + kFlowRescale) / 2).value();  // half of the second part
  EXPECT_NEAR(half.sum, 1 + 1.5, 1e-12);
  EXPECT_NEAR(half.tile_sum, 1.5, 1e-12);
  EXPECT_NEAR(half.o[0], (3 + 4.5) / 2.5, 1e-12);   // o: half of the way from 3 to 12
  EXPECT_NEAR(half.o[1], (-1 + 2.5) / 2.5, 1e-12);  // from -1 to 4

  const FlowBetween end = flow_between(flow, 1, 2, 1 - 1e-9).value();
  EXPECT_NEAR(end.sum, 4, 1e-6);
  EXPECT_NEAR(end.o[1], 1, 1e-6);
}

TEST(FlowBetween, TheFirstTileStartsFromNothingAndTheWayBackIsTheWayReversed) {
  const AttentionFlow flow = two_tiles();
  const FlowBetween early = flow_between(flow, 0, 1, 0.1).value();
  EXPECT_EQ(early.largest, 0) << "-infinity has no place to rise from";
  EXPECT_EQ(early.sum, 0);
  EXPECT_EQ(early.o, (std::vector<double>{0, 0}));
  EXPECT_NEAR(flow_between(flow, 0, 1, 0.9)->o[0], 3, 1e-12) << "one tile: its values, divided by its own sum";
  for (const double t : {0.1, 0.5, 0.9}) {
    const FlowBetween back = flow_between(flow, 2, 1, t).value(), forth = flow_between(flow, 1, 2, 1 - t).value();
    EXPECT_NEAR(back.sum, forth.sum, 1e-12);
    EXPECT_NEAR(back.o[1], forth.o[1], 1e-12);
  }
}

// A sink joins l after all tiles: the last tile's motion ends at the result, not at o / l without it.
TEST(FlowBetween, TheLastTileEndsAtTheResult) {
  AttentionFlow flow = two_tiles();
  flow.o = {2.4, 0.8};
  EXPECT_NEAR(flow_between(flow, 1, 2, 1 - 1e-9)->o[0], 2.4, 1e-6);
}

}  // namespace
}  // namespace kvscope::viz::motion_test
