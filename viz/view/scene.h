// All inputs of a picture: values, and references to objects that do not change while it is painted.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include <QtCore/QString>

#include "viz/geometry/board.h"
#include "viz/geometry/viewport.h"
#include "viz/playback/attention.h"
#include "viz/playback/cursor.h"
#include "viz/playback/motion.h"
#include "viz/playback/run_difference.h"
#include "viz/playback/selection.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_state.h"
#include "viz/view/theme.h"

namespace kvscope::viz {

struct Scene {
  const Cursor* cursor = nullptr;  // its run, position, state and marks
  const Theme* theme = nullptr;
  View view = View::overview;
  double font_scale = 1;
  std::array<Viewport, kPanels> viewport;  // by PanelId
  Selection pinned;                        // clicked
  Selection hovered;                       // under the pointer
  Lit pinned_lit;                          // resolve(state, facts, tile, pinned)
  Lit hovered_lit;
  const Tile* tile = nullptr;                 // that is shown; null: none
  const TileState* tile_now = nullptr;        // how much of it has happened; not null with a tile
  QString tile_instead;                       // without a tile: why, and what to do
  const TileSource* tile_source = nullptr;    // without a tile: the known parts of the requested one; or null
  const State* staged = nullptr;              // view tile: the cache that the tile was staged from; null: the cursor's
  const AttentionFlow* flow = nullptr;        // of the attention view; null: none
  std::int64_t flow_tiles = 0;                // tiles of the flow that have been added
  const FlowBetween* flow_between = nullptr;  // the last of them while it is being added; null: it has been
  QString flow_instead;                       // without a flow: why
  const AttentionErrors* errors = nullptr;
  QString errors_instead;
  bool in_window = true;                   // hints name keys and what the pointer does; else the picture has none
  bool spotlight = false;                  // everything except the pinned object is dimmed
  std::optional<std::size_t> tile_layout;  // of tile_layouts(), beside the tile's own; none: compared_layout()

  // The other of the two runs, for one axis of steps and one scale of both timelines; null: none.
  std::shared_ptr<const Run> compared_run;
  const State* compared = nullptr;  // its state, if objects that differ are marked; null: none is
  bool of_compared = false;         // the cursor is the compared run's, and `compared` is the state of the other

  [[nodiscard]] const Run& run() const { return cursor->run(); }
  [[nodiscard]] const Facts& facts() const { return cursor->run().facts(); }
  [[nodiscard]] const State& state() const { return staged != nullptr ? *staged : cursor->state(); }
  [[nodiscard]] const Marks& marks() const { return cursor->marks(); }
  [[nodiscard]] const Viewport& viewport_of(PanelId panel) const { return viewport[static_cast<std::size_t>(panel)]; }
  [[nodiscard]] bool differs(BlockIdx block) const { return compared && block_differs(state(), *compared, block); }
  [[nodiscard]] bool differs(SeqIdx seq, PageIdx page) const {
    return compared && page_differs(state(), *compared, seq, page, facts().page_size);
  }
  // The object shown most prominently: the hovered one if there is one, else the pinned one.
  [[nodiscard]] const Lit& lit() const { return hovered.none() ? pinned_lit : hovered_lit; }
  [[nodiscard]] double px(double size) const { return size * font_scale; }
};

}  // namespace kvscope::viz
