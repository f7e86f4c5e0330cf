#include "viz/window/history.h"

#include "core/base/errors.h"

namespace kvscope::viz {

void History::visit(const HistoryPlace& place, bool small) {
  if (places_.empty()) {
    places_ = {place};
    return;
  }
  const HistoryPlace& now = places_[at_];
  if (place == now) return;
  const bool moved = place.position != now.position;
  const bool moved_only = small && moved && place.pinned == now.pinned && place.view == now.view;
  if (moved_only && moving_) {
    places_[at_] = place;
    return;
  }
  places_.resize(at_ + 1);
  places_.push_back(place);
  if (places_.size() > kMost) places_.erase(places_.begin());
  at_ = places_.size() - 1;
  moving_ = moved_only;
}

const HistoryPlace& History::back() {
  KVSCOPE_ASSERT(can_go_back());
  moving_ = false;
  return places_[--at_];
}

const HistoryPlace& History::forward() {
  KVSCOPE_ASSERT(can_go_forward());
  moving_ = false;
  return places_[++at_];
}

}  // namespace kvscope::viz
