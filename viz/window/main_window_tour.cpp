// The tour: it starts with its scenario of the gallery, and observes the document.
#include <QtCore/QFileInfo>
#include <QtWidgets/QDockWidget>

#include "viz/window/main_window.h"
#include "viz/window/tour_panel.h"

namespace kvscope::viz {

void MainWindow::connect_tour() {
  for (const GalleryEntry& entry : gallery_.entries()) {
    const QString path = QString::fromStdString(entry.path);
    if (QFileInfo(path).fileName() == QLatin1String(Tour::kScenario)) tour_path_ = path;
  }
  if (tour_path_.isEmpty()) {
    actions_.set_reason(Do::tour, tr("the gallery has no %1").arg(QString::fromLatin1(Tour::kScenario)));
  }
  connect(actions_[Do::tour], &QAction::triggered, this, [this] { open_tour(true); });
  connect(tour_panel_, &TourPanel::started, actions_[Do::tour], &QAction::trigger);
  connect(tour_panel_, &TourPanel::returned, this, [this] { open_tour(false); });
  connect(tour_panel_, &TourPanel::skipped, this, [this] {
    if (document_) tour_.skip(*document_);
  });
  connect(tour_panel_, &TourPanel::ended, &tour_, &Tour::end);
  connect(&tour_, &Tour::changed, this, [this, task = TourTask::step]() mutable {
    if (std::exchange(task, tour_.task()) != tour_.task() && tour_.active()) show_tour_panel();
  });
}

void MainWindow::open_tour(bool from_the_start) {
  OpenWish wish;
  wish.step = StepIdx{0};
  wish.view = View::overview;
  lab_file_.clear();
  lab_wanted_ = false;
  tour_wanted_ = from_the_start;
  load(tour_path_, wish);
}

// The scenario of the tour is open: the tour starts, if that is what it was opened for.
void MainWindow::start_tour() {
  if (!std::exchange(tour_wanted_, false) || document_->path() != tour_path_) return;
  tour_.start();
  show_tour_panel();
}

// Another tab, such as that of the breakpoints, may have been in front of it; a panel that the user closed stays closed
// until the tour starts again.
void MainWindow::show_tour_panel() {
  auto* const dock = findChild<QDockWidget*>(QStringLiteral("tour"));
  if (tour_.task() == TourTask::step) dock->show();
  dock->raise();
}

void MainWindow::look_for_tour() {
  const bool away = document_ && document_->path() != tour_path_;
  tour_panel_->set_away(away);
  if (document_ && !away) tour_.look(*document_);
}

}  // namespace kvscope::viz
