// The run that the document's run is compared with: it is at the same step, and the steps that differ are searched.
#include <utility>

#include "viz/model/document.h"
#include "viz/playback/run_difference.h"
#include "viz/playback/tile_selection.h"

namespace kvscope::viz {

bool Document::marks_differences() const {
  return beside_ && are_comparable(run().facts(), compared_->run().facts());
}

void Document::set_compared(std::shared_ptr<const Run> run) {
  if (run == compared_run()) return;
  if (search_.row) pause();  // it compares with the run of before
  compared_.reset();
  if (run != nullptr) compared_.emplace(std::move(run));
  beside_ = beside_ && compared_;
  follow_compared();
  relight_compared();
  Q_EMIT compared_changed();
}

void Document::show_beside(bool beside) {
  beside = beside && compared_;
  if (beside == beside_) return;
  beside_ = beside;
  follow_compared();
  relight_compared();
  Q_EMIT compared_changed();
}

void Document::follow_compared() {
  if (beside_) compared_->seek(counterpart(cursor_, compared_->run()));
}

void Document::relight_compared() {
  if (!beside_) return;
  const auto lit = [this](const Selection& object) {
    return resolve(compared_->state(), compared_->run().facts(), nullptr, object);
  };
  compared_pinned_lit_ = lit(pinned_);
  compared_hovered_lit_ = lit(hovered_);
}

// --- differences -----------------------------------------------------------------------------------------------------

void Document::next_difference() {
  if (!compared_) return;
  const std::int64_t row = cursor_.row();
  const bool inside = cursor_.position() < run().end_of_row(row);
  search({{}, false, {}, inside ? row : row + 1});
}

void Document::previous_difference() {
  if (!compared_) return;
  search({{}, true, {}, cursor_.row() - 1});
}

void Document::search_difference() {
  QElapsedTimer slice;
  slice.start();
  const std::int64_t by = search_.back ? -1 : 1;
  std::int64_t row = *search_.row;
  const auto exists = [&] { return row >= 0 && row < run().facts().rows; };
  for (; exists() && !step_differs(run(), row, compared_->run()); row += by) {
    if (slice.elapsed() < kSlice) continue;
    search_.row = row + by;
    return become(Doing::searching);
  }
  const bool back = search_.back;
  search_ = {};
  become(Doing::standing);
  if (exists()) {
    if (cursor_.seek_row(row)) moved();
    Q_EMIT stopped(row == 0 ? tr("the runs differ before their first step")
                            : tr("the runs differ in step %1").arg(run().span(row).step.value));
    return;
  }
  const Run& other = compared_->run();
  const auto last = [](const Run& of) { return of.facts().rows > 1 ? of.span(of.facts().rows - 1).step.value : -1; };
  if (back) {
    Q_EMIT stopped(tr("no step before this one differs"));
  } else if (last(other) > last(run())) {
    Q_EMIT stopped(tr("no step after this one differs; the other run goes on to step %1").arg(last(other)));
  } else {
    Q_EMIT stopped(tr("no step after this one differs"));
  }
}

}  // namespace kvscope::viz
