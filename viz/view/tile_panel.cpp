#include "viz/view/tile_panel.h"

#include <algorithm>
#include <cmath>

#include <QtGui/QTextOption>

#include "viz/view/cell_paint.h"
#include "viz/view/legend_flow.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"

namespace kvscope::viz {
namespace {

constexpr double kInstead = 13, kFooterText = 12;  // [px] at font scale 1

// The nearest cell in the direction of an arrow, straight ahead before aside.
const PanelCell* neighbour(const std::vector<PanelCell>& cells, const PanelCell& from, Move move) {
  const PanelCell* best = nullptr;
  double least = 0;
  const QPointF at = from.rect.center();
  for (const PanelCell& cell : cells) {
    const QPointF to = cell.rect.center() - at;
    const double along = move == Move::left    ? -to.x()
                         : move == Move::right ? to.x()
                         : move == Move::up    ? -to.y()
                                               : to.y();
    if (along <= 0.5) continue;
    const bool sideways = move == Move::left || move == Move::right;
    const double aside = std::abs(sideways ? to.y() : to.x());
    const double far = along + 8 * aside;
    if (best == nullptr || far < least) best = &cell, least = far;
  }
  return best;
}

}  // namespace

QString TilePanel::subtitle(const Scene& scene) const {
  return scene.tile != nullptr ? tile_subtitle(scene) : QString();
}

QString TilePanel::summary(const Scene& scene) const {
  return scene.tile != nullptr ? tile_summary(scene) : scene.tile_instead;
}

void TilePanel::paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const {
  scene.tile != nullptr ? paint_tile(painter, body, scene) : paint_instead(painter, body, scene);
}

void TilePanel::paint_instead(QPainter& painter, const QRectF& body, const Scene& scene) const {
  if (id() != PanelId::chain) return;  // twice is enough: the copies have it too
  painter.setFont(ui_font(scene.px(kInstead)));
  painter.setPen(scene.theme->text_quiet);
  QTextOption option(Qt::AlignLeft | Qt::AlignTop);
  option.setWrapMode(QTextOption::WordWrap);
  painter.drawText(body, scene.tile_instead, option);
}

void TilePanel::paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const auto paint = [&](const Selection& selected, const Lit& lit, bool pinned) {
    if (lit.tile.rows.empty() && !selected.of_tile()) return;
    for (const PanelCell& cell : scene.tile != nullptr ? tile_cells(body, scene) : instead_cells(body, scene)) {
      if (is_outlined(scene, lit.tile, selected, cell.object)) {
        paint_tile_outline(painter, cell.rect, *scene.theme, pinned);
      }
    }
  };
  paint(scene.pinned, scene.pinned_lit, true);
  if (!scene.hovered.none() && scene.hovered != scene.pinned) paint(scene.hovered, scene.hovered_lit, false);
}

bool TilePanel::is_outlined(const Scene& scene, const LitTile& lit, const Selection& selected,
                            const Selection& object) {
  return object == selected || (scene.tile != nullptr && is_lit(*scene.tile, lit, object));
}

void TilePanel::paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const {
  if (scene.tile != nullptr) paint_tile_footer(painter, footer, scene);
}

void TilePanel::paint_tile_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const {
  const QFont font = ui_font(scene.px(kFooterText));
  paint_footer_text(painter, footer, font, scene.theme->text_quiet, tile_summary(scene), scene.font_scale);
}

double TilePanel::footer_width(const Scene& scene) const {
  return text_width(ui_font(scene.px(kFooterText)), tile_summary(scene));
}

// --- what is where ---------------------------------------------------------------------------------------------------

Selection TilePanel::hit(QPointF at, const QRectF& body, const Scene& scene) const {
  const PanelCell* best = nullptr;
  const std::vector<PanelCell> all = scene.tile != nullptr ? tile_cells(body, scene) : instead_cells(body, scene);
  // The smallest of those that overlap: a chunk stands in its row.
  for (const PanelCell& cell : all) {
    if (!cell.rect.contains(at)) continue;
    const auto area = [](const QRectF& r) { return r.width() * r.height(); };
    if (best == nullptr || area(cell.rect) < area(best->rect)) best = &cell;
  }
  return best != nullptr ? best->object : Selection{};
}

std::optional<QRectF> TilePanel::anchor(const Lit& lit, const QRectF& body, const Scene& scene) const {
  if (scene.tile == nullptr || lit.tile.rows.empty()) return std::nullopt;
  for (const PanelCell& cell : tile_cells(body, scene)) {
    if (is_lit(*scene.tile, lit.tile, cell.object)) return cell.rect;
  }
  return std::nullopt;
}

Selection TilePanel::moved(const Selection& from, Move move, const QRectF& body, const Scene& scene) const {
  const std::vector<PanelCell> all = scene.tile != nullptr ? tile_cells(body, scene) : instead_cells(body, scene);
  if (all.empty()) return from;
  if (move == Move::first) return all.front().object;
  if (move == Move::last) return all.back().object;
  const auto at = std::ranges::find(all, from, &PanelCell::object);
  if (at == all.end()) return all.front().object;
  const PanelCell* const to = neighbour(all, *at, move);
  return to != nullptr ? to->object : from;
}

std::vector<PanelCell> TilePanel::cells(const QRectF& body, const Scene& scene, std::size_t limit) const {
  std::vector<PanelCell> all = scene.tile != nullptr ? tile_cells(body, scene) : instead_cells(body, scene);
  if (all.size() > limit) all.resize(limit);
  for (PanelCell& cell : all) {
    cell.name =
        QString::fromStdString(describe(scene.state(), scene.facts(), scene.tile, cell.object, scene.tile_source));
  }
  return all;
}

}  // namespace kvscope::viz
