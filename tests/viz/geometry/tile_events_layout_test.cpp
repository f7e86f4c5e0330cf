// The axis of a tile's events and its inverse, the bars of each actor and their order.
#include "viz/geometry/tile_events_layout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/viz/geometry/staged_tile.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz::tile_events_layout_test {
namespace {

using testing_support::staged_tile;
using Kind = TileEventBar::Kind;

const QRectF kBody(36, 760, 1528, 96);

Tile tma() {
  return *staged_tile({});
}

Tile lds() {
  return *staged_tile({.path = StagingPath::lds, .page = 64});
}

std::vector<TileEventBar> bars_of(const TileEventsLayout& layout, Kind kind) {
  std::vector<TileEventBar> bars;
  std::ranges::copy_if(layout.bars, std::back_inserter(bars),
                       [&](const TileEventBar& bar) { return bar.kind == kind; });
  return bars;
}

TEST(TileEventsLayout, EventsHaveRisingPlacesAndAreFoundAgain) {
  for (const Tile& tile : {tma(), lds(), *staged_tile({.dtype = DType::f32})}) {
    const TileEventAxis axis(tile, 100, 1600);
    EXPECT_EQ(axis.x_of(0), 100);
    EXPECT_EQ(axis.x_of(tile.events), 1600);
    double before = 99;
    for (std::int64_t event = 0; event <= tile.events; ++event) {
      const double x = axis.x_of(event);
      ASSERT_GT(x, before) << event;
      ASSERT_EQ(axis.event_at(x), event);
      before = x;
    }
    EXPECT_EQ(axis.event_at(0), 0);
    EXPECT_EQ(axis.event_at(5000), tile.events);
  }
}

TEST(TileEventsLayout, APlaceOfThePanelIsAnEvent) {
  const Tile tile = tma();
  const TileEventsLayout layout = tile_events_layout(tile, 0, 0, kBody, 1);
  for (const std::int64_t event : {std::int64_t{0}, std::int64_t{14}, event_of_landed(tile), tile.events}) {
    const double x = std::clamp(layout.axis.x_of(event), layout.plot.left(), layout.plot.right() - 1e-6);
    EXPECT_EQ(event_at({x, kBody.center().y()}, kBody, tile, 1), event);
    EXPECT_EQ(event_at({x, kBody.bottom() - 1}, kBody, tile, 1), event) << "the ruler";
  }
  EXPECT_FALSE(event_at({kBody.left() + 2, kBody.center().y()}, kBody, tile, 1)) << "a lane's name";
  EXPECT_FALSE(event_at({800, kBody.top() - 3}, kBody, tile, 1));
}

TEST(TileEventsLayout, TmaHasOneLaneForEachActor) {
  const Tile tile = tma();
  const TileEventsLayout layout = tile_events_layout(tile, 0, 0, kBody, 1);
  ASSERT_EQ(layout.lanes.size(), 4U);
  EXPECT_EQ(layout.lanes[0].actor, TileActor::issuer);
  EXPECT_EQ(layout.lanes[1].actor, TileActor::engine);
  EXPECT_EQ(layout.lanes[2].actor, TileActor::barrier);
  EXPECT_EQ(layout.lanes[3].actor, TileActor::reader);
  EXPECT_EQ(layout.lanes[3].wave, -1);
  EXPECT_EQ(bars_of(layout, Kind::expect).size(), 1U);
  EXPECT_EQ(bars_of(layout, Kind::issue).size(), tile.copies.size());
  EXPECT_EQ(bars_of(layout, Kind::flight).size(), tile.copies.size());
  EXPECT_EQ(bars_of(layout, Kind::read).size(), tile.reads.size());
}

TEST(TileEventsLayout, WhatIsOrderedIsDrawnInOrder) {
  const Tile tile = tma();
  const TileEventsLayout layout = tile_events_layout(tile, 0, 0, kBody, 1);
  const TileEventBar expect = bars_of(layout, Kind::expect).front(), phase = bars_of(layout, Kind::phase).front();
  const std::vector<TileEventBar> issues = bars_of(layout, Kind::issue), flights = bars_of(layout, Kind::flight);
  for (std::size_t n = 0; n < issues.size(); ++n) {
    EXPECT_GE(issues[n].rect.left(), expect.rect.right() - 1e-6);
    EXPECT_GE(flights[n].rect.left(), issues[n].rect.right() - 1e-6);
    EXPECT_LE(flights[n].rect.right(), phase.rect.right());
  }
  for (const TileEventBar& read : bars_of(layout, Kind::read)) EXPECT_GE(read.rect.left(), phase.rect.right() - 1e-6);
  EXPECT_EQ(bars_of(layout, Kind::wait).front().end, phase.end);
  // One line for the barrier, from the flights to the reads, and one for each box.
  EXPECT_EQ(std::ranges::count(layout.orders, true, &TileEventOrder::barrier), 1);
  EXPECT_EQ(layout.orders.size(), 1 + tile.copies.size());
  for (const TileEventOrder& order : layout.orders) EXPECT_LT(order.from.y(), order.to.y());
}

TEST(TileEventsLayout, ThroughLdsEachWaveHasALaneOfCopiesAWaitAndReads) {
  const Tile tile = lds();
  const TileEventsLayout layout = tile_events_layout(tile, 0, 0, kBody, 1);
  ASSERT_EQ(static_cast<std::int64_t>(layout.lanes.size()), tile.waves());
  for (std::int64_t wave = 0; wave < tile.waves(); ++wave) {
    EXPECT_EQ(layout.lanes[static_cast<std::size_t>(wave)].wave, wave);
    std::vector<Kind> kinds;
    std::int64_t end = 0;
    for (const TileEventBar& bar : layout.bars) {
      if (bar.lane != wave) continue;
      EXPECT_GE(bar.first, end);
      end = bar.end;
      kinds.push_back(bar.kind);
    }
    EXPECT_TRUE(std::ranges::is_sorted(kinds)) << "flights, a wait, reads";
    EXPECT_EQ(std::ranges::count(kinds, Kind::wait), 1);
    EXPECT_EQ(std::ranges::count(kinds, Kind::read), 8);
  }
}

TEST(TileEventsLayout, BarsAreFoundWhereTheyAreDrawn) {
  for (const Tile& tile : {tma(), lds()}) {
    const TileEventsLayout layout = tile_events_layout(tile, 0, 0, kBody, 1);
    for (std::size_t n = 0; n < layout.bars.size(); ++n) {
      ASSERT_EQ(layout.bar_at(layout.bars[n].rect.center()), static_cast<std::int64_t>(n));
      ASSERT_TRUE(kBody.adjusted(-1, -1, 1, 1).contains(layout.bars[n].rect));
    }
  }
}

TEST(TileEventsLayout, LanesThatDoNotFitAreCountedAndScrolledTo) {
  const Tile tile = lds();
  const QRectF low(0, 0, 600, 40);
  const TileEventsLayout top = tile_events_layout(tile, 0, 0, low, 1);
  EXPECT_LT(top.lanes.size(), 4U);
  EXPECT_EQ(top.all_lanes, 4);
  EXPECT_EQ(top.first_lane, 0);
  const TileEventsLayout end = tile_events_layout(tile, 0, 99, low, 1);
  EXPECT_EQ(end.lanes.back().wave, 3);
  for (const TileEventBar& bar : end.bars) EXPECT_LT(bar.lane, std::ssize(end.lanes));
  // The lane of the playhead is shown, and scrolling goes on from there.
  const std::int64_t reading = tile.reads.back().event + 1;
  EXPECT_EQ(tile_events_layout(tile, reading, 0, low, 1).lanes.back().wave, 3);
  EXPECT_EQ(tile_events_layout(tile, reading, -1, low, 1).lanes.back().wave, 2);
  for (const double scale : {0.75, 1.6, 2.5}) {
    const TileEventsLayout tiny = tile_events_layout(tile, 0, 0, QRectF(5, 5, 100, 60), scale);
    EXPECT_GE(tiny.lanes.size(), 1U);
    EXPECT_LE(tiny.lanes.back().line.bottom(), tiny.ruler.top() + 1);
  }
}

TEST(TileEventsLayout, ATraceWithoutLanesHasABarForEachAction) {
  // tile_opened, barrier_expects, two boxes, barrier_completed, one read: an event each.
  std::vector<trace::Event> events;
  trace::TileOpened opened;
  opened.tma = true;
  opened.rows = 32, opened.tokens = 32, opened.columns = 64, opened.bytes = 4096;
  events.emplace_back(opened);
  events.emplace_back(trace::BarrierExpects{0, 4096});
  for (std::int64_t n = 0; n < 2; ++n) {
    trace::BoxCopied box;
    box.copy = n, box.sub_tile = n, box.shared = 2048 * n, box.bytes = 2048;
    events.emplace_back(box);
  }
  events.emplace_back(trace::BarrierCompleted{0});
  events.emplace_back(trace::FragmentRead{0, 0, 0, 4, 4, 0});
  const Tile tile = fold_tile(events);
  const TileEventsLayout layout = tile_events_layout(tile, 0, 0, kBody, 1);
  EXPECT_EQ(bars_of(layout, Kind::issue).size(), 2U);
  EXPECT_EQ(bars_of(layout, Kind::flight).size(), 2U);
  EXPECT_EQ(bars_of(layout, Kind::read).size(), 1U);
  for (const TileEventBar& bar : layout.bars) EXPECT_GT(bar.rect.width(), 1);
}

}  // namespace
}  // namespace kvscope::viz::tile_events_layout_test
