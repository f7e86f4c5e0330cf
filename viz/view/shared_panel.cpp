// Shared memory: rows of 16-byte chunks over the banks, each chunk in the color of its row.
#include <QtCore/QCoreApplication>

#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/tile_panel.h"

namespace kvscope::viz {
namespace {

class SharedPanel final : public TilePanel {
  Q_DECLARE_TR_FUNCTIONS(SharedPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::shared; }
  [[nodiscard]] QString title() const override { return tr("Shared memory"); }

 protected:
  [[nodiscard]] QString tile_subtitle(const Scene& scene) const override;
  [[nodiscard]] QString tile_summary(const Scene& scene) const override;
  void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> tile_cells(const QRectF& body, const Scene& scene) const override;
};

QString SharedPanel::tile_subtitle(const Scene& scene) const {
  const Tile& tile = *scene.tile;
  if (!tile.shared) return tr("%1 B").arg(tile.opened.bytes);
  return tr("%1 B in rows of %2 B over %3 banks")
      .arg(tile.opened.bytes)
      .arg(tile.shared->row_bytes)
      .arg(tile.shared->banks);
}

QString SharedPanel::tile_summary(const Scene& scene) const {
  return tr("%1 of %2 chunks have landed").arg(scene.tile_now->landed).arg(scene.tile->chunks.size());
}

void SharedPanel::paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const QFont font = ui_font(scene.px(12));
  draw_text_in(painter, font, scene.theme->text_quiet, body, Qt::AlignLeft,
               elided(font, tile_summary(scene), body.width()));
}

std::vector<PanelCell> SharedPanel::tile_cells(const QRectF&, const Scene&) const {
  return {};
}

}  // namespace

std::unique_ptr<Panel> make_shared_panel() {
  return std::make_unique<SharedPanel>();
}

}  // namespace kvscope::viz
