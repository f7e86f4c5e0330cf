// The events of the tile in their order: one lane for each actor, and the playhead.
#include <QtCore/QCoreApplication>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "viz/geometry/registers_layout.h"
#include "viz/geometry/tile_events_layout.h"
#include "viz/playback/tile_state.h"
#include "viz/view/cell_paint.h"
#include "viz/view/text.h"
#include "viz/view/tile_events_words.h"
#include "viz/view/tile_paint.h"
#include "viz/view/tile_panel.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

// [px] at font scale 1
constexpr double kLaneText = 12, kBarText = 11, kFlagText = 10.5;
constexpr double kBesideBarText = 6;         // [px] between a bar's edge and its label
constexpr double kFuture = 0.16;             // how much of a bar's color is left before it happens
constexpr double kConflict = 3;              // [px] of the line that marks bank conflicts
constexpr double kOutlinedBar = 16;          // [px] bars below this are marked by a line when they are lit
constexpr double kNarrowBar = 5;             // [px] narrower bars have neither gap nor outline
constexpr double kFlagRoom = 5, kOrder = 2;  // [px]

class TileEventsPanel final : public TilePanel {
  Q_DECLARE_TR_FUNCTIONS(TileEventsPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::tile_events; }
  [[nodiscard]] QString title() const override { return tr("Events of the tile"); }
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Selection hit(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Selection moved(const Selection& from, Move move, const QRectF& body,
                                const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> cells(const QRectF& body, const Scene& scene, std::size_t limit) const override;
  [[nodiscard]] std::optional<QRectF> anchor(const Lit& lit, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Viewport scrolled(QPointF by, const QRectF& body, const Scene& scene) const override;

 protected:
  [[nodiscard]] QString tile_subtitle(const Scene& scene) const override;
  [[nodiscard]] QString tile_summary(const Scene& scene) const override;
  void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> tile_cells(const QRectF& body, const Scene& scene) const override;

 private:
  void paint_labels(QPainter& painter, const TileEventsLayout& layout, const Scene& scene) const;
  void paint_place(QPainter& painter, const TileEventsLayout& layout, const Scene& scene, std::int64_t event,
                   const QString& words, const QColor& color) const;
  void paint_playhead(QPainter& painter, const TileEventsLayout& layout, const QRectF& body, const Scene& scene) const;
  void paint_hovered(QPainter& painter, const TileEventsLayout& layout, const Scene& scene) const;
};

TileEventsLayout events_layout(const QRectF& body, const Scene& scene) {
  return tile_events_layout(*scene.tile, scene.tile_now->event, scene.viewport_of(PanelId::tile_events).offset.y(),
                            body, scene.font_scale);
}

// Neighbors of one kind in a lane, bars [first, end), and what is written on them.
struct BarRun {
  enum class Label : std::uint8_t { none, each, brief, together };
  std::size_t first = 0, end = 0;
  Label label = Label::none;
};

QFont bar_font(const TileEventsLayout& layout, const Scene& scene) {
  return ui_font(std::min(scene.px(kBarText), layout.lanes.front().line.height() - 1));
}

bool words_fit(const QFont& font, const QRectF& rect, const QString& words) {
  return text_width(font, words) + 2 * kBesideBarText <= rect.width();
}

std::vector<BarRun> runs_of(const TileEventsLayout& layout, const Scene& scene) {
  const QFont font = bar_font(layout, scene);
  std::vector<BarRun> runs;
  for (std::size_t first = 0; first < layout.bars.size(); first = runs.back().end) {
    const TileEventBar& bar = layout.bars[first];
    std::size_t end = first + 1;
    while (end < layout.bars.size() && layout.bars[end].kind == bar.kind && layout.bars[end].lane == bar.lane) ++end;
    const std::span<const TileEventBar> run = std::span(layout.bars).subspan(first, end - first);
    const auto all_fit = [&](BarWords words) {
      return std::ranges::all_of(run, [&](const TileEventBar& one) {
        return words_fit(font, one.rect, bar_words(*scene.tile, *scene.tile_now, one, words));
      });
    };
    const QString together = run_words(*scene.tile, run);
    using Label = BarRun::Label;
    const bool fits = !together.isEmpty() && words_fit(font, bar.rect.united(run.back().rect), together);
    const Label label = all_fit(BarWords::some)    ? Label::each
                        : fits                     ? Label::together
                        : all_fit(BarWords::brief) ? Label::brief
                                                   : Label::none;
    runs.push_back({first, end, label});
  }
  return runs;
}

// --- words -----------------------------------------------------------------------------------------------------------

QString TileEventsPanel::tile_subtitle(const Scene& scene) const {
  return tr("event %1 of %2").arg(number_text(scene.tile_now->event), number_text(scene.tile->events));
}

QString TileEventsPanel::tile_summary(const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const QString done =
      tr("%1 of %2 actions are complete").arg(scene.tile_now->action).arg(tile.actions.size()) + tr(" · ");
  if (tile.tma())
    return done + tr("boxes are in flight together; the barrier orders all of them before the first read");
  return done + tr("copies of a wave are in flight together; its wait orders them before its reads");
}

// --- painting --------------------------------------------------------------------------------------------------------

QColor bar_color(const Theme& theme, const Tile& tile, const TileEventBar& bar) {
  switch (bar.kind) {
    case TileEventBar::Kind::expect:
    case TileEventBar::Kind::issue:
      return theme.series[3];
    case TileEventBar::Kind::flight: {
      const TileCopy& copy = tile.copies[static_cast<std::size_t>(bar.index)];
      if (tile.tma()) return tile_page_color(theme, copy.sub_tile);
      if (copy.chunks == 0) return theme.series[0];
      const std::int64_t row = tile.chunks[static_cast<std::size_t>(copy.first_chunk)].row;
      return tile_page_color(theme, row >= 0 ? tile.page_of(row).value_or(0) : 0);
    }
    case TileEventBar::Kind::phase:
      return theme.shared;
    case TileEventBar::Kind::wait:
      return theme.cached;
    case TileEventBar::Kind::read:
      return theme.series[1];
  }
  return theme.cached;
}

void TileEventsPanel::paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  const TileEventsLayout layout = events_layout(body, scene);
  const double now = layout.axis.x_of(scene.tile_now->event);
  painter.save();
  const QFont font = ui_font(std::min(scene.px(kLaneText), layout.lanes.front().name.height() + 1));
  for (const TileEventLane& lane : layout.lanes) {
    draw_text_in(painter, font, theme.text_quiet, lane.name, Qt::AlignLeft,
                 elided(font, lane_name(tile, lane), lane.name.width() - kBesideBarText));
    painter.fillRect(QRectF(lane.line.left(), std::floor(lane.line.center().y()), lane.line.width(), 1),
                     theme.card_border);
  }
  for (const TileEventBar& bar : layout.bars) {
    const QColor color = bar_color(theme, tile, bar);
    // On whole pixels, with a gap between neighbors where there is room for one.
    const double left = std::round(bar.rect.left()), right = std::round(bar.rect.right());
    const bool narrow = right - left < kNarrowBar;
    const QRectF rect(left, bar.rect.top(), std::max(right - left - (narrow ? 0 : 1), 1.0), bar.rect.height());
    painter.fillRect(rect, theme.card);
    painter.fillRect(rect, with_alpha(color, kFuture));
    QRectF past = rect;
    past.setRight(std::clamp(now, rect.left(), rect.right()));
    painter.fillRect(past, color);
    if (bar.kind == TileEventBar::Kind::read && tile.reads[static_cast<std::size_t>(bar.index)].conflicts > 0) {
      painter.fillRect(QRectF(rect.left(), rect.top(), rect.width(), kConflict), theme.warning);
    }
    if (narrow || scene.tile_now->event >= bar.end) continue;
    painter.setPen(QPen(with_alpha(color, 0.8), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5));
  }
  for (const TileEventOrder& order : layout.orders) {
    const QColor& color = order.barrier ? theme.text : theme.text_quiet;
    painter.fillRect(QRectF(order.from.x() - 1, order.from.y(), kOrder, order.to.y() - order.from.y()), color);
  }
  paint_labels(painter, layout, scene);
  paint_playhead(painter, layout, body, scene);
  painter.restore();
}

void TileEventsPanel::paint_labels(QPainter& painter, const TileEventsLayout& layout, const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const Theme& theme = *scene.theme;
  const TileState& now = *scene.tile_now;
  const QFont font = bar_font(layout, scene);
  const double head = layout.axis.x_of(now.event);
  // One color over what has happened, another over what has not. `covers`: the words hide the edges of the bars behind
  // them.
  const auto draw = [&](const TileEventBar& bar, const QRectF& rect, const QString& text, bool covers) {
    const QColor color = bar_color(theme, tile, bar);
    const bool race = is_race(tile, now, bar);
    QRectF past = rect, future = rect;
    past.setRight(std::clamp(head, rect.left(), rect.right()));
    future.setLeft(past.right());
    const double wide = std::min(text_width(font, text) + 2 * kBesideBarText, rect.width());
    // As high as the letters in a low lane.
    const double rim = std::clamp((rect.height() - cap_height(font)) / 2 - 3, 0.0, 2.0);
    const QRectF behind(rect.left() + 2, rect.top() + rim, wide - 4, rect.height() - 2 * rim);
    const auto part = [&](const QRectF& clip, const QColor& ink, const QColor& fill) {
      if (clip.isEmpty()) return;
      painter.save();
      painter.setClipRect(clip, Qt::IntersectClip);
      if (covers) {
        painter.fillRect(behind, theme.card);
        painter.fillRect(behind, fill);
      }
      draw_text_in(painter, font, ink, rect.adjusted(kBesideBarText, 0, -kBesideBarText, 0), Qt::AlignLeft, text);
      painter.restore();
    };
    part(past, race ? readable(theme, theme.warning, color) : theme.ink_on(color), color);
    part(future, race ? theme.warning : theme.text, with_alpha(color, kFuture));
  };
  for (const BarRun& of : runs_of(layout, scene)) {
    const std::span<const TileEventBar> run = std::span(layout.bars).subspan(of.first, of.end - of.first);
    if (of.label == BarRun::Label::together) {
      draw(run.front(), run.front().rect.united(run.back().rect), run_words(tile, run), true);
      continue;
    }
    if (of.label == BarRun::Label::none) continue;
    const bool brief = of.label == BarRun::Label::brief;
    for (const TileEventBar& one : run) {
      const QString all = bar_words(tile, now, one, BarWords::all);
      const bool has_room = !brief && words_fit(font, one.rect, all);
      draw(one, one.rect, has_room ? all : bar_words(tile, now, one, brief ? BarWords::brief : BarWords::some), false);
    }
  }
}

// A line through all lanes and a flag on the ruler.
void TileEventsPanel::paint_place(QPainter& painter, const TileEventsLayout& layout, const Scene& scene,
                                  std::int64_t event, const QString& words, const QColor& color) const {
  const double x = std::round(layout.axis.x_of(event));
  const QFont font = mono_font(std::min(scene.px(kFlagText), layout.ruler.height() - 2), QFont::Bold);
  const QString text = elided(font, words, layout.ruler.width() - 2 * kFlagRoom);
  const double wide = text_width(font, text) + 2 * kFlagRoom;
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.fillRect(QRectF(x - 1, layout.plot.top(), 2, layout.ruler.top() - layout.plot.top() + 1), color);
  const QRectF flag(
      std::clamp(x - wide / 2, layout.ruler.left(), std::max(layout.ruler.left(), layout.ruler.right() - wide)),
      layout.ruler.top() + 1, wide, layout.ruler.height() - 2);
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  painter.drawRoundedRect(flag, 3, 3);
  draw_text_in(painter, font, scene.theme->ink_on(color), flag, Qt::AlignHCenter, text);
}

void TileEventsPanel::paint_playhead(QPainter& painter, const TileEventsLayout& layout, const QRectF& body,
                                     const Scene& scene) const {
  const std::int64_t now = scene.tile_now->event;
  paint_place(painter, layout, scene, now, number_text(now), scene.theme->accent);
  if (std::ssize(layout.lanes) == layout.all_lanes) return;
  const QFont words = ui_font(scene.px(kFlagText));
  const QString more = tr("%1–%2 of %3")
                           .arg(layout.first_lane + 1)
                           .arg(layout.first_lane + std::ssize(layout.lanes))
                           .arg(layout.all_lanes);
  const QRectF corner(body.left(), layout.ruler.top(), layout.ruler.left() - body.left(), layout.ruler.height());
  draw_text_in(painter, words, scene.theme->text_accent, corner, Qt::AlignLeft, elided(words, more, corner.width()));
}

// The place under the pointer, and the event there.
void TileEventsPanel::paint_hovered(QPainter& painter, const TileEventsLayout& layout, const Scene& scene) const {
  const std::int64_t event = scene.hovered.event;
  QString words = number_text(event);
  for (const TileEventBar& bar : layout.bars) {
    const bool background = bar.kind == TileEventBar::Kind::phase || bar.kind == TileEventBar::Kind::wait;
    if (background || event <= bar.first || event > bar.end) continue;
    words += tr(": ") + bar_words(*scene.tile, *scene.tile_now, bar, BarWords::all);
    break;
  }
  painter.save();
  paint_place(painter, layout, scene, event, words, scene.theme->hover);
  painter.restore();
}

// --- what is where ---------------------------------------------------------------------------------------------------

// Copies that bring what is lit, and reads that put it into registers.
struct LitActions {
  std::set<std::int64_t> copies;
  std::vector<bool> reads;  // by index into Tile::reads
};

LitActions actions_of(const Tile& tile, const LitTile& lit) {
  LitActions all;
  for (const std::int64_t chunk : lit.chunks) all.copies.insert(tile.chunks[static_cast<std::size_t>(chunk)].copy);
  all.reads = lit_reads(tile, lit);
  return all;
}

bool means(const LitActions& lit, const TileEventBar& bar) {
  if (bar.kind == TileEventBar::Kind::issue || bar.kind == TileEventBar::Kind::flight)
    return lit.copies.contains(bar.index);
  return bar.kind == TileEventBar::Kind::read && lit.reads[static_cast<std::size_t>(bar.index)];
}

void TileEventsPanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr) return;
  const TileEventsLayout layout = events_layout(body, scene);
  const auto paint = [&](const Lit& lit, bool pinned) {
    if (lit.tile.rows.empty()) return;
    const LitActions all = actions_of(*scene.tile, lit.tile);
    for (const BarRun& run : runs_of(layout, scene)) {
      for (std::size_t n = run.first; n < run.end; ++n) {
        const TileEventBar& bar = layout.bars[n];
        if (!means(all, bar)) continue;
        const double left = std::round(bar.rect.left()), right = std::max(std::round(bar.rect.right()) - 1, left + 1);
        if (run.label != BarRun::Label::together && right - left >= kOutlinedBar) {
          paint_tile_outline(painter, QRectF(left, bar.rect.top(), right - left, bar.rect.height()), *scene.theme,
                             pinned);
          continue;
        }
        // The words of the whole run may cover it.
        const QColor& color = pinned ? scene.theme->accent : scene.theme->hover;
        painter.fillRect(QRectF(left, bar.rect.bottom() - 1, std::max(right - left, 2.0), kConflict), color);
      }
    }
  };
  paint(scene.pinned_lit, true);
  if (!scene.hovered.none() && scene.hovered != scene.pinned) paint(scene.hovered_lit, false);
  if (scene.hovered.kind == Selection::Kind::tile_event) paint_hovered(painter, layout, scene);
}

// One cell an action, in order of time: where it is complete.
std::vector<PanelCell> TileEventsPanel::tile_cells(const QRectF& body, const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const TileEventsLayout layout = events_layout(body, scene);
  std::vector<PanelCell> cells;
  for (const TileEventBar& bar : layout.bars) {
    if (bar.kind == TileEventBar::Kind::issue || (bar.kind == TileEventBar::Kind::wait && tile.tma())) continue;
    const QRectF seen = bar.rect.intersected(body);
    if (seen.isEmpty()) continue;
    const QString name = lane_name(tile, layout.lanes[static_cast<std::size_t>(bar.lane)]);
    const QString words = bar_words(tile, *scene.tile_now, bar, BarWords::all);
    cells.push_back({seen, of_tile_event(bar.end), tr("%1, %2").arg(name, words)});
  }
  std::ranges::stable_sort(cells, {}, [](const PanelCell& cell) { return cell.object.event; });
  return cells;
}

std::vector<PanelCell> TileEventsPanel::cells(const QRectF& body, const Scene& scene, std::size_t limit) const {
  if (scene.tile == nullptr) return {};
  std::vector<PanelCell> all = tile_cells(body, scene);
  if (all.size() > limit) all.resize(limit);
  return all;
}

Selection TileEventsPanel::hit(QPointF at, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr) return {};
  const auto event = event_at(at, body, *scene.tile, scene.font_scale);
  return event ? of_tile_event(*event) : Selection{};
}

// From action to action.
Selection TileEventsPanel::moved(const Selection& from, Move move, const QRectF&, const Scene& scene) const {
  if (scene.tile == nullptr) return from;
  const Tile& tile = *scene.tile;
  const std::int64_t now = from.kind == Selection::Kind::tile_event ? from.event : scene.tile_now->event;
  if (move == Move::first) return of_tile_event(0);
  if (move == Move::last) return of_tile_event(tile.events);
  const bool back = move == Move::left || move == Move::up;
  std::int64_t to = back ? 0 : tile.events;
  for (const TileAction& action : tile.actions) {
    if (back && action.end < now) to = std::max(to, action.end);
    if (!back && action.end > now) to = std::min(to, action.end);
  }
  return of_tile_event(to);
}

std::optional<QRectF> TileEventsPanel::anchor(const Lit& lit, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr || lit.tile.rows.empty()) return std::nullopt;
  const LitActions all = actions_of(*scene.tile, lit.tile);
  for (const TileEventBar& bar : events_layout(body, scene).bars) {
    if (means(all, bar)) return bar.rect;
  }
  return std::nullopt;
}

Viewport TileEventsPanel::scrolled(QPointF by, const QRectF& body, const Scene& scene) const {
  Viewport viewport = scene.viewport_of(id());
  if (scene.tile == nullptr) return viewport;
  const TileEventsLayout layout = events_layout(body, scene);
  const auto room = static_cast<double>(layout.all_lanes - std::ssize(layout.lanes));
  const double lane = layout.plot.height() / static_cast<double>(layout.lanes.size());
  viewport.offset.setY(
      std::clamp(viewport.offset.y() + by.y() / lane, -room, room));  // [lanes] from where the playhead is
  return viewport;
}

}  // namespace

std::unique_ptr<Panel> make_tile_events_panel() {
  return std::make_unique<TileEventsPanel>();
}

}  // namespace kvscope::viz
