#include "viz/window/job.h"

#include <atomic>
#include <utility>

#include "viz/window/fault_words.h"

namespace kvscope::viz {
namespace {

constexpr int kProgressEvery = 50;  // [ms]

}  // namespace

// The data shared by the two threads. The worker writes the outcome and then posts finish(), which reads it.
struct Job::Shared {
  Work work;
  std::atomic<bool> cancel = false;
  std::atomic<int> part = 0;
  std::atomic<std::int64_t> done = 0, all = 0;
  QStringList faults;
  bool cancelled = false;

  void run() {
    try {
      work([this](int p, std::int64_t d, std::int64_t a) {
        part = p;
        done = d;
        all = a;
        return !cancel;
      });
    } catch (const Cancelled&) {
      cancelled = true;
    } catch (...) {
      faults = current_fault_lines();
    }
  }
};

Job::Job(QObject* parent) : QObject(parent) {
  timer_.setInterval(kProgressEvery);
  connect(&timer_, &QTimer::timeout, this, [this] { Q_EMIT progress(shared_->part, shared_->done, shared_->all); });
}

Job::~Job() {
  cancel();
  if (thread_.joinable()) thread_.join();
}

bool Job::stopping() const {
  return shared_ && shared_->cancel;
}

void Job::cancel() {
  if (shared_) shared_->cancel = true;
}

void Job::start(Work work) {
  KVSCOPE_ASSERT(!running());
  shared_ = std::make_shared<Shared>();
  shared_->work = std::move(work);
  timer_.start();
  thread_ = std::thread([this, shared = shared_] {
    shared->run();
    // Safe: the destructor joins this thread before `this` is destroyed, and Qt drops calls posted to destroyed
    // objects.
    QMetaObject::invokeMethod(this, &Job::finish, Qt::QueuedConnection);
  });
}

void Job::finish() {
  thread_.join();
  timer_.stop();
  const std::shared_ptr<Shared> over = std::exchange(shared_, nullptr);
  over->work = nullptr;  // destroys its captures on this thread, before a signal is emitted
  // After cancel() the job counts as cancelled even if it finished or failed meanwhile.
  if (over->cancelled || over->cancel) {
    Q_EMIT cancelled();
  } else if (!over->faults.isEmpty()) {
    Q_EMIT failed(over->faults);
  } else {
    Q_EMIT done();
  }
}

}  // namespace kvscope::viz
