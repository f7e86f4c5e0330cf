// Records the staging of the focus tile as events: K and V, by TMA and through LDS, for each path that supports them.
// They follow the last step of a run, because a kernel would read the cache as the focus step left it.
//
//   tile_opened | barrier_expects, box_copied..., barrier_completed | fragment_read...                    TMA, one warp
//   tile_opened | lds_copied... of every wave, wave_waited            | fragment_read... of every wave     LDS
//   with focus.staging = lanes: tile_memory, tile_page..., tile_map (TMA), tile_shared, tile_fragments, bank_phase...
//   after tile_opened; chunk_landed after its copy; lane_read and register_filled after their read
//
// Example: one tile of 64 x 128 bf16 by TMA over pages of 16: 8 boxes of 2 KiB, 16 reads of 4 registers.
#pragma once

#include <span>

#include "core/paging/cache_state.h"
#include "core/paging/run_report.h"
#include "core/scenario/scenario.h"
#include "core/staging/locate_staged.h"
#include "core/staging/staged_tile.h"
#include "core/trace/recorder.h"

namespace kvscope {

// The tile that the focus names, for a path whose tiles are BN tokens.
// InputError naming $.focus.step, $.focus.sequence or $.focus.tile: the step computes nothing, the sequence is not in
// its batch, the tile is past the sequence's end.
[[nodiscard]] StagedTile focus_tile(const Scenario& scenario, const CacheState& state, KOrV kv, std::int64_t BN);

// Records nothing when scenario.focus.staging is none or the recorder's detail excludes these events.
// Throws as focus_tile.
void record_staging(const Scenario& scenario, const CacheState& state, trace::Recorder& recorder);

// The same after a run: reaches the focus step by running again. Records nothing when no step ran.
void record_staging(const Scenario& scenario, std::span<const Request> requests, const RunReport& report,
                    trace::Recorder& recorder);

// Tokens of a tile of that path, BN. Example: TMA: scenario.tile.BN; LDS, heads of 128 elements: 64.
[[nodiscard]] std::int64_t tile_tokens(const Scenario& scenario, StagingPath path, KOrV kv);

// One tile alone, with lanes, whatever scenario.focus says: the viewer's question. `question.step` is not used.
// GeometryError, UnsupportedError or OverflowError: why the path cannot take the tile; nothing is recorded then.
// IndexError: no such layer or head, a sequence outside the batch, a tile past its end.
// `boxes`: of the TMA path. With TmaBoxes::rope columns count the bf16 values of a row, rope values or not.
// Example: token 150 of sequence 1 through LDS, heads of 128: tile 150 / 64 = 2.
void record_tile(const Scenario& scenario, const CacheState& state, const TileQuestion& question,
                 trace::Recorder& recorder, TmaBoxes boxes = TmaBoxes::pages);

}  // namespace kvscope
