// The interface of a panel of the board: painting, the object under a point, the rectangle of an object. Panels have no
// state except caches; all inputs come from the scene. Each panel is one file and one line in panels.cpp.
//
// Painting has two passes. The base depends on state, viewport, size and theme; the canvas caches it as an image. The
// overlay depends on selection and hover; it is painted on top at every move of the pointer.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <QtCore/QString>
#include <QtGui/QPainter>

#include "viz/geometry/link_route.h"
#include "viz/view/scene.h"

namespace kvscope::viz {

enum class Move : std::uint8_t { left, right, up, down, first, last };

// An object for a screen reader.
struct PanelCell {
  QRectF rect;  // in board coordinates
  Selection object;
  QString name;  // "block 18, sequence 3 page 2, 5 of 16 tokens"
};

// Rectangles of parts of a tile, one for each part asked for; nothing: the panel does not show it.
using TilePlaces = std::vector<std::optional<QRectF>>;

// The text of a tooltip, and the rectangle in which it stays.
struct PanelTip {
  QString text;
  QRectF rect;  // in board coordinates
};

inline constexpr double kPastContent = 1e6;  // [px] for scrolled(): to the end of the content of any panel

class Panel {
 public:
  virtual ~Panel() = default;
  [[nodiscard]] virtual PanelId id() const = 0;
  [[nodiscard]] virtual QString title() const = 0;                       // "Block pool"
  [[nodiscard]] virtual QString subtitle(const Scene& scene) const = 0;  // beside the title, in the quiet color
  // A summary of the panel's content in words, for the line under the panel and for screen readers.
  [[nodiscard]] virtual QString summary(const Scene& scene) const = 0;

  // `body` is in board coordinates; nothing is painted outside it. The footer is not part of it.
  virtual void paint_base(QPainter& painter, const QRectF& body, const Scene& scene) const = 0;
  virtual void paint_overlay(QPainter& painter, const QRectF& body, const Scene& scene) const = 0;
  // The line under the body: legend or result in words.
  virtual void paint_footer(QPainter& painter, const QRectF& footer, const Scene& scene) const = 0;

  [[nodiscard]] virtual Selection hit(QPointF at, const QRectF& body, const Scene& scene) const = 0;
  // The tooltip of a place that shows several objects at once. nullopt: the description of the object of hit().
  [[nodiscard]] virtual std::optional<PanelTip> tip(QPointF, const QRectF&, const Scene&) const { return std::nullopt; }
  // The rectangle of the highlighted object, clipped to the body; nullopt if it is not visible or not in this panel.
  // Links between panels start and end there.
  [[nodiscard]] virtual std::optional<QRectF> anchor(const Lit& lit, const QRectF& body, const Scene& scene) const = 0;
  // Where links of the tile view end, if not at the anchor: a panel of many cells has them end beside the cells.
  [[nodiscard]] virtual std::optional<QRectF> link_anchor(const Lit& lit, const QRectF& body,
                                                          const Scene& scene) const {
    return anchor(lit, body, scene);
  }
  // Where parts of the tile are drawn, for their motion: chunks are indices into Tile::chunks, fills into Tile::fills.
  // Precondition (caller): scene.tile.
  [[nodiscard]] virtual TilePlaces chunk_places(std::span<const std::int64_t> chunks, const QRectF&,
                                                const Scene&) const {
    return TilePlaces(chunks.size());
  }
  [[nodiscard]] virtual TilePlaces fill_places(std::span<const std::int64_t> fills, const QRectF&, const Scene&) const {
    return TilePlaces(fills.size());
  }
  // Lanes of the panel's content for links (link_route.h); nullopt in a panel without cells. The vertical lane is the
  // one nearest to `x`; `leaving` and `arriving` are the lanes beside a cell's row for links to the right and from the
  // left.
  [[nodiscard]] virtual std::optional<Lane> column_lane(double, const QRectF&, const Scene&) const { return {}; }
  [[nodiscard]] virtual std::optional<Lane> leaving_lane(const QRectF&, const QRectF&, const Scene&) const {
    return {};
  }
  [[nodiscard]] virtual std::optional<Lane> arriving_lane(const QRectF&, const QRectF&, const Scene&) const {
    return {};
  }
  // The object that an arrow key moves to from `from`; if `from` is none, the first object.
  [[nodiscard]] virtual Selection moved(const Selection& from, Move move, const QRectF& body,
                                        const Scene& scene) const = 0;
  // Whether zooming can change anything: not in a panel whose content is always visible as a whole.
  [[nodiscard]] virtual bool zooms(const Scene&) const { return true; }
  // The viewport after zooming or scrolling. Panels that cannot be zoomed return the current viewport. `at` is in board
  // coordinates; `by` is added to the viewport's offset: positive values show the content further right and down.
  [[nodiscard]] virtual Viewport zoomed(double factor, QPointF at, const QRectF& body, const Scene& scene) const = 0;
  [[nodiscard]] virtual Viewport scrolled(QPointF by, const QRectF& body, const Scene& scene) const = 0;
  // Whether the panel paints a bar itself when its content does not fit; otherwise the board does.
  [[nodiscard]] virtual bool paints_scroll_bar() const { return false; }
  // The viewport closest to the current one that shows the object.
  [[nodiscard]] virtual Viewport revealing(const Selection& object, const QRectF& body, const Scene& scene) const = 0;
  // The visible objects in reading order, at most `limit`; none if cells are too small to be separate objects.
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
[[nodiscard]] std::unique_ptr<Panel> make_attention_flow_panel();
[[nodiscard]] std::unique_ptr<Panel> make_attention_errors_panel();
[[nodiscard]] std::unique_ptr<Panel> make_attention_output_panel();

// All panels, indexed by PanelId.
using Panels = std::array<std::unique_ptr<Panel>, kPanels>;
[[nodiscard]] Panels make_panels();

}  // namespace kvscope::viz
