// One panel of the board: how it is painted, what is under a point of it, where an object stands in it. Panels hold no
// state of their own but caches; everything comes from the scene. One file a panel, one line in panels().
//
// Painting is in two passes. The base is what follows from state, viewport, size and theme: the canvas keeps it as a
// picture. The overlay is what follows from selection and hover: painted on top at every move of the pointer.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <QtCore/QString>
#include <QtGui/QPainter>

#include "viz/view/scene.h"

namespace kvscope::viz {

enum class Move : std::uint8_t { left, right, up, down, first, last };

// An object as a screen reader meets it.
struct PanelCell {
  QRectF rect;  // in board coordinates
  Selection object;
  QString name;  // "block 18, sequence 3 page 2, 5 of 16 tokens"
};

class Panel {
 public:
  virtual ~Panel() = default;
  [[nodiscard]] virtual PanelId id() const = 0;
  [[nodiscard]] virtual QString title() const = 0;                       // "Block pool"
  [[nodiscard]] virtual QString subtitle(const Scene& scene) const = 0;  // beside it, quiet
  // In words what the panel shows now, for the line under it and for screen readers; with a legend drawn by paint_base.
  [[nodiscard]] virtual QString summary(const Scene& scene) const = 0;

  // `body` is in board coordinates; nothing is painted outside it (footer included: body ends above it).
  virtual void paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const = 0;
  virtual void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const = 0;
  // The line under the body: legend or result in words.
  virtual void paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const = 0;

  [[nodiscard]] virtual Selection hit(QPointF at, const QRectF& body, const Scene& scene) const = 0;
  // Where the lit object stands, cut to the body; nothing when it is scrolled away or not in this panel. Links between
  // panels start and end there.
  [[nodiscard]] virtual std::optional<QRectF> anchor(const Lit& lit, const QRectF& body, const Scene& scene) const = 0;
  // The object that an arrow key leads to from `from` (or from nothing: the first one).
  [[nodiscard]] virtual Selection moved(const Selection& from, Move move, const QRectF& body,
                                        const Scene& scene) const = 0;
  // The viewport after a wheel turn or drag; `factor` 1: only moved. Panels that cannot be zoomed return what is there.
  // `at` is in board coordinates; `by` is added to the viewport's offset: positive shows what is further right and
  // down.
  [[nodiscard]] virtual Viewport zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const = 0;
  [[nodiscard]] virtual Viewport scrolled(QPointF by, const QRectF& body, const Scene& scene) const = 0;
  // The viewport that shows the object, moved no more than needed.
  [[nodiscard]] virtual Viewport revealing(const Selection& object, const QRectF& body, const Scene& scene) const = 0;
  // What is visible now, in reading order, at most `limit` (a million pixels are no cells: then none).
  [[nodiscard]] virtual std::vector<PanelCell> cells(const QRectF& body, const Scene& scene,
                                                     std::size_t limit) const = 0;
};

[[nodiscard]] std::unique_ptr<Panel> make_header_panel();
[[nodiscard]] std::unique_ptr<Panel> make_sequences_panel();
[[nodiscard]] std::unique_ptr<Panel> make_pool_panel();
[[nodiscard]] std::unique_ptr<Panel> make_table_panel();
[[nodiscard]] std::unique_ptr<Panel> make_timeline_panel();
[[nodiscard]] std::unique_ptr<Panel> make_tile_sequence_panel();
[[nodiscard]] std::unique_ptr<Panel> make_memory_panel();
[[nodiscard]] std::unique_ptr<Panel> make_copies_panel();
[[nodiscard]] std::unique_ptr<Panel> make_shared_panel();
[[nodiscard]] std::unique_ptr<Panel> make_registers_panel();
[[nodiscard]] std::unique_ptr<Panel> make_tile_events_panel();
[[nodiscard]] std::unique_ptr<Panel> make_chain_panel();

// All of them, by PanelId.
using Panels = std::array<std::unique_ptr<Panel>, kPanels>;
[[nodiscard]] Panels make_panels();

}  // namespace kvscope::viz
