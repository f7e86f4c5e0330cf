#include "viz/model/tour.h"

#include <algorithm>
#include <utility>

#include "viz/playback/tile_selection.h"

namespace kvscope::viz {
namespace {

// What is selected, in words; empty for an object of the attention view.
QString selected(const Document& document) {
  if (document.pinned().of_attention()) return {};
  return QString::fromStdString(describe(document.shown_state(), document.run().facts(), document.tile(),
                                         document.pinned(), document.tile_source()));
}

// The last token of Tour::kSequence in the cache; -1: none.
std::int64_t last_token(const State& state) {
  return Tour::kSequence.value < state.sequences.size() ? state.sequences[Tour::kSequence.value].tokens - 1 : -1;
}

bool is_last_token(const Selection& pinned, const State& state) {
  return !pinned.none() && pinned == of_token(Tour::kSequence, TokIdx(last_token(state)));
}

bool is_its_block(const Selection& pinned, const State& state, std::int64_t page_size) {
  const std::int64_t token = last_token(state);
  if (pinned.kind != Selection::Kind::block || token < 0) return false;
  return pinned.block.value == state.sequences[Tour::kSequence.value].pages[token / page_size];
}

bool is_shared_block(const Selection& pinned, const State& state) {
  return pinned.kind == Selection::Kind::block && pinned.block.value < state.blocks.size() &&
         state.blocks[pinned.block.value].ref_count > 1;
}

}  // namespace

void Tour::start() {
  active_ = true;
  done_.clear();
  remark_.clear();
  Q_EMIT changed();
}

void Tour::end() {
  active_ = false;
  Q_EMIT changed();
}

void Tour::skip(const Document& document) {
  if (!active_ || task() == TourTask::end) return;
  next(false);
  begin(document);
  Q_EMIT changed();
}

void Tour::look(const Document& document) {
  if (!active_ || task() == TourTask::end) return;
  const QString remark = std::exchange(remark_, {});
  if (does(document)) {
    next(true);
    begin(document);
  } else if (remark == remark_) {
    return;
  }
  Q_EMIT changed();
}

void Tour::next(bool done) {
  done_.push_back(done);
  remark_.clear();
}

void Tour::begin(const Document& document) {
  from_ = document.cursor().position();
  before_ = document.pinned();
  page_size_ = document.run().facts().page_size;
  unfinished_tile_ = false;
}

// Whether the document shows the result of the task. If not, remark_ describes the last try.
bool Tour::does(const Document& document) {
  const State& state = document.shown_state();
  const Selection& pinned = document.pinned();
  const auto selects = [&](bool right) {
    if (!right && !pinned.none() && pinned != before_) remark_ = selected(document);
    return right;
  };
  switch (task()) {
    case TourTask::step:
      return state.step >= kForwardTo;
    case TourTask::step_back:
      from_ = std::max(from_, document.cursor().position());
      return document.cursor().position() < from_;
    case TourTask::seek:
      if (state.step == kSeekTo) return true;
      if (document.cursor().position() != from_) remark_ = tr("This is step %1.").arg(state.step.value);
      return false;
    case TourTask::select_token:
      return selects(is_last_token(pinned, state));
    case TourTask::find_block:
      return selects(is_its_block(pinned, state, document.run().facts().page_size));
    case TourTask::shared_block:
      return selects(is_shared_block(pinned, state));
    case TourTask::find:
      return selects(pinned == of_token(kFoundSequence, kFoundToken));
    case TourTask::tile:
      if (document.staged() != nullptr && document.tile() == nullptr) remark_ = document.tile_instead();
      return document.staged() != nullptr && document.tile() != nullptr;
    case TourTask::land: {
      if (document.tile() == nullptr) return false;
      const TileState& now = document.tile_now();
      if (now.complete) return unfinished_tile_;
      unfinished_tile_ = true;
      if (now.landed > 0) {
        remark_ = tr("%1 of %2 chunks have landed.").arg(now.landed).arg(std::ssize(document.tile()->chunks));
      }
      return false;
    }
    case TourTask::select_register:
      return selects(pinned.kind == Selection::Kind::tile_register || pinned.kind == Selection::Kind::tile_lane);
    case TourTask::run_to_event:
      return document.at_breakpoint();
    case TourTask::change:
      return document.run().facts().page_size != page_size_;
    case TourTask::compare:
      return document.beside();
    case TourTask::end:
      break;
  }
  return false;
}

}  // namespace kvscope::viz
