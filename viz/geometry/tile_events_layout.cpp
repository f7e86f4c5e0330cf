#include "viz/geometry/tile_events_layout.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {
namespace {

constexpr double kLaneName = 66, kRuler = 16, kTallLane = 25, kLowLane = 10.5;  // [px] at font scale 1
constexpr double kBesideLanes = 4, kBesideLowLanes = 2;                         // [px]
constexpr double kOrderedBar = 30;    // [px] a flight narrower than that has no line from its issue
constexpr double kIssueShare = 0.35;  // of a copy's width that its own event takes; the rest is for its chunks

// How wide an action is beside the others.
double weight(TileAction::Kind kind) {
  switch (kind) {
    case TileAction::Kind::open:
      return 0.4;
    case TileAction::Kind::expect:
      return 1.5;
    case TileAction::Kind::copy:
      return 2;
    case TileAction::Kind::complete:
      return 0.4;
    case TileAction::Kind::wait:
      return 0.7;
    case TileAction::Kind::read:
      return 1;
  }
  return 1;
}

struct Actor {
  TileActor actor = TileActor::reader;
  std::int64_t wave = -1;
};

std::vector<Actor> actors(const Tile& tile) {
  std::vector<Actor> all;
  if (tile.tma()) all = {{TileActor::issuer, -1}, {TileActor::engine, -1}, {TileActor::barrier, -1}};
  if (tile.tma() && tile.waves() == 1) {
    all.push_back({TileActor::reader, -1});
  } else {
    for (std::int64_t wave = 0; wave < tile.waves(); ++wave) all.push_back({TileActor::reader, wave});
  }
  return all;
}

// Bars without their rectangles; `lane` counts all lanes.
std::vector<TileEventBar> bars_of(const Tile& tile, const std::vector<Actor>& actors) {
  using Kind = TileEventBar::Kind;
  std::vector<TileEventBar> bars;
  const auto lane_of = [&](TileActor actor, std::int64_t wave) {
    const auto found = std::ranges::find_if(
        actors, [&](const Actor& of) { return of.actor == actor && (of.wave == wave || of.wave == -1); });
    return found - actors.begin();
  };
  const auto add = [&](Kind kind, TileActor actor, std::int64_t wave, std::int64_t index, std::int64_t first,
                       std::int64_t end) {
    if (first < end) bars.push_back({kind, lane_of(actor, wave), index, first, end, {}});
  };
  std::vector<std::int64_t> idle(static_cast<std::size_t>(tile.waves()), -1);  // where each wave's last copy ended
  for (const TileAction& action : tile.actions) {
    const std::int64_t first = action.first, end = action.end;
    switch (action.kind) {
      case TileAction::Kind::open:
        break;
      case TileAction::Kind::expect: {
        add(Kind::expect, TileActor::issuer, -1, action.index, first, end);
        const auto phase = static_cast<std::size_t>(action.index);
        const std::int64_t done = phase < tile.complete_events.size() ? tile.complete_events[phase] + 1 : tile.events;
        add(Kind::phase, TileActor::barrier, -1, action.index, end, done);
        for (std::int64_t wave = 0; wave < tile.waves(); ++wave) {
          add(Kind::wait, TileActor::reader, wave, action.index, end, done);
        }
        break;
      }
      case TileAction::Kind::copy: {
        const TileCopy& copy = tile.copies[static_cast<std::size_t>(action.index)];
        if (tile.tma()) {
          add(Kind::issue, TileActor::issuer, -1, action.index, first, first + 1);
          add(Kind::flight, TileActor::engine, -1, action.index, end > first + 1 ? first + 1 : first, end);
        } else {
          add(Kind::flight, TileActor::reader, copy.wave, action.index, first, end);
          idle[static_cast<std::size_t>(copy.wave)] = end;
        }
        break;
      }
      case TileAction::Kind::complete:
        break;
      case TileAction::Kind::wait: {
        const auto wave = static_cast<std::size_t>(tile.waits[static_cast<std::size_t>(action.index)].wave);
        add(Kind::wait, TileActor::reader, static_cast<std::int64_t>(wave), action.index,
            idle[wave] >= 0 ? idle[wave] : first, end);
        break;
      }
      case TileAction::Kind::read:
        add(Kind::read, TileActor::reader, tile.reads[static_cast<std::size_t>(action.index)].wave, action.index, first,
            end);
        break;
    }
  }
  std::ranges::stable_sort(bars, {}, &TileEventBar::lane);
  return bars;
}

QRectF plot_of(const QRectF& body, double font_scale) {
  const double left = std::ceil(body.left() + std::min(kLaneName * font_scale, body.width() / 3));
  return QRectF(QPointF(left, body.top()), body.bottomRight());
}

}  // namespace

TileEventAxis::TileEventAxis(const Tile& tile, double left, double right) : left_(left), right_(right) {
  double all = 0;
  for (const TileAction& action : tile.actions) all += weight(action.kind);
  const double unit = all > 0 ? (right - left) / all : 0;
  double x = left;
  knots_.emplace_back(0, x);
  for (const TileAction& action : tile.actions) {
    const double width = weight(action.kind) * unit;
    if (action.kind == TileAction::Kind::copy && action.end > action.first + 1) {
      knots_.emplace_back(action.first + 1, x + kIssueShare * width);
    }
    x += width;
    if (action.end > knots_.back().first) knots_.emplace_back(action.end, x);
  }
  if (knots_.back().first < tile.events) knots_.emplace_back(tile.events, right);
  if (knots_.size() > 1) knots_.back().second = right;
}

double TileEventAxis::x_of(std::int64_t event) const {
  const auto after = std::ranges::lower_bound(knots_, event, {}, &std::pair<std::int64_t, double>::first);
  if (after == knots_.end()) return right_;
  if (after == knots_.begin()) return left_;
  const auto& [first, from] = *(after - 1);
  const auto& [end, to] = *after;
  return from + (to - from) * static_cast<double>(event - first) / static_cast<double>(end - first);
}

std::int64_t TileEventAxis::event_at(double x) const {
  const auto after = std::ranges::lower_bound(knots_, x, {}, &std::pair<std::int64_t, double>::second);
  if (after == knots_.end()) return knots_.empty() ? 0 : knots_.back().first;
  if (after == knots_.begin()) return 0;
  const auto& [first, from] = *(after - 1);
  const auto& [end, to] = *after;
  return first + std::llround((x - from) / (to - from) * static_cast<double>(end - first));
}

std::optional<std::int64_t> TileEventsLayout::bar_at(QPointF at) const {
  for (std::size_t n = 0; n < bars.size(); ++n) {
    if (bars[n].rect.contains(at)) return static_cast<std::int64_t>(n);
  }
  return std::nullopt;
}

TileEventsLayout tile_events_layout(const Tile& tile, std::int64_t event, double scrolled, const QRectF& body,
                                    double font_scale) {
  TileEventsLayout layout;
  layout.plot = plot_of(body, font_scale);
  const double ruler = std::min(std::round(kRuler * font_scale), body.height() / 3);
  layout.ruler = QRectF(layout.plot.left(), body.bottom() - ruler, layout.plot.width(), ruler);
  layout.plot.setBottom(layout.ruler.top());
  layout.axis = TileEventAxis(tile, layout.plot.left(), layout.plot.right());

  const std::vector<Actor> all = actors(tile);
  layout.all_lanes = std::ssize(all);
  const double room = layout.plot.height();
  const auto fit = static_cast<std::int64_t>(room / (kLowLane * font_scale));
  const std::int64_t shown = std::clamp<std::int64_t>(fit, 1, layout.all_lanes);
  const std::vector<TileEventBar> bars = bars_of(tile, all);
  std::int64_t begun = -1, lane = 0;
  for (const TileEventBar& bar : bars) {
    const bool action = bar.kind != TileEventBar::Kind::phase && bar.kind != TileEventBar::Kind::wait;
    if (action && bar.first < event && bar.first > begun) begun = bar.first, lane = bar.lane;
  }
  layout.first_lane = std::clamp<std::int64_t>(std::max<std::int64_t>(lane - shown + 1, 0) + std::llround(scrolled), 0,
                                               layout.all_lanes - shown);
  const double step = std::min(std::floor(room / static_cast<double>(shown)), kTallLane * font_scale);
  for (std::int64_t n = 0; n < shown; ++n) {
    const Actor& actor = all[static_cast<std::size_t>(layout.first_lane + n)];
    const double top = std::round(layout.plot.top() + static_cast<double>(n) * step);
    const double height = std::max(std::floor(step) - (step < kTallLane / 1.4 ? kBesideLowLanes : kBesideLanes), 1.0);
    layout.lanes.push_back({actor.actor, actor.wave, QRectF(body.left(), top, layout.plot.left() - body.left(), height),
                            QRectF(layout.plot.left(), top, layout.plot.width(), height)});
  }
  for (TileEventBar bar : bars) {
    bar.lane -= layout.first_lane;
    if (bar.lane < 0 || bar.lane >= shown) continue;
    const QRectF& line = layout.lanes[static_cast<std::size_t>(bar.lane)].line;
    const double from = layout.axis.x_of(bar.first), to = layout.axis.x_of(bar.end);
    bar.rect = QRectF(from, line.top(), to - from, line.height());
    layout.bars.push_back(bar);
  }
  // The issue before its flight, and the barrier between all flights and the reads.
  for (const TileEventBar& before : layout.bars) {
    const bool issue = before.kind == TileEventBar::Kind::issue, phase = before.kind == TileEventBar::Kind::phase;
    if (!issue && !phase) continue;
    const auto after = std::ranges::find_if(layout.bars, [&](const TileEventBar& bar) {
      return issue ? bar.kind == TileEventBar::Kind::flight && bar.index == before.index
                   : bar.kind == TileEventBar::Kind::read && bar.first >= before.end;
    });
    if (after == layout.bars.end() || after->lane <= before.lane) continue;
    if (issue && after->rect.width() < kOrderedBar) continue;
    double top = before.rect.top(), x = std::round(before.rect.right());
    for (const TileEventBar& bar : layout.bars) {
      if (phase && bar.kind == TileEventBar::Kind::flight && bar.end <= before.end) top = std::min(top, bar.rect.top());
    }
    layout.orders.push_back({phase, {x, issue ? before.rect.top() : top}, {x, after->rect.bottom()}});
  }
  return layout;
}

std::optional<std::int64_t> event_at(QPointF at, const QRectF& body, const Tile& tile, double font_scale) {
  const QRectF plot = plot_of(body, font_scale);
  if (!plot.contains(at)) return std::nullopt;
  return TileEventAxis(tile, plot.left(), plot.right()).event_at(at.x());
}

}  // namespace kvscope::viz
