// What a tile of the viewer is copied from: its tensor map and the rules that it breaks, the paths that could take it,
// the kernels that would load the cache by TMA, the scales of its rows, and the types of a row's bytes.
#pragma once

#include "core/paging/cache_state.h"
#include "core/scenario/scenario.h"
#include "core/staging/locate_staged.h"
#include "core/staging/staged_tile.h"
#include "viz/playback/tile_request.h"
#include "viz/playback/tile_source.h"

namespace kvscope::apps {

// The question and the boxes of a request, as record_tile() takes them. IndexError: dim is outside a head.
struct StagedRequest {
  TileQuestion question;
  TmaBoxes boxes = TmaBoxes::pages;
};
[[nodiscard]] StagedRequest staged_request(const Scenario& scenario, const viz::TileRequest& request);

// Also for a tile that its path does not support. IndexError as record_tile().
// Example: heads of 20 bf16, 2 of them: map {20, 2, rows}, strides of 40 and 80 B; the fault of axis 1 is V10's.
[[nodiscard]] viz::TileSource tile_source(const Scenario& scenario, const CacheState& state,
                                          const viz::TileRequest& request);

}  // namespace kvscope::apps
