// One piece of work on a thread of its own, with progress and cancel: opening a file, saving a trace, writing a
// picture. What it throws comes back as words, whatever it is.
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
  // Told how far the work is; false: it should stop, by throwing Cancelled. `part` numbers what is being done now, for
  // whoever words it.
  using Tell = std::function<bool(int part, std::int64_t done, std::int64_t all)>;
  using Work = std::function<void(const Tell& tell)>;

  explicit Job(QObject* parent = nullptr);
  ~Job() override;  // cancels, and waits until the work notices: it does whenever it tells how far it is

  [[nodiscard]] bool running() const { return shared_ != nullptr; }
  [[nodiscard]] bool stopping() const;  // cancel() was called
  void start(Work work);                // none is running
  void cancel();

 Q_SIGNALS:
  void progress(int part, qint64 done, qint64 all);  // now and then
  // Of each start() exactly one; running() is false by then.
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
