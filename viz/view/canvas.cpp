#include "viz/view/canvas.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <QtCore/QEvent>
#include <QtGui/QFocusEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QToolTip>

#include "viz/view/canvas_accessible.h"
#include "viz/view/device_pixels.h"
#include "viz/view/motion.h"
#include "viz/view/paint_board.h"

namespace kvscope::viz {
namespace {

constexpr double kRing = 2, kRingOutside = 4, kRingCorner = 11;  // [px] of the focus ring, around a card

}  // namespace

Canvas::Canvas(Side side, QWidget* parent)
    : QWidget(parent), side_(side), panels_(make_panels()), theme_(&theme(ThemeKind::dark)) {
  install_canvas_accessibility();
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAttribute(Qt::WA_OpaquePaintEvent);  // every paint event paints all pixels
  setAccessibleName(side == Side::run ? tr("Picture of the run") : tr("Picture of the compared run"));
  connect(&motion_timer_, &QTimer::timeout, this, &Canvas::advance_motion);
  lay_out();
}

// --- contents --------------------------------------------------------------------------------------------------------

void Canvas::setDocument(Document* document) {
  if (document_ != nullptr) {
    document_->disconnect(this);
    document_->attention().disconnect(this);
  }
  end_motion();
  still_.reset();
  document_ = document;
  panels_ = make_panels();  // the caches of the old panels belong to the previous run
  viewports_ = {};
  press_.reset();
  by_key_ = false;
  if (document != nullptr) {
    connect(document, &Document::position_changed, this, &Canvas::position_changed);
    connect(document, &Document::pinned_changed, this, &Canvas::pinned_changed);
    connect(document, &Document::hovered_changed, this, qOverload<>(&QWidget::update));
    connect(document, &Document::tile_changed, this, &Canvas::position_changed);
    connect(document, &Document::compared_changed, this, &Canvas::compared_changed);
    connect(&document->attention(), &AttentionModel::changed, this, &Canvas::attention_changed);
    connect(document, &QObject::destroyed, this, &Canvas::repaint_base);
    keep_still();
  }
  lay_out();
}

void Canvas::setView(View view) {
  if (view == view_) return;
  view_ = view;
  press_.reset();
  lay_out();
  if (focused_ && place(*focused_) == nullptr) {
    const bool ring = ring_;
    focus_on(hasFocus() ? std::optional(first_panel()) : std::nullopt);
    ring_ = ring;
  }
  Q_EMIT viewChanged();
}

void Canvas::setTheme(const Theme& theme) {
  end_motion();
  theme_ = &theme;
  repaint_base();
}

void Canvas::setFontScale(double scale) {
  if (scale == font_scale_) return;
  font_scale_ = scale;
  lay_out();
}

void Canvas::setSpotlight(bool on) {
  spotlight_ = on;
  update();
}

void Canvas::setViewport(PanelId panel, const Viewport& viewport) {
  if (viewports_[index(panel)] == viewport) return;
  end_motion();
  viewports_[index(panel)] = viewport;
  repaint_base();
  point_again();
}

Scene Canvas::sceneNow() const {
  Scene scene;
  scene.theme = theme_;
  scene.view = view_;
  scene.font_scale = font_scale_;
  scene.viewport = viewports_;
  scene.spotlight = spotlight_;
  if (document_ == nullptr) return scene;
  scene.pinned = document_->pinned();
  scene.hovered = document_->hovered();
  const Cursor *shown = &document_->cursor(), *other = document_->compared();
  if (side_ == Side::compared) std::swap(shown, other);
  scene.cursor = shown;
  if (shows_run(view_) && document_->marks_differences()) scene.compared = &other->state();
  if (side_ == Side::compared) {
    scene.of_compared = true;
    scene.compared_run = document_->cursor().shared_run();
    scene.pinned_lit = document_->compared_pinned_lit();
    scene.hovered_lit = document_->compared_hovered_lit();
    return scene;
  }
  scene.pinned_lit = document_->pinned_lit();
  scene.hovered_lit = document_->hovered_lit();
  scene.compared_run = document_->compared_run();
  scene.tile = document_->tile();
  scene.tile_now = scene.tile != nullptr ? &document_->tile_now() : nullptr;
  scene.tile_instead = document_->tile_instead();
  scene.tile_source = scene.tile == nullptr ? document_->tile_source() : nullptr;
  scene.tile_layout = document_->tile_layout();
  if (view_ == View::tile && document_->staged() != nullptr) scene.staged = &document_->staged()->state();
  if (view_ != View::attention) return scene;
  const AttentionModel& attention = document_->attention();
  scene.flow = attention.flow();
  scene.flow_tiles = attention.tiles_done();
  scene.flow_instead = attention.flow_instead();
  scene.errors = attention.errors();
  scene.errors_instead = attention.errors_instead();
  return scene;
}

const Place* Canvas::place(PanelId panel) const {
  const auto found = std::ranges::find(places_, panel, &Place::panel);
  return found == places_.end() ? nullptr : &*found;
}

const std::vector<PanelCell>& Canvas::cells(PanelId id) const {
  Cells& kept = cells_[index(id)];
  if (kept.revision == revision_) return kept.cells;
  kept.revision = revision_;
  kept.cells.clear();
  const Place* const at = place(id);
  if (document_ == nullptr || at == nullptr) return kept.cells;
  kept.cells = panel(id).cells(at->body, sceneNow(), kMostCells);
  return kept.cells;
}

// --- changes of the document -----------------------------------------------------------------------------------------

void Canvas::lay_out() {
  end_motion();
  places_ = board(view_, size(), font_scale_);
  repaint_base();
  point_again();
}

void Canvas::repaint_base() {
  base_key_.reset();
  ++revision_;
  update();
  tell_changed(*this);
  check_zoom();
}

void Canvas::position_changed() {
  begin_motion();
  repaint_base();
  point_again();
  if (QToolTip::isVisible()) QToolTip::hideText();  // its text describes the previous position
}

void Canvas::compared_changed() {
  if (side_ == Side::run) return repaint_base();
  setDocument(document_->beside() ? document_.data() : nullptr);  // nothing of another run is kept
}

void Canvas::pinned_changed() {
  ++revision_;  // names of cells depend on the pinned object
  update();
  tell_changed(*this);
  if (document_ == nullptr || document_->pinned().none()) return;
  // Scrolls every panel to the pinned object, except the panel in which it was clicked.
  for (const Place& at : places_) {
    if (pinning_ && press_ && press_->panel == at.panel) continue;
    setViewport(at.panel, panel(at.panel).revealing(document_->pinned(), at.body, sceneNow()));
  }
}

void Canvas::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::LanguageChange) lay_out();
}

void Canvas::resizeEvent(QResizeEvent*) {
  lay_out();
}

// --- focus -----------------------------------------------------------------------------------------------------------

std::optional<PanelId> Canvas::focusedPanel() const {
  return hasFocus() ? focused_ : std::nullopt;
}

Selection Canvas::current() const {
  return document_ != nullptr && by_key_ && hasFocus() ? document_->hovered() : Selection{};
}

void Canvas::focusPanel(PanelId panel) {
  if (place(panel) == nullptr) return;
  if (hasFocus()) return focus_on(panel);
  focused_ = panel;
  setFocus(Qt::OtherFocusReason);
}

void Canvas::focusWithRing() {
  setFocus(Qt::OtherFocusReason);
  if (document_ == nullptr || places_.empty()) return;
  focus_on(focused_ && place(*focused_) != nullptr ? *focused_ : first_panel());
}

void Canvas::focusWithoutRing() {
  setFocus(Qt::ActiveWindowFocusReason);
  focus_on(std::nullopt);
}

void Canvas::focus_on(std::optional<PanelId> panel) {
  focused_ = panel;
  ring_ = panel.has_value();
  update();
  check_zoom();
  if (!panel) return;
  tell_focus(*this);
  if (const Place* const at = place(*panel)) Q_EMIT panelFocused(at->card);
}

void Canvas::focusInEvent(QFocusEvent* event) {
  update();
  if (document_ == nullptr || places_.empty()) return;
  switch (event->reason()) {
    case Qt::MouseFocusReason:         // the press that follows shows where
    case Qt::ActiveWindowFocusReason:  // the focus is where it was
    case Qt::PopupFocusReason:
      return;
    case Qt::TabFocusReason:
      return focus_on(places_.front().panel);
    case Qt::BacktabFocusReason:
      return focus_on(places_.back().panel);
    default:
      focus_on(focused_ && place(*focused_) != nullptr ? *focused_ : first_panel());
  }
}

void Canvas::focusOutEvent(QFocusEvent*) {
  update();
}

// The first panel with objects.
PanelId Canvas::first_panel() const {
  return places_.size() > 1 ? places_[1].panel : PanelId::header;
}

bool Canvas::focusNextPrevChild(bool next) {
  const Place* const at = focused_ ? place(*focused_) : nullptr;
  if (document_ == nullptr || !hasFocus()) return QWidget::focusNextPrevChild(next);
  const std::ptrdiff_t from = at != nullptr ? at - places_.data() : next ? -1 : std::ssize(places_);
  const std::ptrdiff_t to = from + (next ? 1 : -1);
  if (to >= 0 && to < std::ssize(places_)) {
    focus_on(places_[static_cast<std::size_t>(to)].panel);
    return true;
  }
  focused_.reset();
  return QWidget::focusNextPrevChild(next);
}

// --- painting --------------------------------------------------------------------------------------------------------

const QImage& Canvas::base(const Scene& scene) {
  const double scale = devicePixelRatio();
  const BaseKey key{scene.cursor->position(), (QSizeF(size()) * scale).toSize(), scale, view_, viewports_, font_scale_};
  if (base_key_ == key) return base_;
  // The same format as board_image(), which gives the same pixels.
  if (base_.size() != key.pixels) base_ = QImage(key.pixels, QImage::Format_RGB32);
  base_.setDevicePixelRatio(scale);
  base_.fill(theme_->surface);
  QPainter painter(&base_);
  paint_board_base(painter, size(), panels_, scene);
  base_key_ = key;
  return base_;
}

void Canvas::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (document_ == nullptr) {
    painter.fillRect(rect(), theme_->surface);
    return;
  }
  Scene scene = sceneNow();
  if (!paint_motion(painter, scene)) {
    static_cast<void>(base(scene));
    draw_pixels(painter, painter.deviceTransform().map(QPointF(0, 0)).toPoint(), base_);
  }
  paint_board_overlay(painter, size(), panels_, scene);
  paint_movers(painter);
  paint_focus_ring(painter);
}

void Canvas::paint_focus_ring(QPainter& painter) const {
  if (!ring_ || !hasFocus() || !focused_) return;
  const Place* const at = place(*focused_);
  if (at == nullptr) return;
  const double out = kRingOutside - kRing / 2;
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(theme_->accent, kRing));
  painter.setBrush(Qt::NoBrush);
  // The header has no margin, so its focus ring is inside.
  const QRectF ring = at->card.adjusted(-out, -out, out, out).intersected(QRectF(rect()).adjusted(1, 1, -1, -1));
  painter.drawRoundedRect(ring, kRingCorner, kRingCorner);
}

}  // namespace kvscope::viz
