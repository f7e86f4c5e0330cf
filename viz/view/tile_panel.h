// What the panels of the tile view have in common: without a tile they show the reason, and objects of the tile are
// found, lit and walked through by one list of cells.
//
//   class MemoryPanel final : public TilePanel {
//     paint_tile(painter, body, scene)        the base; scene.tile and scene.tile_now are not null
//     tile_cells(body, scene)                 what can be pointed at, in reading order
//   };
//
// hit, anchor, moved and cells follow from tile_cells(); a panel with faster answers overrides them.
#pragma once

#include "viz/playback/tile_selection.h"
#include "viz/view/panel.h"

namespace kvscope::viz {

class TilePanel : public Panel {
 public:
  [[nodiscard]] QString subtitle(const Scene& scene) const final;
  [[nodiscard]] QString summary(const Scene& scene) const final;
  void paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const final;
  void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const override;
  void paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const final;
  [[nodiscard]] Selection hit(QPointF at, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] std::optional<QRectF> anchor(const Lit& lit, const QRectF& body, const Scene& scene) const override;
  [[nodiscard]] Selection moved(const Selection& from, Move move, const QRectF& body,
                                const Scene& scene) const override;
  [[nodiscard]] bool zooms(const Scene&) const override { return false; }
  [[nodiscard]] Viewport zoomed(double, QPointF, const QRectF&, const Scene& scene) const override {
    return scene.viewport_of(id());
  }
  [[nodiscard]] Viewport scrolled(QPointF, const QRectF&, const Scene& scene) const override {
    return scene.viewport_of(id());
  }
  [[nodiscard]] Viewport revealing(const Selection&, const QRectF&, const Scene& scene) const override {
    return scene.viewport_of(id());
  }
  [[nodiscard]] std::vector<PanelCell> cells(const QRectF& body, const Scene& scene, std::size_t limit) const override;

 protected:
  // These two are called without a tile: why there is none, as text, and what can be pointed at then.
  virtual void paint_instead(QPainter& painter, const QRectF& body, const Scene& scene) const;
  [[nodiscard]] virtual std::vector<PanelCell> instead_cells(const QRectF&, const Scene&) const { return {}; }
  // All others are called with a tile.
  [[nodiscard]] virtual QString tile_subtitle(const Scene& scene) const = 0;
  [[nodiscard]] virtual QString tile_summary(const Scene& scene) const = 0;
  virtual void paint_tile(QPainter& painter, const QRectF& body, const Scene& scene) const = 0;
  // The line under the body; the summary in quiet letters unless a panel has a legend of its own.
  virtual void paint_tile_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const;
  // [px] of the summary in the footer, as one line.
  [[nodiscard]] double footer_width(const Scene& scene) const;
  // Whether an outline is painted around an object: objects lit with the selection, and the selected object itself.
  [[nodiscard]] static bool is_outlined(const Scene& scene, const LitTile& lit, const Selection& selected,
                                        const Selection& object);
  // Rectangles of objects in reading order, cut to the body; names are filled in by describe().
  [[nodiscard]] virtual std::vector<PanelCell> tile_cells(const QRectF& body, const Scene& scene) const = 0;
};

}  // namespace kvscope::viz
