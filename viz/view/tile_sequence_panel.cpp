// The sequence that the tile is of: its tokens by page, those of the tile in the color of their row.
#include <QtCore/QCoreApplication>

#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/tile_panel.h"

namespace kvscope::viz {
namespace {

class TileSequencePanel final : public TilePanel {
  Q_DECLARE_TR_FUNCTIONS(TileSequencePanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::tile_sequence; }
  [[nodiscard]] QString title() const override { return tr("Sequence"); }

 protected:
  [[nodiscard]] QString tile_subtitle(const Scene& scene) const override;
  [[nodiscard]] QString tile_summary(const Scene& scene) const override;
  void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> tile_cells(const QRectF& body, const Scene& scene) const override;
};

QString TileSequencePanel::tile_subtitle(const Scene& scene) const {
  return QString::fromStdString(viz::title(*scene.tile, scene.facts()));
}

QString TileSequencePanel::tile_summary(const Scene& scene) const {
  const Tile& tile = *scene.tile;
  return tr("the tile has %1 rows, %2 of them hold a token").arg(tile.rows()).arg(tile.opened.tokens);
}

void TileSequencePanel::paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const QFont font = ui_font(scene.px(12));
  draw_text_in(painter, font, scene.theme->text_quiet, body, Qt::AlignLeft,
               elided(font, tile_summary(scene), body.width()));
}

std::vector<PanelCell> TileSequencePanel::tile_cells(const QRectF&, const Scene&) const {
  return {};
}

}  // namespace

std::unique_ptr<Panel> make_tile_sequence_panel() {
  return std::make_unique<TileSequencePanel>();
}

}  // namespace kvscope::viz
