// The panels of shared memory and of copies through LDS over a staged tile: what is drawn is found again, both grids
// lead to the same chunk, colors change when a chunk lands, and nothing is painted outside the body.
#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "core/staging/focus.h"
#include "core/staging/staging_events.h"
#include "tests/viz/view/pool_scene.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_request.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"
#include "viz/view/panel.h"
#include "viz/view/shared_paint.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"

namespace kvscope::viz::shared_panel_test {
namespace {

constexpr QSize kSize(560, 520);
const QRectF kBody(20, 20, 480, 470);

// Tokens 64 to 127 of 150, pages of 64: K of a head of 64 bf16.
Tile tile_by(StagingPath path) {
  Scenario scenario;
  scenario.name = "panels";
  scenario.model = {"custom", 1, 2, 1, 64, false, 64};
  scenario.cache.dtype = DType::bf16;
  scenario.cache.page_size = 64;
  scenario.cache.blocks = 8;
  scenario.requests.list = {Request{0, 150, 3, {}}};
  scenario.tile = {.BN = 64, .BK = 64};
  trace::Recorder off;
  const EngineRun run = run_engine(scenario, scenario.requests.list, off);
  const CacheState state = kvscope::state_at(scenario, scenario.requests.list, focus_step(scenario, run.report)).cache;
  TileQuestion question;
  question.path = path;
  question.seq = SeqIdx{0};
  question.tile = 1;
  trace::MemoryRecorder recorder;
  record_tile(scenario, state, question, recorder);
  return fold_tile(recorder.events());
}

struct TileScene {
  Staged staged{run_of(10, one_of_each())};
  Tile tile;
  TileState now;

  explicit TileScene(StagingPath path) : tile(tile_by(path)) { go(event_of_landed(tile)); }
  void go(std::int64_t event) {
    now = tile_state(tile, event);
    staged.scene.tile = &tile;
    staged.scene.tile_now = &now;
  }
  void pin(const Selection& selection) {
    staged.scene.pinned = selection;
    staged.scene.pinned_lit = resolve(staged.scene.state(), staged.scene.facts(), &tile, selection);
  }
  [[nodiscard]] const Scene& scene() const { return staged.scene; }
};

TEST(SharedPanel, EveryCellIsHitAndAnArrowMovesToAnotherChunk) {
  const std::unique_ptr<Panel> panel = make_shared_panel();
  for (const StagingPath path : {StagingPath::tma, StagingPath::lds}) {
    const TileScene of(path);
    const std::vector<PanelCell> cells = panel->cells(kBody, of.scene(), 10'000);
    ASSERT_GT(cells.size(), 200U);
    for (const PanelCell& cell : cells) {
      ASSERT_TRUE(kBody.contains(cell.rect));
      ASSERT_EQ(panel->hit(cell.rect.center(), kBody, of.scene()), cell.object);
      ASSERT_FALSE(cell.name.isEmpty());
    }
    EXPECT_EQ(panel->moved(cells[0].object, Move::right, kBody, of.scene()), cells[1].object);
  }
}

// Without the swizzle a row's chunks are in order: the second grid's first line is c0, c1, ... of row 0.
TEST(SharedPanel, TheSecondGridLeadsToTheSameChunks) {
  const std::unique_ptr<Panel> panel = make_shared_panel();
  const TileScene of(StagingPath::tma);
  const std::vector<PanelCell> cells = panel->cells(kBody, of.scene(), 16);
  const double y = cells[8].rect.center().y();  // row 1
  std::vector<std::int64_t> columns;
  for (double x = kBody.left(); x < kBody.right(); ++x) {
    const Selection at = panel->hit({x, y}, kBody, of.scene());
    if (at.none()) continue;
    EXPECT_EQ(at.element.row, 1);
    if (columns.empty() || columns.back() != at.element.column) columns.push_back(at.element.column);
  }
  EXPECT_THAT(columns, testing::ElementsAre(8, 0, 24, 16, 40, 32, 56, 48, 0, 8, 16, 24, 32, 40, 48, 56));
}

// Each layout is a chip. Under each, every chunk is found again where the layout places it, and a chip is found as such.
TEST(SharedPanel, ALayoutThatIsChosenIsShownBesideTheTilesOwn) {
  const std::unique_ptr<Panel> panel = make_shared_panel();
  TileScene of(StagingPath::tma);
  SharedLayouts all;
  all.of(of.tile);
  ASSERT_EQ(all.layouts.size(), 5U);
  for (std::size_t layout = 0; layout < all.layouts.size(); ++layout) {
    of.staged.scene.tile_layout = layout;
    const SharedNow now = shared_now(all, kBody, of.scene());
    ASSERT_EQ(now.at.chips.size(), all.layouts.size());
    EXPECT_EQ(panel->hit(now.at.chips[layout].center(), kBody, of.scene()),
              of_tile_layout(static_cast<std::int64_t>(layout)));
    ASSERT_FALSE(now.at.grid_off.isEmpty());
    int found = 0;
    for (const TileChunk& chunk : of.tile.chunks) {
      const std::int64_t slot = placed(of.tile, all.layouts[layout], chunk.shared) / kTileChunkBytes;
      const QPointF at = now.at.cell_rect({slot / 8, slot % 8, true}).center();
      if (!now.at.grid_off.contains(at)) continue;  // scrolled away
      ASSERT_EQ(panel->hit(at, kBody, of.scene()), of_tile_chunk({chunk.row, chunk.column}));
      ++found;
    }
    EXPECT_GT(found, 100);
    EXPECT_NE(panel->cells(kBody, of.scene(), 10'000).back().name.indexOf(QStringLiteral("64 wavefronts")), -1);
  }
}

// Through LDS the names have eight letters: in a narrow panel a chip has two lines, so that each layout has its name.
TEST(SharedPanel, AChipHasTheNameOfItsLayoutAndItsWavefronts) {
  TileScene of(StagingPath::lds);
  SharedLayouts all;
  all.of(of.tile);
  std::vector<std::string> names;
  for (const TileLayout& layout : all.layouts) names.push_back(layout.name);
  EXPECT_THAT(names, testing::ElementsAre("none", "(3,0,3)", "(3,0,4)", "+16 B", "+32 B")) << "as lds.swizzle has them";
  EXPECT_TRUE(all.layouts[2].stored);
  for (const double scale : {1.0, 1.6}) {
    of.staged.scene.font_scale = scale;
    for (const double width : {900.0, 620.0, 340.0}) {
      const QRectF body(20, 20, width * scale, 470 * scale);
      const SharedNow now = shared_now(all, body, of.scene());
      ASSERT_EQ(now.at.chips.size(), names.size());
      const QFont font = ui_font(of.scene().px(kSharedChipText));
      for (std::size_t n = 0; n < names.size(); ++n) {
        const bool two_lines = now.at.chips[n].height() > of.scene().px(20);
        const QString longest = two_lines ? QString::fromStdString(names[n]) : chip_text(all.layouts[n], all.costs[n]);
        EXPECT_LE(text_width(font, longest), now.at.chips[n].width() - 4) << names[n] << ' ' << width;
      }
    }
  }
}

TEST(SharedPanel, AChunkIsFilledWithItsRowsColorOnceItHasLanded) {
  const std::unique_ptr<Panel> panel = make_shared_panel();
  TileScene of(StagingPath::tma);
  const PanelCell cell = panel->cells(kBody, of.scene(), 100).at(17);
  const TileElement element = cell.object.element;
  const std::int64_t landed = of.tile.chunks[static_cast<std::size_t>(*of.tile.chunk_of(element))].event + 1;
  const QColor color = tile_row_color(*of.scene().theme, of.tile, element.row);
  const QPoint corner = (cell.rect.topLeft() + QPointF(2, 1)).toPoint();
  const auto filled = [&] {
    return QColor(painted(*panel, kBody, of.scene(), kSize).pixel(corner)) == QColor(color.rgb());
  };
  of.go(landed);
  EXPECT_TRUE(filled());
  of.go(landed - 1);
  EXPECT_FALSE(filled());
  of.go(0);
  EXPECT_FALSE(filled());
}

TEST(SharedPanel, RevealingScrollsToASelectedChunk) {
  const std::unique_ptr<Panel> panel = make_shared_panel();
  TileScene of(StagingPath::tma);
  const Selection last = of_tile_chunk({63, 0});
  const Lit lit = resolve(of.scene().state(), of.scene().facts(), &of.tile, last);
  EXPECT_FALSE(panel->anchor(lit, kBody, of.scene()));
  of.staged.look(PanelId::shared, panel->revealing(last, kBody, of.scene()));
  const auto at = panel->anchor(lit, kBody, of.scene());
  ASSERT_TRUE(at);
  EXPECT_EQ(panel->hit(at->center(), kBody, of.scene()), last);
}

// A link ends beside the line: the chunk is in the line, and no chunk of another row is.
TEST(SharedPanel, LinksEndBesideTheLineOfTheSelectedChunk) {
  const std::unique_ptr<Panel> panel = make_shared_panel();
  TileScene of(StagingPath::tma);
  const Selection chunk = of_tile_chunk({6, 24});
  const Lit lit = resolve(of.scene().state(), of.scene().facts(), &of.tile, chunk);
  const auto at = panel->link_anchor(lit, kBody, of.scene());
  ASSERT_TRUE(at);
  EXPECT_TRUE(kBody.contains(*at));
  bool found = false;
  for (double x = at->left(); x < at->right(); ++x) {
    const Selection under = panel->hit({x, at->center().y()}, kBody, of.scene());
    EXPECT_TRUE(under.none() || under.element.row == 6);
    found = found || under == chunk;
  }
  EXPECT_TRUE(found);
}

TEST(LdsCopies, EveryCellIsHitAndLeadsToARow) {
  const std::unique_ptr<Panel> panel = make_copies_panel();
  const TileScene of(StagingPath::lds);
  const QRectF body(20, 20, 265, 440);
  const std::vector<PanelCell> cells = panel->cells(body, of.scene(), 10'000);
  // 64 rows of 2 bands, each row of a band in one copy.
  EXPECT_EQ(cells.size(), 128U);
  for (const PanelCell& cell : cells) {
    ASSERT_TRUE(body.contains(cell.rect));
    ASSERT_EQ(panel->hit(cell.rect.center(), body, of.scene()), cell.object);
    ASSERT_EQ(cell.object.kind, Selection::Kind::tile_row);
  }
}

int pixels_of(const QImage& image, const QColor& color) {
  int count = 0;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) count += image.pixel(x, y) == color.rgb() ? 1 : 0;
  }
  return count;
}

// Until the last wave has waited a read would come too early: that is written in red, and after it no longer.
TEST(LdsCopies, AReadThatWouldComeTooEarlyIsWrittenInRedUntilEveryWaveHasWaited) {
  const std::unique_ptr<Panel> panel = make_copies_panel();
  TileScene of(StagingPath::lds);
  const QRectF body(20, 20, 265, 440);
  for (const TileAction& action : of.tile.actions) {
    if (action.kind == TileAction::Kind::read) break;
    of.go(action.end);
    const QImage image = painted(*panel, body, of.scene(), kSize);
    EXPECT_EQ(pixels_of(image, of.scene().theme->warning) > 0, !of.now.complete) << action.end;
  }
  EXPECT_TRUE(of.now.complete);
}

// A wait that allows a copy too many: the read behind it is announced while nothing has been read yet.
TEST(LdsCopies, AReadThatWillComeTooEarlyIsAnnouncedBeforeItHappens) {
  const std::unique_ptr<Panel> panel = make_copies_panel();
  TileScene of(StagingPath::lds);
  for (TileWait& wait : of.tile.waits) wait.allowed = 1;
  of.go(event_of_landed(of.tile));
  const QImage image = painted(*panel, QRectF(20, 20, 265, 440), of.scene(), kSize);
  EXPECT_GT(pixels_of(image, of.scene().theme->warning), 0);
}

TEST(TilePanels, PaintInAnyBodyAtAnyTimeAndTextSize) {
  const std::unique_ptr<Panel> shared = make_shared_panel(), copies = make_copies_panel();
  for (const StagingPath path : {StagingPath::tma, StagingPath::lds}) {
    TileScene of(path);
    of.pin(of_tile_chunk({6, 24}));
    for (const double scale : {0.75, 1.0, 2.5}) {
      of.staged.scene.font_scale = scale;
      for (const QSizeF size : {QSizeF(100, 60), QSizeF(265, 440), QSizeF(480, 470)}) {
        for (const std::int64_t event : {std::int64_t{0}, of.tile.events / 3, of.tile.events}) {
          of.go(event);
          const QRectF body(QPointF(20, 20), size);
          EXPECT_FALSE(painted(*shared, body, of.scene(), kSize).isNull());
          EXPECT_FALSE(painted(*copies, body, of.scene(), kSize).isNull());
        }
      }
    }
  }
}

// The grids, strips and words of shared memory stay in the body, outlines of 2 px aside.
TEST(SharedPanel, PaintsNothingBesideItsBody) {
  const std::unique_ptr<Panel> panel = make_shared_panel();
  for (const StagingPath path : {StagingPath::tma, StagingPath::lds}) {
    TileScene of(path);
    of.pin(of_tile_chunk({6, 24}));
    for (const double scale : {0.75, 1.0, 1.6}) {
      of.staged.scene.font_scale = scale;
      for (const QSize size : {QSize(240, 200), QSize(397, 260), QSize(480, 470)}) {
        const QRect body(QPoint(20, 20), size);
        EXPECT_EQ(spilled(painted(*panel, body, of.scene(), kSize), body.adjusted(-2, -2, 2, 2)), 0)
            << size.width() << " " << scale;
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::viz::shared_panel_test
