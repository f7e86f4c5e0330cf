#include "viz/window/history.h"

#include "core/base/errors.h"

namespace kvscope::viz {

namespace {

// The places differ only in the tiles of one flow that have been added, and thus in the tile that is pinned.
bool differ_in_tiles(const HistoryPlace& a, const HistoryPlace& b) {
  const auto of_tiles = [](const Selection& s) { return s.none() || s.kind == Selection::Kind::flow_tile; };
  if (!a.flow || a.flow_tiles == b.flow_tiles || !of_tiles(a.pinned) || !of_tiles(b.pinned)) return false;
  HistoryPlace same = a;
  same.pinned = b.pinned;
  same.flow_tiles = b.flow_tiles;
  return same == b;
}

}  // namespace

void History::visit(const HistoryPlace& place, bool small) {
  if (places_.empty()) {
    places_ = {place};
    return;
  }
  const HistoryPlace& now = places_[at_];
  if (place == now) return;
  const bool moved = place.position != now.position;
  const bool moved_only =
      differ_in_tiles(place, now) || (small && moved && place.pinned == now.pinned && place.view == now.view);
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
