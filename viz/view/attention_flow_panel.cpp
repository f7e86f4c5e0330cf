// The tiled flow of one query, tile by tile: running maximum, running sum and each tile's share as a chart, all numbers
// as a table, and the result beside the golden's.
#include <algorithm>
#include <cmath>

#include <QtCore/QCoreApplication>
#include <QtGui/QPainterPath>

#include "viz/geometry/attention_layout.h"
#include "viz/view/attention_paint.h"
#include "viz/view/text.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

constexpr int kFlowWords = 3;  // lines below the table

QString flow_number(double x) {
  if (!std::isfinite(x)) return x < 0 ? QStringLiteral("-∞") : QStringLiteral("∞");
  const double size = std::abs(x);
  if (size != 0 && (size < 1e-3 || size >= 1e5)) return QString::number(x, 'e', 2);
  return QString::number(x, 'f', size >= 1000 ? 1 : 4);
}

QString range_text(std::int64_t first, std::int64_t end) {
  return end - first == 1 ? QString::number(first) : QStringLiteral("%1–%2").arg(first).arg(end - 1);
}

class AttentionFlowPanel final : public AttentionPanel {
  Q_DECLARE_TR_FUNCTIONS(AttentionFlowPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::attention_flow; }
  [[nodiscard]] QString title() const override { return tr("Tiled flow"); }
  [[nodiscard]] QString subtitle(const Scene& scene) const override;
  [[nodiscard]] QString summary(const Scene& scene) const override;
  void paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const override;
  [[nodiscard]] Selection hit(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<QRectF> anchor(const Lit& lit, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Selection moved(const Selection& from, Move move, const QRectF& body,
                                const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> cells(const QRectF& body, const Scene& scene, std::size_t limit) const override;

 private:
  static FlowLayout layout(const QRectF& body, const Scene& scene) {
    return flow_layout(std::ssize(scene.flow->tiles), scene.flow_tiles, kFlowWords, body, scene.font_scale);
  }
  static Selection object(const Scene& scene, std::int64_t tile);
  // The tiles that a selection means, by itself or by the tokens it lights.
  static std::pair<std::size_t, std::size_t> tiles_meant(const Scene& scene, const Selection& selection,
                                                         const Lit& lit);
  static QString cell_text(const Scene& scene, FlowColumn column, std::int64_t tile);
  static QString column_name(FlowColumn column);
  static QString words(const Scene& scene);
  static QString words_between(const AttentionFlow& flow, const FlowBetween& now);
  static void paint_chart(QPainter& painter, const FlowLayout& at, const Scene& scene);
  static void paint_largest(QPainter& painter, const FlowLayout& at, const Scene& scene);
  static void paint_bars(QPainter& painter, const FlowLayout& at, FlowStrip strip, const Scene& scene);
  static void paint_table(QPainter& painter, const FlowLayout& at, const Scene& scene);
};

QString AttentionFlowPanel::subtitle(const Scene& scene) const {
  if (scene.flow == nullptr) return {};
  const AttentionFlow& flow = *scene.flow;
  return tr("sequence %1 · query token %2 · head %3 reads KV head %4 · layer %5 · tiles of %6 keys · f32")
      .arg(flow.request.seq.value)
      .arg(flow.request.query.value)
      .arg(flow.request.head.value)
      .arg(flow.kv_head)
      .arg(flow.request.layer.value)
      .arg(flow.request.tile_keys);
}

QString AttentionFlowPanel::summary(const Scene& scene) const {
  return scene.flow == nullptr ? scene.flow_instead : words(scene);
}

Selection AttentionFlowPanel::object(const Scene& scene, std::int64_t tile) {
  const FlowTile& of = scene.flow->tiles[static_cast<std::size_t>(tile)];
  return of_flow_tile(scene.flow->request.seq, tile, TokIdx{of.first_key}, TokIdx{of.last_key}, scene.flow->page_size);
}

std::pair<std::size_t, std::size_t> AttentionFlowPanel::tiles_meant(const Scene& scene, const Selection& selection,
                                                                    const Lit& lit) {
  const AttentionFlow& flow = *scene.flow;
  if (selection.kind == Selection::Kind::flow_tile) {
    if (selection.seq != flow.request.seq || selection.event < 0 || selection.event >= std::ssize(flow.tiles))
      return {};
    const auto tile = static_cast<std::size_t>(selection.event);
    return {tile, tile + 1};
  }
  if (selection.kind == Selection::Kind::sequence) return {};
  if (lit.token && lit.seq == flow.request.seq) return tiles_of_tokens(flow, lit.token->value, lit.token->value + 1);
  std::pair<std::size_t, std::size_t> meant{0, 0};
  for (const TablePlace& place : lit.places) {
    if (place.seq != flow.request.seq) continue;
    const auto of = tiles_of_tokens(flow, place.page.value * flow.page_size, (place.page.value + 1) * flow.page_size);
    if (of.first == of.second) continue;
    meant = meant.first == meant.second ? of
                                        : std::pair(std::min(meant.first, of.first), std::max(meant.second, of.second));
  }
  return meant;
}

// --- words -----------------------------------------------------------------------------------------------------------

QString AttentionFlowPanel::words(const Scene& scene) {
  const AttentionFlow& flow = *scene.flow;
  const auto all = std::ssize(flow.tiles);
  if (all == 0) return tr("The mask hides every key from this query: its output is 0.");
  if (scene.flow_between != nullptr) return words_between(flow, *scene.flow_between);
  if (scene.flow_tiles == 0) return tr("Before the first of %1 tiles: m = -∞, l = 0, o = 0.").arg(all);
  const std::int64_t number = scene.flow_tiles - 1;
  const FlowTile& tile = flow.tiles[static_cast<std::size_t>(number)];
  QString text;
  if (number == 0) {
    text = tr("Tile 0 sets m = %1 and l = %2.").arg(flow_number(tile.largest), flow_number(tile.sum));
  } else if (tile.largest > tile.largest_before) {
    text = tr("Tile %1 raises m from %2 to %3: l and o are multiplied by c = %4, then %5 is added to l.")
               .arg(number)
               .arg(flow_number(tile.largest_before), flow_number(tile.largest), flow_number(tile.rescale),
                    flow_number(tile.tile_sum));
  } else {
    text = tr("Tile %1 leaves m at %2: c = 1, nothing is rescaled, and %3 is added to l.")
               .arg(number)
               .arg(flow_number(tile.largest), flow_number(tile.tile_sum));
  }
  if (scene.flow_tiles < all) {
    return text + QLatin1Char('\n') +
           tr("After %1 of %2 tiles: l = %3.").arg(scene.flow_tiles).arg(all).arg(flow_number(tile.sum));
  }
  const double error = std::abs(flow.lse - flow.golden_lse);
  return text + QLatin1Char('\n') +
         tr("After all %1 tiles: lse = %2 = %3; golden %4; differs by %5, %6 of the bound %7.")
             .arg(all)
             .arg(flow.sink       ? tr("log of l with the sink")
                  : flow.base_two ? tr("(m + ln l) / ln 2")
                                  : tr("m + ln l"))
             .arg(QString::number(flow.lse, 'g', 9), QString::number(flow.golden_lse, 'g', 9),
                  QString::number(error, 'g', 2),
                  flow.lse_bound > 0
                      ? QStringLiteral("%1x").arg(QString::fromStdString(ratio_text(error / flow.lse_bound)))
                      : QStringLiteral("0x"),
                  QString::number(flow.lse_bound, 'g', 2));
}

QString AttentionFlowPanel::words_between(const AttentionFlow& flow, const FlowBetween& now) {
  const FlowTile& tile = flow.tiles[static_cast<std::size_t>(now.tile)];
  if (now.added > 0) {
    return tr("Tile %1: its sum %2 is added to l, its weighted values to o: l = %3 of %4.")
        .arg(now.tile)
        .arg(flow_number(tile.tile_sum), flow_number(now.sum), flow_number(tile.sum));
  }
  if (now.tile == 0) return tr("Tile 0 sets m = %1.").arg(flow_number(tile.largest));
  if (tile.largest > tile.largest_before) {
    return tr("Tile %1: m rises from %2 to %3; l and o are multiplied by c = %4: so far by %5.")
        .arg(now.tile)
        .arg(flow_number(tile.largest_before), flow_number(tile.largest), flow_number(tile.rescale),
             flow_number(now.rescale));
  }
  return tr("Tile %1 leaves m at %2: c = 1, nothing is rescaled.").arg(now.tile).arg(flow_number(tile.largest));
}

QString AttentionFlowPanel::column_name(FlowColumn column) {
  switch (column) {
    case FlowColumn::tile:
      return tr("tile");
    case FlowColumn::keys:
      return tr("keys");
    case FlowColumn::pages:
      return tr("pages");
    case FlowColumn::largest:
      return tr("m");
    case FlowColumn::rescale:
      return tr("c = exp Δm");
    case FlowColumn::tile_sum:
      return tr("Σ p");
    case FlowColumn::sum:
      return tr("l");
    case FlowColumn::share:
      return tr("share");
  }
  return {};
}

QString AttentionFlowPanel::cell_text(const Scene& scene, FlowColumn column, std::int64_t number) {
  const AttentionFlow& flow = *scene.flow;
  const FlowTile& tile = flow.tiles[static_cast<std::size_t>(number)];
  const bool added = number < scene.flow_tiles;
  const FlowBetween* const now =
      scene.flow_between != nullptr && scene.flow_between->tile == number ? scene.flow_between : nullptr;
  if (now != nullptr) {
    switch (column) {
      case FlowColumn::largest:
        return flow_number(now->largest);
      case FlowColumn::rescale:
        return flow_number(now->rescale);
      case FlowColumn::tile_sum:
        return flow_number(now->tile_sum);
      case FlowColumn::sum:
        return flow_number(now->sum);
      case FlowColumn::share:
        return tr("%1 %").arg(100 * share(flow, static_cast<std::size_t>(number)) * now->added, 0, 'f', 1);
      default:
        break;
    }
  }
  switch (column) {
    case FlowColumn::tile:
      return QString::number(number);
    case FlowColumn::keys:
      return range_text(tile.first_key, tile.last_key);
    case FlowColumn::pages:
      return range_text(tile.first_key / flow.page_size, (tile.last_key - 1) / flow.page_size + 1);
    case FlowColumn::largest:
      return added ? flow_number(tile.largest) : QStringLiteral("·");
    case FlowColumn::rescale:
      return added ? flow_number(tile.rescale) : QStringLiteral("·");
    case FlowColumn::tile_sum:
      return added ? flow_number(tile.tile_sum) : QStringLiteral("·");
    case FlowColumn::sum:
      return added ? flow_number(tile.sum) : QStringLiteral("·");
    case FlowColumn::share:
      return added ? tr("%1 %").arg(100 * share(flow, static_cast<std::size_t>(number)), 0, 'f', 1)
                   : QStringLiteral("·");
  }
  return {};
}

// --- painting --------------------------------------------------------------------------------------------------------

// m as a line of steps; a triangle where a tile raises it.
void AttentionFlowPanel::paint_largest(QPainter& painter, const FlowLayout& at, const Scene& scene) {
  const AttentionFlow& flow = *scene.flow;
  const QRectF& strip = at.strips[static_cast<std::size_t>(FlowStrip::largest)];
  double low = flow.tiles.front().largest, high = flow.tiles.back().largest;
  if (!(high > low)) low -= 1;
  const double inside = strip.height() - 8;
  const auto y = [&](double m) { return strip.bottom() - 4 - (m - low) / (high - low) * inside; };
  painter.setRenderHint(QPainter::Antialiasing, true);
  QPointF last;
  const FlowBetween* const now = scene.flow_between;
  for (std::int64_t n = 0; n < at.tiles; ++n) {
    const FlowTile& tile = flow.tiles[static_cast<std::size_t>(n)];
    const QRectF column = at.column_rect(n);
    const bool moving = now != nullptr && now->tile == n;
    const QColor color = n < scene.flow_tiles && !moving ? scene.theme->series[0] : scene.theme->cell_line;
    const QPointF from(column.left(), y(tile.largest)), to(column.right(), y(tile.largest));
    painter.setPen(QPen(color, 2));
    if (n > 0) painter.drawLine(last, from);
    painter.drawLine(from, to);
    if (moving) {  // over the line that it becomes; the first tile has no m to rise from
      const double height = y(now->largest), width = n == 0 ? column.width() * now->rescaled : column.width();
      painter.setPen(QPen(scene.theme->series[0], 2));
      if (n > 0) painter.drawLine(last, QPointF(column.left(), height));
      painter.drawLine(QPointF(column.left(), height), QPointF(column.left() + width, height));
    }
    last = to;
    if (moving && now->rescaled < 1) continue;
    if (tile.largest > tile.largest_before && column.width() >= 7) {
      const QPointF top(column.center().x(), from.y() - 1);
      painter.setPen(Qt::NoPen);
      painter.setBrush(n < scene.flow_tiles ? scene.theme->series[0] : scene.theme->cell_line);
      painter.drawPolygon(QPolygonF({top + QPointF(-4, 3.5), top + QPointF(4, 3.5), top + QPointF(0, -3.5)}));
    }
  }
}

void AttentionFlowPanel::paint_bars(QPainter& painter, const FlowLayout& at, FlowStrip which, const Scene& scene) {
  const AttentionFlow& flow = *scene.flow;
  const QRectF& strip = at.strips[static_cast<std::size_t>(which)];
  const bool is_share = which == FlowStrip::share;
  double largest = 0;
  const auto value = [&](std::int64_t n) {
    const auto tile = static_cast<std::size_t>(n);
    return is_share ? share(flow, tile) : flow.tiles[tile].sum;
  };
  for (std::int64_t n = 0; n < at.tiles; ++n) largest = std::max(largest, value(n));
  painter.setRenderHint(QPainter::Antialiasing, false);
  const QColor color = scene.theme->series[is_share ? 2 : 1];
  for (std::int64_t n = 0; n < at.tiles; ++n) {
    QRectF column = at.column_rect(n);
    const double gap = column.width() >= 6 ? std::min(4.0, column.width() / 5) : 0;
    const auto bar_of = [&](double of_bar) {
      const double height = largest > 0 ? std::max(1.0, of_bar / largest * strip.height()) : 1;
      return QRectF(column.left() + gap / 2, strip.bottom() - height, column.width() - gap, height);
    };
    const FlowBetween* const now =
        scene.flow_between != nullptr && scene.flow_between->tile == n ? scene.flow_between : nullptr;
    if (n < scene.flow_tiles) {
      const double of_bar = now == nullptr ? value(n) : is_share ? value(n) * now->added : now->sum;
      painter.fillRect(bar_of(of_bar), color);
    }
    if (n >= scene.flow_tiles || now != nullptr) {
      painter.setPen(QPen(scene.theme->cell_line, 1));
      painter.setBrush(Qt::NoBrush);
      painter.drawRect(bar_of(value(n)).adjusted(0.5, 0.5, -0.5, -0.5));
    }
  }
}

void AttentionFlowPanel::paint_chart(QPainter& painter, const FlowLayout& at, const Scene& scene) {
  if (at.strips[0].isEmpty()) return;
  const QFont font = ui_font(scene.px(kAttentionText));
  const std::array<QString, kFlowStrips> names{tr("max m"), tr("sum l"), tr("share")};
  for (std::size_t i = 0; i < kFlowStrips; ++i) {
    const QRectF& strip = at.strips[i];
    draw_text_in(painter, font, scene.theme->text_quiet,
                 QRectF(at.head.left(), strip.top(), at.label_right - at.head.left(), strip.height()), Qt::AlignLeft,
                 names[i]);
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.fillRect(QRectF(strip.left(), strip.bottom(), strip.width(), 1), scene.theme->cell_line);
  }
  paint_largest(painter, at, scene);
  paint_bars(painter, at, FlowStrip::sum, scene);
  paint_bars(painter, at, FlowStrip::share, scene);
  // The playhead: after the tiles that have been added.
  const QRectF last = at.column_rect(std::min(scene.flow_tiles, at.tiles - 1));
  double x = scene.flow_tiles < at.tiles ? last.left() : last.right();
  if (scene.flow_between != nullptr) {
    const QRectF now = at.column_rect(scene.flow_between->tile);
    x = now.left() + now.width() * scene.flow_between->t;
  }
  painter.fillRect(QRectF(x - 1, last.top() - 2, 2, last.height() + 4), scene.theme->accent);
}

void AttentionFlowPanel::paint_table(QPainter& painter, const FlowLayout& at, const Scene& scene) {
  if (at.head.isEmpty()) return;
  const QFont words = ui_font(scene.px(kAttentionText - 0.5)), digits = mono_font(scene.px(kAttentionNumber));
  const double pad = scene.px(6);
  for (const FlowColumnPlace& place : at.columns) {
    const QRectF rect(place.left, at.head.top(), place.right - place.left - pad, at.head.height());
    draw_text_in(painter, words, scene.theme->text_quiet, rect, Qt::AlignRight,
                 elided(words, column_name(place.column), rect.width()));
  }
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.fillRect(QRectF(at.head.left(), at.head.bottom() - 1, at.head.width(), 1), scene.theme->cell_line);
  for (std::int64_t n = at.first_row; n < at.end_row; ++n) {
    const QRectF row = *at.row_rect(n);
    const bool newest = n == scene.flow_tiles - 1;
    if (newest) painter.fillRect(row, with_alpha(scene.theme->accent, 0.16));
    for (const FlowColumnPlace& place : at.columns) {
      const QRectF rect(place.left, row.top(), place.right - place.left - pad, row.height());
      const QColor ink = n < scene.flow_tiles ? scene.theme->text : scene.theme->text_quiet;
      draw_text_in(painter, digits, ink, rect, Qt::AlignRight,
                   elided(digits, cell_text(scene, place.column, n), rect.width()));
    }
  }
}

void AttentionFlowPanel::paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (scene.flow == nullptr || scene.flow->tiles.empty()) {
    return paint_attention_words(painter, body, summary(scene), scene.theme->text_quiet, scene);
  }
  painter.save();
  const FlowLayout at = layout(body, scene);
  paint_chart(painter, at, scene);
  paint_table(painter, at, scene);
  painter.restore();
  QString text = words(scene);
  if (at.end_row - at.first_row < at.tiles && at.end_row > at.first_row) {
    text += QLatin1Char('\n') +
            tr("The table shows tiles %1 of %2.").arg(range_text(at.first_row, at.end_row)).arg(at.tiles);
  }
  paint_attention_words(painter, at.result.adjusted(0, 4, 0, 0), text, scene.theme->text, scene);
}

void AttentionFlowPanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (scene.flow == nullptr || scene.flow->tiles.empty()) return;
  const FlowLayout at = layout(body, scene);
  const auto paint = [&](const Selection& selection, const Lit& lit, bool pinned) {
    const auto [first, end] = tiles_meant(scene, selection, lit);
    if (first == end) return;
    QRectF rows;
    for (std::size_t n = first; n < end; ++n) {
      if (const auto row = at.row_rect(static_cast<std::int64_t>(n))) rows = rows.isNull() ? *row : rows.united(*row);
    }
    if (!rows.isNull()) paint_attention_outline(painter, rows, scene, pinned);
    const QRectF chart =
        at.column_rect(static_cast<std::int64_t>(first)).united(at.column_rect(static_cast<std::int64_t>(end) - 1));
    if (!chart.isEmpty()) paint_attention_outline(painter, chart.adjusted(0, -1, 0, 1), scene, pinned);
  };
  paint(scene.pinned, scene.pinned_lit, true);
  if (!scene.hovered.none() && scene.hovered != scene.pinned) paint(scene.hovered, scene.hovered_lit, false);
}

void AttentionFlowPanel::paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const {
  if (scene.flow == nullptr || scene.flow->tiles.empty()) return;
  const QFont font = ui_font(scene.px(12));
  draw_text_in(painter, font, scene.theme->text_quiet, footer, Qt::AlignLeft,
               first_that_fits(font,
                               {tr("filled: added · outlined: not yet · ▲ the tile raises m · share: part of the final "
                                   "sum · . and , step"),
                                tr("filled: added · ▲ raises m · share of the final sum"), tr("▲ raises m")},
                               footer.width()));
}

// --- what is where ---------------------------------------------------------------------------------------------------

Selection AttentionFlowPanel::hit(QPointF at, const QRectF& body, const Scene& scene) const {
  if (scene.flow == nullptr || scene.flow->tiles.empty()) return {};
  const auto tile = layout(body, scene).tile_at(at);
  return tile ? object(scene, *tile) : Selection{};
}

std::optional<QRectF> AttentionFlowPanel::anchor(const Lit& lit, const QRectF& body, const Scene& scene) const {
  if (scene.flow == nullptr || scene.flow->tiles.empty()) return std::nullopt;
  const auto [first, end] = tiles_meant(scene, {}, lit);
  if (first == end) return std::nullopt;
  const FlowLayout at = layout(body, scene);
  if (const auto row = at.row_rect(static_cast<std::int64_t>(first))) return row;
  const QRectF column = at.column_rect(static_cast<std::int64_t>(first));
  return column.isEmpty() ? std::nullopt : std::optional(column);
}

Selection AttentionFlowPanel::moved(const Selection& from, Move move, const QRectF&, const Scene& scene) const {
  if (scene.flow == nullptr || scene.flow->tiles.empty()) return from;
  const auto last = std::ssize(scene.flow->tiles) - 1;
  if (move == Move::first) return object(scene, 0);
  if (move == Move::last) return object(scene, last);
  const bool mine = from.kind == Selection::Kind::flow_tile && from.seq == scene.flow->request.seq;
  if (!mine) return object(scene, std::clamp<std::int64_t>(scene.flow_tiles - 1, 0, last));
  const bool back = move == Move::left || move == Move::up;
  return object(scene, std::clamp<std::int64_t>(from.event + (back ? -1 : 1), 0, last));
}

// The tiles that have a row; without a table, those of the chart.
std::vector<PanelCell> AttentionFlowPanel::cells(const QRectF& body, const Scene& scene, std::size_t limit) const {
  std::vector<PanelCell> found;
  if (scene.flow == nullptr || scene.flow->tiles.empty()) return found;
  const FlowLayout at = layout(body, scene);
  const bool table = at.end_row > at.first_row;
  for (std::int64_t n = table ? at.first_row : 0; n < (table ? at.end_row : at.tiles) && found.size() < limit; ++n) {
    const QRectF rect = table ? *at.row_rect(n) : at.column_rect(n);
    if (rect.isEmpty()) continue;
    const Selection tile = object(scene, n);
    QString name = QString::fromStdString(n < scene.flow_tiles ? describe_attention(tile, scene.flow, nullptr)
                                                               : describe_attention(tile, nullptr, nullptr));
    if (n >= scene.flow_tiles) name += tr("; not added yet");
    found.push_back({rect.intersected(body), tile, name});
  }
  return found;
}

}  // namespace

std::unique_ptr<Panel> make_attention_flow_panel() {
  return std::make_unique<AttentionFlowPanel>();
}

}  // namespace kvscope::viz
