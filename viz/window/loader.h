// Opens files on a separate thread: Backend::open or run_changed, then Run::open. The window stays responsive
// meanwhile. A failure is reported as a message and changes nothing.
//
// One file at a time: opening another one cancels the current one and starts when that has stopped. The destructor
// cancels and waits until the backend stops, which is when it next reports progress.
#pragma once

#include <memory>
#include <optional>
#include <string>

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
  // Of the current or the last open() or open_compared().
  [[nodiscard]] const QString& path() const { return file_.path; }
  [[nodiscard]] const std::optional<std::string>& scenario() const { return file_.scenario; }
  [[nodiscard]] bool compared() const { return file_.compared; }
  // Whether it is a file that takes the place of the open document.
  [[nodiscard]] bool of_document() const { return !file_.scenario && !file_.compared; }

  // `scenario`: the text to run in place of the file's scenario, for one that was changed in the window.
  void open(const QString& path, const std::optional<std::string>& scenario = std::nullopt);
  void open_compared(const QString& path);  // a run to compare with
  void cancel();

 Q_SIGNALS:
  void started(const QString& path);
  void progress(qint64 done, qint64 all, const QString& what);  // all == 0: not known yet
  // For each open() exactly one of these is emitted, or none if another open() replaced it.
  void opened(const std::shared_ptr<const kvscope::viz::Run>& run, const QString& path);
  void failed(const QString& path, const QStringList& faults);
  void cancelled(const QString& path);

 private:
  struct File {
    QString path;
    std::optional<std::string> scenario;
    bool compared = false;
  };
  void start_or_wait(const File& file);
  void start(const File& file);
  void tell_progress(int part, qint64 done, qint64 all);
  [[nodiscard]] bool start_next();

  Backend& backend_;
  File file_;
  std::shared_ptr<std::shared_ptr<const Run>> result_;  // written by the worker, read after it finished
  std::optional<File> next_;
  Job job_;  // last member: its destructor waits for the worker, which uses the members above
};

}  // namespace kvscope::viz
