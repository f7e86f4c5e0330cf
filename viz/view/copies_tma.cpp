// Boxes of TMA, issue by issue, and the bytes of their barrier.
#include <QtCore/QCoreApplication>

#include "viz/view/copies_paint.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"

namespace kvscope::viz {
namespace {

QString tma_tr(const char* text) {
  return QCoreApplication::translate("TmaCopies", text, nullptr);
}

}  // namespace

QString tma_subtitle(const Scene& scene) {
  const Tile& tile = *scene.tile;
  if (!tile.map) return tma_tr("TMA, boxes: %1").arg(tile.copies.size());
  return tma_tr("TMA, boxes of %1 × %2: %3").arg(tile.map->box_rows).arg(tile.map->box_columns).arg(tile.copies.size());
}

QString tma_summary(const Scene& scene) {
  return tma_tr("%1 of %2 B have landed").arg(scene.tile_now->arrived).arg(scene.tile_now->expected);
}

void paint_tma(QPainter& painter, const QRectF& body, const Scene& scene) {
  const QFont font = ui_font(scene.px(12));
  draw_text_in(painter, font, scene.theme->text_quiet, body, Qt::AlignLeft,
               elided(font, tma_summary(scene), body.width()));
}

std::vector<PanelCell> tma_cells(const QRectF&, const Scene&) {
  return {};
}

}  // namespace kvscope::viz
