// Theme, text size, session, and events of the whole window.
#include <algorithm>

#include <QtGui/QCloseEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtWidgets/QAbstractButton>
#include <QtWidgets/QAbstractItemView>
#include <QtWidgets/QAbstractSpinBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QStackedWidget>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QTextEdit>

#include "viz/playback/happened.h"
#include "viz/playback/tile_selection.h"
#include "viz/view/canvas.h"
#include "viz/view/time_text.h"
#include "viz/window/attention_bar.h"
#include "viz/window/breakpoints_panel.h"
#include "viz/window/canvas_scroll.h"
#include "viz/window/dock_tabs.h"
#include "viz/window/dock_title.h"
#include "viz/window/events_panel.h"
#include "viz/window/export_bar.h"
#include "viz/window/find_bar.h"
#include "viz/window/kernel_window.h"
#include "viz/window/lab_panel.h"
#include "viz/window/main_window.h"
#include "viz/window/message_bar.h"
#include "viz/window/notes_panel.h"
#include "viz/window/presentation.h"
#include "viz/window/scenario_panel.h"
#include "viz/window/sequences_panel.h"
#include "viz/window/start_page.h"
#include "viz/window/tile_bar.h"
#include "viz/window/tour_panel.h"
#include "viz/window/transport_bar.h"
#include "viz/window/why_panel.h"

namespace kvscope::viz {
namespace {

constexpr int kKeepAfter = 500;  // [ms] from a change to saving the session

// Widgets that use the space bar: if one of them has the focus, the space bar does not play. Text that is only read is
// scrolled by it, with Shift backward; a text without more lines leaves it to the window.
bool takes_blanks(const QObject* object, Qt::KeyboardModifiers modifiers) {
  if (qobject_cast<const QTextEdit*>(object) != nullptr || qobject_cast<const QPlainTextEdit*>(object) != nullptr) {
    const QScrollBar* const bar = static_cast<const QAbstractScrollArea*>(object)->verticalScrollBar();
    return (modifiers & ~Qt::ShiftModifier) == Qt::NoModifier && bar->maximum() > bar->minimum();
  }
  if (modifiers != Qt::NoModifier) return false;
  return qobject_cast<const QAbstractButton*>(object) != nullptr ||
         qobject_cast<const QAbstractItemView*>(object) != nullptr || qobject_cast<const QComboBox*>(object) != nullptr;
}

// In these widgets a key that writes a character writes it, in a presentation, too.
bool is_text_field(const QWidget* widget) {
  return qobject_cast<const QLineEdit*>(widget) != nullptr || qobject_cast<const QAbstractSpinBox*>(widget) != nullptr;
}

bool writes_a_character(const QKeyEvent& key) {
  return !key.text().isEmpty() && key.text().front().isPrint();
}

// Ctrl and a letter: a text field may have such keys of its own, for example Ctrl+E for the end of the line.
bool is_letter_with_ctrl(const QKeyEvent& key) {
  const Qt::KeyboardModifiers modifiers = key.modifiers() & ~Qt::ShiftModifier;
  return modifiers == Qt::ControlModifier && key.key() >= Qt::Key_A && key.key() <= Qt::Key_Z;
}

bool is_key_of(const Actions& actions, const QKeyEvent& key) {
  const QKeySequence pressed(key.keyCombination());
  return std::ranges::any_of(action_table(), [&](const ActionEntry& entry) {
    return actions[entry.id]->isEnabled() && keys_of(entry).contains(pressed);
  });
}

bool undoes(const QKeyEvent& key) {
  const QKeySequence pressed(key.keyCombination());
  return keys_of(entry(Do::undo)).contains(pressed) || keys_of(entry(Do::redo)).contains(pressed);
}

}  // namespace

void MainWindow::apply_theme() {
  theme_ = &theme(theme_kind(theme_setting_, desktop_palette()));
  apply_look(*theme_, font_scale_);
  setStyleSheet(style_sheet(*theme_, font_scale_));
  actions_.set_theme(*theme_);
  for (Canvas* canvas : {canvas_, beside_canvas_}) {
    canvas->setTheme(*theme_);
    canvas->setFontScale(font_scale_);
  }
  for (CanvasScroll* scroll : {scroll_, beside_scroll_}) scroll->fit();
  caption_->set_theme(*theme_, font_scale_);
  messages_->set_theme(*theme_);
  find_bar_->set_theme(*theme_, font_scale_);
  export_bar_->set_theme(*theme_);
  start_page_->set_theme(*theme_, font_scale_);
  transport_->set_theme(*theme_, font_scale_);
  why_->set_theme(*theme_, font_scale_);
  events_->set_theme(*theme_, font_scale_);
  sequences_->set_theme(*theme_, font_scale_);
  breakpoints_panel_->set_theme(*theme_, font_scale_);
  notes_->set_theme(*theme_, font_scale_);
  scenario_panel_->set_theme(*theme_, font_scale_);
  lab_panel_->set_theme(*theme_, font_scale_);
  tour_panel_->set_theme(*theme_, font_scale_);
  for (DockTitle* title : titles_) title->set_theme(*theme_);
  for (const QPointer<KernelWindow>& kernel : kernels_) {
    if (kernel) kernel->set_look(*theme_, font_scale_);
  }
  gallery_timer_.start();
  actions_[Do::theme_system]->setChecked(theme_setting_ == ThemeSetting::system);
  actions_[Do::theme_dark]->setChecked(theme_setting_ == ThemeSetting::dark);
  actions_[Do::theme_light]->setChecked(theme_setting_ == ThemeSetting::light);
  actions_[Do::theme_high_contrast]->setChecked(theme_setting_ == ThemeSetting::high_contrast);
}

// --- presentation ----------------------------------------------------------------------------------------------------

void MainWindow::present(bool on) {
  actions_[Do::present]->setChecked(on);
  if (on == presentation_->on()) return;
  if (on) {
    for (QWidget* bar : std::initializer_list<QWidget*>{find_bar_, export_bar_}) bar->hide();
    presentation_->start();
  } else {
    presentation_->stop();
  }
  show_docks(!on && document_ != nullptr);
  tile_bar_->setVisible(!on && view_ == View::tile && document_ != nullptr);
  attention_bar_->setVisible(!on && view_ == View::attention && document_ != nullptr);
  menuBar()->setVisible(!on);
  statusBar()->setVisible(!on);
  caption_->setVisible(on);
  for (Canvas* canvas : {canvas_, beside_canvas_}) canvas->setSpotlight(on);
  show_beside();
  setWindowState(on ? windowState() | Qt::WindowFullScreen : windowState() & ~Qt::WindowFullScreen);
  show_caption();
  center_->currentWidget()->setFocus();
}

void MainWindow::show_caption() {
  if (!presentation_->on()) return;
  if (!document_) return caption_->set_words(tr("kvscope"), {}, {});
  const Scene scene = canvas_->sceneNow();
  // The first panel below the header is what the view is about, except the overview, which is about the pool.
  const PanelId about = view_ == View::sequences   ? PanelId::sequences
                        : view_ == View::timeline  ? PanelId::timeline
                        : view_ == View::tile      ? PanelId::chain
                        : view_ == View::attention ? PanelId::attention_flow
                                                   : PanelId::pool;
  const bool pinned = !document_->pinned().none() && view_ != View::tile;
  const std::string happened = view_ == View::tile ? std::string() : what_happened(document_->cursor());
  const QString sentence = pinned ? QString::fromStdString(describe(scene.state(), scene.facts(), scene.tile,
                                                                    document_->pinned(), scene.tile_source))
                           : !happened.empty() ? QString::fromStdString(happened)
                                               : canvas_->panels()[static_cast<std::size_t>(about)]->summary(scene);
  const StepIdx step = scene.state().step;
  caption_->set_words(QString::fromStdString(scene.facts().name),
                      step.value < 0 ? QString() : tr("step %1").arg(number_text(step.value)), sentence);
}

void MainWindow::paint_gallery() {
  if (!document_ && !loader_.loading()) pictures_.paint(theme_->kind);
}

// --- session ---------------------------------------------------------------------------------------------------------

void MainWindow::offer_to_restore() {
  session_timer_.setSingleShot(true);
  session_timer_.setInterval(kKeepAfter);
  connect(&session_timer_, &QTimer::timeout, this, &MainWindow::keep_session);
  const SessionPlace place = session_.place();
  const auto wish_of_place = [&place] {
    OpenWish wish;
    wish.position = place.position;
    wish.view = place.view;
    wish.pinned = place.pinned;
    wish.tile = place.tile;
    wish.recorded_tile = place.recorded_tile;
    wish.tile_event = place.tile_event;
    wish.flow = place.flow;
    wish.flow_tiles = place.flow_tiles;
    if (!place.candidate.isEmpty()) wish.candidate = place.candidate;
    if (!place.compared.isEmpty()) wish.compared = place.compared;
    wish.breakpoints = place.breakpoints;
    return wish;
  };
  bool changes_of_place = false;
  if (session_.ours()) {
    for (const auto& [path, scenario] : place.changes) {
      offer_changes(path, scenario.toStdString(), path == place.path ? wish_of_place() : OpenWish());
      changes_of_place |= path == place.path;
    }
  }
  if (!session_.ended_badly() || changes_of_place) return;
  offered_ = place;
  const auto restore = [this, path = place.path, wish = wish_of_place()] { open(path, wish); };
  messages_->show_message({QStringLiteral("session"),
                           false,
                           tr("kvscope-viewer did not exit normally last time. %1 was open.").arg(place.path),
                           {},
                           {{tr("Restore"), restore}}});
}

SessionPlace MainWindow::place_now() const {
  SessionPlace place;
  // While the offer is open, the session keeps the offered state, so that it survives another crash.
  if (!document_ && offered_ && messages_->showing(QStringLiteral("session"))) place = *offered_;
  if (document_) {
    const OpenWish wish = wish_of_now();
    place.path = document_->path();
    place.position = document_->cursor().position();
    place.pinned = document_->pinned();
    place.tile = wish.tile;
    place.recorded_tile = wish.recorded_tile;
    place.tile_event = wish.tile_event;
    place.flow = wish.flow;
    place.flow_tiles = wish.flow_tiles;
    place.candidate = wish.candidate.value_or(QString());
    place.compared = wish.compared.value_or(QString());
  }
  place.changes = unsaved_now();
  if (!document_ && !place.path.isEmpty()) return place;  // the offered state
  place.view = view_;
  place.breakpoints = breakpoints_;
  return place;
}

void MainWindow::changed() {
  // Not restarted: while a run plays, changes never stop, and the session must still be saved.
  if (!session_timer_.isActive()) session_timer_.start();
}

void MainWindow::keep_session() {
  SessionLook look;
  look.theme = theme_setting_;
  look.font_scale = font_scale_;
  look.speed = transport_->speed();
  look.motion = canvas_->motion();
  look.geometry = saveGeometry();
  look.docks = docks_shown_ ? saveState() : dock_state_;
  session_.keep(look, place_now());
}

// --- events ----------------------------------------------------------------------------------------------------------

bool MainWindow::event(QEvent* event) {
  // The desktop changed to dark or light. Setting the application's palette does not cause this event.
  if (event->type() == QEvent::ThemeChange && theme_setting_ == ThemeSetting::system) apply_theme();
  const bool done = QMainWindow::event(event);
  // Docks were moved, shown or hidden, or the text size changed.
  if (event->type() == QEvent::LayoutRequest) tabs_->fit();
  return done;
}

void MainWindow::closeEvent(QCloseEvent* event) {
  present(false);
  scenario_panel_->finish_editing();
  loader_.cancel();
  job_.cancel();
  gallery_timer_.stop();
  pictures_.stop();
  if (document_) document_->pause();
  session_timer_.stop();
  keep_session();
  session_.end();
  QMainWindow::closeEvent(event);
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  lay_out_boards();
  changed();
}

void MainWindow::moveEvent(QMoveEvent* event) {
  QMainWindow::moveEvent(event);
  changed();
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress) {
    const auto* widget = qobject_cast<const QWidget*>(watched);
    auto& key = *static_cast<QKeyEvent*>(event);
    const bool is_text = is_text_field(widget) && writes_a_character(key);
    if (widget != nullptr && widget->window() == this && !is_text && presentation_->take(key)) return true;
  }
  const auto* const in_window = qobject_cast<const QWidget*>(watched);
  if (event->type() == QEvent::ShortcutOverride && in_window != nullptr && in_window->window() == this) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->key() == Qt::Key_Space && takes_blanks(watched, key->modifiers())) {
      event->accept();
      return true;
    }
    // The window's keys of this kind work in text fields, too, except those that undo what is typed.
    if (is_letter_with_ctrl(*key) && is_key_of(actions_, *key) && !undoes(*key)) {
      event->ignore();
      return true;
    }
  }
  if (event->type() == QEvent::MouseButtonPress) {
    const Qt::MouseButton button = static_cast<QMouseEvent*>(event)->button();
    const auto* const widget = qobject_cast<QWidget*>(watched);
    if ((button == Qt::BackButton || button == Qt::ForwardButton) && widget != nullptr && widget->window() == this) {
      actions_[button == Qt::BackButton ? Do::go_back : Do::go_forward]->trigger();
      return true;
    }
  }
  return QMainWindow::eventFilter(watched, event);
}

}  // namespace kvscope::viz
