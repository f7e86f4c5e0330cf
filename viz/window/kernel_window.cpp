#include "viz/window/kernel_window.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <QtGui/QKeyEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QMenu>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QScrollArea>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>
#include <QtWidgets/QToolBar>
#include <QtWidgets/QVBoxLayout>

#include "viz/view/kernel_code_view.h"
#include "viz/view/kernel_shared_view.h"
#include "viz/window/busy_bar.h"
#include "viz/window/dock_table.h"
#include "viz/window/dock_title.h"
#include "viz/window/fault_words.h"
#include "viz/window/file_dialog.h"
#include "viz/window/icons.h"
#include "viz/window/kernel_help.h"
#include "viz/window/kernel_launch_panel.h"
#include "viz/window/message_bar.h"
#include "viz/window/overlay.h"
#include "viz/window/row_delegate.h"
#include "viz/window/status_line.h"
#include "viz/window/step_slider.h"
#include "viz/window/theme_choice.h"

namespace kvscope::viz {
namespace {

constexpr QSize kKernelSize{1500, 950}, kLeastKernelSize{640, 420}, kLeastDock{120, 60};  // [px]
constexpr int kLeastCode = 100;                   // [px] width of a view of code
constexpr int kTableRow = 22, kBarIconSize = 20;  // [px]
constexpr int kLaunchWidth = 300, kRegistersWidth = 430, kGroupsWidth = 520, kSharedWidth = 760,
              kLow = 330;          // [px] of the docks
constexpr double kFixedText = 12;  // [px] of fixed text at font scale 1

QPlainTextEdit* make_text(const QString& name, const QString& hint) {
  auto* text = new QPlainTextEdit;
  text->setReadOnly(true);
  text->setAccessibleName(name);
  text->setPlaceholderText(hint);
  text->setTabChangesFocus(true);
  text->setLineWrapMode(QPlainTextEdit::NoWrap);
  return text;
}

}  // namespace

std::span<const KernelMoveEntry> kernel_moves() {
  static constexpr std::array kTable{
      KernelMoveEntry{KernelMove::start, QT_TR_NOOP("To the st&art"), "Ctrl+Home",
                      QT_TR_NOOP("Before the first instruction"), Icon::start},
      KernelMoveEntry{KernelMove::back_line, QT_TR_NOOP("Back a &line"), "Shift+F11",
                      QT_TR_NOOP("To where the warp was last at another source line"), Icon::step_back},
      KernelMoveEntry{KernelMove::back, QT_TR_NOOP("Step &back"), ", Ctrl+Left",
                      QT_TR_NOOP("One warp instruction back"), Icon::event_back},
      KernelMoveEntry{KernelMove::step, QT_TR_NOOP("&Step"), ". Ctrl+Right",
                      QT_TR_NOOP("Execute one warp instruction, of whichever warp is next"), Icon::event},
      KernelMoveEntry{KernelMove::line, QT_TR_NOOP("Next li&ne"), "F11",
                      QT_TR_NOOP("To the next source line of the same warp"), Icon::step},
      KernelMoveEntry{KernelMove::over, QT_TR_NOOP("Next line, &over calls"), "F10",
                      QT_TR_NOOP("The same, without stopping in functions that the line calls")},
      KernelMoveEntry{KernelMove::warp, QT_TR_NOOP("Next instruction of the &warp"), "F8",
                      QT_TR_NOOP("Until the warp that is next has executed one instruction")},
      KernelMoveEntry{
          KernelMove::barrier, QT_TR_NOOP("Next barr&ier"), "F6",
          QT_TR_NOOP("To after the instruction or copy that completes a barrier or a phase of an mbarrier")},
      KernelMoveEntry{KernelMove::event, QT_TR_NOOP("Next &effect"), "Shift+F8",
                      QT_TR_NOOP("To after the next effect that other threads can observe, such as a store")},
      KernelMoveEntry{KernelMove::report, QT_TR_NOOP("Next re&port"), "F7",
                      QT_TR_NOOP("To after the next instruction that a report is about"), Icon::warning},
      KernelMoveEntry{KernelMove::run, QT_TR_NOOP("&Run"), "F5",
                      QT_TR_NOOP("To the next breakpoint or report, or to the end"), Icon::run_to},
      KernelMoveEntry{KernelMove::end, QT_TR_NOOP("To the en&d"), "Ctrl+End", QT_TR_NOOP("To the end of the launch"),
                      Icon::end},
  };
  return kTable;
}

KernelWindow::KernelWindow(Backend& backend, const QString& settings_folder, QWidget* parent)
    : QMainWindow(parent), backend_(backend), launches_(settings_folder) {
  setAccessibleName(tr("Kernel"));
  setMinimumSize(kLeastKernelSize);
  setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
  setContextMenuPolicy(Qt::NoContextMenu);
  build_center();
  build_docks();
  build_actions();
  connect(&job_, &Job::done, this, &KernelWindow::finished);
  connect(&job_, &Job::cancelled, this, [this] {
    wishes_.clear();
    finished();
  });
  connect(&job_, &Job::failed, this, &KernelWindow::failed);
  connect(busy_bar_, &BusyBar::cancelled, this, [this] { job_.cancel(); });
  for (QPlainTextEdit* text : findChildren<QPlainTextEdit*>()) text->installEventFilter(this);
  resize(kKernelSize);
  show_state();
  update_actions();
}

KernelWindow::~KernelWindow() {
  job_.cancel();
  // The base class hides the docks, when the members are gone.
  for (QDockWidget* dock : findChildren<QDockWidget*>()) dock->disconnect(this);
}

// --- layout ----------------------------------------------------------------------------------------------------------

void KernelWindow::build_center() {
  auto* middle = new QWidget;
  overlay_ = new Overlay(middle);
  messages_ = new MessageBar;
  busy_bar_ = new BusyBar;
  overlay_->add(messages_);
  overlay_->add(busy_bar_);
  sources_ = new QTabWidget;
  sources_->setDocumentMode(true);
  sources_->setAccessibleName(tr("Source files"));
  sources_->setMinimumWidth(kLeastCode);
  ptx_ = new KernelCodeView;
  ptx_->setAccessibleName(tr("PTX"));
  ptx_->setMinimumWidth(kLeastCode);
  empty_ = new QLabel;
  empty_->setAlignment(Qt::AlignCenter);
  empty_->setWordWrap(true);
  auto* code = new QSplitter(Qt::Horizontal);
  code->addWidget(sources_);
  code->addWidget(ptx_);
  code->setChildrenCollapsible(false);
  auto* column = new QVBoxLayout(middle);
  column->setContentsMargins(8, 4, 8, 4);
  column->addWidget(empty_, 1);
  column->addWidget(code, 1);
  setCentralWidget(middle);
  overlay_->raise();
  sources_->hide();
  ptx_->hide();
  status_ = new StatusLine(tr("Next instruction"));
  statusBar()->addWidget(status_, 1);
  statusBar()->setSizeGripEnabled(false);
}

QDockWidget* KernelWindow::add_dock(const QString& name, QWidget* content, Qt::DockWidgetArea area) {
  // Large text in a small window: a content scrolls before it covers another dock.
  auto* scroll = new QScrollArea;
  scroll->setWidget(content);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->setMinimumSize(kLeastDock);
  scroll->setAccessibleName(content->accessibleName());
  content->setAccessibleName({});
  QDockWidget* const dock = make_dock(*this, name, scroll, [this] {
    for (DockTitle* title : titles_) title->update_tabbed();
  });
  titles_.push_back(static_cast<DockTitle*>(dock->titleBarWidget()));
  addDockWidget(area, dock);
  return dock;
}

void KernelWindow::build_docks() {
  launch_panel_ = new KernelLaunchPanel([this](const KernelLaunch& launch) { return backend_.kernel_command(launch); });
  connect(launch_panel_, &KernelLaunchPanel::start_wanted, this, &KernelWindow::start);

  const auto page = [](const QString& name, std::initializer_list<QWidget*> parts, QWidget* large) {
    auto* widget = new QWidget;
    widget->setAccessibleName(name);
    auto* column = new QVBoxLayout(widget);
    column->setContentsMargins(8, 2, 8, 8);
    column->setSpacing(4);
    for (QWidget* part : parts) column->addWidget(part, part == large ? 1 : 0);
    return widget;
  };
  const auto table = [](const QString& name, QAbstractItemModel& model, RowDelegate& rows) {
    QTableView* const out = make_dock_table(name);
    out->setModel(&model);
    out->setItemDelegate(&rows);
    return out;
  };

  registers_rows_ = new RowDelegate({-1, KernelRegisterModel::kChangedRole, -1, 0}, this);
  registers_table_ = table(tr("Registers of the lane group"), registers_, *registers_rows_);
  registers_table_->setSelectionBehavior(QAbstractItemView::SelectItems);
  whose_ = new QLabel;
  whose_->setWordWrap(true);
  bits_ = new QCheckBox(tr("Hexadecimal"));
  connect(bits_, &QCheckBox::toggled, &registers_, &KernelRegisterModel::set_bits);
  QWidget* const registers = page(tr("Registers"), {whose_, bits_, registers_table_}, registers_table_);

  groups_rows_ =
      new RowDelegate({-1, KernelGroupModel::kNextRole, KernelGroupModel::kWarpRole, KernelGroupModel::kWarp}, this);
  groups_table_ = table(tr("Lane groups of all CTAs that have started"), groups_, *groups_rows_);
  groups_table_->horizontalHeader()->setStretchLastSection(true);
  const auto choose = [this](const QModelIndex& index) {
    const KernelGroup& group = groups_.group(index.row());
    warp_ = {group.cta, group.warp, group.lanes};
    go(KernelMove::stay);
  };
  connect(groups_table_, &QTableView::clicked, this, choose);
  connect(groups_table_, &QTableView::activated, this, choose);
  QWidget* const groups = page(tr("Warps"), {groups_table_}, groups_table_);

  shared_ = new KernelSharedView;
  shared_->setProperty("card", true);
  word_ = new StatusLine(tr("Word of shared memory"));
  connect(shared_, &KernelSharedView::told, word_, &StatusLine::set_sentence);
  connect(shared_, &KernelSharedView::write_wanted, this, [this](qulonglong step) {
    warp_ = {};
    go({.move = KernelMove::seek, .step = step});
  });
  connect(shared_, &KernelSharedView::next_write_wanted, this, [this](qulonglong address, int bytes) {
    if (state_.shown < 0) return;
    // The CTA of the word stays the one that is shown.
    const KernelGroup& group = state_.groups[static_cast<std::size_t>(state_.shown)];
    warp_ = {group.cta, group.warp, group.lanes};
    go({.move = KernelMove::write, .word = {group.cta, address, bytes}});
  });
  QWidget* const shared = page(tr("Shared memory"), {shared_, word_}, shared_);

  waiting_text_ = make_text(tr("Barriers and copies of the CTA"), tr("No barrier is in use and no copy is in flight."));
  QWidget* const waiting = page(tr("Barriers and copies"), {waiting_text_}, waiting_text_);

  reports_rows_ = new RowDelegate({KernelReportModel::kHappenedRole, -1, -1, 0}, this);
  reports_table_ = table(tr("Reports of the launch"), reports_, *reports_rows_);
  reports_table_->horizontalHeader()->setStretchLastSection(true);
  report_text_ = make_text(tr("The selected report"), QString());
  const auto go_to_report = [this](const QModelIndex& index) {
    const KernelReport& report = reports_.report(index.row());
    report_text_->setPlainText(QString::fromStdString(report.text));
    warp_ = {};
    go({.move = KernelMove::seek, .step = report.step});
  };
  connect(reports_table_, &QTableView::clicked, this, go_to_report);
  connect(reports_table_, &QTableView::activated, this, go_to_report);
  auto* both = new QSplitter(Qt::Vertical);
  both->addWidget(reports_table_);
  both->addWidget(report_text_);
  both->setChildrenCollapsible(false);
  QWidget* const reports = page(tr("Reports"), {both}, both);

  printed_text_ = make_text(tr("Output of printf"), tr("Nothing has been printed yet."));
  QWidget* const printed = page(tr("Output"), {printed_text_}, printed_text_);

  QDockWidget* const launch_dock = add_dock(QStringLiteral("launch"), launch_panel_, Qt::LeftDockWidgetArea);
  QDockWidget* const registers_dock = add_dock(QStringLiteral("registers"), registers, Qt::RightDockWidgetArea);
  QDockWidget* const groups_dock = add_dock(QStringLiteral("warps"), groups, Qt::BottomDockWidgetArea);
  QDockWidget* const shared_dock = add_dock(QStringLiteral("shared"), shared, Qt::BottomDockWidgetArea);
  for (const auto& [name, content, first] : {std::tuple{"waiting", waiting, groups_dock},
                                             {"printed", printed, groups_dock},
                                             {"reports", reports, shared_dock}}) {
    tabifyDockWidget(first, add_dock(QString::fromLatin1(name), content, Qt::BottomDockWidgetArea));
  }
  reports_dock_ = findChild<QDockWidget*>(QStringLiteral("reports"));
  setTabPosition(Qt::BottomDockWidgetArea, QTabWidget::North);
  setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
  setCorner(Qt::BottomRightCorner, Qt::BottomDockWidgetArea);
  groups_dock->raise();
  shared_dock->raise();
  resizeDocks({groups_dock, shared_dock}, {kGroupsWidth, kSharedWidth}, Qt::Horizontal);
  resizeDocks({groups_dock, shared_dock}, {kLow, kLow}, Qt::Vertical);
  resizeDocks({launch_dock, registers_dock}, {kLaunchWidth, kRegistersWidth}, Qt::Horizontal);
}

QAction* KernelWindow::add_action(QMenu& menu, const QString& text, const QString& keys, const QString& tip) {
  QAction* const action = menu.addAction(text);
  QList<QKeySequence> sequences;
  for (const QString& key : keys.split(QLatin1Char(' '), Qt::SkipEmptyParts)) sequences.push_back(QKeySequence(key));
  action->setShortcuts(sequences);
  const QString first = sequences.isEmpty() ? QString() : sequences.front().toString(QKeySequence::NativeText);
  action->setToolTip(first.isEmpty() ? tip : QStringLiteral("%1 (%2)").arg(tip, first));
  action->setStatusTip(tip);
  return action;
}

void KernelWindow::build_actions() {
  QMenu* const file = menuBar()->addMenu(tr("&File"));
  connect(add_action(*file, tr("&Open kernel..."), QStringLiteral("Ctrl+O"), tr("Open another PTX file")),
          &QAction::triggered, this, &KernelWindow::ask_for_file);
  connect(add_action(*file, tr("&Export picture..."), QStringLiteral("Ctrl+E"), tr("Write this window as a PNG file")),
          &QAction::triggered, this, &KernelWindow::ask_where_to_export);
  connect(add_action(*file, tr("&Close"), QStringLiteral("Ctrl+W"), tr("Close this window")), &QAction::triggered, this,
          &QWidget::close);

  QMenu* const run = menuBar()->addMenu(tr("&Run"));
  auto* bar = new QToolBar(tr("Run"), this);
  bar->setObjectName(QStringLiteral("run"));
  bar->setAccessibleName(tr("Run"));
  bar->setMovable(false);
  bar->setIconSize({kBarIconSize, kBarIconSize});
  bar->setContextMenuPolicy(Qt::PreventContextMenu);
  connect(add_action(*run, tr("S&tart the launch"), QStringLiteral("Ctrl+Return"),
                     tr("Execute the launch of the form, and step it from its beginning")),
          &QAction::triggered, this, &KernelWindow::start);
  run->addSeparator();
  for (const KernelMoveEntry& entry : kernel_moves()) {
    QAction* const action = add_action(*run, tr(entry.text), QString::fromLatin1(entry.keys), tr(entry.tip));
    connect(action, &QAction::triggered, this, [this, move = entry.move] { go(move); });
    moves_.emplace_back(entry.move, action);
    if (entry.icon != Icon::none) bar->addAction(action);
  }
  run->addSeparator();
  QAction* const mark = add_action(*run, tr("Set or remove a brea&kpoint"), QStringLiteral("F9"),
                                   tr("At the current line of the view with the focus"));
  connect(mark, &QAction::triggered, this, [this] {
    for (std::size_t i = 0; i < views_.size(); ++i) {
      if (views_[i] != nullptr && views_[i]->hasFocus()) {
        return toggle_breakpoint(static_cast<std::int32_t>(i), views_[i]->current_line());
      }
    }
    statusBar()->showMessage(tr("Click a line of the source or of the PTX first"));
  });

  slider_ = new StepSlider;
  connect(slider_, &StepSlider::step_wanted, this,
          [this](qulonglong step) { go({.move = KernelMove::seek, .step = step}); });
  position_ = new QLabel;
  position_->setObjectName(QStringLiteral("position"));
  bar->addSeparator();
  bar->addWidget(slider_);
  bar->addWidget(position_);
  addToolBar(Qt::TopToolBarArea, bar);

  QMenu* const view = menuBar()->addMenu(tr("&View"));
  for (QDockWidget* dock : findChildren<QDockWidget*>(QString(), Qt::FindDirectChildrenOnly)) {
    view->addAction(dock->toggleViewAction());
  }
  QMenu* const help = menuBar()->addMenu(tr("&Help"));
  connect(add_action(*help, tr("&Keys and actions"), QStringLiteral("F1"), tr("All actions and their keys")),
          &QAction::triggered, this, &KernelWindow::show_help);
}

void KernelWindow::set_look(const Theme& theme, double font_scale) {
  theme_ = &theme;
  font_scale_ = font_scale;
  setStyleSheet(style_sheet(theme, font_scale));
  for (const auto& [table, rows] :
       {std::pair{groups_table_, groups_rows_}, std::pair{registers_table_, registers_rows_},
        std::pair{reports_table_, reports_rows_}}) {
    rows->set_theme(theme, font_scale);
    table->verticalHeader()->setDefaultSectionSize(qRound(kTableRow * font_scale));
  }
  for (QPlainTextEdit* text : {report_text_, waiting_text_, printed_text_})
    text->setFont(mono_font(kFixedText * font_scale));
  for (KernelCodeView* code : views_) {
    if (code != nullptr) code->set_theme(theme, font_scale);
  }
  ptx_->set_theme(theme, font_scale);
  shared_->set_theme(theme, font_scale);
  launch_panel_->set_theme(theme, font_scale);
  messages_->set_theme(theme);
  for (DockTitle* title : titles_) title->set_theme(theme);
  const auto entries = kernel_moves();
  for (std::size_t i = 0; i < moves_.size(); ++i) moves_[i].second->setIcon(icon(entries[i].icon, theme));
  show_marks();
}

bool KernelWindow::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride && qobject_cast<QPlainTextEdit*>(watched) != nullptr) {
    const QKeySequence pressed(static_cast<QKeyEvent*>(event)->keyCombination());
    const bool moves =
        std::ranges::any_of(moves_, [&](const auto& move) { return move.second->shortcuts().contains(pressed); });
    if (moves) {
      event->ignore();
      return true;
    }
  }
  return QMainWindow::eventFilter(watched, event);
}

void KernelWindow::show_help() {
  auto* dialog = new KernelHelp(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->show();
}

}  // namespace kvscope::viz
