// Repainting the block pool and the lookup table at 1600x1000 on one core, into an image as the canvas and the export
// do:
// the whole pool, zoomed to small and to numbered cells, and the overlay of the hovered object. The bounds in
// docs/BENCHMARKS.md: 100,000 blocks under 4 ms, a million under 8 ms, hovering under 4 ms.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <QtCore/QCoreApplication>
#include <QtGui/QImage>
#include <QtWidgets/QApplication>

#include "core/base/random.h"
#include "tests/viz/geometry/staged_tile.h"
#include "tests/viz/playback/memory_source.h"
#include "viz/playback/run.h"
#include "viz/playback/tile_state.h"
#include "viz/view/motion.h"
#include "viz/view/paint_board.h"
#include "viz/view/panel.h"

namespace kvscope::viz {
namespace {

constexpr QSizeF kSize(1600, 1000);
constexpr std::int64_t kPageSize = 16;

// One application for all benchmarks, because fonts need it. No display is needed.
void start_application() {
  static int argc = 1;
  static std::string name = "kvscope_bench";
  static char* argv[] = {name.data(), nullptr};
  static const bool kStarted = [] {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    new QApplication(argc, argv);  // never deleted: thread-local caches are destroyed after statics
    return load_fonts();
  }();
  if (!kStarted) std::abort();
}

// A pool three quarters full of `blocks / 400` sequences, each in many runs of blocks; the blocks of one in four have
// not been written to yet.
std::vector<trace::Event> events_of(std::int64_t blocks) {
  const std::int64_t sequences = std::max<std::int64_t>(8, blocks / 400);
  const CounterRng random(11, 0);
  std::uint64_t n = 0;
  std::vector<trace::Event> events;
  for (std::int64_t seq = 0; seq < sequences; ++seq) events.push_back(trace::RequestArrived{SeqIdx{seq}, 8000, 10});
  events.push_back(trace::StepBegan{StepIdx{0}, 0});
  for (std::int64_t seq = 0; seq < sequences; ++seq) events.push_back(trace::RequestAdmitted{SeqIdx{seq}, 0});
  std::vector<std::int64_t> pages(static_cast<std::size_t>(sequences));
  SeqIdx owner{0};
  const auto next_page = [&](SeqIdx seq) { return PageIdx{pages[static_cast<std::size_t>(seq.value)]++}; };
  for (BlockIdx block{0}; block.value < blocks; ++block) {
    if (random.integer(n++, 0, 7) == 0) owner = SeqIdx{random.integer(n++, 0, sequences - 1)};
    if (block.value % 97 >= 72 && block.value + 1 < blocks) continue;
    const PageIdx page = next_page(owner);
    events.push_back(trace::BlockAllocated{block, owner, page});
    if (owner.value % 4 == 1) continue;
    events.push_back(trace::TokensWritten{owner, TokIdx{page.value * kPageSize}, kPageSize, block, 0, false});
  }
  events.push_back(trace::StepEnded{StepIdx{0}, 10});
  events.push_back(trace::StepBegan{StepIdx{1}, 10});
  events.push_back(trace::StepEnded{StepIdx{1}, 20});
  return events;
}

struct Painted {
  std::shared_ptr<const Run> run;
  std::unique_ptr<Cursor> cursor;
  std::optional<State> compared;
  Scene scene;
  std::unique_ptr<Panel> panel;
  QRectF body, footer;
  QImage image{kSize.toSize(), QImage::Format_ARGB32_Premultiplied};

  Painted(std::int64_t blocks, View view, PanelId id, double zoom) {
    start_application();
    run = Run::open(from_memory(events_of(blocks), {{"producer", "bench"}}, trace::Detail::full), "bench");
    cursor = std::make_unique<Cursor>(run);
    cursor->seek(Position{run->facts().events});
    scene.cursor = cursor.get();
    scene.theme = &theme(ThemeKind::dark);
    scene.view = view;
    scene.viewport[static_cast<std::size_t>(id)] = {zoom, {1000, 500}};
    panel = std::move(make_panels()[static_cast<std::size_t>(id)]);
    for (const Place& place : board(view, kSize, 1)) {
      if (place.panel == id) body = place.body, footer = place.footer;
    }
    image.fill(scene.theme->surface);
  }

  // Compared with the empty pool: all blocks in use differ.
  void compare() { scene.compared = &compared.emplace(empty_state(run->facts())); }

  void hover(const Selection& selection) {
    scene.hovered = selection;
    scene.hovered_lit = resolve(scene.state(), scene.facts(), selection);
  }
};

void paint_base(benchmark::State& state, View view, PanelId id, double zoom, bool compare = false) {
  Painted painted(state.range(0), view, id, zoom);
  if (compare) painted.compare();
  for (auto _ : state) {
    QPainter painter(&painted.image);
    painted.panel->paint_base(painter, painted.body, painted.scene);
  }
}

// The legend under a panel.
void paint_footer(benchmark::State& state, PanelId id) {
  Painted painted(state.range(0), View::overview, id, 0);
  for (auto _ : state) {
    QPainter painter(&painted.image);
    painted.panel->paint_footer(painter, painted.footer, painted.scene);
  }
}

// A hovered sequence of many blocks: hit test and highlight.
void paint_hover(benchmark::State& state, PanelId id, double zoom) {
  Painted painted(state.range(0), View::pool, id, zoom);
  std::int64_t seq = 0;
  for (auto _ : state) {
    painted.hover(of_sequence(SeqIdx{seq++ % 8}));
    QPainter painter(&painted.image);
    painted.panel->paint_overlay(painter, painted.body, painted.scene);
  }
}

// The whole board, as in one repaint of the window.
void paint_board(benchmark::State& state, View view) {
  Painted painted(state.range(0), view, PanelId::pool, 0);
  const Panels panels = make_panels();
  for (auto _ : state) {
    QPainter painter(&painted.image);
    paint_board_base(painter, kSize, panels, painted.scene);
  }
}

// The overlay that a move of the pointer over the pool paints: the block and everything linked to it.
void paint_board_hover(benchmark::State& state, View view) {
  Painted painted(state.range(0), view, PanelId::pool, 0);
  const Panels panels = make_panels();
  std::int64_t block = 0;
  for (auto _ : state) {
    painted.hover(of_block(BlockIdx{block = (block + 7919) % state.range(0)}));
    QPainter painter(&painted.image);
    paint_board_overlay(painter, kSize, panels, painted.scene);
  }
}

// One picture of a motion: the whole step that fills the pool, of which kMostMoves blocks move.
void PaintMotion(benchmark::State& state) {
  Painted painted(state.range(0), View::overview, PanelId::pool, 0);
  const Panels panels = make_panels();
  const Still after(painted.scene, {});
  painted.cursor->seek(Position{0});
  const Still before(painted.scene, {});
  const Motion motion(panels, kSize, 1, before, after);
  double t = 0.1;
  for (auto _ : state) {
    QPainter painter(&painted.image);
    motion.paint_base(painter, t);
    paint_board_overlay(painter, kSize, panels, motion.scene_at(t));
    motion.paint_movers(painter, t);
    t = t > 0.9 ? 0.1 : t + 0.04;
  }
}

// Everything before the first of these pictures: the two stills, and what moves between them.
void StartMotion(benchmark::State& state) {
  Painted painted(state.range(0), View::overview, PanelId::pool, 0);
  const Panels panels = make_panels();
  const Still after(painted.scene, {});
  painted.cursor->seek(Position{0});
  const Still before(painted.scene, {});
  for (auto _ : state) {
    const Motion motion(panels, kSize, 1, before, after);
    QPainter painter(&painted.image);
    motion.paint_base(painter, 0.01);
  }
}

// One picture of a box on its way: its chunks fly, and the cards that its events change are painted anew.
void PaintMotionOfTile(benchmark::State& state) {
  Painted painted(1000, View::tile, PanelId::shared, 0);
  const auto tile = std::make_shared<const Tile>(testing_support::staged_tile({}).value());
  const auto box = std::ranges::find(tile->actions, TileAction::Kind::copy, &TileAction::kind);
  const auto still = [&](std::int64_t event) {
    const TileState now = tile_state(*tile, event);
    painted.scene.tile = tile.get();
    painted.scene.tile_now = &now;
    return Still(painted.scene, {tile, nullptr, nullptr});
  };
  const Panels panels = make_panels();
  const Motion motion(panels, kSize, 1, still(box->first), still(box->end));
  double t = 0.1;
  for (auto _ : state) {
    QPainter painter(&painted.image);
    motion.paint_base(painter, t);
    paint_board_overlay(painter, kSize, panels, motion.scene_at(t));
    motion.paint_movers(painter, t);
    t = t > 0.9 ? 0.1 : t + 0.04;
  }
}

void PaintBoardOverview(benchmark::State& state) {
  paint_board(state, View::overview);
}
void PaintBoardPoolView(benchmark::State& state) {
  paint_board(state, View::pool);
}
void PaintBoardHoverOverview(benchmark::State& state) {
  paint_board_hover(state, View::overview);
}
void PaintBoardHoverPoolView(benchmark::State& state) {
  paint_board_hover(state, View::pool);
}
void PaintPool(benchmark::State& state) {
  paint_base(state, View::pool, PanelId::pool, 0);
}
void PaintPoolInOverview(benchmark::State& state) {
  paint_base(state, View::overview, PanelId::pool, 0);
}
void PaintPoolCellsOf6(benchmark::State& state) {
  paint_base(state, View::pool, PanelId::pool, 6);
}
void PaintPoolCellsOf24(benchmark::State& state) {
  paint_base(state, View::pool, PanelId::pool, 24);
}
void PaintPoolCellsOf48(benchmark::State& state) {
  paint_base(state, View::pool, PanelId::pool, 48);
}
void PaintPoolDifferencesOf6(benchmark::State& state) {
  paint_base(state, View::pool, PanelId::pool, 6, true);
}
void PaintPoolDifferencesOf24(benchmark::State& state) {
  paint_base(state, View::pool, PanelId::pool, 24, true);
}
void PaintSequencesDifferences(benchmark::State& state) {
  paint_base(state, View::sequences, PanelId::sequences, 0, true);
}
void PaintTable(benchmark::State& state) {
  paint_base(state, View::pool, PanelId::table, 0);
}
void PaintHeaderInOverview(benchmark::State& state) {
  paint_base(state, View::overview, PanelId::header, 0);
}
void PaintSequencesInOverview(benchmark::State& state) {
  paint_base(state, View::overview, PanelId::sequences, 0);
}
void PaintTableInOverview(benchmark::State& state) {
  paint_base(state, View::overview, PanelId::table, 0);
}
void PaintTimelineInOverview(benchmark::State& state) {
  paint_base(state, View::overview, PanelId::timeline, 0);
}
void PaintFooterOfSequences(benchmark::State& state) {
  paint_footer(state, PanelId::sequences);
}
void PaintFooterOfPool(benchmark::State& state) {
  paint_footer(state, PanelId::pool);
}
void PaintFooterOfTable(benchmark::State& state) {
  paint_footer(state, PanelId::table);
}
void PaintFooterOfTimeline(benchmark::State& state) {
  paint_footer(state, PanelId::timeline);
}
void PaintPoolHover(benchmark::State& state) {
  paint_hover(state, PanelId::pool, 0);
}
void PaintPoolHoverCellsOf6(benchmark::State& state) {
  paint_hover(state, PanelId::pool, 6);
}
void PaintPoolHoverCellsOf24(benchmark::State& state) {
  paint_hover(state, PanelId::pool, 24);
}
void PaintTableHover(benchmark::State& state) {
  paint_hover(state, PanelId::table, 0);
}
BENCHMARK(PaintMotion)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(StartMotion)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintMotionOfTile)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintBoardOverview)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintBoardPoolView)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintBoardHoverOverview)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintBoardHoverPoolView)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintPool)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintPoolInOverview)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintHeaderInOverview)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintSequencesInOverview)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintTableInOverview)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintTimelineInOverview)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintFooterOfSequences)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintFooterOfPool)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintFooterOfTable)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintFooterOfTimeline)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintPoolCellsOf6)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintPoolCellsOf24)->Arg(1'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintPoolCellsOf48)->Arg(1'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintPoolDifferencesOf6)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintPoolDifferencesOf24)->Arg(1'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintSequencesDifferences)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintTable)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintPoolHover)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintPoolHoverCellsOf6)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintPoolHoverCellsOf24)->Arg(1'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(PaintTableHover)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvscope::viz
