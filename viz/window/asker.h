// Asks the backend for explanations, byte offsets and tiles on a thread of its own. The newest question wins: one that has not
// been begun is dropped for it, and an answer that is no longer waited for is not told. So pointing at a thousand
// blocks in a second asks about a few of them.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include <QtCore/QObject>
#include <QtCore/QString>
#include <QtCore/QStringList>

#include "core/trace/explanation.h"
#include "viz/playback/tile.h"
#include "viz/window/backend.h"

namespace kvscope::viz {

class Asker final : public QObject {
  Q_OBJECT
 public:
  explicit Asker(Backend& backend, QObject* parent = nullptr);  // the backend outlives the asker
  ~Asker() override;                                            // waits for the question that is being answered

  void explain(std::shared_ptr<const Facts> facts, const QString& path, const trace::Question& question);
  void locate(std::shared_ptr<const Facts> facts, const QString& path, qint64 offset, StepIdx step);
  void stage(std::shared_ptr<const Facts> facts, const QString& path, const TileRequest& request);
  void forget();  // no answer is told to what was asked so far

 Q_SIGNALS:
  void explained(const kvscope::trace::Question& question, const kvscope::trace::Explanation& explanation);
  void not_explained(const QStringList& faults);
  void located(const kvscope::trace::Question& place);
  void not_located(const QStringList& faults);
  void staged(const std::shared_ptr<const kvscope::viz::Tile>& tile);
  void not_staged(const QStringList& faults);

 private:
  struct Waiting;
  struct Shared;
  void run();
  // `ask` runs on the worker; what it returns is called here, when nothing newer of the kind was asked meanwhile.
  void post(Waiting Shared::*which, std::function<std::function<void()>()> ask);
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace kvscope::viz
