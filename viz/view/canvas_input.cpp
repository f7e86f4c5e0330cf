// Mouse, wheel and keyboard input of the canvas.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QWheelEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QToolTip>

#include "viz/playback/tile_selection.h"
#include "viz/view/canvas.h"
#include "viz/view/canvas_accessible.h"

namespace kvscope::viz {
namespace {

constexpr double kNotch = 120;       // angleDelta() of one notch of the wheel, in eighths of a degree
constexpr double kZoomNotch = 1.25;  // per notch, and per key
constexpr double kScrollNotch = 60;  // [px] per notch

// The panels that have a place in time under every point: dragging in them moves through the run, or the tile.
bool scrubs(PanelId panel) {
  return panel == PanelId::header || panel == PanelId::timeline || panel == PanelId::tile_events;
}

View view_of(PanelId panel) {
  switch (panel) {
    case PanelId::sequences:
      return View::sequences;
    case PanelId::pool:
    case PanelId::table:
      return View::pool;
    case PanelId::timeline:
      return View::timeline;
    case PanelId::tile_sequence:
    case PanelId::memory:
    case PanelId::copies:
    case PanelId::shared:
    case PanelId::registers:
    case PanelId::tile_events:
    case PanelId::chain:
      return View::tile;
    case PanelId::attention_flow:
    case PanelId::attention_errors:
    case PanelId::attention_output:
      return View::attention;
    case PanelId::header:
      break;
  }
  return View::overview;
}

std::optional<Move> move_of(int key) {
  switch (key) {
    case Qt::Key_Left:
      return Move::left;
    case Qt::Key_Right:
      return Move::right;
    case Qt::Key_Up:
      return Move::up;
    case Qt::Key_Down:
      return Move::down;
    case Qt::Key_Home:
      return Move::first;
    case Qt::Key_End:
      return Move::last;
    default:
      return std::nullopt;
  }
}

// The keys that the canvas handles. Keys with Ctrl, Alt or Meta are left to the window.
bool is_own_key(const QKeyEvent& event) {
  if ((event.modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier)) != 0) return false;
  switch (event.key()) {
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Escape:
    case Qt::Key_Plus:
    case Qt::Key_Equal:
    case Qt::Key_Minus:
    case Qt::Key_0:
      return true;
    default:
      return move_of(event.key()).has_value();
  }
}

QPointF clamped(QPointF at, const QRectF& to) {
  return {std::clamp(at.x(), to.left(), to.right()), std::clamp(at.y(), to.top(), to.bottom())};
}

}  // namespace

// --- the pointer -----------------------------------------------------------------------------------------------------

const Place* Canvas::card_at(QPointF at) const {
  const auto found = std::ranges::find_if(places_, [&](const Place& place) { return place.card.contains(at); });
  return found == places_.end() ? nullptr : &*found;
}

Selection Canvas::hit(const Place& place, QPointF at) const {
  return place.body.contains(at) ? panel(place.panel).hit(at, place.body, sceneNow()) : Selection{};
}

void Canvas::point_at(QPointF at) {
  const Place* const place = card_at(at);
  const Selection object = place != nullptr ? hit(*place, at) : Selection{};
  document_->hover(object);
  show_cursor(place, object);
  check_zoom();
}

void Canvas::point_again() {
  if (document_ != nullptr && pointer_ && !press_ && !by_key_) point_at(*pointer_);
}

void Canvas::show_cursor(const Place* place, const Selection& object) {
  if (!object.none()) return setCursor(Qt::PointingHandCursor);
  const bool zoomed = place != nullptr && place->body.contains(*pointer_) && viewport(place->panel).zoom > 0;
  setCursor(zoomed ? Qt::OpenHandCursor : Qt::ArrowCursor);
}

void Canvas::mouseMoveEvent(QMouseEvent* event) {
  const QPointF at = event->position();
  const bool rested = pointer_ == at;
  pointer_ = at;
  if (document_ == nullptr || rested) return;
  by_key_ = false;
  if (!press_ || (event->buttons() & Qt::LeftButton) == 0) {
    press_.reset();
    return point_at(at);
  }
  if (!press_->moved && (at - press_->at).manhattanLength() < QApplication::startDragDistance()) return;
  press_->moved = true;
  if (!press_->inside) return;
  scrubs(press_->panel) && !press_->object.none() ? scrub(at) : pan(at);
  if (press_) press_->last = at;
}

void Canvas::mousePressEvent(QMouseEvent* event) {
  pointer_ = event->position();
  if (document_ == nullptr || event->button() != Qt::LeftButton) return;
  ring_ = false;
  by_key_ = false;
  const Place* const at = card_at(*pointer_);
  press_ = Press{at != nullptr ? at->panel : PanelId::header,  {}, *pointer_, *pointer_, false,
                 at != nullptr && at->body.contains(*pointer_)};
  if (at == nullptr) return;
  focused_ = at->panel;
  check_zoom();
  press_->object = hit(*at, *pointer_);
  // Moves to the step immediately; a drag continues from there.
  if (scrubs(at->panel) && press_->object.of_time()) activate(press_->object);
  update();
}

void Canvas::mouseReleaseEvent(QMouseEvent* event) {
  if (document_ == nullptr || event->button() != Qt::LeftButton || !press_) return;
  const Press press = *press_;
  const Place* const at = card_at(press.at);
  if (!press.moved && !scrubs(press.panel) && !press.object.none()) activate(press.object);
  press_.reset();
  // A click outside all objects unpins, but not a click on a title, which may be the start of a double click.
  const bool beside = at == nullptr || (press.inside && !scrubs(press.panel));
  if (!press.moved && press.object.none() && beside && document_ != nullptr) document_->pin({});
  if (document_ != nullptr) point_at(event->position());
}

void Canvas::mouseDoubleClickEvent(QMouseEvent* event) {
  const Place* const at = card_at(event->position());
  if (document_ != nullptr && event->button() == Qt::LeftButton && at != nullptr &&
      at->title.contains(event->position())) {
    return toggle_view(at->panel);
  }
  mousePressEvent(event);  // elsewhere a double click counts as two clicks
}

void Canvas::leaveEvent(QEvent*) {
  pointer_.reset();
  check_zoom();
  if (document_ != nullptr && !by_key_ && !press_) document_->hover({});
}

void Canvas::scrub(QPointF to) {
  const Place* const at = place(press_->panel);
  if (at == nullptr) return;
  // The pointer may leave the panel: its y is then ignored and its x clamped to the panel. The steps of a panel may not
  // fill its width: this searches from the pointer back to where the button was pressed for a point with a step.
  QPointF point = clamped({to.x(), press_->at.y()}, at->body.adjusted(0, 0, -1, -1));
  const double towards = point.x() < press_->at.x() ? 1 : -1;
  Selection step = panel(at->panel).hit(point, at->body, sceneNow());
  while (step.none() && (press_->at.x() - point.x()) * towards > 0) {
    point.rx() += towards;
    step = panel(at->panel).hit(point, at->body, sceneNow());
  }
  setCursor(Qt::SizeHorCursor);
  if (!step.of_time()) return;
  document_->hover(step);
  go_to_time(step);
}

void Canvas::pan(QPointF to) {
  const Place* const at = place(press_->panel);
  if (at == nullptr) return;
  const Viewport moved = panel(at->panel).scrolled(press_->last - to, at->body, sceneNow());
  if (moved == viewport(at->panel)) return;
  setCursor(Qt::ClosedHandCursor);
  choose_viewport(at->panel, moved);
}

void Canvas::wheelEvent(QWheelEvent* event) {
  const Place* const at = document_ != nullptr ? card_at(event->position()) : nullptr;
  if (at == nullptr || !at->body.contains(event->position())) return event->ignore();
  by_key_ = false;
  const QPointF turned = event->angleDelta();
  const bool sideways = std::abs(turned.x()) > std::abs(turned.y());
  if (!sideways && (event->modifiers() & Qt::ShiftModifier) == 0) {
    if (!panel(at->panel).zooms(sceneNow())) return event->ignore();  // scrolls a low window
    return zoom(*at, std::pow(kZoomNotch, turned.y() / kNotch), event->position());
  }
  const Panel& of = panel(at->panel);
  const Scene scene = sceneNow();
  const QPointF by = event->hasPixelDelta() ? QPointF(-event->pixelDelta()) : -turned / kNotch * kScrollNotch;
  // With Shift the wheel scrolls the rows, or the columns if all rows are visible.
  const bool has_rows = of.scrolled({0, -kPastContent}, at->body, scene).offset.y() !=
                        of.scrolled({0, kPastContent}, at->body, scene).offset.y();
  const double along = sideways ? by.x() : by.y();
  choose_viewport(at->panel,
                  of.scrolled(sideways || !has_rows ? QPointF(along, 0) : QPointF(0, along), at->body, scene));
}

// --- zoom and view ---------------------------------------------------------------------------------------------------

void Canvas::zoom(const Place& at, double factor, QPointF point) {
  choose_viewport(at.panel, panel(at.panel).zoomed(factor, point, at.body, sceneNow()));
}

void Canvas::choose_viewport(PanelId panel, const Viewport& viewport) {
  setViewport(panel, viewport);
  Q_EMIT viewportChosen(panel, viewport);
}

// The panel under the pointer, then the one with the focus. Without both, all of them.
std::vector<const Place*> Canvas::panels_meant() const {
  std::vector<const Place*> meant;
  const Place* const under = pointer_ && !by_key_ ? card_at(*pointer_) : nullptr;
  if (under != nullptr && under->body.contains(*pointer_)) meant.push_back(under);
  if (const Place* const focused = focused_ ? place(*focused_) : nullptr) meant.push_back(focused);
  if (!meant.empty()) return meant;
  for (const Place& at : places_) meant.push_back(&at);
  return meant;
}

const Place* Canvas::panel_for_zoom() const {
  const Scene scene = sceneNow();
  const std::vector<const Place*> meant = panels_meant();
  const auto found = std::ranges::find_if(meant, [&](const Place* at) { return panel(at->panel).zooms(scene); });
  return found == meant.end() ? nullptr : *found;
}

QString Canvas::whyNoZoom() const {
  if (document_ == nullptr || panel_for_zoom() != nullptr) return {};
  const Scene scene = sceneNow();
  QStringList others;
  for (const Place& at : places_) {
    if (panel(at.panel).zooms(scene)) others.push_back(panel(at.panel).title());
  }
  if (others.isEmpty()) return tr("Nothing in this view can be zoomed: all of it is visible");
  const QString title = panel(panels_meant().front()->panel).title();
  return tr("%1 cannot be zoomed: point at %2, or give it the keyboard focus")
      .arg(title.isEmpty() ? tr("The header") : title, others.join(tr(" or ")));
}

void Canvas::check_zoom() {
  const QString why = whyNoZoom();
  if (std::exchange(no_zoom_, why) != why) Q_EMIT zoomPanelChanged();
}

void Canvas::zoom_by_key(double factor) {
  if (document_ == nullptr) return;
  const Place* const at = panel_for_zoom();
  if (at == nullptr) return Q_EMIT zoomRefused(whyNoZoom());
  if (pointer_ && !by_key_ && at->body.contains(*pointer_)) return zoom(*at, factor, *pointer_);
  // Zooms around the selected object if it is visible.
  const std::optional<QRectF> anchor = panel(at->panel).anchor(sceneNow().lit(), at->body, sceneNow());
  zoom(*at, factor, anchor ? anchor->center() : at->body.center());
}

void Canvas::zoomIn() {
  zoom_by_key(kZoomNotch);
}

void Canvas::zoomOut() {
  zoom_by_key(1 / kZoomNotch);
}

void Canvas::zoomToFit() {
  for (const Place& at : places_) choose_viewport(at.panel, {});
}

void Canvas::toggle_view(PanelId panel) {
  setView(view_ == View::overview ? view_of(panel) : View::overview);
}

void Canvas::show_tool_tip(const QHelpEvent& event) {
  const Place* const at = document_ != nullptr ? card_at(event.pos()) : nullptr;
  if (at == nullptr) return QToolTip::hideText();
  if (at->title.contains(event.pos())) {
    const QString text = view_ == View::overview ? tr("Double click: this view alone") : tr("Double click: all panels");
    return QToolTip::showText(event.globalPos(), text, this, at->title.toAlignedRect());
  }
  // No tool tip for a step: the panel draws its values beside the pointer.
  const Scene scene = sceneNow();
  if (const std::optional<PanelTip> tip = panel(at->panel).tip(event.pos(), at->body, scene)) {
    return QToolTip::showText(event.globalPos(), tip->text, this, tip->rect.toAlignedRect());
  }
  const Selection object = hit(*at, event.pos());
  if (object.none() || object.of_time()) return QToolTip::hideText();
  const Lit lit = resolve(scene.state(), scene.facts(), scene.tile, object);
  const std::optional<QRectF> cell = panel(at->panel).anchor(lit, at->body, scene);
  const std::string text = object.of_attention()
                               ? describe_attention(object, scene.flow, scene.errors)
                               : describe(scene.state(), scene.facts(), scene.tile, object, scene.tile_source);
  QToolTip::showText(event.globalPos(), QString::fromStdString(text), this, cell ? cell->toAlignedRect() : QRect());
}

// --- keys ------------------------------------------------------------------------------------------------------------

bool Canvas::event(QEvent* event) {
  switch (event->type()) {
    case QEvent::ToolTip:
      show_tool_tip(*static_cast<QHelpEvent*>(event));
      return true;
    case QEvent::ShortcutOverride:
      // Otherwise a window shortcut for the same plain key would be triggered instead of the focused panel's action.
      if (document_ != nullptr && is_own_key(*static_cast<QKeyEvent*>(event))) {
        event->accept();
        return true;
      }
      break;
    default:
      break;
  }
  return QWidget::event(event);
}

void Canvas::keyPressEvent(QKeyEvent* event) {
  if (document_ == nullptr || !is_own_key(*event) || !take_key(*event)) QWidget::keyPressEvent(event);
}

bool Canvas::take_key(const QKeyEvent& event) {
  if (const std::optional<Move> move = move_of(event.key())) {
    move_focus(*move);
    return true;
  }
  switch (event.key()) {
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      zoomIn();
      return true;
    case Qt::Key_Minus:
      zoomOut();
      return true;
    case Qt::Key_0:
      if (const Place* const at = panel_for_zoom()) choose_viewport(at->panel, {});
      return true;
    case Qt::Key_Escape: {
      const bool something = !document_->pinned().none() || (by_key_ && !document_->hovered().none());
      if (by_key_) document_->hover({});
      by_key_ = false;
      document_->pin({});
      return something;
    }
    default:
      break;
  }
  const Selection object = document_->hovered();
  if (object.none()) return false;
  object == document_->pinned() ? document_->pin({}) : activate(object);
  return true;
}

void Canvas::move_focus(Move move) {
  if (!focused_ || place(*focused_) == nullptr) focused_ = first_panel();  // after loading no panel has the focus
  const Place* const at = place(*focused_);
  const Panel& of = panel(*focused_);
  const Selection from = document_->hovered().none() ? document_->pinned() : document_->hovered();
  const Selection to = of.moved(from, move, at->body, sceneNow());
  ring_ = true;
  by_key_ = true;
  check_zoom();
  setViewport(at->panel, of.revealing(to, at->body, sceneNow()));
  document_->hover(to);
  update();
  tell_focus(*this);
  Q_EMIT panelFocused(at->card);
}

void Canvas::go_to_time(const Selection& place) {
  if (place.kind == Selection::Kind::step) {
    document_->seek_step(place.step);
  } else {
    document_->seek_tile(place.event);
  }
}

void Canvas::activate(const Selection& object) {
  if (document_ == nullptr || object.none()) return;
  pinning_ = true;
  if (object.of_time()) {
    go_to_time(object);
  } else {
    document_->pin(object);
  }
  pinning_ = false;
  Q_EMIT objectActivated(object);
}

}  // namespace kvscope::viz
