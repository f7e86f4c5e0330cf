// What the window shows of a run, from the command line, the session, or a link in the notes. What is not given stays
// as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <QtCore/QString>
#include <QtCore/QStringList>

#include "core/scenario/notes.h"
#include "viz/geometry/board.h"
#include "viz/playback/attention.h"
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
  std::optional<FlowRequest> flow;                     // of the attention view; its step is that of the position
  std::optional<std::int64_t> flow_tiles;              // tiles of the flow that have been added; nothing: all
  std::optional<std::vector<Breakpoint>> breakpoints;  // nullopt: those of the previous document
  std::optional<std::string> changes;                  // a scenario, run in place of the file's when that is open
  std::optional<QString> candidate;                    // compared with the file, which is a golden bundle or a scenario
  std::optional<QString> compared;                     // another run, shown beside it when that is open
  bool either_order = false;      // either of file and candidate may be the golden: both ways are tried
  std::optional<NoteLink> place;  // resolved against the run when it is open, after everything above
  std::optional<std::pair<QString, QStringList>> first_failure;  // the file and the faults of the first try
};

}  // namespace kvscope::viz
