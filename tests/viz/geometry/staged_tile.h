// Tiles for tests of layouts: the second tile of the longer of two sequences, staged by core/staging and folded.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/errors.h"
#include "core/pipeline/run_scenario.h"
#include "core/scenario/requests.h"
#include "core/staging/focus.h"
#include "core/staging/staging_events.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_fold.h"

namespace kvscope::viz::testing_support {

struct TileOrder {
  StagingPath path = StagingPath::tma;
  DType dtype = DType::bf16;
  KOrV kv = KOrV::k;
  std::int64_t page = 16;
  std::int64_t head_size = 64;
  std::int64_t rows = 64;
  SwizzleMode swizzle = SwizzleMode::b128;  // TMA
  std::int64_t columns = 0;                 // TMA; 0: the head's
  LdsMma mma = LdsMma::shipped;             // LDS
};

// Empty: the path does not support the tile.
inline std::vector<trace::Event> staged_events(const TileOrder& order) {
  Scenario scenario;
  scenario.name = "tile";
  scenario.model = {"custom", 2, 4, 2, order.head_size, false, order.head_size};
  scenario.cache.dtype = order.dtype;
  scenario.cache.page_size = order.page;
  scenario.cache.blocks = 1280 / order.page;
  scenario.requests.list = {Request{0, 70, 3, {}}, Request{0, 150, 3, {}}};
  scenario.tile = {.BN = order.rows, .BK = order.columns > 0 ? order.columns : order.head_size};
  scenario.tile.swizzle = order.swizzle;
  scenario.lds.mma = order.mma;
  if (order.path == StagingPath::lds && order.rows != 64) scenario.lds.BN = order.rows;
  trace::Recorder off;
  const EngineRun run = run_engine(scenario, scenario.requests.list, off);
  const CacheState state = state_at(scenario, scenario.requests.list, focus_step(scenario, run.report)).cache;
  TileQuestion question;
  question.path = order.path;
  question.seq = SeqIdx{1};
  question.layer = LayerIdx{1};
  question.head = HeadIdx{1};
  question.kv = order.kv;
  question.tile = 64 / order.rows;
  trace::MemoryRecorder recorder;
  try {
    record_tile(scenario, state, question, recorder);
  } catch (const GeometryError&) {
    return {};
  }
  return recorder.events();
}

// The same tile as operand of wgmma, which reads it in shared memory: without the reads into registers.
inline std::vector<trace::Event> staged_for_wgmma(const TileOrder& order) {
  std::vector<trace::Event> events = staged_events(order);
  std::erase_if(events, [](const trace::Event& e) {
    return std::holds_alternative<trace::FragmentRead>(e) || std::holds_alternative<trace::LaneRead>(e) ||
           std::holds_alternative<trace::RegisterFilled>(e) || std::holds_alternative<trace::BankPhase>(e);
  });
  for (trace::Event& event : events) {
    if (auto* of = std::get_if<trace::TileFragments>(&event)) {
      *of = {};
      of->instruction = trace::ReadInstruction::wgmma;
      of->lanes = 32;
    }
  }
  return events;
}

// Nothing: the path does not support the tile.
inline std::optional<Tile> staged_tile(const TileOrder& order) {
  const std::vector<trace::Event> events = staged_events(order);
  if (events.empty()) return std::nullopt;
  return fold_tile(events);
}

}  // namespace kvscope::viz::testing_support
