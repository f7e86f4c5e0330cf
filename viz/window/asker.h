// Requests explanations, byte offsets, tiles and attention from the backend on a separate thread. Only the newest
// question matters: it replaces a question that has not started, and an outdated answer is dropped. So if the pointer
// moves over a thousand blocks in a second, only a few of them are explained.
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
  ~Asker() override;                                            // waits for the running call of the backend

  void explain(std::shared_ptr<const Facts> facts, const QString& path, const trace::Question& question);
  void locate(std::shared_ptr<const Facts> facts, const QString& path, qint64 offset, StepIdx step);
  void stage(std::shared_ptr<const Facts> facts, const QString& path, const TileRequest& request);
  // What a recorded tile is copied from; no answer where that is not known.
  void describe_source(std::shared_ptr<const Facts> facts, const QString& path, const TileRequest& request);
  void attend(std::shared_ptr<const Facts> facts, const QString& path, const FlowRequest& request);
  void compare(std::shared_ptr<const Facts> facts, const QString& path, const ErrorsRequest& request);
  void forget();  // drops all pending questions and answers

 Q_SIGNALS:
  void explained(const kvscope::trace::Question& question, const kvscope::trace::Explanation& explanation);
  void not_explained(const QStringList& faults);
  void located(const kvscope::trace::Question& place);
  void not_located(const QStringList& faults);
  void staged(const std::shared_ptr<const kvscope::viz::Tile>& tile);
  void not_staged(const QStringList& faults, const kvscope::viz::TileSource& source);
  void described(const kvscope::viz::TileRequest& request, const kvscope::viz::TileSource& source);
  void attended(const std::shared_ptr<const kvscope::viz::AttentionFlow>& flow);
  void not_attended(const QStringList& faults);
  void compared(const std::shared_ptr<const kvscope::viz::AttentionErrors>& errors);
  void not_compared(const QStringList& faults);

 private:
  struct Waiting;
  struct Shared;
  void run();
  void deliver();
  // `ask` runs on the worker thread. The function that it returns is called on this thread, unless a newer question of
  // the same kind was posted meanwhile.
  void post(Waiting Shared::*which, std::function<std::function<void()>()> ask);
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace kvscope::viz
