// The events of the tile in their order: one lane for each actor, and the playhead.
#include <QtCore/QCoreApplication>

#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/tile_panel.h"

namespace kvscope::viz {
namespace {

class TileEventsPanel final : public TilePanel {
  Q_DECLARE_TR_FUNCTIONS(TileEventsPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::tile_events; }
  [[nodiscard]] QString title() const override { return tr("Events of the tile"); }

 protected:
  [[nodiscard]] QString tile_subtitle(const Scene& scene) const override;
  [[nodiscard]] QString tile_summary(const Scene& scene) const override;
  void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> tile_cells(const QRectF& body, const Scene& scene) const override;
};

QString TileEventsPanel::tile_subtitle(const Scene& scene) const {
  return tr("event %1 of %2").arg(scene.tile_now->event).arg(scene.tile->events);
}

QString TileEventsPanel::tile_summary(const Scene& scene) const {
  return tr("%1 of %2 actions are complete").arg(scene.tile_now->action).arg(scene.tile->actions.size());
}

void TileEventsPanel::paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const QFont font = ui_font(scene.px(12));
  draw_text_in(painter, font, scene.theme->text_quiet, body, Qt::AlignLeft,
               elided(font, tile_summary(scene), body.width()));
}

std::vector<PanelCell> TileEventsPanel::tile_cells(const QRectF&, const Scene&) const {
  return {};
}

}  // namespace

std::unique_ptr<Panel> make_tile_events_panel() {
  return std::make_unique<TileEventsPanel>();
}

}  // namespace kvscope::viz
