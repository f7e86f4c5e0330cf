// Writing traces and pictures, as jobs.
#include <QtCore/QDir>
#include <QtCore/QFileInfo>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QStatusBar>

#include "viz/view/canvas.h"
#include "viz/window/busy_bar.h"
#include "viz/window/export.h"
#include "viz/window/export_bar.h"
#include "viz/window/fault_words.h"
#include "viz/window/file_dialog.h"
#include "viz/window/main_window.h"
#include "viz/window/message_bar.h"
#include "viz/window/trace_saver.h"

namespace kvscope::viz {

void MainWindow::connect_writing() {
  connect(&job_, &Job::progress, this, [this](int, qint64 done, qint64 all) {
    job_bar_->progress(
        done, all, job_.stopping() ? tr("stopping") : tr("%1 of %2").arg(QString::number(done), QString::number(all)));
  });
  connect(job_bar_, &BusyBar::cancelled, this, [this] { job_.cancel(); });
  connect(&job_, &Job::done, this, [this] {
    job_bar_->stop();
    statusBar()->showMessage(tr("written: %1").arg(QDir::toNativeSeparators(job_target_)));
  });
  connect(&job_, &Job::cancelled, this, [this] {
    job_bar_->stop();
    statusBar()->showMessage(tr("not written: cancelled"));
  });
  connect(&job_, &Job::failed, this, [this](const QStringList& faults) {
    job_bar_->stop();
    messages_->show_message(
        {QStringLiteral("write"), true, tr("%1 could not be written").arg(file_name(job_target_)), faults, {}});
  });
  connect(export_bar_, &ExportBar::wanted, this, &MainWindow::ask_where_to_export);
}

void MainWindow::start_job(const QString& target, Job::Work work) {
  if (job_.running()) {
    statusBar()->showMessage(tr("another file is still being written"));
    return;
  }
  job_target_ = target;
  messages_->dismiss(QStringLiteral("write"));
  job_bar_->start(tr("Writing %1").arg(file_name(target)));
  job_.start(std::move(work));
}

void MainWindow::ask_where_to_save() {
  QFileDialog* dialog = make_file_dialog(this, tr("Save the trace as"), document_->path());
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setNameFilter(tr("Traces (*.kvt)"));
  dialog->setDefaultSuffix(QStringLiteral("kvt"));
  dialog->selectFile(QFileInfo(document_->path()).completeBaseName() + QStringLiteral(".kvt"));
  connect(dialog, &QFileDialog::fileSelected, this, [this, run = run_](const QString& path) {
    start_job(path, [run, path](const Job::Tell& tell) { save_trace(*run, path, tell); });
  });
  dialog->open();
}

void MainWindow::ask_where_to_export() {
  QFileDialog* dialog = make_file_dialog(this, tr("Save the picture as"), document_->path());
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setNameFilter(export_bar_->name_filter());
  dialog->setDefaultSuffix(export_bar_->suffix());
  dialog->selectFile(
      QStringLiteral("%1.%2").arg(QFileInfo(document_->path()).completeBaseName(), export_bar_->suffix()));
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
    if (!document_) return;
    const Scene scene = canvas_->sceneNow();
    Picture picture;
    picture.view = view_;
    picture.font_scale = font_scale_;
    picture.selection = document_->pinned();
    picture.viewport = scene.viewport;
    picture.tile = document_->shared_tile();
    picture.tile_instead = document_->tile_instead();
    if (const TileSource* source = document_->tile_source(); source != nullptr && !picture.tile) {
      picture.tile_source = *source;
    }
    picture.tile_layout = document_->tile_layout();
    if (picture.tile) picture.tile_event = document_->tile_now().event;
    const AttentionModel& attention = document_->attention();
    picture.flow = attention.shared_flow();
    picture.flow_tiles = attention.tiles_done();
    picture.flow_instead = attention.flow_instead();
    picture.errors = attention.shared_errors();
    picture.errors_instead = attention.errors_instead();
    picture.compared = document_->compared_run();
    picture.beside = beside_canvas_->isVisible();
    if (picture.beside) picture.beside_viewport = beside_canvas_->sceneNow().viewport;
    export_bar_->fill(picture);
    picture.position = picture.last_row ? run_->end_of_row(export_bar_->first_row()) : document_->cursor().position();
    start_job(path, [run = run_, picture, path](const Job::Tell& tell) {
      write_picture(path, run, picture, [&tell](std::int64_t done, std::int64_t all) { return tell(0, done, all); });
    });
    export_bar_->hide();
  });
  dialog->open();
}

}  // namespace kvscope::viz
