// Two runs side by side: the open one, and the one that it is compared with.
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStatusBar>

#include "viz/view/canvas.h"
#include "viz/window/busy_bar.h"
#include "viz/window/canvas_scroll.h"
#include "viz/window/compare_bar.h"
#include "viz/window/fault_words.h"
#include "viz/window/file_dialog.h"
#include "viz/window/main_window.h"
#include "viz/window/message_bar.h"
#include "viz/window/presentation.h"
#include "viz/window/scenario_panel.h"

namespace kvscope::viz {
namespace {

constexpr int kLargestHalf = 1 << 16;  // [px]

// The view in which a second run is shown.
View with_two(View view) {
  return shows_run(view) ? view : View::overview;
}

}  // namespace

void MainWindow::connect_compare() {
  connect(canvas_, &Canvas::viewportChosen, beside_canvas_, &Canvas::setViewport);
  connect(beside_canvas_, &Canvas::viewportChosen, canvas_, &Canvas::setViewport);
  connect(actions_[Do::compare], &QAction::triggered, this, [this] { ask_what_to_compare(); });
  connect(actions_[Do::beside], &QAction::triggered, this, [this](bool on) {
    beside_ = on;
    if (on) set_view(with_two(view_));
    if (document_) document_->show_beside(on);
  });
}

// --- the other run ---------------------------------------------------------------------------------------------------

void MainWindow::ask_what_to_compare() {
  QFileDialog* dialog = make_file_dialog(this, tr("Compare with a scenario or a trace"), document_->path());
  dialog->setFileMode(QFileDialog::ExistingFile);
  dialog->setNameFilters({tr("Scenarios and traces (*.json *.kvt)"), tr("All files (*)")});
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
    if (!document_) return;
    set_view(with_two(view_));  // here: a run that is compared again after a reload changes no view
    compare_with(path);
  });
  dialog->open();
}

// A changed scenario that is running comes first: the run to compare with would take its place.
void MainWindow::compare_with(const QString& path) {
  if (loader_.loading() && !loader_.compared()) {
    statusBar()->showMessage(tr("a file is being opened: compare when it is open"));
    return;
  }
  messages_->dismiss(QStringLiteral("compare"));
  loader_.open_compared(path);
}

void MainWindow::compared_opened(const std::shared_ptr<const Run>& run, const QString& path) {
  load_bar_->stop();
  if (!document_) return;  // closed meanwhile
  compared_run_ = run;
  compared_path_ = path;
  beside_ = true;
  compare();
  show_remarks(QStringLiteral("compare"), path, run->remarks());
  changed();
}

void MainWindow::compare_failed(const QString& path, const QStringList& faults) {
  load_bar_->stop();
  messages_->show_message({QStringLiteral("compare"),
                           true,
                           tr("%1 could not be opened to compare with").arg(file_name(path)),
                           faults,
                           {{tr("Try again"), [this, path] {
                               if (document_) compare_with(path);
                             }}}});
}

void MainWindow::end_comparison() {
  messages_->dismiss(QStringLiteral("compare"));
  compared_run_.reset();
  compared_path_.clear();
  file_run_.reset();
  beside_ = false;
}

void MainWindow::compare() {
  if (document_) {
    document_->set_compared(compared_run_ ? compared_run_ : file_run_);
    document_->show_beside(beside_);
    compare_bar_->set_name(compared_run_ ? file_name(compared_path_) : tr("the run of the file"),
                           compared_run_ ? compared_path_ : document_->path());
  }
  show_beside();
}

// --- side by side ----------------------------------------------------------------------------------------------------

void MainWindow::show_beside() {
  const bool possible = document_ && document_->compared() != nullptr;
  for (const Do id : {Do::beside, Do::next_difference, Do::previous_difference}) {
    actions_.set_reason(id, possible    ? QString()
                            : document_ ? tr("no run to compare with: use \"Compare with\", or change the scenario")
                                        : tr("no file is open"));
  }
  actions_[Do::beside]->setChecked(possible && document_->beside());
  const bool shown = possible && document_->beside() && shows_run(view_);
  Document* const document = shown ? document_.get() : nullptr;
  if (beside_canvas_->document() != document) beside_canvas_->setDocument(document);
  for (const Place& at : canvas_->places()) beside_canvas_->setViewport(at.panel, canvas_->viewport(at.panel));
  const bool appears = shown && beside_scroll_->isHidden();
  beside_scroll_->setVisible(shown);
  compare_bar_->setVisible(shown && !presentation_->on());
  lay_out_boards();
  if (appears) halve_boards();
}

// One above the other where the two do not fit beside each other.
void MainWindow::lay_out_boards() {
  const bool fit = boards_->width() >= 2 * kSmallestBoard.width() + boards_->handleWidth();
  const Qt::Orientation orientation = fit ? Qt::Horizontal : Qt::Vertical;
  if (boards_->orientation() == orientation) return;
  boards_->setOrientation(orientation);
  halve_boards();
}

void MainWindow::halve_boards() {
  boards_->setSizes({kLargestHalf, kLargestHalf});  // more than there is: two equal parts
}

Canvas& MainWindow::canvas_meant() const {
  const bool beside = beside_canvas_->isVisible() &&
                      (beside_canvas_->underMouse() || (beside_canvas_->hasFocus() && !canvas_->underMouse()));
  return beside ? *beside_canvas_ : *canvas_;
}

}  // namespace kvscope::viz
