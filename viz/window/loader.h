// Opens files on a thread of its own: Backend::open, then Run::open. The window stays usable meanwhile; whatever goes
// wrong comes back as words and changes nothing.
//
// One file at a time: asking for another cancels the one under way and starts when that has stopped. The destructor
// cancels and waits for the backend to notice, which it does whenever it reports progress.
#pragma once

#include <memory>
#include <optional>

#include <QtCore/QObject>
#include <QtCore/QString>
#include <QtCore/QStringList>

#include "viz/window/backend.h"
#include "viz/window/job.h"

namespace kvscope::viz {

class Loader final : public QObject {
  Q_OBJECT
 public:
  explicit Loader(Backend& backend, QObject* parent = nullptr);  // the backend outlives the loader

  [[nodiscard]] bool loading() const { return job_.running(); }
  [[nodiscard]] bool stopping() const { return job_.stopping(); }
  [[nodiscard]] const QString& path() const { return path_; }  // under way, or the last one

  void open(const QString& path);
  void cancel();

 Q_SIGNALS:
  void started(const QString& path);
  void progress(qint64 done, qint64 all, const QString& what);  // all 0: not known yet
  // Of each open() exactly one, unless another open() took its place.
  void opened(const std::shared_ptr<const kvscope::viz::Run>& run, const QString& path);
  void failed(const QString& path, const QStringList& faults);
  void cancelled(const QString& path);

 private:
  void start(const QString& path);
  void tell_progress(int part, qint64 done, qint64 all);
  [[nodiscard]] bool start_next();

  Backend& backend_;
  QString path_;
  std::shared_ptr<std::shared_ptr<const Run>> result_;  // written by the worker, read when it is done
  std::optional<QString> next_;
  Job job_;  // last: its destructor waits for the worker, which uses what stands above
};

}  // namespace kvscope::viz
