// A scene of a whole view for tests: a scenario of the gallery at a step, and a tile of its longest sequence.
//
//   StagedStep shown("preemption", 3, StagingPath::tma);
//   shown.stand(shown.tile->events / 4);   // after a quarter of its events
//   paint_board(painter, size, shown.panels, shown.scene);
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/staging/focus.h"
#include "core/staging/staging_events.h"
#include "tests/viz/view/runs.h"
#include "viz/playback/happened.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"
#include "viz/view/paint_board.h"

namespace kvscope::viz {

struct StagedStep {
  std::shared_ptr<const Run> run;
  Cursor cursor;
  std::shared_ptr<const Tile> tile;
  TileState now;
  Panels panels = make_panels();
  Scene scene;

  StagedStep(const std::string& name, std::int64_t step, StagingPath path) : run(gallery_run(name)), cursor(run) {
    cursor.seek_row(step + 1);
    const Scenario& scenario = *run->facts().scenario;
    const std::filesystem::path folder = std::filesystem::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";
    TileQuestion question;
    question.path = path;
    trace::MemoryRecorder recorder;
    record_tile(scenario, kvscope::state_at(scenario, make_requests(scenario, folder), StepIdx{step}).cache, question,
                recorder);
    tile = std::make_shared<const Tile>(fold_tile(recorder.events()));
    stand(tile->events);
    scene.cursor = &cursor;
    scene.theme = &theme(ThemeKind::dark);
    scene.tile = tile.get();
    scene.tile_now = &now;
  }
  void stand(std::int64_t event) { now = tile_state(*tile, event); }
  void pin(const Selection& selection) {
    scene.pinned = selection;
    scene.pinned_lit = resolve(scene.state(), scene.facts(), scene.tile, selection);
  }
};

}  // namespace kvscope::viz
