// The rows of the pool that the tile is copied from, block by block, with the stride drawn as the jump it is.
#include <QtCore/QCoreApplication>

#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/tile_panel.h"

namespace kvscope::viz {
namespace {

class MemoryPanel final : public TilePanel {
  Q_DECLARE_TR_FUNCTIONS(MemoryPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::memory; }
  [[nodiscard]] QString title() const override { return tr("Block pool"); }

 protected:
  [[nodiscard]] QString tile_subtitle(const Scene& scene) const override;
  [[nodiscard]] QString tile_summary(const Scene& scene) const override;
  void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> tile_cells(const QRectF& body, const Scene& scene) const override;
};

QString MemoryPanel::tile_subtitle(const Scene& scene) const {
  const auto blocks = scene.tile->pages.size();
  return blocks == 1 ? tr("one block holds the tile") : tr("%1 blocks hold the tile").arg(blocks);
}

QString MemoryPanel::tile_summary(const Scene& scene) const {
  const Tile& tile = *scene.tile;
  if (!tile.memory) return tr("the trace does not tell the pool's geometry");
  return tr("%1 rows from a block to the next").arg(tile.memory->stride);
}

void MemoryPanel::paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const QFont font = ui_font(scene.px(12));
  draw_text_in(painter, font, scene.theme->text_quiet, body, Qt::AlignLeft,
               elided(font, tile_summary(scene), body.width()));
}

std::vector<PanelCell> MemoryPanel::tile_cells(const QRectF&, const Scene&) const {
  return {};
}

}  // namespace

std::unique_ptr<Panel> make_memory_panel() {
  return std::make_unique<MemoryPanel>();
}

}  // namespace kvscope::viz
