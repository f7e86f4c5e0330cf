#include "viz/window/asker.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "viz/playback/tile_fold.h"
#include "viz/window/fault_words.h"

namespace kvscope::viz {

// At most one question of each kind waits. `number` counts the questions, so that an outdated answer is recognized.
struct Asker::Waiting {
  std::function<void(std::uint64_t number)> work;
  std::uint64_t number = 0;
};

struct Asker::Shared {
  std::mutex mutex;
  std::condition_variable woken;
  Waiting explain, locate, stage, attend, compare;
  // The one that is answered next; a place before a picture, a picture before words.
  [[nodiscard]] Waiting* next() {
    for (Waiting* waiting : {&locate, &stage, &attend, &compare, &explain}) {
      if (waiting->work) return waiting;
    }
    return nullptr;
  }
  bool stop = false;
  Backend* backend = nullptr;
  // Answers that are not delivered. They pass from thread to thread under `mutex`, not inside a posted event: the
  // thread sanitizer cannot see the locks of Qt, and would report each answer as a race.
  std::vector<std::function<void()>> answers;
};

Asker::Asker(Backend& backend, QObject* parent) : QObject(parent), shared_(std::make_shared<Shared>()) {
  shared_->backend = &backend;
  thread_ = std::thread([this] { run(); });
}

Asker::~Asker() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->woken.notify_one();
  thread_.join();
}

void Asker::run() {
  std::unique_lock lock(shared_->mutex);
  while (true) {
    shared_->woken.wait(lock, [this] { return shared_->stop || shared_->next() != nullptr; });
    if (shared_->stop) return;
    Waiting& next = *shared_->next();
    const auto work = std::exchange(next.work, nullptr);
    const std::uint64_t number = next.number;
    lock.unlock();
    work(number);
    lock.lock();
  }
}

void Asker::forget() {
  const std::lock_guard lock(shared_->mutex);
  for (Waiting* waiting : {&shared_->explain, &shared_->locate, &shared_->stage, &shared_->attend, &shared_->compare}) {
    waiting->work = nullptr;
    ++waiting->number;
  }
}

void Asker::post(Waiting Shared::*which, std::function<std::function<void()>()> ask) {
  {
    const std::lock_guard lock(shared_->mutex);
    Waiting& waiting = shared_.get()->*which;
    ++waiting.number;
    waiting.work = [this, which, ask = std::move(ask)](std::uint64_t number) {
      auto tell_if_newest = [this, which, number, tell = ask()] {
        // No lock needed: only the receiving thread changes the number.
        if (number == (shared_.get()->*which).number) tell();
      };
      {
        const std::lock_guard answers_lock(shared_->mutex);
        shared_->answers.push_back(std::move(tell_if_newest));
      }
      QMetaObject::invokeMethod(this, &Asker::deliver, Qt::QueuedConnection);
    };
  }
  shared_->woken.notify_one();
}

void Asker::deliver() {
  std::vector<std::function<void()>> answers;
  {
    const std::lock_guard lock(shared_->mutex);
    answers.swap(shared_->answers);
  }
  for (const std::function<void()>& answer : answers) answer();
}

void Asker::explain(std::shared_ptr<const Facts> facts, const QString& path, const trace::Question& question) {
  post(&Shared::explain,
       [this, facts = std::move(facts), path = path.toStdString(), question]() -> std::function<void()> {
         try {
           const trace::Explanation answer = shared_->backend->explain(*facts, path, question);
           return [this, question, answer] { Q_EMIT explained(question, answer); };
         } catch (...) {
           return [this, faults = current_fault_lines()] { Q_EMIT not_explained(faults); };
         }
       });
}

void Asker::locate(std::shared_ptr<const Facts> facts, const QString& path, qint64 offset, StepIdx step) {
  post(&Shared::locate,
       [this, facts = std::move(facts), path = path.toStdString(), offset, step]() -> std::function<void()> {
         try {
           const trace::Question place = shared_->backend->locate(*facts, path, offset, step);
           return [this, place] { Q_EMIT located(place); };
         } catch (...) {
           return [this, faults = current_fault_lines()] { Q_EMIT not_located(faults); };
         }
       });
}

void Asker::stage(std::shared_ptr<const Facts> facts, const QString& path, const TileRequest& request) {
  post(&Shared::stage, [this, facts = std::move(facts), path = path.toStdString(), request]() -> std::function<void()> {
    TileSource source;
    try {
      source = shared_->backend->tile_source(*facts, path, request);
      Tile tile = fold_tile(shared_->backend->stage(*facts, path, request));
      tile.source = std::move(source);
      return [this, answer = std::make_shared<const Tile>(std::move(tile))] { Q_EMIT staged(answer); };
    } catch (...) {
      return [this, faults = current_fault_lines(), source] { Q_EMIT not_staged(faults, source); };
    }
  });
}

void Asker::describe_source(std::shared_ptr<const Facts> facts, const QString& path, const TileRequest& request) {
  post(&Shared::stage, [this, facts = std::move(facts), path = path.toStdString(), request]() -> std::function<void()> {
    try {
      return [this, request, source = shared_->backend->tile_source(*facts, path, request)] {
        Q_EMIT described(request, source);
      };
    } catch (const std::exception&) {  // the tile itself is shown: only its scales and map stay unknown
      return [] {};
    }
  });
}

void Asker::attend(std::shared_ptr<const Facts> facts, const QString& path, const FlowRequest& request) {
  post(&Shared::attend,
       [this, facts = std::move(facts), path = path.toStdString(), request]() -> std::function<void()> {
         try {
           const auto flow = std::make_shared<const AttentionFlow>(shared_->backend->attend(*facts, path, request));
           return [this, flow] { Q_EMIT attended(flow); };
         } catch (...) {
           return [this, faults = current_fault_lines()] { Q_EMIT not_attended(faults); };
         }
       });
}

void Asker::compare(std::shared_ptr<const Facts> facts, const QString& path, const ErrorsRequest& request) {
  post(&Shared::compare,
       [this, facts = std::move(facts), path = path.toStdString(), request]() -> std::function<void()> {
         try {
           const auto errors =
               std::make_shared<const AttentionErrors>(shared_->backend->compare(*facts, path, request));
           return [this, errors] { Q_EMIT compared(errors); };
         } catch (...) {
           return [this, faults = current_fault_lines()] { Q_EMIT not_compared(faults); };
         }
       });
}

}  // namespace kvscope::viz
