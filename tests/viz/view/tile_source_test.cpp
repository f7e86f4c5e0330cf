// The tensor map, the other paths, the scales and the bytes of a row in the panels of the tile view: every object has a
// place, a name and a way back; faults are marked at their axis; nothing leaves its panel at any text size.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/viz/geometry/staged_tile.h"
#include "tests/viz/view/pool_scene.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"
#include "viz/view/copies_paint.h"
#include "viz/view/memory_paint.h"
#include "viz/view/tile_paint.h"

namespace kvscope::viz::tile_source_view_test {
namespace {

using testing::HasSubstr;
using testing_support::staged_tile;
using testing_support::TileOrder;
using Kind = Selection::Kind;

const QRectF kBody(12, 12, 264, 472);
const QSize kImage(300, 500);

TileSource source_of(const Tile& tile) {
  TileSource source;
  source.path = TilePath::tma;
  source.dtype = "bf16";
  source.map = TileMapPlan{{{"columns", 64, 2, 64}, {"heads", 2, 128, 1}, {"rows", 5121, 256, 16}}, "128B swizzle", 0};
  source.offers = {{TilePath::lds, 0, ""}, {TilePath::gather4, 3, ""}, {TilePath::rope, 0, "no rope values"}};
  source.engines = {{"one", true, ""}, {"another", false, "pages of 64: 16"}};
  TileScales scales{"f32", 4, 32, 0, 2, {}, {}};
  for (std::int64_t row = 0; row < tile.opened.tokens; ++row) {
    scales.row.push_back(100 + row);
    scales.place.push_back(8 * (100 + row));
  }
  source.scales = scales;
  source.row.parts = {{"content", "bf16", 0, 96, 2}, {"rope", "bf16", 96, 32, 2}};
  source.row.place.assign(static_cast<std::size_t>(tile.opened.tokens), 4096);
  return source;
}

// 40 B from head to head: the encoder rejects it, and the other path takes the tile.
TileSource faulty_source() {
  TileSource source;
  source.path = TilePath::tma;
  source.map = TileMapPlan{{{"columns", 20, 2, 64}, {"heads", 2, 40, 1}, {"rows", 1281, 80, 16}}, "128B swizzle", 0};
  source.faults = {{1, "stride", "40 B is not a multiple of 16 B: pad the rows"}};
  source.offers = {{TilePath::lds, 0, ""}, {TilePath::gather4, 0, "80 B is no row"}};
  source.engines = {{"one", false, "pages of 64: 16"}};
  return source;
}

struct Shown {
  Staged staged{run_of(10, one_of_each())};
  Tile tile;
  TileState now;
  TileSource instead = faulty_source();

  explicit Shown(ThemeKind kind = ThemeKind::dark, double font_scale = 1) : tile(*staged_tile({})) {
    tile.source = source_of(tile);
    staged.scene.theme = &theme(kind);
    staged.scene.font_scale = font_scale;
    staged.scene.tile = &tile;
    staged.scene.tile_now = &now;
    now = tile_state(tile, event_of_landed(tile));
  }
  void no_tile() {
    staged.scene.tile = nullptr;
    staged.scene.tile_now = nullptr;
    staged.scene.tile_source = &instead;
  }
  void pin(const Selection& selection) {
    staged.scene.pinned = selection;
    staged.scene.pinned_lit = resolve(staged.scene.state(), staged.scene.facts(), staged.scene.tile, selection);
  }
  const Scene& scene() const { return staged.scene; }
};

std::vector<PanelCell> of_kind(const Panel& panel, const QRectF& body, const Scene& scene, Kind kind) {
  std::vector<PanelCell> cells;
  for (const PanelCell& cell : panel.cells(body, scene, 100000)) {
    if (cell.object.kind == kind) cells.push_back(cell);
  }
  return cells;
}

bool has_color(const QImage& image, const QRectF& rect, const QColor& color) {
  const QRect inside = rect.toAlignedRect().intersected(image.rect());
  for (int y = inside.top(); y <= inside.bottom(); ++y) {
    for (int x = inside.left(); x <= inside.right(); ++x) {
      if (image.pixelColor(x, y).rgb() == color.rgb()) return true;
    }
  }
  return false;
}

TEST(TileSourceView, EveryObjectIsFoundWhereItIsDrawnAndHasAName) {
  Shown shown;
  shown.pin(of_tile_row(3));
  const auto copies = make_copies_panel(), memory = make_memory_panel();
  const std::vector<std::tuple<const Panel*, Kind, std::size_t>> expected = {
      {copies.get(), Kind::tile_axis, 4},
      {copies.get(), Kind::tile_path, 2},
      {memory.get(), Kind::tile_scale, 2U * static_cast<std::size_t>(shown.tile.opened.tokens)},
      {memory.get(), Kind::tile_bytes, 8}};
  for (const auto& [panel, kind, count] : expected) {
    const std::vector<PanelCell> cells = of_kind(*panel, kBody, shown.scene(), kind);
    EXPECT_EQ(cells.size(), count) << static_cast<int>(kind);
    for (const PanelCell& cell : cells) {
      EXPECT_TRUE(kBody.adjusted(-0.01, -0.01, 0.01, 0.01).contains(cell.rect));
      EXPECT_EQ(panel->hit(cell.rect.center(), kBody, shown.scene()), cell.object);
      EXPECT_FALSE(cell.name.isEmpty());
      EXPECT_FALSE(cell.name.contains(QStringLiteral("No such"))) << cell.name.toStdString();
    }
  }
  EXPECT_THAT(of_kind(*memory, kBody, shown.scene(), Kind::tile_bytes)[6].name.toStdString(),
              HasSubstr("Bytes 96 to 111 of row 3: rope values 0 to 7 in bf16"));
}

// The way by keys: every object is reached from the first one by arrows, as the pointer reaches it.
TEST(TileSourceView, ArrowsReachScalesBytesAxesAndOffers) {
  Shown shown;
  const auto copies = make_copies_panel(), memory = make_memory_panel();
  for (const auto& [panel, kind] : std::vector<std::pair<const Panel*, Kind>>{{copies.get(), Kind::tile_axis},
                                                                              {copies.get(), Kind::tile_path},
                                                                              {memory.get(), Kind::tile_scale},
                                                                              {memory.get(), Kind::tile_bytes}}) {
    std::vector<Selection> seen{panel->moved({}, Move::first, kBody, shown.scene())};
    for (std::size_t n = 0; n < seen.size() && seen.size() < 2000; ++n) {
      for (const Move move : {Move::left, Move::right, Move::up, Move::down}) {
        const Selection to = panel->moved(seen[n], move, kBody, shown.scene());
        if (std::ranges::find(seen, to) == seen.end()) seen.push_back(to);
      }
    }
    const auto reached = std::ranges::count(seen, kind, &Selection::kind);
    EXPECT_EQ(reached, std::ssize(of_kind(*panel, kBody, shown.scene(), kind))) << static_cast<int>(kind);
  }
}

TEST(TileSourceView, AScaleAndItsRowLightOneAnother) {
  Shown shown;
  const auto memory = make_memory_panel();
  const auto lit = [&](const Selection& selection, const Selection& object) {
    const Lit of = resolve(shown.scene().state(), shown.scene().facts(), &shown.tile, selection);
    return is_lit(shown.tile, of.tile, object);
  };
  EXPECT_TRUE(lit(of_tile_row(5), of_tile_scale(5, 0)));
  EXPECT_TRUE(lit(of_tile_row(5), of_tile_scale(5, 1)));
  EXPECT_FALSE(lit(of_tile_row(5), of_tile_scale(4, 0)));
  EXPECT_TRUE(lit(of_tile_chunk({5, 40}), of_tile_scale(5, 1)));
  EXPECT_FALSE(lit(of_tile_chunk({5, 40}), of_tile_scale(5, 0)));
  EXPECT_TRUE(lit(of_tile_scale(5, 1), of_tile_chunk({5, 40})));
  EXPECT_FALSE(lit(of_tile_scale(5, 1), of_tile_chunk({5, 24})));
  EXPECT_TRUE(lit(of_tile_scale(5, 1), of_tile_row(5)));
  EXPECT_TRUE(lit(of_tile_chunk({5, 40}), of_tile_bytes(5, 80)));
  EXPECT_FALSE(lit(of_tile_chunk({5, 40}), of_tile_bytes(5, 64)));
  EXPECT_TRUE(lit(of_tile_bytes(5, 80), of_tile_chunk({5, 40})));
  // Another row's bytes are shown when that row is lit.
  shown.pin(of_tile_row(9));
  EXPECT_EQ(of_kind(*memory, kBody, shown.scene(), Kind::tile_bytes).front().object, of_tile_bytes(9, 0));
}

// The mark on the axis of rows moves with what is lit.
TEST(TileSourceView, WhatIsLitIsMarkedOnTheAxes) {
  Shown shown;
  const auto copies = make_copies_panel();
  const QRectF rows = of_kind(*copies, kBody, shown.scene(), Kind::tile_axis)[2].rect;
  const QColor accent = shown.scene().theme->accent;
  EXPECT_FALSE(has_color(painted(*copies, kBody, shown.scene(), kImage), rows, accent));
  shown.pin(of_tile_row(3));
  EXPECT_TRUE(has_color(painted(*copies, kBody, shown.scene(), kImage), rows, accent));
}

TEST(TileSourceView, AFaultIsMarkedAtItsAxisAndNowhereElse) {
  for (const ThemeKind kind : kThemeKinds) {
    Shown shown(kind);
    shown.no_tile();
    const auto copies = make_copies_panel();
    const QImage image = painted(*copies, kBody, shown.scene(), kImage);
    const std::vector<PanelCell> axes = of_kind(*copies, kBody, shown.scene(), Kind::tile_axis);
    ASSERT_EQ(axes.size(), 4U);
    const QColor warning = shown.scene().theme->warning;
    EXPECT_FALSE(has_color(image, axes[0].rect, warning));
    EXPECT_TRUE(has_color(image, axes[1].rect, warning));
    EXPECT_FALSE(has_color(image, axes[2].rect, warning));
    EXPECT_THAT(axes[1].name.toStdString(), HasSubstr("40 B is not a multiple of 16 B"));
    EXPECT_GT(axes[1].rect.height(), 1.5 * axes[0].rect.height()) << "the fault is below its axis";
    for (const PanelCell& axis : axes) EXPECT_EQ(copies->hit(axis.rect.center(), kBody, shown.scene()), axis.object);
    const std::vector<PanelCell> offers = of_kind(*copies, kBody, shown.scene(), Kind::tile_path);
    ASSERT_EQ(offers.size(), 1U) << "one path can take the tile";
    EXPECT_EQ(offers[0].object, of_tile_path(TilePath::lds));
    EXPECT_EQ(offers[0].name, QStringLiteral("Stage the tile through LDS"));
    EXPECT_EQ(copies->moved({}, Move::first, kBody, shown.scene()), offers[0].object);
  }
}

TEST(TileSourceView, WithoutASourceTheReasonIsText) {
  Shown shown;
  shown.no_tile();
  shown.staged.scene.tile_source = nullptr;
  shown.staged.scene.tile_instead = QStringLiteral("Before the first step no token is in the cache");
  const auto copies = make_copies_panel();
  EXPECT_TRUE(copies->cells(kBody, shown.scene(), 100).empty());
  EXPECT_TRUE(copies->hit(kBody.center(), kBody, shown.scene()).none());
  EXPECT_TRUE(has_color(painted(*copies, kBody, shown.scene(), kImage), kBody, shown.scene().theme->text_quiet));
}

// Four rows of any blocks in one frame, each with its coordinate.
TEST(TileSourceView, AGatherHasFourRowsAndTheirCoordinates) {
  Shown shown;
  Scenario scenario;
  scenario.model = {"custom", 1, 4, 2, 64, false, 64};
  scenario.cache.page_size = 1;
  scenario.cache.blocks = 80;
  scenario.cache.dtype = DType::bf16;
  scenario.requests.list = {Request{0, 29, 2, {}}};
  scenario.tile = {.BN = 16, .BK = 64};
  trace::Recorder off;
  const EngineRun run = run_engine(scenario, scenario.requests.list, off);
  const CacheState state = state_at(scenario, scenario.requests.list, StepIdx{0}).cache;
  TileQuestion question;
  question.seq = SeqIdx{0};
  question.tile = 1;
  trace::MemoryRecorder recorder;
  record_tile(scenario, state, question, recorder, TmaBoxes::gather4);
  shown.tile = fold_tile(recorder.events());
  ASSERT_TRUE(shown.tile.gathers());
  EXPECT_EQ(shown.tile.rows_of_copy(), 4);
  shown.now = tile_state(shown.tile, shown.tile.events);
  const auto copies = make_copies_panel();
  EXPECT_THAT(copies->subtitle(shown.scene()).toStdString(), HasSubstr("gather4 · 4 of 4 rows"));
  EXPECT_THAT(copies->summary(shown.scene()).toStdString(), HasSubstr("4 of 4 gathers issued"));
  EXPECT_THAT(title(shown.tile, shown.scene().facts()), HasSubstr("by gather4"));
  const std::vector<PanelCell> rows = of_kind(*copies, kBody, shown.scene(), Kind::tile_row);
  EXPECT_EQ(rows.size(), 16U);
  EXPECT_TRUE(is_lit(shown.tile,
                     resolve(shown.scene().state(), shown.scene().facts(), &shown.tile, of_tile_row(5)).tile,
                     rows[5].object));
  shown.pin(of_tile_row(5));
  EXPECT_THAT(chain(shown.tile, shown.now, shown.scene().pinned_lit.tile), HasSubstr("Gather 1 copied it"));
  EXPECT_FALSE(staged_tile({})->gathers());
}

TEST(TileSourceView, NothingLeavesItsPanelAtAnyTextSizeAndTheme) {
  for (const ThemeKind kind : kThemeKinds) {
    for (const double scale : {1.0, 1.6, 2.5}) {
      for (const QSizeF size : {QSizeF(264, 472), QSizeF(264, 200), QSizeF(150, 300), QSizeF(500, 800)}) {
        Shown shown(kind, scale);
        shown.pin(of_tile_row(7));
        const QRectF body(QPointF(12, 12), size);
        const QSize image((size + QSizeF(24, 24)).toSize());
        const QRect within = body.adjusted(-3, -3, 3, 3).toAlignedRect();
        for (const auto& panel : {make_copies_panel(), make_memory_panel()}) {
          EXPECT_EQ(spilled(painted(*panel, body, shown.scene(), image), within), 0) << scale << ' ' << size.width();
        }
        shown.no_tile();
        EXPECT_EQ(spilled(painted(*make_copies_panel(), body, shown.scene(), image), within), 0);
      }
    }
  }
}

// A picture that is exported has the reasons and the scales that the window shows: the scene alone decides.
TEST(TileSourceView, ScalesAreDrawnOnlyForARowWithAToken) {
  Shown shown;
  shown.tile.opened.tokens = 20;
  shown.tile.source.scales->place.resize(20);
  shown.tile.source.scales->row.resize(20);
  const auto memory = make_memory_panel();
  EXPECT_EQ(of_kind(*memory, kBody, shown.scene(), Kind::tile_scale).size(), 40U);
  EXPECT_THAT(memory->summary(shown.scene()).toStdString(), HasSubstr("2 f32 scales a row, one for 32 elements"));
}

}  // namespace
}  // namespace kvscope::viz::tile_source_view_test
