// Where the events of a tile are drawn: one lane for each actor, over an axis of events.
//
//   thread 0   |expect|issue 0|       |issue 1|
//   TMA                       |box 0  |       |box 1  |
//   barrier    |phase 0: waiting for 4,096 B           |
//   warps      |wait                                   |read|read|read|
//                                  | 200                                  ruler, with the playhead's number
//
// A tile through LDS has one lane for each wave: its copies, its waits, its reads. The width of an action depends on
// its kind, not on its number of events, so that a read of 161 events does not crowd out a copy of 65. The events of
// an action have equal widths. x_of() rises with the event and event_at() is its inverse.
//
// Example: 1559 events in 13 actions over 1200 px: a read is 82 px wide, 0.5 px an event.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>

#include "viz/playback/tile.h"

namespace kvscope::viz {

enum class TileActor : std::uint8_t { issuer, engine, barrier, reader };

struct TileEventLane {
  TileActor actor = TileActor::reader;
  std::int64_t wave = -1;  // of a reader; -1: every warp
  QRectF name;             // left of the plot
  QRectF line;             // as wide as the plot
};

struct TileEventBar {
  enum class Kind : std::uint8_t { expect, issue, flight, phase, wait, read };
  Kind kind = Kind::read;
  std::int64_t lane = 0;            // index into TileEventsLayout::lanes
  std::int64_t index = 0;           // of expects, copies, waits or reads; wait of TMA: of expects
  std::int64_t first = 0, end = 0;  // events
  QRectF rect;
};

// One action happens before another one in a different lane: a vertical line from lane to lane.
struct TileEventOrder {
  bool barrier = false;  // all flights of a phase before the first read; else an issue before its flight
  QPointF from, to;
};

class TileEventAxis {
 public:
  TileEventAxis() = default;
  TileEventAxis(const Tile& tile, double left, double right);
  [[nodiscard]] double x_of(std::int64_t event) const;  // 0 to tile.events
  [[nodiscard]] std::int64_t event_at(double x) const;  // the nearest
  [[nodiscard]] double left() const { return left_; }
  [[nodiscard]] double right() const { return right_; }

 private:
  double left_ = 0, right_ = 0;
  std::vector<std::pair<std::int64_t, double>> knots_;  // events and their x, ascending; linear in between
};

struct TileEventsLayout {
  TileEventAxis axis;
  std::vector<TileEventLane> lanes;  // that are shown
  std::int64_t first_lane = 0, all_lanes = 0;
  std::vector<TileEventBar> bars;  // of the lanes that are shown, lane by lane in order of their events
  std::vector<TileEventOrder> orders;
  QRectF plot;
  QRectF ruler;  // below the lanes, as wide as the plot

  [[nodiscard]] std::optional<std::int64_t> bar_at(QPointF at) const;  // index into bars
};

// `event`: where lanes do not fit, the lane of the last action that has begun there is shown. `scrolled` [lanes] from
// there on, cut to the lanes there are.
[[nodiscard]] TileEventsLayout tile_events_layout(const Tile& tile, std::int64_t event, double scrolled,
                                                  const QRectF& body, double font_scale);

// The number of events that have happened at a place of the panel's body: what TileState counts. Nothing left of the
// lanes' plot and outside the body.
[[nodiscard]] std::optional<std::int64_t> event_at(QPointF at, const QRectF& body, const Tile& tile, double font_scale);

}  // namespace kvscope::viz
