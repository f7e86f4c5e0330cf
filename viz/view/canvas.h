// The interactive picture of the open run: the board of paint_board.h as a widget with hover, zoom, scrubbing and
// keyboard navigation. The window and the export use the same painting code.
//
// The base (state, viewports, size, theme) is cached as pixels at the screen's scale and repainted only when one of
// these changes; the overlay (selection, hover) is painted on top every time.
//   // held by tests/viz/view/canvas_test.cpp: after any sequence of actions, the same pixels as a new canvas
//
//   mouse   Move: hover. Click: pin; outside all objects: unpin. Drag: pans a zoomed panel, scrubs header and timeline.
//           Wheel: zooms at the pointer. Shift and wheel, or a horizontal wheel: scrolls. Double click on a title: that
//           panel's view, and back.
//   keys    Tab, Shift+Tab: panel by panel, then out of the canvas. Arrows, Home, End: object by object in the panel
//           with the focus. Enter: pin, or unpin if pinned. Escape: unpin. + - 0: zoom in, out, to fit, in the panel
//           under the pointer, else in the one with the focus; of these, one that can be zoomed.
// Clicking a step, or Enter on it, moves the cursor to it and keeps the pinned object.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <QtCore/QElapsedTimer>
#include <QtCore/QPointer>
#include <QtCore/QTimer>
#include <QtGui/QImage>
#include <QtWidgets/QWidget>

#include "viz/model/document.h"
#include "viz/playback/tile_state.h"
#include "viz/view/panel.h"
#include "viz/view/scene.h"

class QHelpEvent;

namespace kvscope::viz {

class Still;

class Canvas final : public QWidget {
  Q_OBJECT
 public:
  static constexpr std::size_t kMostCells = 500;  // of a panel, for screen readers

  // Which run of the document it shows: the document's own, or the one that it is compared with.
  enum class Side : std::uint8_t { run, compared };
  explicit Canvas(Side side = Side::run, QWidget* parent = nullptr);
  ~Canvas() override;

  // Not owned; null: the empty surface. Side::compared: one with a run beside(), or null; when the
  // comparison ends, the canvas has no document.
  void setDocument(Document* document);
  [[nodiscard]] Document* document() const { return document_; }
  void setView(View view);
  [[nodiscard]] View view() const { return view_; }
  void setTheme(const Theme& theme);  // one of theme(): cached images are identified by its address
  void setFontScale(double scale);
  [[nodiscard]] double fontScale() const { return font_scale_; }
  void setSpotlight(bool on);  // dims everything except the pinned object
  [[nodiscard]] const Viewport& viewport(PanelId panel) const { return viewports_[index(panel)]; }
  void setViewport(PanelId panel, const Viewport& viewport);

  // The inputs of the current picture, by value except for the cursor, which belongs to the document.
  // Precondition (caller): there is a document.
  [[nodiscard]] Scene sceneNow() const;
  [[nodiscard]] const Panels& panels() const { return panels_; }
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }  // of visible panels, in reading order

  // The panel with the keyboard focus; current() is the focused object in it, if any.
  [[nodiscard]] std::optional<PanelId> focusedPanel() const;
  void focusPanel(PanelId panel);
  void focusWithRing();     // the panel that had the focus, else the first one
  void focusWithoutRing();  // for a new picture: the first key shows which panel has the focus
  [[nodiscard]] Selection current() const;
  // The visible objects of a panel for screen readers, at most kMostCells; cached until the picture changes.
  [[nodiscard]] const std::vector<PanelCell>& cells(PanelId panel) const;
  // Same effect as a click or Enter on the object: moves to a step, pins any other object.
  void activate(const Selection& object);

  // --- motion: canvas_motion.cpp ---
  // Off at first. While it is on, one step of the run or of the tile shows the pictures between the two stills: for
  // 360 ms, or while playing for the time that a step has.
  void setMotion(bool on);
  [[nodiscard]] bool motion() const { return motion_on_; }
  // In (0, 1) while something moves, by the clock or held; nothing: the picture is a still one.
  [[nodiscard]] std::optional<double> motionTime() const;

  // Why zoomIn() and zoomOut() change nothing now, with the next step; empty: they do, or there is no document.
  [[nodiscard]] QString whyNoZoom() const;

  [[nodiscard]] QSize sizeHint() const override { return {1200, 760}; }
  [[nodiscard]] QSize minimumSizeHint() const override { return kSmallestBoard.toSize(); }

 public Q_SLOTS:
  // In the panel under the pointer, else in the one with the focus, of those that can be zoomed.
  void zoomIn();
  void zoomOut();
  void zoomToFit();             // every panel
  void holdMotion();            // the picture stays as it is, halfway
  void nudgeMotion(double by);  // by hand: `by` of a step, back if it is negative; across steps

 Q_SIGNALS:
  void viewChanged();                     // after setView() or a double click
  void panelFocused(const QRectF& card);  // the keyboard focus is in this card
  void zoomPanelChanged();                // whyNoZoom() may have changed
  void zoomRefused(const QString& why);   // a key of a zoom was pressed: whyNoZoom()
  // By wheel, drag, key or zoomToFit(), not by setViewport().
  void viewportChosen(kvscope::viz::PanelId panel, const kvscope::viz::Viewport& viewport);
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
  // The inputs that the cached base was painted for.
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
    Selection object;     // the object under the pointer when the button was pressed
    QPointF at, last;     // the first and the last position
    bool moved = false;   // whether it moved far enough to be a drag
    bool inside = false;  // whether `at` is inside the panel's body
  };

  static constexpr std::size_t index(PanelId panel) { return static_cast<std::size_t>(panel); }
  [[nodiscard]] const Panel& panel(PanelId id) const { return *panels_[index(id)]; }
  [[nodiscard]] const Place* place(PanelId panel) const;  // null if the panel is not shown
  [[nodiscard]] const Place* card_at(QPointF at) const;
  [[nodiscard]] Selection hit(const Place& place, QPointF at) const;

  // canvas.cpp: layout and painting
  void lay_out();
  void repaint_base();  // to be called when an input of the base changed
  void position_changed();
  void attention_changed();
  void compared_changed();
  void pinned_changed();
  const QImage& base(const Scene& scene);
  void paint_focus_ring(QPainter& painter) const;
  void focus_on(std::optional<PanelId> panel);
  [[nodiscard]] PanelId first_panel() const;

  // canvas_motion.cpp
  struct Moving;
  void keep_still();    // as the picture that the next motion begins with; none without motion
  void begin_motion();  // to be called when the document has moved
  void end_motion();
  void advance_motion();
  // Returns false without a motion; else `scene` is the one for the overlay.
  bool paint_motion(QPainter& painter, Scene& scene) const;
  void paint_movers(QPainter& painter) const;

  // canvas_input.cpp: mouse and keys
  void point_at(QPointF at);
  void point_again();  // to be called when the picture moved under the pointer
  void show_cursor(const Place* place, const Selection& object);
  void scrub(QPointF to);
  void go_to_time(const Selection& place);  // a step, or an event of the tile
  void pan(QPointF to);
  void zoom(const Place& place, double factor, QPointF at);
  void choose_viewport(PanelId panel, const Viewport& viewport);
  [[nodiscard]] std::vector<const Place*> panels_meant() const;
  [[nodiscard]] const Place* panel_for_zoom() const;
  void check_zoom();  // to be called when the pointer, the focus or the panels changed
  void zoom_by_key(double factor);
  void show_tool_tip(const QHelpEvent& event);
  void toggle_view(PanelId panel);
  bool take_key(const QKeyEvent& event);
  void move_focus(Move move);

  Side side_;
  QPointer<Document> document_;
  Panels panels_;
  const Theme* theme_;
  View view_ = View::overview;
  double font_scale_ = 1;
  bool spotlight_ = false;
  std::array<Viewport, kPanels> viewports_;
  std::vector<Place> places_;

  QImage base_;
  std::optional<BaseKey> base_key_;  // nullopt: the base must be painted
  std::uint64_t revision_ = 0;       // changes with every input of cells()
  struct Cells {
    std::uint64_t revision = UINT64_MAX;
    std::vector<PanelCell> cells;
  };
  mutable std::array<Cells, kPanels> cells_;

  QString no_zoom_;                 // whyNoZoom(), as of the last signal
  std::optional<QPointF> pointer_;  // position of the mouse, while it is over the canvas
  std::optional<Press> press_;      // while the button is down
  std::optional<PanelId> focused_;  // the panel with the keyboard focus
  bool ring_ = false;               // whether the focus ring is shown with the focus: not after a click
  bool by_key_ = false;             // the hovered object was reached with keys: the pointer is ignored
  bool pinning_ = false;            // true while activate() runs

  bool motion_on_ = false;
  std::shared_ptr<const Still> still_;  // what is shown when nothing moves; null without motion
  std::shared_ptr<Moving> moving_;      // shared: its type is complete in canvas_motion.cpp only
  mutable TileState moving_now_;        // of the picture that was painted last
  QTimer motion_timer_;
  QElapsedTimer motion_clock_;
};

}  // namespace kvscope::viz
