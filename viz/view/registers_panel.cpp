// The registers of one warp or wave: which lane holds which elements of the tile.
#include <QtCore/QCoreApplication>

#include "viz/view/text.h"
#include "viz/view/tile_paint.h"
#include "viz/view/tile_panel.h"

namespace kvscope::viz {
namespace {

class RegistersPanel final : public TilePanel {
  Q_DECLARE_TR_FUNCTIONS(RegistersPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::registers; }
  [[nodiscard]] QString title() const override { return tr("Registers"); }

 protected:
  [[nodiscard]] QString tile_subtitle(const Scene& scene) const override;
  [[nodiscard]] QString tile_summary(const Scene& scene) const override;
  void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::vector<PanelCell> tile_cells(const QRectF& body, const Scene& scene) const override;
};

QString RegistersPanel::tile_subtitle(const Scene& scene) const {
  return QString::fromStdString(matrix_name(*scene.tile));
}

QString RegistersPanel::tile_summary(const Scene& scene) const {
  const Tile& tile = *scene.tile;
  const std::string none = no_registers(tile);
  if (!none.empty()) return tr("No register holds the tile: %1.").arg(QString::fromStdString(none));
  return tr("%1 of %2 reads are done").arg(scene.tile_now->reads).arg(tile.reads.size());
}

void RegistersPanel::paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const {
  const QFont font = ui_font(scene.px(12));
  draw_text_in(painter, font, scene.theme->text_quiet, body, Qt::AlignLeft,
               elided(font, tile_summary(scene), body.width()));
}

std::vector<PanelCell> RegistersPanel::tile_cells(const QRectF&, const Scene&) const {
  return {};
}

}  // namespace

std::unique_ptr<Panel> make_registers_panel() {
  return std::make_unique<RegistersPanel>();
}

}  // namespace kvscope::viz
