// One task on a separate thread, with progress and cancel: opening a file, saving a trace, writing a picture. Any
// exception that it throws is reported as a message.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include <QtCore/QObject>
#include <QtCore/QString>
#include <QtCore/QStringList>
#include <QtCore/QTimer>

#include "core/base/errors.h"

#include "viz/playback/run.h"

namespace kvscope::viz {

class Job final : public QObject {
  Q_OBJECT
 public:
  // The task calls this to report its progress. If it returns false, the task must stop by throwing Cancelled. `part`
  // is the number of the current part of the task, from which the receiver of progress() chooses the text.
  using Tell = std::function<bool(int part, std::int64_t done, std::int64_t all)>;
  using Work = std::function<void(const Tell& tell)>;

  explicit Job(QObject* parent = nullptr);
  ~Job() override;  // cancels, and waits until the task stops, which is when it next reports progress

  [[nodiscard]] bool running() const { return shared_ != nullptr; }
  [[nodiscard]] bool stopping() const;  // cancel() was called
  void start(Work work);                // precondition (caller): !running()
  void cancel();

 Q_SIGNALS:
  void progress(int part, qint64 done, qint64 all);  // at intervals
  // For each start() exactly one of these is emitted; running() is already false.
  void done();
  void failed(const QStringList& faults);
  void cancelled();

 private:
  struct Shared;
  void finish();
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
  QTimer timer_;
};

}  // namespace kvscope::viz
