// Copies of waves through LDS: which wave brings which rows, the double buffer, and the counters of the waits.
#include <QtCore/QCoreApplication>

#include "viz/view/copies_paint.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"

namespace kvscope::viz {
namespace {

QString lds_tr(const char* text) {
  return QCoreApplication::translate("LdsCopies", text, nullptr);
}

}  // namespace

QString lds_subtitle(const Scene& scene) {
  return lds_tr("through LDS, waves: %1").arg(scene.tile->waves());
}

QString lds_summary(const Scene& scene) {
  return lds_tr("%1 of %2 copies are issued").arg(scene.tile_now->issued).arg(scene.tile->copies.size());
}

void paint_lds(QPainter& painter, const QRectF& body, const Scene& scene) {
  const QFont font = ui_font(scene.px(12));
  draw_text_in(painter, font, scene.theme->text_quiet, body, Qt::AlignLeft,
               elided(font, lds_summary(scene), body.width()));
}

std::vector<PanelCell> lds_cells(const QRectF&, const Scene&) {
  return {};
}

}  // namespace kvscope::viz
