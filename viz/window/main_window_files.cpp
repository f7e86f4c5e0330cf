// Opening, closing and dropping files.
#include <algorithm>

#include <QtCore/QFileInfo>
#include <QtCore/QMimeData>
#include <QtCore/QUrl>
#include <QtGui/QDesktopServices>
#include <QtGui/QDropEvent>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QStackedWidget>
#include <QtWidgets/QStatusBar>

#include "viz/playback/run_numbers.h"
#include "viz/view/canvas.h"
#include "viz/window/attention_bar.h"
#include "viz/window/busy_bar.h"
#include "viz/window/fault_words.h"
#include "viz/window/file_dialog.h"
#include "viz/window/kernel_window.h"
#include "viz/window/lab_panel.h"
#include "viz/window/main_window.h"
#include "viz/window/message_bar.h"
#include "viz/window/note_wish.h"
#include "viz/window/notes_panel.h"
#include "viz/window/scenario_panel.h"
#include "viz/window/start_page.h"

namespace kvscope::viz {
namespace {

QStringList dropped_files(const QMimeData* data) {
  QStringList files;
  for (const QUrl& url : data->urls()) {
    if (url.isLocalFile()) files.push_back(url.toLocalFile());
  }
  return files;
}

}  // namespace

void MainWindow::connect_files() {
  connect(start_page_, &StartPage::chosen, this, [this](const QString& path) { open(path); });
  connect(start_page_, &StartPage::lab_chosen, this,
          [this](int number) { open_lab(labs_.entries[static_cast<std::size_t>(number)]); });
  connect(&recent_, &RecentFiles::chosen, this, [this](const QString& path) { open(path); });
  connect(notes_, &NotesPanel::followed, this, &MainWindow::follow_note);
  connect(lab_panel_, &LabPanel::followed, this, &MainWindow::follow_place);
  connect(scenario_panel_, &ScenarioPanel::run_wanted, this, &MainWindow::run_changed);
  connect(scenario_panel_, &ScenarioPanel::edited, this, &MainWindow::show_draft);
  connect(&loader_, &Loader::started, this, [this](const QString& path) {
    // While a file opens, a change of the scenario before would take its place.
    scenario_panel_->setEnabled(!loader_.of_document());
    if (loader_.of_document()) scenario_panel_->show_not_run();
    show_draft();
    load_bar_->start(loader_.compared()   ? tr("Opening %1 to compare with").arg(file_name(path))
                     : loader_.scenario() ? tr("Running the changed scenario")
                                          : tr("Opening %1").arg(file_name(path)));
  });
  connect(&loader_, &Loader::progress, load_bar_, &BusyBar::progress);
  connect(load_bar_, &BusyBar::cancelled, this, [this] { loader_.cancel(); });
  connect(&loader_, &Loader::opened, this, &MainWindow::opened);
  connect(&loader_, &Loader::failed, this, &MainWindow::open_failed);
  connect(&loader_, &Loader::cancelled, this, [this](const QString& path) {
    load_bar_->stop();
    if (loader_.compared()) {
      return statusBar()->showMessage(tr("%1 was not opened to compare with: cancelled").arg(file_name(path)));
    }
    gallery_timer_.start();
    end_opening();
    statusBar()->showMessage(loader_.scenario() ? tr("The changed scenario was not run: cancelled")
                                                : tr("%1 was not opened: cancelled").arg(file_name(path)));
  });

  connect(attention_bar_, &AttentionBar::candidate_wanted, this, &MainWindow::ask_for_candidate);
}

// --- opening ---------------------------------------------------------------------------------------------------------

void MainWindow::open(const QString& path, const OpenWish& wish) {
  try {
    if (backend_.is_kernel(path.toStdString())) return open_kernel(path);
    if (const auto result = backend_.lab_result(path.toStdString())) return open_result(*result, path);
  } catch (...) {
    return messages_->show_message({QStringLiteral("open"),
                                    true,
                                    tr("%1 could not be opened").arg(file_name(path)),
                                    current_fault_lines(),
                                    {{tr("Try again"), [this, path] { open(path); }}}});
  }
  lab_file_.clear();
  lab_wanted_ = tour_wanted_ = false;
  load(path, wish);
}

void MainWindow::load(const QString& path, const OpenWish& wish) {
  scenario_panel_->finish_editing();
  const bool opening = loader_.loading() && !loader_.stopping() && loader_.of_document();
  if (opening && loader_.path() == path) return;  // a double click
  wish_ = wish;
  messages_->dismiss(QStringLiteral("open"));
  messages_->dismiss(QStringLiteral("drop"));
  loader_.open(path);
}

void MainWindow::open_kernel(const QString& path) {
  std::erase(kernels_, nullptr);
  for (const QPointer<KernelWindow>& other : kernels_) {
    // A window whose file could not be opened is free for another.
    const bool is_free = other->path().isEmpty();
    if (!is_free && absolute_path(other->path()) != absolute_path(path)) continue;
    if (is_free) other->open(path);
    other->setWindowState(other->windowState() & ~Qt::WindowMinimized);
    other->raise();
    return other->activateWindow();
  }
  auto* const window = new KernelWindow(backend_, QFileInfo(session_.settings_file()).absolutePath());
  window->setAttribute(Qt::WA_DeleteOnClose);
  window->set_look(*theme_, font_scale_);
  connect(window, &KernelWindow::opened, &recent_, &RecentFiles::add);
  kernels_.emplace_back(window);
  window->show();
  window->open(path);
}

// --- labs ------------------------------------------------------------------------------------------------------------

void MainWindow::open_lab(const LabEntry& lab) {
  lab_file_.clear();
  lab_panel_->show_lab(lab);
  show_scenario(lab, lab.place);
}

void MainWindow::open_result(const LabResult& result, const QString& path) {
  lab_file_ = path;
  lab_panel_->show_result(result);
  const auto failure = std::ranges::find_if(result.tests, [](const LabTestResult& test) { return !test.passed(); });
  show_scenario(result.lab, failure == result.tests.end() ? result.lab.place : failure->place);
}

// A lab without a scenario has its handout alone.
void MainWindow::show_scenario(const LabEntry& lab, const NoteLink& place) {
  lab_wanted_ = true;
  if (lab.scenario.empty()) {
    if (document_) return show_lab_panel();
    lab_wanted_ = false;
    QDesktopServices::openUrl(QUrl::fromLocalFile(QString::fromStdString(lab.handout)));
    return;
  }
  OpenWish wish;
  wish.place = place;
  load(QString::fromStdString(lab.scenario), wish);
}

void MainWindow::show_lab_panel() {
  if (!std::exchange(lab_wanted_, false)) return;
  auto* const dock = findChild<QDockWidget*>(QStringLiteral("lab"));
  dock->show();
  dock->raise();
}

// A place of the lab's scenario; the scenario is opened again when another file is open.
void MainWindow::follow_place(const NotePart& place, const QString& scenario) {
  if (document_ && document_->path() == scenario) return follow_note(place);
  OpenWish wish;
  wish.place = place.link;
  lab_wanted_ = true;
  load(scenario, wish);
}

// The file was opened or not: the scenario can be changed again.
void MainWindow::end_opening() {
  scenario_panel_->setEnabled(true);
  scenario_panel_->show_not_run();
  if (wish_.changes) offer_changes(loader_.path(), *wish_.changes, wish_);  // until they are restored
  show_draft();
}

void MainWindow::opened(const std::shared_ptr<const Run>& run, const QString& path) {
  if (loader_.compared()) return compared_opened(run, path);
  load_bar_->stop();
  scenario_panel_->setEnabled(true);
  messages_->dismiss(QStringLiteral("session"));
  messages_->dismiss(QStringLiteral("trace"));
  messages_->dismiss(QStringLiteral("write"));
  messages_->dismiss(QStringLiteral("candidate"));
  remarked_.clear();
  offered_.reset();
  const QString path_before = document_ ? document_->path() : QString();
  const std::string changes_before = scenario_panel_->changed_text();
  if (!loader_.scenario()) {
    end_comparison();
  } else if (!file_run_) {
    file_run_ = run_;  // a changed run takes its place
  }
  const std::unique_ptr<Document> before = std::move(document_);  // destroyed at the end, when nothing refers to it
  run_ = run;
  failed_.clear();
  document_ = std::make_unique<Document>(run, path);
  document_->set_breakpoints(breakpoints_);
  const RunNumbers numbers = run_numbers(run->timeline());
  if (loader_.scenario()) {
    scenario_panel_->show_changed(numbers);
    if (!scenario_panel_->shows_changed()) file_run_.reset();  // undone, or saved meanwhile
  } else {
    scenario_panel_->open(run->facts(), path, numbers);
  }
  show_document();
  show_lab_panel();
  apply(std::exchange(wish_, {}));
  check_notes();
  show_remarks(QStringLiteral("bundle"), path, run->remarks());
  start_tour();
  look_for_tour();
  visited();
  recent_.add(path);
  if (!loader_.scenario()) canvas_->focusWithoutRing();
  if (!changes_before.empty() && path_before != path) offer_changes(path_before, changes_before);
  changed();
}

// A file of an older version is shown, with what its format cannot check.
void MainWindow::show_remarks(const QString& topic, const QString& path, const std::vector<std::string>& remarks) {
  messages_->dismiss(topic);
  if (remarks.empty()) return;
  QStringList lines;
  for (const std::string& remark : remarks) lines += QString::fromStdString(remark);
  messages_->show_message(
      {topic, false, tr("%1 was opened, but not all of it could be checked").arg(file_name(path)), lines, {}});
}

// The remarks of a candidate are shown once, not at each step that it is compared at.
void MainWindow::show_errors(const std::shared_ptr<const AttentionErrors>& errors) {
  if (!document_) return;
  const QString candidate = document_->attention().candidate();
  if (std::exchange(remarked_, candidate) != candidate) {
    show_remarks(QStringLiteral("candidate"), candidate, errors->remarks);
  }
  document_->attention().show_errors(errors);
}

void MainWindow::open_failed(const QString& path, const QStringList& faults) {
  if (loader_.compared()) return compare_failed(path, faults);
  // If the second try fails too, the faults are those of the first, whose order the person gave.
  if (wish_.candidate && wish_.either_order) {
    OpenWish other = wish_;
    other.either_order = false;
    other.first_failure = std::pair(path, faults);
    const QString golden = *std::exchange(other.candidate, path);
    return load(golden, other);
  }
  if (wish_.first_failure) {
    const auto [file, of_file] = *std::exchange(wish_.first_failure, std::nullopt);
    wish_.candidate = path;
    wish_.either_order = true;
    return show_open_failed(file, of_file);
  }
  show_open_failed(path, faults);
}

void MainWindow::show_open_failed(const QString& path, const QStringList& faults) {
  load_bar_->stop();
  const auto again = [this, path, wish = wish_, changed = loader_.scenario().has_value()] {
    changed ? scenario_panel_->run() : load(path, wish);
  };
  end_opening();
  messages_->show_message({QStringLiteral("open"),
                           true,
                           loader_.scenario() ? tr("The changed scenario could not be run")
                                              : tr("%1 could not be opened").arg(file_name(path)),
                           faults,
                           {{tr("Try again"), again}}});
  if (document_) return;
  gallery_timer_.start();
  failed_ = path;
  actions_[Do::reload]->setEnabled(true);
}

void MainWindow::apply(const OpenWish& wish) {
  if (wish.candidate) document_->attention().set_candidate(*wish.candidate);
  if (wish.breakpoints) document_->set_breakpoints(*wish.breakpoints);
  if (wish.pinned) document_->pin(*wish.pinned);  // before the position, because pinning a step moves to it
  if (wish.step) {
    document_->seek_step(*wish.step);
  } else if (wish.position) {
    document_->seek(*wish.position);
  }
  apply_tile(wish);
  // After the view, which asks for the flow of the selection when it is shown.
  if (wish.flow) document_->attention().restore(*wish.flow, wish.flow_tiles);
  if (wish.place) follow_note({tr("place").toStdString(), wish.place});
  if (wish.changes) {
    messages_->dismiss(changes_topic(document_->path()));
    restore_changes(*wish.changes);
  }
  if (!wish.changes || !loader_.loading()) {
    if (wish.compared) compare_with(*wish.compared);
    return;
  }
  wish_.compared = wish.compared;
  if (!wish.position) return;
  wish_ = wish;  // the place is one of the changed run, which comes next
  wish_.changes.reset();
}

// A tile of the trace is chosen when the tile view is shown, a tile on demand before that: it is staged only once.
void MainWindow::apply_tile(const OpenWish& wish) {
  const bool on_demand = !wish.recorded_tile && (wish.tile || wish.tile_event);
  if (on_demand) document_->choose_tile_at(wish.tile.value_or(document_->tile_request()), wish.tile_event);
  if (wish.view) set_view(*wish.view);
  if (!wish.recorded_tile || view_ != View::tile) return;
  document_->choose_recorded_tile(*wish.recorded_tile);
  if (wish.tile_event) document_->seek_tile(*wish.tile_event);
}

// --- links of the notes ----------------------------------------------------------------------------------------------

void MainWindow::check_notes() {
  messages_->dismiss(QStringLiteral("notes"));
  QStringList faults;
  for (const NotePart& part : parse_notes(run_->facts().description)) {
    if (!part.link) continue;
    try {
      static_cast<void>(wish_of(part, run_->facts()));
    } catch (...) {
      faults += current_fault_lines();
    }
  }
  if (faults.isEmpty()) return;
  messages_->show_message({QStringLiteral("notes"),
                           true,
                           tr("The notes of %1 have links that cannot be followed").arg(file_name(document_->path())),
                           faults,
                           {}});
}

void MainWindow::follow_note(const NotePart& link) {
  try {
    apply(wish_of(link, run_->facts()));
  } catch (...) {
    messages_->show_message(
        {QStringLiteral("notes"), true, tr("This link cannot be followed"), current_fault_lines(), {}});
  }
}

OpenWish MainWindow::wish_of_now() const {
  OpenWish wish;
  wish.position = document_->cursor().position();
  wish.pinned = document_->pinned();
  if (!document_->attention().candidate().isEmpty()) wish.candidate = document_->attention().candidate();
  if (compared_run_ && beside_) wish.compared = compared_path_;  // a hidden one is not opened again
  if (view_ == View::attention) {
    wish.flow = document_->attention().request();
    wish.flow_tiles = document_->attention().tiles_before_end();
  }
  if (document_->tile() == nullptr) {  // it may be on its way
    if (view_ == View::tile) wish.tile = document_->tile_request();
    return wish;
  }
  wish.tile = document_->tile_request();
  if (const auto recorded = document_->recorded_tile()) wish.recorded_tile = static_cast<std::int64_t>(*recorded);
  wish.tile_event = document_->tile_now().event;
  return wish;
}

OpenWish MainWindow::wish_by_step() const {
  OpenWish wish = wish_of_now();
  wish.step = document_->cursor().state().step;
  return wish;
}

void MainWindow::close_document() {
  scenario_panel_->finish_editing();
  if (!loader_.of_document()) {  // for the document that is closed
    if (loader_.loading()) loader_.cancel();
    messages_->dismiss(QStringLiteral("open"));
  }
  const std::string changes = scenario_panel_->changed_text();
  const QString path = document_ ? document_->path() : QString();
  const std::unique_ptr<Document> last = std::move(document_);
  run_.reset();
  end_comparison();
  scenario_panel_->close();
  for (const char* of_run : {"trace", "write", "drop", "bundle", "candidate"})
    messages_->dismiss(QString::fromLatin1(of_run));
  show_document();
  center_->currentWidget()->setFocus();
  if (!changes.empty()) offer_changes(path, changes);
  changed();
}

void MainWindow::ask_for_file() {
  QFileDialog* dialog = make_file_dialog(this, tr("Open a scenario, a trace, a golden bundle or results of a lab"),
                                         document_ ? document_->path() : recent_.paths().value(0));
  dialog->setFileMode(QFileDialog::ExistingFile);
  dialog->setNameFilters(
      {tr("Scenarios, traces, bundles, kernels (*.json *.kvt *.npz *.safetensors *.ptx)"), tr("All files (*)")});
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) { open(path); });
  dialog->open();
}

// One file is a candidate for the document that is open; without a document it is a golden. Two are both.
void MainWindow::ask_for_candidate() {
  QFileDialog* dialog = make_file_dialog(this,
                                         document_ ? tr("Open a candidate, or a golden bundle and a candidate")
                                                   : tr("Open a golden bundle and a candidate"),
                                         document_ ? document_->path() : recent_.paths().value(0));
  dialog->setFileMode(QFileDialog::ExistingFiles);
  dialog->setNameFilters({tr("Tensors (*.npz *.safetensors *.npy)"), tr("All files (*)")});
  connect(dialog, &QFileDialog::filesSelected, this, &MainWindow::open_pair);
  dialog->open();
}

void MainWindow::open_pair(const QStringList& files) {
  OpenWish wish;
  wish.view = View::attention;
  if (files.size() == 1 && document_) {
    document_->attention().set_candidate(files.front());
    return set_view(View::attention);
  }
  if (files.size() > 1) {
    wish.candidate = files[1];
    wish.either_order = true;
  }
  if (!files.isEmpty()) open(files.front(), wish);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (!dropped_files(event->mimeData()).isEmpty()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  const QStringList files = dropped_files(event->mimeData());
  if (files.isEmpty()) return;
  event->acceptProposedAction();
  const auto is_bundle = [](const QString& file) {
    const QString ending = QFileInfo(file).suffix().toLower();
    return ending == QLatin1String("npz") || ending == QLatin1String("safetensors") || ending == QLatin1String("npy");
  };
  if (files.size() == 2 && is_bundle(files[0]) && is_bundle(files[1])) return open_pair(files);
  open(files.front());
  if (files.size() > 1) {
    messages_->show_message({QStringLiteral("drop"),
                             false,
                             tr("%1 files were dropped, but only one can be open: %2 is opened.")
                                 .arg(QString::number(files.size()), file_name(files.front())),
                             {},
                             {}});
  }
}

}  // namespace kvscope::viz
