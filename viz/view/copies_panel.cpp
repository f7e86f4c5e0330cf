// How the tile comes into shared memory: boxes of TMA (copies_tma.cpp), or copies of waves through LDS
// (copies_lds.cpp).
#include <QtCore/QCoreApplication>

#include "viz/view/copies_paint.h"
#include "viz/view/tile_panel.h"

namespace kvscope::viz {
namespace {

class CopiesPanel final : public TilePanel {
  Q_DECLARE_TR_FUNCTIONS(CopiesPanel)

 public:
  [[nodiscard]] PanelId id() const override { return PanelId::copies; }
  [[nodiscard]] QString title() const override { return tr("Copies"); }
  [[nodiscard]] TilePlaces chunk_places(std::span<const std::int64_t> chunks, const QRectF& body,
                                        const Scene& scene) const override {
    return scene.tile->tma() ? tma_chunk_places(chunks, body, scene) : lds_chunk_places(chunks, body, scene);
  }

  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override {
    TilePanel::paint_overlay(painter, body, scene);
    if (scene.tile != nullptr && scene.tile->tma()) paint_tma_overlay(painter, body, scene);
  }

 protected:
  void paint_instead(QPainter& painter, const QRectF& body, const Scene& scene) const override {
    paint_copies_instead(painter, body, scene);
  }
  [[nodiscard]] std::vector<PanelCell> instead_cells(const QRectF& body, const Scene& scene) const override {
    return copies_instead_cells(body, scene);
  }
  [[nodiscard]] QString tile_subtitle(const Scene& scene) const override {
    return scene.tile->tma() ? tma_subtitle(scene) : lds_subtitle(scene);
  }
  [[nodiscard]] QString tile_summary(const Scene& scene) const override {
    return scene.tile->tma() ? tma_summary(scene) : lds_summary(scene);
  }
  void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const override {
    scene.tile->tma() ? paint_tma(painter, body, scene) : paint_lds(painter, body, scene);
  }
  [[nodiscard]] std::vector<PanelCell> tile_cells(const QRectF& body, const Scene& scene) const override {
    return scene.tile->tma() ? tma_cells(body, scene) : lds_cells(body, scene);
  }
};

}  // namespace

std::unique_ptr<Panel> make_copies_panel() {
  return std::make_unique<CopiesPanel>();
}

}  // namespace kvscope::viz
