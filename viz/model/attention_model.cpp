#include "viz/model/attention_model.h"

#include <algorithm>
#include <utility>

#include "viz/model/document.h"
#include "viz/playback/meant.h"

namespace kvscope::viz {
namespace {

bool is_running(const State& state, SeqIdx seq) {
  return seq.value >= 0 && seq.value < state.sequences.size() && state.sequences[seq.value].phase == Phase::running;
}

}  // namespace

AttentionModel::AttentionModel(Document& document) : QObject(&document), document_(document) {
  connect(&document, &Document::position_changed, this, [this] {
    if (follows_ && !document_.playing()) ask();
  });
  connect(&document, &Document::playing_changed, this, [this] {
    if (follows_ && !document_.playing()) ask();
  });
  connect(&document, &Document::pinned_changed, this, &AttentionModel::pinned_changed);
  connect(&timer_, &QTimer::timeout, this, &AttentionModel::tick);
}

void AttentionModel::follow(bool follow) {
  if (follow == follows_) return;
  follows_ = follow;
  if (follow) {
    pinned_changed();
    ask();
  } else if (playing()) {
    toggle_playing();
  }
}

void AttentionModel::choose(const FlowRequest& request) {
  chosen_ = true;
  request_ = request;
  if (follows_) ask();
}

void AttentionModel::restore(const FlowRequest& request, std::optional<std::int64_t> tiles) {
  chosen_ = true;
  request_ = request;
  request_.step = document_.cursor().state().step;  // so that ask() keeps the query
  if (!follows_) return;
  ask();
  if (waiting_) {
    wanted_ = tiles;
  } else if (flow_) {
    stand_at(tiles.value_or(std::ssize(flow_->tiles)));
  }
}

std::optional<std::int64_t> AttentionModel::tiles_before_end() const {
  return flow_ && done_ < std::ssize(flow_->tiles) ? std::optional(done_) : std::nullopt;
}

void AttentionModel::set_candidate(const QString& path) {
  if (path == candidate_) return;
  candidate_ = path;
  show_worst_ = !path.isEmpty();
  errors_asked_.reset();
  if (follows_) ask_for_errors();
}

void AttentionModel::pinned_changed() {
  if (!follows_) return;
  const Selection& pinned = document_.pinned();
  if (pinned.kind == Selection::Kind::flow_tile) {
    if (flow_ && pinned.seq == flow_->request.seq) stand_at(pinned.event + 1);
    return;
  }
  const std::optional<SeqIdx> seq = sequence_meant(pinned, document_.pinned_lit());
  if (!seq) return;
  chosen_ = true;
  if (*seq != request_.seq) request_.query = TokIdx{-1};
  request_.seq = *seq;
  if (pinned.kind == Selection::Kind::error_cell) {
    request_.head = pinned.head;
    if (pinned.token.value >= 0) request_.query = pinned.token;
  } else if (pinned.kind == Selection::Kind::token && flow_ && flow_->request.seq == *seq &&
             pinned.token >= flow_->first_query) {
    request_.query = pinned.token;  // a query's own token; a token before it is only a key
  }
  ask_for_flow();
}

// The flow and the errors are those of the document's step.
void AttentionModel::ask() {
  const State& state = document_.cursor().state();
  if (state.step.value < 0) {
    flow_asked_.reset();
    errors_asked_.reset();
    show_no_errors({});
    return show_no_flow(tr("Before the first step nothing attends to the cache: go to step 0 or later."));
  }
  if (!is_running(state, request_.seq)) {
    request_.seq = longest_running(state);
    request_.query = TokIdx{-1};
  }
  if (request_.step != state.step) request_.query = TokIdx{-1};  // the queries are the step's new tokens
  request_.step = state.step;
  ask_for_flow();
  ask_for_errors();
}

void AttentionModel::ask_for_flow() {
  request_.step = document_.cursor().state().step;
  if (request_.step.value < 0 || flow_asked_ == request_) return;
  flow_asked_ = request_;
  waiting_ = true;
  wanted_.reset();
  Q_EMIT flow_wanted(request_);
}

void AttentionModel::ask_for_errors() {
  ErrorsRequest request;
  request.candidate = candidate_.toStdString();
  request.layer = request_.layer;
  request.step = document_.cursor().state().step;
  if (request.step.value < 0 || errors_asked_ == request) return;
  errors_asked_ = request;
  Q_EMIT errors_wanted(request);
}

// The playhead stays where it was when another row of the same number of tiles follows; else all tiles have been added.
void AttentionModel::show_flow(std::shared_ptr<const AttentionFlow> flow) {
  const bool same = flow_ && flow_->tiles.size() == flow->tiles.size() && flow_->request.step == flow->request.step;
  flow_ = std::move(flow);
  flow_instead_.clear();
  const auto all = static_cast<std::int64_t>(flow_->tiles.size());
  if (!same) done_ = all;
  if (wanted_) done_ = std::clamp<std::int64_t>(wanted_->value_or(all), 0, all);
  wanted_.reset();
  waiting_ = false;
  Q_EMIT changed();
}

void AttentionModel::show_no_flow(const QString& why) {
  if (playing()) toggle_playing();
  flow_.reset();
  done_ = 0;
  wanted_.reset();
  waiting_ = false;
  flow_instead_ = why;
  Q_EMIT changed();
}

void AttentionModel::show_errors(std::shared_ptr<const AttentionErrors> errors) {
  errors_ = std::move(errors);
  errors_instead_.clear();
  if (std::exchange(show_worst_, false) && !chosen_ && errors_->failing > 0) {
    request_ = flow_of_worst(*errors_, request_);
    ask_for_flow();
  }
  Q_EMIT changed();
}

void AttentionModel::show_no_errors(const QString& why) {
  errors_.reset();
  errors_instead_ = why;
  Q_EMIT changed();
}

// --- moving through the tiles ----------------------------------------------------------------------------------------

void AttentionModel::stand_at(std::int64_t tiles) {
  if (!flow_) return;
  tiles = std::clamp<std::int64_t>(tiles, 0, static_cast<std::int64_t>(flow_->tiles.size()));
  if (tiles == done_) return;
  done_ = tiles;
  Q_EMIT changed();
}

void AttentionModel::seek(std::int64_t tiles) {
  if (playing()) toggle_playing();
  stand_at(tiles);
  if (!flow_) return;
  if (done_ > 0) {
    const FlowTile& tile = flow_->tiles[static_cast<std::size_t>(done_ - 1)];
    document_.pin(
        of_flow_tile(flow_->request.seq, done_ - 1, TokIdx{tile.first_key}, TokIdx{tile.last_key}, flow_->page_size));
  } else if (document_.pinned().kind == Selection::Kind::flow_tile) {
    document_.pin({});
  }
}

void AttentionModel::step() {
  seek(done_ + 1);
}
void AttentionModel::step_back() {
  seek(done_ - 1);
}
void AttentionModel::to_start() {
  seek(0);
}
void AttentionModel::to_end() {
  seek(flow_ ? static_cast<std::int64_t>(flow_->tiles.size()) : 0);
}

void AttentionModel::toggle_playing() {
  if (timer_.isActive()) {
    timer_.stop();
  } else {
    if (!flow_ || flow_->tiles.empty()) return;
    if (done_ == static_cast<std::int64_t>(flow_->tiles.size())) seek(0);
    timer_.start(std::max(16, static_cast<int>(1000 / document_.speed())));
  }
  Q_EMIT playing_changed();
}

void AttentionModel::tick() {
  if (!flow_) return;
  const std::int64_t next = done_ + 1;
  const bool last = next >= static_cast<std::int64_t>(flow_->tiles.size());
  seek(next);  // stops the timer
  if (!last) {
    timer_.start(std::max(16, static_cast<int>(1000 / document_.speed())));
    Q_EMIT playing_changed();
  }
}

}  // namespace kvscope::viz
