#include "viz/window/loader.h"

#include <utility>

#include <QtCore/QFileInfo>

namespace kvscope::viz {
namespace {

enum Part { kBackend, kEvents };

}  // namespace

Loader::Loader(Backend& backend, QObject* parent) : QObject(parent), backend_(backend) {
  connect(&job_, &Job::progress, this, &Loader::tell_progress);
  connect(&job_, &Job::done, this, [this] {
    if (!start_next()) Q_EMIT opened(*std::exchange(result_, nullptr), file_.path);
  });
  connect(&job_, &Job::failed, this, [this](const QStringList& faults) {
    if (!start_next()) Q_EMIT failed(file_.path, faults);
  });
  connect(&job_, &Job::cancelled, this, [this] {
    if (!start_next()) Q_EMIT cancelled(file_.path);
  });
}

void Loader::open(const QString& path, const std::optional<std::string>& scenario) {
  start_or_wait({path, scenario, false});
}

void Loader::open_compared(const QString& path) {
  start_or_wait({path, std::nullopt, true});
}

void Loader::start_or_wait(const File& file) {
  if (!job_.running()) return start(file);
  job_.cancel();
  next_ = file;
}

void Loader::cancel() {
  next_.reset();
  job_.cancel();
}

bool Loader::start_next() {
  if (!next_) return false;
  start(*std::exchange(next_, std::nullopt));
  return true;
}

void Loader::start(const File& file) {
  file_ = file;
  result_ = std::make_shared<std::shared_ptr<const Run>>();
  const auto work = [&backend = backend_, result = result_, file](const Job::Tell& tell) {
    const auto progress = [&tell](Part part) {
      return [&tell, part](std::int64_t done, std::int64_t all) { return tell(part, done, all); };
    };
    const std::string path = file.path.toStdString();
    std::unique_ptr<EventSource> source = file.scenario ? backend.run_changed(*file.scenario, path, progress(kBackend))
                                                        : backend.open(path, progress(kBackend));
    if (!tell(kEvents, 0, source->events())) throw Cancelled();
    *result = Run::open(std::move(source), QFileInfo(file.path).fileName().toStdString(), progress(kEvents));
  };
  job_.start(work);
  Q_EMIT started(file.path);
}

void Loader::tell_progress(int part, qint64 done, qint64 all) {
  const QString numbers = tr("%1 of %2").arg(QString::number(done), QString::number(all));
  QString what = tr("opening the file");
  if (job_.stopping()) {
    what = tr("stopping");
  } else if (part == kEvents) {
    what = tr("reading events: %1").arg(numbers);
  } else if (all > 0) {
    what = tr("running the scenario: %1 requests").arg(numbers);
  }
  Q_EMIT progress(done, all, what);
}

}  // namespace kvscope::viz
