// The places that were visited in a run, for back and forward: position, selection, view, tile, flow and candidate
// together.
//
// Moving step by step, or in the attention view tile by tile, adds one place for the whole way: back leads to the place
// where the way began. Example: block 7 selected at step 3, stepping to step 10, block 9 selected. Back leads to step
// 10 with block 7, then to step 3 with block 7.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <QtCore/QString>

#include "viz/geometry/board.h"
#include "viz/playback/attention.h"
#include "viz/playback/selection.h"
#include "viz/playback/tile_request.h"

namespace kvscope::viz {

struct HistoryPlace {
  Position position;
  Selection pinned;
  View view = View::overview;
  std::optional<TileRequest> tile = {};  // that the tile view shows; nothing: another view, or a tile of the trace
  std::optional<FlowRequest> flow = {};  // that the attention view shows; nothing: another view
  std::optional<std::int64_t> flow_tiles = {};  // of its tiles that have been added; nothing: all
  QString candidate = {};                       // that it compares; empty: the tiled flow
  friend bool operator==(const HistoryPlace&, const HistoryPlace&) = default;
};

class History {
 public:
  static constexpr std::size_t kMost = 200;  // places; the oldest are dropped

  void clear() { *this = {}; }
  // Adds the place after the current one and drops those that forward() led to. The current place visited again adds
  // nothing. `small`: the position has moved by a step at most; consecutive small moves share one place, which moves
  // along.
  void visit(const HistoryPlace& place, bool small);

  [[nodiscard]] bool empty() const { return places_.empty(); }
  [[nodiscard]] const HistoryPlace& current() const { return places_[at_]; }  // precondition: not empty
  [[nodiscard]] bool can_go_back() const { return at_ > 0; }
  [[nodiscard]] bool can_go_forward() const { return at_ + 1 < places_.size(); }
  const HistoryPlace& back();     // the new current place; precondition: can_go_back()
  const HistoryPlace& forward();  // precondition: can_go_forward()

 private:
  std::vector<HistoryPlace> places_;
  std::size_t at_ = 0;
  bool moving_ = false;  // the current place was added by a small move, and only small moves followed
};

}  // namespace kvscope::viz
