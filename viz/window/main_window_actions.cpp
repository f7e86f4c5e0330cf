// Menus, and the effect of each action.
#include <QtGui/QActionGroup>
#include <QtGui/QKeyEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QMenu>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QStackedWidget>
#include <QtWidgets/QStatusBar>

#include "viz/view/canvas.h"
#include "viz/window/attention_bar.h"
#include "viz/window/breakpoints_panel.h"
#include "viz/window/command_palette.h"
#include "viz/window/export_bar.h"
#include "viz/window/find_bar.h"
#include "viz/window/main_window.h"
#include "viz/window/message_bar.h"
#include "viz/window/presentation.h"
#include "viz/window/scenario_panel.h"
#include "viz/window/tile_bar.h"
#include "viz/window/transport_bar.h"
#include "viz/window/why_panel.h"

namespace kvscope::viz {
namespace {

constexpr std::array<std::pair<Do, View>, 6> kViewActions{{{Do::view_overview, View::overview},
                                                           {Do::view_sequences, View::sequences},
                                                           {Do::view_pool, View::pool},
                                                           {Do::view_timeline, View::timeline},
                                                           {Do::view_tile, View::tile},
                                                           {Do::view_attention, View::attention}}};
constexpr std::array<std::pair<Do, ThemeSetting>, 4> kThemeActions{
    {{Do::theme_system, ThemeSetting::system},
     {Do::theme_dark, ThemeSetting::dark},
     {Do::theme_light, ThemeSetting::light},
     {Do::theme_high_contrast, ThemeSetting::high_contrast}}};

constexpr double kPartOfStep = 1.0 / 12;

bool holds_focus(const QWidget* bar) {
  const QWidget* focus = QApplication::focusWidget();
  return focus != nullptr && bar->isVisible() && bar->isAncestorOf(focus);
}

}  // namespace

// --- menus -----------------------------------------------------------------------------------------------------------

void MainWindow::build_menus() {
  const auto add = [this](QMenu& menu, std::initializer_list<Do> ids) {
    for (const Do id : ids) menu.addAction(actions_[id]);
  };
  QMenu& file = *menuBar()->addMenu(group_title(Group::file));
  add(file, {Do::open, Do::open_candidate, Do::compare});
  QMenu* gallery = file.addMenu(tr("&Gallery"));
  gallery->setToolTipsVisible(true);
  for (int row = 0; row < gallery_.rowCount(); ++row) {
    QAction* action =
        gallery->addAction(gallery_.index(row).data().toString().replace(QLatin1Char('&'), QStringLiteral("&&")));
    connect(action, &QAction::triggered, this, [this, row] { open(gallery_.path(row)); });
  }
  gallery->setEnabled(gallery_.rowCount() > 0);
  QMenu* labs = file.addMenu(tr("&Labs"));
  labs->setToolTipsVisible(true);
  for (const LabEntry& lab : labs_.entries) {
    const QString title = QString::fromStdString(lab.title).replace(QLatin1Char('&'), QStringLiteral("&&"));
    QAction* action = labs->addAction(QStringLiteral("%1  %2").arg(lab.number, 2, 10, QLatin1Char('0')).arg(title));
    action->setToolTip(QString::fromStdString(lab.goal));
    connect(action, &QAction::triggered, this, [this, lab] { open_lab(lab); });
  }
  labs->setEnabled(!labs_.entries.empty());
  QMenu* recent = file.addMenu(tr("Recent &files"));
  connect(recent, &QMenu::aboutToShow, this, [this, recent] { recent_.fill(*recent); });
  add(file, {Do::reload});
  file.addSeparator();
  add(file, {Do::save_trace, Do::save_scenario, Do::export_picture});
  file.addSeparator();
  add(file, {Do::close, Do::quit});

  add(*menuBar()->addMenu(group_title(Group::edit)), {Do::undo, Do::redo});

  QMenu& run = *menuBar()->addMenu(group_title(Group::run));
  add(run, {Do::play, Do::play_events, Do::faster, Do::slower});
  run.addSeparator();
  add(run, {Do::step, Do::step_back, Do::next_event, Do::previous_event, Do::to_start, Do::to_end});
  add(run, {Do::motion_forward, Do::motion_back});
  run.addSeparator();
  add(run, {Do::run_to_breakpoint, Do::run_back, Do::add_breakpoint});
  run.addSeparator();
  add(run, {Do::next_difference, Do::previous_difference});

  QMenu& select = *menuBar()->addMenu(group_title(Group::select));
  add(select, {Do::find, Do::go_back, Do::go_forward, Do::clear_selection});
  select.addSeparator();
  add(select, {Do::copy_explanation});

  build_view_menu(*menuBar()->addMenu(group_title(Group::view)));
  add(*menuBar()->addMenu(group_title(Group::help)), {Do::tour, Do::commands, Do::help});
}

void MainWindow::build_view_menu(QMenu& menu) {
  view_group_ = new QActionGroup(this);
  for (const auto& [id, view] : kViewActions) menu.addAction(view_group_->addAction(actions_[id]));
  menu.addSeparator();
  for (const Do id : {Do::zoom_in, Do::zoom_out, Do::zoom_fit}) menu.addAction(actions_[id]);
  for (const Do id : {Do::beside, Do::motion}) menu.addAction(actions_[id]);
  menu.addSeparator();
  for (const Do id : {Do::show_why, Do::show_events, Do::show_sequences, Do::show_breakpoints, Do::show_notes,
                      Do::show_scenario, Do::show_lab, Do::show_tour})
    menu.addAction(actions_[id]);
  menu.addSeparator();
  for (const Do id : {Do::next_area, Do::previous_area, Do::focus_picture}) menu.addAction(actions_[id]);
  menu.addSeparator();
  theme_group_ = new QActionGroup(this);
  QMenu& themes = *menu.addMenu(tr("T&heme"));
  for (const auto& [id, setting] : kThemeActions) themes.addAction(theme_group_->addAction(actions_[id]));
  QMenu& text = *menu.addMenu(tr("Te&xt size"));
  for (const Do id : {Do::font_larger, Do::font_smaller, Do::font_normal}) text.addAction(actions_[id]);
  menu.addSeparator();
  menu.addAction(actions_[Do::present]);
}

// --- actions ---------------------------------------------------------------------------------------------------------

void MainWindow::connect_actions() {
  const auto on = [this](Do id, auto&& work) { connect(actions_[id], &QAction::triggered, this, work); };
  on(Do::open, [this] { ask_for_file(); });
  on(Do::open_candidate, [this] { ask_for_candidate(); });
  on(Do::reload, [this] {
    if (!lab_file_.isEmpty()) return open(lab_file_);
    if (!document_) return load(failed_, OpenWish(wish_));
    load(document_->path(), scenario_panel_->shows_changed() ? wish_by_step() : wish_of_now());
  });
  on(Do::save_trace, [this] { ask_where_to_save(); });
  on(Do::export_picture, [this] {
    using Of = ExportBar::Film::Of;
    const AttentionModel& attention = document_->attention();
    // Row 0 of a run has the events before step 0.
    ExportBar::Film film{Of::steps, document_->cursor().row() - 1, std::max<std::int64_t>(run_->facts().rows - 2, 0),
                         canvas_->motion()};
    if (view_ == View::tile && document_->tile() != nullptr) {
      film = {Of::tile, document_->tile_now().event, document_->tile()->events, film.motion};
    } else if (view_ == View::attention && attention.flow() != nullptr) {
      film = {Of::flow, attention.tiles_done(), std::ssize(attention.flow()->tiles), film.motion};
    }
    QSize size = canvas_->size();
    if (beside_canvas_->isVisible()) size.setWidth(2 * size.width() + kBetweenRuns);
    export_bar_->open(size, theme_->kind, film);
  });
  on(Do::close, [this] { close_document(); });
  on(Do::quit, [this] { close(); });
  on(Do::save_scenario, [this] { ask_where_to_save_scenario(); });
  on(Do::undo, [this] { scenario_panel_->model().undo(); });
  on(Do::redo, [this] { scenario_panel_->model().redo(); });

  on(Do::add_breakpoint, [this] {
    auto* dock = findChild<QDockWidget*>(QStringLiteral("breakpoints"));
    dock->show();
    dock->raise();
    breakpoints_panel_->write();
  });
  on(Do::find, [this] { find_bar_->open(); });
  on(Do::clear_selection, [this] { let_go(); });
  on(Do::copy_explanation, [this] { why_->copy(); });
  on(Do::commands, [this] {
    auto* palette = findChild<CommandPalette*>();
    if (palette == nullptr) palette = new CommandPalette(actions_, this);
    palette->show();
    palette->activateWindow();
  });
  on(Do::help, [this] {
    auto* dialog = findChild<ShortcutsDialog*>();
    if (dialog == nullptr) dialog = new ShortcutsDialog(this);
    dialog->show();
    dialog->raise();
    dialog->activateWindow();
  });
  connect_run_actions();
  connect_view_actions();
}

void MainWindow::connect_run_actions() {
  // In the tile view the same keys move through the tile's events, in the attention view through the flow's tiles.
  const auto all = [this](Do id, void (Document::*of_run)(), void (Document::*of_tile)(),
                          void (AttentionModel::*of_flow)()) {
    connect(actions_[id], &QAction::triggered, this, [this, of_run, of_tile, of_flow] {
      if (!document_) return;
      if (view_ == View::attention) return (document_->attention().*of_flow)();
      (document_.get()->*(view_ == View::tile ? of_tile : of_run))();
    });
  };
  const auto on = [&](Do id, void (Document::*work)()) {
    connect(actions_[id], &QAction::triggered, this, [this, work] {
      if (document_) (document_.get()->*work)();
    });
  };
  const auto plays = [this](Do id, void (Document::*of_run)(), void (Document::*of_tile)()) {
    connect(actions_[id], &QAction::triggered, this, [this, of_run, of_tile] {
      if (!document_) return;
      if (view_ == View::attention) return document_->attention().toggle_playing();
      const bool of_the_tile = view_ == View::tile;
      const bool was_playing = of_the_tile ? document_->tile_playing() : document_->playing();
      (document_.get()->*(of_the_tile ? of_tile : of_run))();
      if (was_playing) canvas_->holdMotion();
    });
  };
  plays(Do::play, &Document::toggle_playing, &Document::toggle_tile_playing);
  plays(Do::play_events, &Document::toggle_playing_events, &Document::toggle_tile_playing_events);
  all(Do::step, &Document::step, &Document::tile_step, &AttentionModel::step);
  all(Do::step_back, &Document::step_back, &Document::tile_step_back, &AttentionModel::step_back);
  all(Do::next_event, &Document::next_event, &Document::tile_event, &AttentionModel::step);
  all(Do::previous_event, &Document::previous_event, &Document::tile_event_back, &AttentionModel::step_back);
  all(Do::to_start, &Document::to_start, &Document::tile_to_start, &AttentionModel::to_start);
  all(Do::to_end, &Document::to_end, &Document::tile_to_end, &AttentionModel::to_end);
  on(Do::run_to_breakpoint, &Document::run_to_breakpoint);
  on(Do::run_back, &Document::run_back_to_breakpoint);
  on(Do::next_difference, &Document::next_difference);
  on(Do::previous_difference, &Document::previous_difference);
  connect(actions_[Do::motion_forward], &QAction::triggered, this, [this] { canvas_->nudgeMotion(kPartOfStep); });
  connect(actions_[Do::motion_back], &QAction::triggered, this, [this] { canvas_->nudgeMotion(-kPartOfStep); });
  connect(actions_[Do::faster], &QAction::triggered, this, [this] { transport_->set_speed(transport_->speed() * 2); });
  connect(actions_[Do::slower], &QAction::triggered, this, [this] { transport_->set_speed(transport_->speed() / 2); });
  connect(transport_, &TransportBar::speed_changed, this, &MainWindow::changed);
}

void MainWindow::connect_view_actions() {
  const auto on = [this](Do id, auto&& work) { connect(actions_[id], &QAction::triggered, this, work); };
  for (const auto& [id, view] : kViewActions) on(id, [this, v = view] { set_view(v); });
  for (const auto& [id, setting] : kThemeActions) on(id, [this, s = setting] { set_theme(s); });
  on(Do::motion, [this] { set_motion(actions_[Do::motion]->isChecked()); });
  on(Do::zoom_in, [this] { canvas_meant().zoomIn(); });
  on(Do::zoom_out, [this] { canvas_meant().zoomOut(); });
  on(Do::zoom_fit, [this] { canvas_->zoomToFit(); });
  on(Do::font_larger, [this] { set_font_scale(font_scale_ * kFontStep); });
  on(Do::font_smaller, [this] { set_font_scale(font_scale_ / kFontStep); });
  on(Do::font_normal, [this] { set_font_scale(1); });
  on(Do::present, [this] { present(!presentation_->on()); });
  for (Canvas* canvas : {canvas_, beside_canvas_}) {
    connect(canvas, &Canvas::viewChanged, this, [this, canvas] { set_view(canvas->view()); });
    connect(canvas, &Canvas::zoomPanelChanged, this, &MainWindow::show_zoom);
    connect(canvas, &Canvas::zoomRefused, this, [this](const QString& why) { statusBar()->showMessage(why); });
  }
  connect(find_bar_, &FindBar::closed, canvas_, [this] { canvas_->setFocus(); });
  connect(export_bar_, &ExportBar::closed, canvas_, [this] { canvas_->setFocus(); });
  connect(messages_, &MessageBar::left, this, [this] { center_->currentWidget()->setFocus(); });
  connect(find_bar_, &FindBar::located, why_, [this](const trace::Question& place) {
    why_->set_part({place.layer, place.head, place.dim, place.kv});
  });
}

void MainWindow::show_zoom() {
  for (const Do id : {Do::zoom_in, Do::zoom_out}) {
    actions_.set_reason(id, canvas_meant().whyNoZoom());
    if (!document_) actions_[id]->setEnabled(false);
  }
}

void MainWindow::keyPressEvent(QKeyEvent* event) {
  const Qt::KeyboardModifiers modifiers = event->modifiers() & ~(Qt::ShiftModifier | Qt::KeypadModifier);
  const QKeySequence keys(QKeyCombination(modifiers, static_cast<Qt::Key>(event->key())));
  const QString why = canvas_meant().whyNoZoom();
  for (const Do id : {Do::zoom_in, Do::zoom_out}) {
    if (!why.isEmpty() && actions_[id]->shortcuts().contains(keys)) return statusBar()->showMessage(why);
  }
  QMainWindow::keyPressEvent(event);
}

void MainWindow::let_go() {
  if (messages_->dismiss_focused()) return;
  for (QWidget* bar : std::initializer_list<QWidget*>{find_bar_, export_bar_}) {
    if (!holds_focus(bar)) continue;
    canvas_->setFocus();  // first: a hidden widget passes its focus to the next one, as the Tab key does
    bar->hide();
    return;
  }
  if (document_ && !document_->pinned().none()) document_->pin({});
}

void MainWindow::toggle_dock(QDockWidget& dock, QAction& action) {
  // A dock behind another tab is raised; a dock in front is closed.
  const bool in_front = !dock.isHidden() && !dock.visibleRegion().isEmpty();
  if (in_front) {
    if (holds_focus(&dock)) center_->currentWidget()->setFocus(Qt::ShortcutFocusReason);
    dock.hide();
  } else {
    dock.show();
    dock.raise();
    if (QWidget* const inside = focus_of(*dock.widget())) inside->setFocus(Qt::ShortcutFocusReason);
  }
  action.setChecked(!dock.isHidden());  // the click has already toggled the check mark
}

void MainWindow::set_view(View view) {
  if (canvas_->view() != view) canvas_->setView(view);
  for (const auto& [id, v] : kViewActions) actions_[id]->setChecked(v == view);
  transport_->set_view(view);
  const bool bars = document_ != nullptr && !presentation_->on();
  tile_bar_->setVisible(view == View::tile && bars);
  attention_bar_->setVisible(view == View::attention && bars);
  if (document_) document_->follow_tile(view == View::tile);
  if (document_) document_->attention().follow(view == View::attention);
  beside_canvas_->setView(view);
  if (view == view_) return show_beside();
  view_ = view;
  show_beside();
  changed();
  visited();
}

void MainWindow::set_theme(ThemeSetting setting) {
  theme_setting_ = setting;
  apply_theme();
  changed();
}

void MainWindow::set_motion(bool on) {
  actions_[Do::motion]->setChecked(on);
  for (Canvas* canvas : {canvas_, beside_canvas_}) canvas->setMotion(on);
  changed();
}

void MainWindow::set_font_scale(double scale) {
  font_scale_ = std::clamp(scale, kSmallestFont, kLargestFont);
  apply_theme();
  changed();
}

}  // namespace kvscope::viz
