// The tile of a document: which one is asked for, and how much of it has happened.
#include <algorithm>

#include "viz/model/document.h"
#include "viz/playback/meant.h"
#include "viz/playback/recorded_tiles.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz {

void Document::follow_tile(bool follow) {
  if (follow == tile_follows_) return;
  tile_follows_ = follow;
  restage();
  relight();
  if (follow) {
    if (!tiles_sought_) {
      tiles_sought_ = true;
      recorded_ = recorded_tiles(run());
      const auto meant = recorded_meant(recorded_, run().facts());
      if (meant && !tile_named_) return choose_recorded_tile(static_cast<std::int64_t>(*meant));
    }
    ask_for_tile();
  } else if (tile_timer_.isActive()) {
    toggle_tile_playing();
  }
}

void Document::restage() {
  if (!tile_follows_) return staged_.reset();
  const std::int64_t row = recorded_tile_ && tile_ ? run().row_of_step(tile_->opened.step) : cursor_.row();
  if (row == 0) return staged_.reset();
  try {
    if (!staged_) staged_.emplace(cursor_);
    staged_->seek(run().written_of_row(row));
  } catch (const std::exception& error) {
    staged_.reset();
    Q_EMIT failed(lines_of(error));
  }
}

void Document::choose_recorded_tile(std::int64_t index) {
  if (index < 0 || index >= std::ssize(recorded_)) {
    recorded_tile_.reset();
    tile_asked_.reset();
    restage();
    relight();
    if (tile_follows_) ask_for_tile();
    return;
  }
  recorded_tile_ = static_cast<std::size_t>(index);
  try {
    show_tile(std::make_shared<const Tile>(load_tile(run(), recorded_[*recorded_tile_])));
    if (run().facts().scenario) Q_EMIT source_wanted(request_of(*tile_));
  } catch (const std::exception& error) {
    show_no_tile(lines_of(error).join(QLatin1Char('\n')));
  }
}

void Document::choose_tile_at(const TileRequest& request, std::optional<std::int64_t> event) {
  recorded_tile_.reset();
  tile_named_ = true;
  next_event_ = event;
  restage();
  relight();
  choose_tile(request);
}

void Document::choose_tile(const TileRequest& request) {
  tile_request_ = request;
  tile_asked_.reset();
  if (tile_follows_) ask_for_tile();
}

// Nothing is asked twice in a row, and nothing while the tile that is shown holds the token at this step.
void Document::ask_for_tile() {
  if (recorded_tile_) return;
  const State& state = shown_state();
  if (const auto meant = token_meant(pinned_, pinned_lit_, run().facts())) {
    tile_request_.seq = meant->seq;
    tile_request_.token = meant->token;
  } else if (!tile_asked_) {
    const SeqIdx seq = tile_request_.seq;
    const bool there =
        std::ranges::binary_search(state.live, seq) && tile_request_.token.value < state.sequences[seq.value].tokens;
    if (!there) tile_request_.seq = longest_running(state), tile_request_.token = TokIdx{0};
  }
  tile_request_.step = state.step;
  if (tile_request_.step.value < 0) {
    tile_asked_.reset();
    return show_no_tile(tr("Before the first step no token is in the cache: go to step 0 or later."));
  }
  if (tile_asked_ == tile_request_) return;
  if (tile_ && tile_asked_) {
    TileRequest same = *tile_asked_;
    same.token = tile_request_.token;
    if (same == tile_request_ && tile_->row_of(tile_request_.seq, tile_request_.token)) return;
  }
  tile_asked_ = tile_request_;
  Q_EMIT tile_wanted(tile_request_);
}

// The playhead stays where it was, by its share of the events, when a tile of the same kind follows.
void Document::show_tile(std::shared_ptr<const Tile> tile) {
  tile_layout_.reset();
  const bool fresh = !tile_ || tile_->events != tile->events || tile_->tma() != tile->tma();
  const std::int64_t landed = fresh ? event_of_landed(*tile) : tile_now_.event;
  const std::int64_t event = std::clamp<std::int64_t>(next_event_.value_or(landed), 0, tile->events);
  next_event_.reset();
  tile_ = std::move(tile);
  tile_instead_.clear();
  restage();
  tile_now_ = tile_state(*tile_, event);
  relight();
  Q_EMIT tile_changed();
}

void Document::choose_layout(std::size_t layout) {
  if (!tile_ || tile_layout_ == layout) return;
  tile_layout_ = layout;
  Q_EMIT tile_changed();
}

const TileSource* Document::tile_source() const {
  const TileSource& source = tile_ ? tile_->source : no_tile_source_;
  return source.path ? &source : nullptr;
}

void Document::show_source(const TileRequest& request, const TileSource& source) {
  if (!tile_ || !recorded_tile_ || request != request_of(*tile_)) return;
  auto tile = std::make_shared<Tile>(*tile_);
  tile->source = source;
  tile_ = std::move(tile);
  relight();
  Q_EMIT tile_changed();
}

void Document::show_no_tile(const QString& why, const TileSource& source) {
  if (tile_timer_.isActive()) toggle_tile_playing();
  tile_.reset();
  tile_now_ = {};
  tile_instead_ = why;
  no_tile_source_ = source;
  relight();
  Q_EMIT tile_changed();
}

// --- moving through its events ---------------------------------------------------------------------------------------

void Document::stand_at(std::int64_t event) {
  if (!tile_) return;
  event = std::clamp<std::int64_t>(event, 0, tile_->events);
  if (event == tile_now_.event) return;
  tile_now_ = tile_state(*tile_, event);
  Q_EMIT tile_changed();
}

void Document::seek_tile(std::int64_t event) {
  if (tile_timer_.isActive()) toggle_tile_playing();
  stand_at(event);
}

void Document::tile_step() {
  if (!tile_) return;
  const auto& actions = tile_->actions;
  const auto at = static_cast<std::size_t>(tile_now_.action);
  seek_tile(at < actions.size() ? actions[at].end : tile_->events);
}

// To the end of the action before; from inside an action, to its beginning.
void Document::tile_step_back() {
  if (!tile_) return;
  const auto& actions = tile_->actions;
  const auto before =
      std::ranges::partition_point(actions, [&](const TileAction& a) { return a.end < tile_now_.event; });
  seek_tile(before == actions.end() ? 0 : before->first);
}

void Document::tile_event() {
  seek_tile(tile_now_.event + 1);
}
void Document::tile_event_back() {
  seek_tile(tile_now_.event - 1);
}
void Document::tile_to_start() {
  seek_tile(0);
}
void Document::tile_to_end() {
  seek_tile(tile_ ? tile_->events : 0);
}

void Document::toggle_tile_playing_events() {
  const bool play_them = !tile_playing();
  toggle_tile_playing();
  tile_by_event_ = play_them;
}

void Document::toggle_tile_playing() {
  tile_by_event_ = false;
  if (tile_timer_.isActive()) {
    tile_timer_.stop();
  } else {
    if (!tile_) return;
    if (tile_now_.event == tile_->events) stand_at(0);
    tile_timer_.start(std::max(16, static_cast<int>(1000 / speed())));
  }
  Q_EMIT tile_playing_changed();
}

void Document::tile_tick() {
  const auto& actions = tile_->actions;
  const auto at = static_cast<std::size_t>(tile_now_.action);
  stand_at(tile_by_event_ ? tile_now_.event + 1 : at < actions.size() ? actions[at].end : tile_->events);
  if (tile_now_.event == tile_->events) toggle_tile_playing();
}

}  // namespace kvscope::viz
