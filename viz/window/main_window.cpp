#include "viz/window/main_window.h"

#include <QtGui/QScreen>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStackedWidget>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QVBoxLayout>

#include "viz/playback/tile_selection.h"
#include "viz/view/canvas.h"
#include "viz/view/time_text.h"
#include "viz/window/attention_bar.h"
#include "viz/window/breakpoints_panel.h"
#include "viz/window/busy_bar.h"
#include "viz/window/canvas_scroll.h"
#include "viz/window/compare_bar.h"
#include "viz/window/dock_tabs.h"
#include "viz/window/dock_title.h"
#include "viz/window/events_panel.h"
#include "viz/window/export_bar.h"
#include "viz/window/find_bar.h"
#include "viz/window/kernel_window.h"
#include "viz/window/lab_panel.h"
#include "viz/window/message_bar.h"
#include "viz/window/notes_panel.h"
#include "viz/window/overlay.h"
#include "viz/window/presentation.h"
#include "viz/window/scenario_panel.h"
#include "viz/window/sequences_panel.h"
#include "viz/window/start_page.h"
#include "viz/window/status_line.h"
#include "viz/window/tile_bar.h"
#include "viz/window/tour_panel.h"
#include "viz/window/transport_bar.h"
#include "viz/window/why_panel.h"

namespace kvscope::viz {
namespace {

constexpr QSize kFirstSize{1600, 1000}, kSmallestSize{720, 480};  // [px]
constexpr int kPaintGalleryAfter = 200;  // [ms] on the start page: a file that is opened at once needs no gallery
constexpr int kLowestPicture = 80;       // [px] that bars with many lines leave for it
constexpr int kDockWidth = 430, kWhyHeight = 520, kTabsHeight = 330;

}  // namespace

MainWindow::MainWindow(Backend& backend, const QString& folder, QWidget* parent)
    : QMainWindow(parent),
      session_(settings_folder(folder)),
      recent_(session_.settings_file()),
      backend_(backend),
      gallery_(backend.gallery()),
      labs_(backend.labs()),
      actions_(*new Actions(this)),
      theme_setting_(session_.look().theme),
      theme_(&theme(ThemeKind::dark)),
      font_scale_(session_.look().font_scale),
      breakpoints_(session_.place().breakpoints),
      asker_(backend),
      loader_(backend),
      pictures_(backend, gallery_) {
  setAccessibleName(tr("kvscope"));
  setAcceptDrops(true);
  setMinimumSize(kSmallestSize);
  setDockOptions(AnimatedDocks | AllowNestedDocks | AllowTabbedDocks);
  setContextMenuPolicy(Qt::NoContextMenu);
  build_center();
  build_docks();
  build_status();
  build_menus();
  connect_actions();
  connect_ways();
  connect_files();
  connect_writing();
  connect_compare();
  connect_tour();
  connect(&asker_, &Asker::staged, this, [this](const std::shared_ptr<const Tile>& tile) {
    if (document_ && !document_->recorded_tile()) document_->show_tile(tile);
  });
  connect(&asker_, &Asker::not_staged, this, [this](const QStringList& faults, const TileSource& source) {
    if (document_ && !document_->recorded_tile()) document_->show_no_tile(faults.join(QLatin1Char('\n')), source);
  });
  connect(&asker_, &Asker::described, this, [this](const TileRequest& request, const TileSource& source) {
    if (document_) document_->show_source(request, source);
  });
  gallery_timer_.setSingleShot(true);
  gallery_timer_.setInterval(kPaintGalleryAfter);
  connect(&gallery_timer_, &QTimer::timeout, this, &MainWindow::paint_gallery);
  connect(&asker_, &Asker::attended, this, [this](const std::shared_ptr<const AttentionFlow>& flow) {
    if (document_) document_->attention().show_flow(flow);
  });
  connect(&asker_, &Asker::not_attended, this, [this](const QStringList& faults) {
    if (document_) document_->attention().show_no_flow(faults.join(QLatin1Char('\n')));
  });
  connect(&asker_, &Asker::compared, this, &MainWindow::show_errors);
  connect(&asker_, &Asker::not_compared, this, [this](const QStringList& faults) {
    if (document_) document_->attention().show_no_errors(faults.join(QLatin1Char('\n')));
  });
  transport_->set_speed(session_.look().speed);
  // A desktop with animations switched off gets still pictures.
  set_motion(session_.look().motion && QApplication::isEffectEnabled(Qt::UI_General));
  apply_theme();
  resize(kFirstSize.boundedTo(screen()->availableSize()));
  restoreGeometry(session_.look().geometry);
  restoreState(session_.look().docks);
  show_document();
  qApp->installEventFilter(this);
  offer_to_restore();
}

MainWindow::~MainWindow() {
  // Child widgets are destroyed after the members, so they must not refer to the document any more.
  disconnect(scenario_panel_, nullptr, this, nullptr);  // an editor that is closed below changes nothing
  for (const QPointer<KernelWindow>& kernel : kernels_) delete kernel;
  run_.reset();
  const std::unique_ptr<Document> last = std::move(document_);
  show_document();
}

// --- layout ----------------------------------------------------------------------------------------------------------

void MainWindow::build_center() {
  transport_ = new TransportBar(actions_, this);
  addToolBar(Qt::TopToolBarArea, transport_);
  auto* middle = new QWidget;
  overlay_ = new Overlay(middle);
  messages_ = new MessageBar;
  find_bar_ = new FindBar(asker_);
  export_bar_ = new ExportBar;
  tile_bar_ = new TileBar;
  attention_bar_ = new AttentionBar;
  load_bar_ = new BusyBar;
  job_bar_ = new BusyBar;
  start_page_ = new StartPage(gallery_, labs_, recent_, actions_);
  compare_bar_ = new CompareBar(actions_);
  canvas_ = new Canvas;
  beside_canvas_ = new Canvas(Canvas::Side::compared);
  center_ = new QStackedWidget;
  center_->addWidget(start_page_);
  scroll_ = new CanvasScroll(canvas_);
  beside_scroll_ = new CanvasScroll(beside_canvas_);
  boards_ = new QSplitter;
  boards_->setChildrenCollapsible(false);
  boards_->setFocusProxy(scroll_);
  boards_->addWidget(scroll_);
  boards_->addWidget(beside_scroll_);
  for (const int board : {0, 1}) boards_->setStretchFactor(board, 1);
  beside_scroll_->hide();
  center_->addWidget(boards_);
  center_->setMinimumHeight(kLowestPicture);  // otherwise that of its highest page, also of one that is not shown

  auto* column = new QVBoxLayout(middle);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* bars = new QVBoxLayout;  // with the same margins as the cards below
  bars->setContentsMargins(12, 0, 12, 0);
  bars->setSpacing(6);
  for (QWidget* bar :
       std::initializer_list<QWidget*>{find_bar_, export_bar_, tile_bar_, attention_bar_, compare_bar_}) {
    bars->addWidget(bar);
  }
  for (QWidget* bar : std::initializer_list<QWidget*>{messages_, load_bar_, job_bar_}) overlay_->add(bar);
  column->addLayout(bars);
  column->addWidget(center_, 1);
  caption_ = new Caption;
  column->addWidget(caption_);
  presentation_ = std::make_unique<Presentation>(
      *this, PresentationKeys{[this] { actions_[Do::step]->trigger(); }, [this] { actions_[Do::step_back]->trigger(); },
                              [this] { present(false); }});
  setCentralWidget(middle);
  overlay_->raise();
}

QDockWidget* MainWindow::add_dock(const QString& name, QWidget* content, Do action) {
  QDockWidget* const dock = make_dock(*this, name, content, [this] { update_titles(); });
  titles_.push_back(static_cast<DockTitle*>(dock->titleBarWidget()));
  docks_.push_back(dock);
  addDockWidget(Qt::RightDockWidgetArea, dock);
  connect(actions_[action], &QAction::triggered, this, [this, dock, action] { toggle_dock(*dock, *actions_[action]); });
  // A dock hidden behind another tab is still open; only closing it unchecks the menu entry.
  connect(dock->toggleViewAction(), &QAction::toggled, actions_[action], &QAction::setChecked);
  return dock;
}

void MainWindow::build_docks() {
  why_ = new WhyPanel(asker_);
  notes_ = new NotesPanel;
  events_ = new EventsPanel;
  sequences_ = new SequencesPanel;
  breakpoints_panel_ = new BreakpointsPanel;
  scenario_panel_ = new ScenarioPanel(actions_);
  lab_panel_ = new LabPanel;
  tour_panel_ = new TourPanel(tour_);
  QDockWidget* why = add_dock(QStringLiteral("why"), why_, Do::show_why);
  QDockWidget* notes = add_dock(QStringLiteral("notes"), notes_, Do::show_notes);
  QDockWidget* events = add_dock(QStringLiteral("events"), events_, Do::show_events);
  QDockWidget* sequences = add_dock(QStringLiteral("sequences"), sequences_, Do::show_sequences);
  QDockWidget* stops = add_dock(QStringLiteral("breakpoints"), breakpoints_panel_, Do::show_breakpoints);
  QDockWidget* scenario = add_dock(QStringLiteral("scenario"), scenario_panel_, Do::show_scenario);
  QDockWidget* lab = add_dock(QStringLiteral("lab"), lab_panel_, Do::show_lab);
  QDockWidget* tour = add_dock(QStringLiteral("tour"), tour_panel_, Do::show_tour);
  setTabPosition(Qt::RightDockWidgetArea, QTabWidget::North);
  tabs_ = new DockTabs(*this);
  for (QDockWidget* dock : {events, sequences, stops, lab, tour}) tabifyDockWidget(notes, dock);
  tabifyDockWidget(why, scenario);
  lab->hide();  // until a lab is open, or the tour starts
  tour->hide();
  notes->raise();
  why->raise();
  resizeDocks({why, notes}, {kDockWidth, kDockWidth}, Qt::Horizontal);
  resizeDocks({why, notes}, {kWhyHeight, kTabsHeight}, Qt::Vertical);
}

// The start page is shown without docks; they are shown again with the next run.
void MainWindow::show_docks(bool shown) {
  if (shown == docks_shown_) return;
  docks_shown_ = shown;
  if (shown) {
    restoreState(dock_state_);
  } else {
    dock_state_ = saveState();
    for (QDockWidget* dock : docks_) dock->hide();
  }
  transport_->setVisible(shown);
}

void MainWindow::update_titles() {
  for (DockTitle* title : titles_) title->update_tabbed();
  changed();
}

void MainWindow::build_status() {
  what_ = new StatusLine(tr("Selection"));
  what_->setObjectName(QStringLiteral("selection"));
  when_ = new QLabel;
  statusBar()->addWidget(what_, 1);
  statusBar()->addPermanentWidget(when_);
  statusBar()->setSizeGripEnabled(false);
}

// --- document --------------------------------------------------------------------------------------------------------

void MainWindow::show_document() {
  Document* document = document_.get();
  const std::shared_ptr<const Facts> facts = run_ ? std::make_shared<const Facts>(run_->facts()) : nullptr;
  canvas_->setDocument(document);
  transport_->set_document(document);
  tile_bar_->set_document(document);
  attention_bar_->set_document(document);
  compare_bar_->set_document(document);
  why_->set_document(document, facts);
  find_bar_->set_document(document, facts);
  events_->set_document(document);
  sequences_->set_document(document);
  breakpoints_panel_->set_document(document);
  notes_->set_document(document);
  actions_.set_open(document != nullptr);
  document != nullptr ? pictures_.stop() : gallery_timer_.start();
  history_timer_.stop();
  history_.clear();
  show_docks(document != nullptr && !presentation_->on());
  actions_.set_playing(false);
  export_bar_->hide();
  center_->setCurrentWidget(document != nullptr ? static_cast<QWidget*>(boards_) : start_page_);
  setWindowTitle(document != nullptr ? tr("%1[*] - kvscope").arg(QString::fromStdString(run_->facts().name))
                                     : tr("kvscope"));
  setWindowFilePath(document != nullptr ? document->path() : QString());
  show_status();
  if (document != nullptr) connect_document(facts);
  compare();
  set_view(view_);  // also without a document: it hides the bar of the view
  show_ways();
  show_zoom();
  show_draft();
}

void MainWindow::connect_document(const std::shared_ptr<const Facts>& facts) {
  Document* document = document_.get();
  connect(document, &Document::position_changed, this, &MainWindow::show_status);
  connect(document, &Document::compared_changed, this, &MainWindow::show_beside);
  // The object that changed last: keys may pin another one while the pointer rests.
  pinned_last_ = false;
  connect(document, &Document::pinned_changed, this, [this] {
    pinned_last_ = !document_->pinned().none();
    show_status();
  });
  connect(document, &Document::hovered_changed, this, [this] {
    pinned_last_ = false;
    show_status();
  });
  for (void (Document::*kept)() : {&Document::position_changed, &Document::pinned_changed,
                                   &Document::breakpoints_changed, &Document::tile_changed}) {
    connect(document, kept, this, &MainWindow::changed);
    connect(document, kept, this, &MainWindow::look_for_tour);
  }
  connect(document, &Document::compared_changed, this, &MainWindow::look_for_tour);
  connect(document, &Document::position_changed, this, &MainWindow::visited);
  connect(document, &Document::pinned_changed, this, &MainWindow::visited);
  connect(document, &Document::tile_wanted, this, &MainWindow::visited);
  for (const auto shown : {&MainWindow::visited, &MainWindow::changed}) {
    connect(&document->attention(), &AttentionModel::changed, this, shown);
    connect(&document->attention(), &AttentionModel::flow_wanted, this, shown);
    connect(&document->attention(), &AttentionModel::errors_wanted, this, shown);
  }
  // The trace can be read at this position.
  connect(document, &Document::position_changed, this, [this] { messages_->dismiss(QStringLiteral("trace")); });
  connect(document, &Document::breakpoints_changed, this, [this] { breakpoints_ = document_->breakpoints(); });
  const auto playing = [this] {
    actions_.set_playing(document_->playing() || document_->tile_playing() || document_->attention().playing());
  };
  connect(document, &Document::playing_changed, this, playing);
  connect(document, &Document::tile_playing_changed, this, playing);
  connect(&document->attention(), &AttentionModel::playing_changed, this, playing);
  connect(&document->attention(), &AttentionModel::changed, this, &MainWindow::show_status);
  connect(document, &Document::tile_changed, this, &MainWindow::show_status);
  connect(&document->attention(), &AttentionModel::flow_wanted, this,
          [this, facts](const FlowRequest& request) { asker_.attend(facts, document_->path(), request); });
  connect(&document->attention(), &AttentionModel::errors_wanted, this,
          [this, facts](const ErrorsRequest& request) { asker_.compare(facts, document_->path(), request); });
  connect(document, &Document::tile_wanted, this,
          [this, facts](const TileRequest& request) { asker_.stage(facts, document_->path(), request); });
  connect(document, &Document::source_wanted, this,
          [this, facts](const TileRequest& request) { asker_.describe_source(facts, document_->path(), request); });
  connect(document, &Document::stopped, this, [this](const QString& reason) { statusBar()->showMessage(reason); });
  connect(document, &Document::position_changed, statusBar(), &QStatusBar::clearMessage);
  connect(document, &Document::failed, this, [this](const QStringList& faults) {
    messages_->show_message(
        {QStringLiteral("trace"), true, tr("The trace cannot be read at this position"), faults, {}});
  });
}

void MainWindow::show_status() {
  show_caption();
  if (!document_) {
    what_->set_sentence({});
    when_->clear();
    return;
  }
  const State& state = document_->cursor().state();
  const Selection& about = document_->hovered().none() || pinned_last_ ? document_->pinned() : document_->hovered();
  const AttentionModel& attention = document_->attention();
  what_->set_sentence(QString::fromStdString(
      about.none() ? std::string()
      : about.of_attention()
          ? describe_attention(about, attention.flow(), attention.errors())
          : describe(document_->shown_state(), run_->facts(), document_->tile(), about, document_->tile_source())));
  const QString event =
      tr("%1 of %2 events").arg(number_text(document_->cursor().position().value), number_text(run_->facts().events));
  when_->setText(state.step.value < 0
                     ? event
                     : QStringLiteral("%1   %2   %3")
                           .arg(tr("step %1").arg(number_text(state.step.value)), event, time_text(state.time_us)));
}

}  // namespace kvscope::viz
