// Ways through the window: back and forward through the places visited, and the keyboard focus from part to part.
#include <algorithm>
#include <cstdlib>

#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QStackedWidget>

#include "viz/view/canvas.h"
#include "viz/window/attention_bar.h"
#include "viz/window/busy_bar.h"
#include "viz/window/export_bar.h"
#include "viz/window/find_bar.h"
#include "viz/window/main_window.h"
#include "viz/window/message_bar.h"
#include "viz/window/tile_bar.h"
#include "viz/window/transport_bar.h"

namespace kvscope::viz {
namespace {

constexpr int kWhileDragging = 50;  // [ms] between two looks at whether the mouse button is still down

bool takes_focus_by_key(const QWidget& widget) {
  return (widget.focusPolicy() & Qt::TabFocus) != 0 && widget.isVisible() && widget.isEnabled();
}

bool in_front(const QDockWidget& dock) {
  return dock.isVisible() && !dock.visibleRegion().isEmpty();
}

bool is_inside(const QWidget& widget, const QWidget& window) {
  return window.rect().intersects(QRect(widget.mapTo(&window, QPoint(0, 0)), widget.size()));
}

}  // namespace

void MainWindow::connect_ways() {
  history_timer_.setSingleShot(true);
  connect(&history_timer_, &QTimer::timeout, this, &MainWindow::keep_place);
  connect(actions_[Do::go_back], &QAction::triggered, this, [this] {
    keep_place();
    if (document_ && history_.can_go_back()) go(history_.back());
  });
  connect(actions_[Do::go_forward], &QAction::triggered, this, [this] {
    keep_place();
    if (document_ && history_.can_go_forward()) go(history_.forward());
  });
  connect(actions_[Do::next_area], &QAction::triggered, this, [this] { focus_area(1); });
  connect(actions_[Do::previous_area], &QAction::triggered, this, [this] { focus_area(-1); });
  connect(actions_[Do::focus_picture], &QAction::triggered, this, [this] {
    document_ ? canvas_->focusWithRing() : center_->currentWidget()->setFocus(Qt::ShortcutFocusReason);
  });
}

// --- back and forward ------------------------------------------------------------------------------------------------

void MainWindow::visited() {
  if (!document_ || history_timer_.isActive()) return;
  history_timer_.start(0);
  if (!history_.empty()) actions_[Do::go_back]->setEnabled(true);
}

void MainWindow::keep_place() {
  history_timer_.stop();
  if (!document_) return;
  // A drag through the timeline is one way; its place is where it ends.
  if (QApplication::mouseButtons() != Qt::NoButton && !document_->playing()) {
    return history_timer_.start(kWhileDragging);
  }
  HistoryPlace now{document_->cursor().position(), document_->pinned(), view_};
  if (view_ == View::tile && !document_->recorded_tile()) now.tile = document_->tile_request();
  if (view_ == View::attention) {
    const AttentionModel& attention = document_->attention();
    now.flow = attention.request();
    now.flow_tiles = attention.tiles_before_end();
    now.candidate = attention.candidate();
  }
  const auto row = [this](Position position) { return run_->row_at(position); };
  const bool small = !history_.empty() &&
                     (document_->playing() || std::abs(row(now.position) - row(history_.current().position)) <= 1);
  history_.visit(now, small);
  show_ways();
}

void MainWindow::go(const HistoryPlace& wanted) {
  const HistoryPlace place = wanted;  // the changes below may add to the history
  document_->pin(place.pinned);       // before the position, because pinning a step moves to it
  document_->seek(place.position);
  if (place.tile) document_->choose_tile_at(*place.tile, std::nullopt);
  set_view(place.view);
  if (place.flow) {
    document_->attention().set_candidate(place.candidate);
    document_->attention().restore(*place.flow, place.flow_tiles);
  }
  history_timer_.stop();
  show_ways();
}

void MainWindow::show_ways() {
  actions_[Do::go_back]->setEnabled(document_ && history_.can_go_back());
  actions_[Do::go_forward]->setEnabled(document_ && history_.can_go_forward());
}

// --- from part to part -----------------------------------------------------------------------------------------------

QWidget* MainWindow::focus_of(QWidget& area) {
  if (QWidget* const last = area.focusWidget(); last != nullptr && takes_focus_by_key(*last)) return last;
  if (takes_focus_by_key(area)) return &area;
  for (QWidget* next = area.nextInFocusChain(); next != &area; next = next->nextInFocusChain()) {
    if (area.isAncestorOf(next) && takes_focus_by_key(*next)) return next;
  }
  return nullptr;
}

bool MainWindow::focusNextPrevChild(bool next) {
  QWidget* const from = focusWidget() != nullptr ? focusWidget() : this;
  // Not the Tab key: the widget with the focus was hidden, such as the Cancel button of a task that has ended.
  if (from != this && !from->isVisible()) {
    center_->currentWidget()->setFocus(Qt::OtherFocusReason);
    return true;
  }
  const auto step = [next](const QWidget* at) { return next ? at->nextInFocusChain() : at->previousInFocusChain(); };
  for (QWidget* to = step(from); to != from; to = step(to)) {
    if (to->window() != this || to->focusProxy() != nullptr || !takes_focus_by_key(*to) || !is_inside(*to, *this)) {
      continue;
    }
    to->setFocus(next ? Qt::TabFocusReason : Qt::BacktabFocusReason);
    return true;
  }
  return false;
}

std::vector<QWidget*> MainWindow::areas() const {
  QWidget* const page = center_->currentWidget();
  std::vector<QWidget*> areas{
      transport_,     find_bar_, export_bar_, tile_bar_, attention_bar_, compare_bar_, page == boards_ ? scroll_ : page,
      beside_scroll_, messages_, load_bar_,   job_bar_};
  areas.insert(areas.end(), docks_.begin(), docks_.end());
  std::erase_if(areas, [](QWidget* area) {
    const auto* dock = qobject_cast<const QDockWidget*>(area);
    return !area->isVisible() || (dock != nullptr && !in_front(*dock)) || focus_of(*area) == nullptr;
  });
  return areas;
}

void MainWindow::focus_area(int by) {
  const std::vector<QWidget*> all = areas();
  if (all.empty()) return;
  const QWidget* const focus = QApplication::focusWidget();
  const auto now = std::find_if(all.begin(), all.end(), [focus](const QWidget* area) {
    return focus != nullptr && (area == focus || area->isAncestorOf(focus));
  });
  const auto count = static_cast<std::ptrdiff_t>(all.size());
  const std::ptrdiff_t from = now != all.end() ? now - all.begin() : by > 0 ? -1 : count;
  focus_of(*all[static_cast<std::size_t>((from + by + count) % count)])->setFocus(Qt::ShortcutFocusReason);
}

}  // namespace kvscope::viz
