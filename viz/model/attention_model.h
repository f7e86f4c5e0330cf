// The attention view of a document: which query's flow is shown and how many of its tiles have been added, and a
// candidate's errors. It follows the document's position and selection, and asks for flows and errors by signals; the
// answers come through show_flow() and show_errors().
//
//   pinned token, page, block, sequence   the flow of that sequence; of that token when it is a query of the step
//   pinned error                          the flow of its sequence, head and query
//   pinned tile of the flow               that tile is the last one added; the other way round, stepping pins the tile
//   a candidate that fails                the flow of its largest error, unless another was chosen or pinned before
#pragma once

#include <memory>
#include <optional>

#include <QtCore/QObject>
#include <QtCore/QString>
#include <QtCore/QTimer>

#include "viz/playback/attention.h"
#include "viz/playback/selection.h"

namespace kvscope::viz {

class Document;

class AttentionModel final : public QObject {
  Q_OBJECT
 public:
  explicit AttentionModel(Document& document);  // a child of it

  [[nodiscard]] const AttentionFlow* flow() const { return flow_.get(); }  // null: none
  [[nodiscard]] std::shared_ptr<const AttentionFlow> shared_flow() const { return flow_; }
  [[nodiscard]] const QString& flow_instead() const { return flow_instead_; }  // without a flow: why
  [[nodiscard]] std::int64_t tiles_done() const { return done_; }              // of the flow, 0 to all
  // As tiles_done(); nothing when all have been added, or without a flow.
  [[nodiscard]] std::optional<std::int64_t> tiles_before_end() const;
  [[nodiscard]] const AttentionErrors* errors() const { return errors_.get(); }
  [[nodiscard]] std::shared_ptr<const AttentionErrors> shared_errors() const { return errors_; }
  [[nodiscard]] const QString& errors_instead() const { return errors_instead_; }
  [[nodiscard]] const FlowRequest& request() const { return request_; }
  [[nodiscard]] const QString& candidate() const { return candidate_; }  // file; empty: the tiled flow in f32
  [[nodiscard]] bool playing() const { return timer_.isActive(); }

 public Q_SLOTS:
  void follow(bool follow);                 // while the attention view is shown
  void choose(const FlowRequest& request);  // its step is the document's
  // A flow shown before, with so many of its tiles added (nothing: all); its step is the document's. Precondition
  // (caller): the attention view is shown.
  void restore(const FlowRequest& request, std::optional<std::int64_t> tiles);
  void set_candidate(const QString& path);  // empty: the tiled flow again
  void show_flow(std::shared_ptr<const AttentionFlow> flow);
  void show_no_flow(const QString& why);
  void show_errors(std::shared_ptr<const AttentionErrors> errors);
  void show_no_errors(const QString& why);
  // Each stops playing first, and pins the last tile that has been added.
  void step();
  void step_back();
  void to_start();
  void to_end();
  void seek(std::int64_t tiles);  // clamped to the flow
  void toggle_playing();          // tile by tile at the speed of the run; from the end: from the start

 Q_SIGNALS:
  void flow_wanted(const kvscope::viz::FlowRequest& request);
  void errors_wanted(const kvscope::viz::ErrorsRequest& request);
  void changed();  // flow, errors, or the number of tiles
  void playing_changed();

 private:
  void pinned_changed();
  void ask();
  void ask_for_flow();
  void ask_for_errors();
  void stand_at(std::int64_t tiles);
  void tick();

  Document& document_;
  std::shared_ptr<const AttentionFlow> flow_;
  std::shared_ptr<const AttentionErrors> errors_;
  QString flow_instead_, errors_instead_, candidate_;
  FlowRequest request_;
  std::int64_t done_ = 0;
  bool waiting_ = false;                               // for the flow asked for
  std::optional<std::optional<std::int64_t>> wanted_;  // tiles to be added, of restore()
  std::optional<FlowRequest> flow_asked_;
  std::optional<ErrorsRequest> errors_asked_;
  bool follows_ = false;
  bool chosen_ = false;      // the request is a person's choice
  bool show_worst_ = false;  // of the candidate that was set, when its errors come
  QTimer timer_;
};

}  // namespace kvscope::viz
