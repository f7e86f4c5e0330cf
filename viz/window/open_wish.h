// What the window shows of a run, from the command line, the session, or a link in the notes. What is not given stays
// as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "viz/geometry/board.h"
#include "viz/playback/breakpoint.h"
#include "viz/playback/selection.h"
#include "viz/playback/tile_request.h"

namespace kvscope::viz {

struct OpenWish {
  std::optional<StepIdx> step;       // the end of this step
  std::optional<Position> position;  // used if there is no `step`
  std::optional<View> view;
  std::optional<Selection> pinned;
  std::optional<TileRequest> tile;
  std::optional<std::int64_t> recorded_tile;           // in place of `tile`: the number of a tile of the trace
  std::optional<std::int64_t> tile_event;              // how many events of the tile have happened
  std::optional<std::vector<Breakpoint>> breakpoints;  // nullopt: those of the previous document
};

}  // namespace kvscope::viz
