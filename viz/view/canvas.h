// The picture of the open run, alive: the board of paint_board.h as a widget that is pointed at, zoomed, scrubbed and
// walked through with keys. What it shows is what is exported: one code paints both.
//
// The base (state, viewports, size, theme) is kept as pixels at the screen's scale and painted anew only when one of
// these changes; the overlay (selection, hover) is painted on top every time.
//   // held by tests/viz/view/canvas_test.cpp: after any walk, the same pixels as a fresh canvas
//
//   mouse   move: hover. Click: pin; beside all objects: let go. Drag: pans a zoomed panel, scrubs header and timeline.
//           Wheel: zooms at the pointer. Shift and wheel, or a wheel sideways: scrolls. Double click on a title: that
// panel's
//           view, and back.
//   keys    Tab, Shift+Tab: panel by panel, then out of the canvas. Arrows, Home, End: object by object in the panel
// with
//           the focus. Enter: pin, or let go of what is pinned. Escape: let go. + - 0: zoom in, out, to fit, in
//           the panel under the pointer, else in the one with the focus.
// A step is no object that could be pinned instead of a block: clicking or entering one goes there, and what is pinned
// stays.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QPointer>
#include <QtGui/QImage>
#include <QtWidgets/QWidget>

#include "viz/model/document.h"
#include "viz/view/panel.h"
#include "viz/view/scene.h"

class QHelpEvent;

namespace kvscope::viz {

class Canvas final : public QWidget {
  Q_OBJECT
 public:
  static constexpr std::size_t kMostCells = 500;  // of a panel, for screen readers

  explicit Canvas(QWidget* parent = nullptr);
  ~Canvas() override;

  void setDocument(Document* document);  // not owned; null: the empty surface
  [[nodiscard]] Document* document() const { return document_; }
  void setView(View view);
  [[nodiscard]] View view() const { return view_; }
  void setTheme(const Theme& theme);  // one of theme(): what is prepared for it is kept by its address
  void setFontScale(double scale);
  [[nodiscard]] const Viewport& viewport(PanelId panel) const { return viewports_[index(panel)]; }
  void setViewport(PanelId panel, const Viewport& viewport);

  // What is painted now, by value but for the run and its cursor, which the document keeps.
  // Precondition (caller): there is a document.
  [[nodiscard]] Scene sceneNow() const;
  [[nodiscard]] const Panels& panels() const { return panels_; }
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }  // of the panels shown, in reading order

  // Of the keyboard: the panel it is in, and the object in that panel, if it has moved to one.
  [[nodiscard]] std::optional<PanelId> focusedPanel() const;
  void focusPanel(PanelId panel);
  [[nodiscard]] Selection current() const;
  // Cells of a panel as screen readers meet them, at most kMostCells; kept until the picture changes.
  [[nodiscard]] const std::vector<PanelCell>& cells(PanelId panel) const;
  // As a click or Enter on it: a step is gone to, anything else is pinned.
  void activate(const Selection& object);

  [[nodiscard]] QSize sizeHint() const override { return {1200, 760}; }
  [[nodiscard]] QSize minimumSizeHint() const override { return kSmallestBoard.toSize(); }

 public Q_SLOTS:
  // In the panel under the pointer, else in the one with the focus.
  void zoomIn();
  void zoomOut();
  void zoomToFit();  // every panel

 Q_SIGNALS:
  void viewChanged();  // by setView() or a double click
  void objectActivated(const kvscope::viz::Selection& object);

 protected:
  bool event(QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  bool focusNextPrevChild(bool next) override;

 private:
  // What the base was painted for.
  struct BaseKey {
    Position position;
    QSize pixels;
    double scale = 1;
    View view = View::overview;
    std::array<Viewport, kPanels> viewports;
    double font_scale = 1;
    friend bool operator==(const BaseKey&, const BaseKey&) = default;
  };
  struct Press {
    PanelId panel = PanelId::header;
    Selection object;     // under it
    QPointF at, last;     // where it began, where it was last
    bool moved = false;   // far enough to be a drag
    bool inside = false;  // of the panel's body
  };

  static constexpr std::size_t index(PanelId panel) { return static_cast<std::size_t>(panel); }
  [[nodiscard]] const Panel& panel(PanelId id) const { return *panels_[index(id)]; }
  [[nodiscard]] const Place* place(PanelId panel) const;  // nothing when it is not shown
  [[nodiscard]] const Place* card_at(QPointF at) const;
  [[nodiscard]] Selection hit(const Place& place, QPointF at) const;

  // canvas.cpp: what is shown
  void lay_out();
  void repaint_base();  // something of it has changed
  void position_changed();
  void pinned_changed();
  const QImage& base(const Scene& scene);
  void paint_focus_ring(QPainter& painter) const;
  void focus_on(std::optional<PanelId> panel);

  // canvas_input.cpp: what is done to it
  void point_at(QPointF at);
  void point_again();  // the picture moved under the pointer
  void show_cursor(const Place* place, const Selection& object);
  void scrub(QPointF to);
  void go_to_time(const Selection& place);  // a step, or an event of the tile
  void pan(QPointF to);
  void zoom(const Place& place, double factor, QPointF at);
  [[nodiscard]] const Place* panel_for_zoom() const;
  void zoom_by_key(double factor);
  void show_tool_tip(const QHelpEvent& event);
  void toggle_view(PanelId panel);
  bool take_key(const QKeyEvent& event);
  void move_focus(Move move);

  QPointer<Document> document_;
  Panels panels_;
  const Theme* theme_;
  View view_ = View::overview;
  double font_scale_ = 1;
  std::array<Viewport, kPanels> viewports_;
  std::vector<Place> places_;

  QImage base_;
  std::optional<BaseKey> base_key_;  // nothing: it must be painted
  std::uint64_t revision_ = 0;       // of what cells() follow from
  struct Cells {
    std::uint64_t revision = UINT64_MAX;
    std::vector<PanelCell> cells;
  };
  mutable std::array<Cells, kPanels> cells_;

  std::optional<QPointF> pointer_;  // where the mouse is, while it is over the canvas
  std::optional<Press> press_;      // while the button is down
  std::optional<PanelId> focused_;  // the panel that keys go to
  bool ring_ = false;               // shown once keys are used, not for clicks
  bool by_key_ = false;             // what is hovered was reached with keys: the pointer does not matter
  bool pinning_ = false;            // activate() is at work
};

}  // namespace kvscope::viz
