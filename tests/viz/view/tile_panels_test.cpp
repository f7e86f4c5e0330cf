// The panels of registers and of events: what is under the pointer, what is lit, what the pixels of a register look like
// before and after its read, and words that name what is not shown.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/viz/geometry/staged_tile.h"
#include "tests/viz/view/drawn_texts.h"
#include "tests/viz/view/pool_scene.h"
#include "viz/geometry/registers_layout.h"
#include "viz/geometry/tile_events_layout.h"
#include "viz/playback/happened.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"
#include "viz/view/paint_board.h"
#include "viz/view/text.h"
#include "viz/view/tile_paint.h"

namespace kvscope::viz::tile_panels_test {
namespace {

using testing::HasSubstr;
using testing_support::staged_tile;
using testing_support::TileOrder;

const QRectF kRegisters(10, 10, 354, 472), kEvents(10, 10, 1300, 96);
const QSize kImage(1330, 500);

struct Shown {
  Staged staged{run_of(10, one_of_each())};
  Tile tile;
  TileState now;

  explicit Shown(const TileOrder& order, ThemeKind kind = ThemeKind::dark) : tile(*staged_tile(order)) {
    staged.scene.theme = &theme(kind);
    staged.scene.tile = &tile;
    staged.scene.tile_now = &now;
    at(event_of_landed(tile));
  }
  void at(std::int64_t event) { now = tile_state(tile, event); }
  void pin(const Selection& selection) {
    staged.scene.pinned = selection;
    staged.scene.pinned_lit = resolve(staged.scene.state(), staged.scene.facts(), &tile, selection);
  }
  void hover(const Selection& selection) {
    staged.scene.hovered = selection;
    staged.scene.hovered_lit = resolve(staged.scene.state(), staged.scene.facts(), &tile, selection);
  }
  const Scene& scene() const { return staged.scene; }
};

bool is_untouched_outside(const QImage& image, const QRectF& body) {
  const QRect within = body.adjusted(-3, -3, 3, 3).toAlignedRect();
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      if (!within.contains(x, y) && image.pixelColor(x, y) != QColor(kUntouched)) return false;
    }
  }
  return true;
}

using MakePanel = std::unique_ptr<Panel> (*)();
constexpr std::array<MakePanel, 6> kTilePanels{make_tile_sequence_panel, make_memory_panel,    make_copies_panel,
                                               make_shared_panel,        make_registers_panel, make_tile_events_panel};

// A kernel's trace has tiles and no cache: the lookup table of its sequence is that of no run.
TEST(TilePanels, ATileOfASequenceThatTheRunDoesNotHaveIsShown) {
  Shown shown(TileOrder{});
  shown.tile.opened.seq = SeqIdx{1000};
  for (const MakePanel make : kTilePanels) {
    const auto panel = make();
    EXPECT_TRUE(is_untouched_outside(painted(*panel, kRegisters, shown.scene(), kImage), kRegisters));
    EXPECT_FALSE(panel->cells(kRegisters, shown.scene(), 100).empty());
  }
}

// cp.async of a kernel: 512 bytes whose rows, columns and swizzle only its source defines, read by ld.shared.
TEST(TilePanels, ATileWithoutRowsIsShownByItsBytes) {
  std::vector<trace::Event> events;
  trace::TileOpened opened;
  opened.bytes = 512;
  events.emplace_back(opened);
  events.emplace_back(trace::TileShared{4, 128, -1, 0, 0, 32, 1});
  trace::TileFragments fragments;
  fragments.instruction = trace::ReadInstruction::ld_shared;
  fragments.width = 16;
  fragments.lanes = 32;
  fragments.warps = 1;
  events.emplace_back(fragments);
  for (std::int64_t phase = 0; phase < 4; ++phase) events.emplace_back(trace::BankPhase{phase, 0xffLL << 8 * phase, 0});
  events.emplace_back(trace::LdsCopied{});
  for (std::int64_t lane = 0; lane < 32; ++lane) {
    events.emplace_back(trace::ChunkLanded{0, -1, -1, 4096 + 16 * lane, 16 * lane});
  }
  events.emplace_back(trace::WaveWaited{0, 1, 0});
  events.emplace_back(trace::FragmentRead{0, 0, 0, 4, 4, 0});
  for (std::int64_t lane = 0; lane < 32; ++lane) events.emplace_back(trace::LaneRead{0, lane, 16 * lane});
  Shown shown(TileOrder{});
  shown.tile = fold_tile(events);
  EXPECT_FALSE(shown.tile.swizzle_known());
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{20}, shown.tile.events}) {
    shown.at(at);
    for (const MakePanel make : kTilePanels) {
      const auto panel = make();
      const QImage image = painted(*panel, kRegisters, shown.scene(), kImage);
      EXPECT_TRUE(is_untouched_outside(image, kRegisters)) << panel->title().toStdString() << ' ' << at;
    }
  }
  EXPECT_THAT(title(shown.tile, shown.scene().facts()), HasSubstr("tokens unknown"));
  EXPECT_THAT(title(shown.tile, shown.scene().facts()), HasSubstr("by cp.async, swizzle unknown"));
  EXPECT_THAT(make_registers_panel()->summary(shown.scene()).toStdString(), HasSubstr("no rows and columns"));
}

TEST(RegistersPanel, EveryCellLeadsToItsRegisterAndBack) {
  for (const TileOrder& order : {TileOrder{}, TileOrder{.kv = KOrV::v}, TileOrder{.dtype = DType::e4m3, .kv = KOrV::v},
                                 TileOrder{.path = StagingPath::lds, .page = 64},
                                 TileOrder{.path = StagingPath::lds, .kv = KOrV::v, .page = 64}}) {
    Shown shown(order);
    const auto panel = make_registers_panel();
    const std::vector<PanelCell> cells = panel->cells(kRegisters, shown.scene(), 100000);
    ASSERT_GT(cells.size(), 100U);
    for (const PanelCell& cell : cells) {
      ASSERT_EQ(panel->hit(cell.rect.center(), kRegisters, shown.scene()), cell.object);
      ASSERT_FALSE(cell.name.isEmpty());
      const Lit lit = resolve(shown.scene().state(), shown.scene().facts(), &shown.tile, cell.object);
      ASSERT_TRUE(panel->anchor(lit, kRegisters, shown.scene()));
    }
  }
}

TEST(RegistersPanel, ARegisterIsAnOutlineUntilItIsReadAndThenHasTheColorOfItsRow) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
    Shown shown({}, kind);
    const auto panel = make_registers_panel();
    const RegistersLayout layout = registers_layout(shown.tile, 0, std::nullopt, 0, kRegisters, 1);
    const QPoint inside = (layout.cell(shown.tile, 26 * 4)->topLeft() + QPointF(2, 2)).toPoint();
    const auto pixel = [&] { return painted(*panel, kRegisters, shown.scene(), kImage).pixelColor(inside); };
    const TileFill& fill = shown.tile.fills[26 * 4];
    ASSERT_EQ(fill.reg, (TileRegister{0, 26, 0, 0}));
    const QColor row = tile_row_color(theme(kind), shown.tile, fill.row);
    shown.at(fill.event);
    EXPECT_NE(pixel(), row);
    shown.at(fill.event + 1);
    EXPECT_EQ(pixel().rgb(), row.rgb());
  }
}

TEST(RegistersPanel, TheGridFollowsThePinnedSelectionAndAPieceUnderThePointer) {
  Shown shown({});
  const auto panel = make_registers_panel();
  const auto shows = [&](const TileRegister& reg) {
    const auto cells = panel->cells(kRegisters, shown.scene(), 100000);
    return std::ranges::count(cells, of_tile_register(reg), &PanelCell::object) == 1 &&
           std::ranges::count_if(cells, [&](const PanelCell& cell) { return cell.object.reg.index == reg.index; }) > 8;
  };
  EXPECT_TRUE(shows({0, 26, 0, 0}));
  shown.pin(of_tile_register({0, 26, 13, 0}));
  EXPECT_TRUE(shows({0, 26, 13, 0}));
  EXPECT_FALSE(shows({0, 26, 0, 0}));
  shown.hover(of_tile_register({0, 3, 20, 0}));
  EXPECT_TRUE(shows({0, 3, 20, 0}));
  shown.hover({});
  EXPECT_TRUE(shows({0, 26, 13, 0}));
}

TEST(RegistersPanel, TokensOfSeveralReadsAreLitInTheGridAndInThePieces) {
  Shown shown({});
  const auto panel = make_registers_panel();
  const QImage before = painted(*panel, kRegisters, shown.scene(), kImage);
  shown.pin(of_tile_row(6));
  const QImage after = painted(*panel, kRegisters, shown.scene(), kImage);
  const RegistersLayout layout = registers_layout(shown.tile, 0, std::nullopt, 0, kRegisters, 1);
  const auto changed = [&](QPointF at) { return before.pixel(at.toPoint()) != after.pixel(at.toPoint()); };
  EXPECT_TRUE(changed(layout.element(shown.tile, {6, 4})->topLeft() + QPointF(4, -1)));
  EXPECT_FALSE(changed(layout.element(shown.tile, {9, 4})->topLeft() + QPointF(4, -1)));
  for (std::size_t n = 0; n < 4; ++n) EXPECT_TRUE(changed(layout.pieces[n].rect.topLeft() + QPointF(4, -1))) << n;
}

TEST(RegistersPanel, ATileWithoutRegistersShowsTheReason) {
  Shown shown({.dtype = DType::f32});
  const auto panel = make_registers_panel();
  EXPECT_THAT(panel->summary(shown.scene()).toStdString(), HasSubstr("elements of 8 and 16 bits, and these have 32"));
  EXPECT_TRUE(panel->cells(kRegisters, shown.scene(), 100).empty());
  EXPECT_TRUE(panel->hit(kRegisters.center(), kRegisters, shown.scene()).none());
  const QImage image = painted(*panel, kRegisters, shown.scene(), kImage);
  bool words = false;
  for (int x = 10; x < 300; ++x) words = words || image.pixelColor(x, 22) != QColor(kUntouched);
  EXPECT_TRUE(words);
}

TEST(RegistersPanel, AWheelTurnShowsLinesThatDoNotFit) {
  Shown shown({.path = StagingPath::lds, .page = 64});
  const QRectF low(0, 0, 294, 330);
  const auto panel = make_registers_panel();
  const Viewport moved = panel->scrolled({0, 60}, low, shown.scene());
  EXPECT_GT(moved.offset.y(), 0);
  shown.staged.look(PanelId::registers, moved);
  const auto cells = panel->cells(low, shown.scene(), 100000);
  EXPECT_EQ(std::ranges::count(cells, of_tile_register({0, 0, 0, 0}), &PanelCell::object), 0);
  EXPECT_EQ(panel->revealing(of_tile_row(3), low, shown.scene()), Viewport{});
  // Where all lines fit nothing moves.
  EXPECT_EQ(panel->scrolled({0, 60}, QRectF(0, 0, 400, 1400), shown.scene()), Viewport{});
}

TEST(TileEventsPanel, APlaceIsAnEventAndKeysGoFromActionToAction) {
  Shown shown({});
  const auto panel = make_tile_events_panel();
  const TileEventsLayout layout = tile_events_layout(shown.tile, 0, 0, kEvents, 1);
  const std::int64_t event = shown.tile.reads[3].event + 20;
  EXPECT_EQ(panel->hit({layout.axis.x_of(event), 40}, kEvents, shown.scene()), of_tile_event(event));
  EXPECT_TRUE(panel->hit({12, 40}, kEvents, shown.scene()).none());
  std::vector<std::int64_t> visited;
  for (Selection at = of_tile_event(0); visited.empty() || at.event != visited.back();) {
    visited.push_back(at.event);
    at = panel->moved(at, Move::right, kEvents, shown.scene());
  }
  ASSERT_EQ(visited.size(), shown.tile.actions.size() + 1);
  for (std::size_t n = visited.size(); n-- > 1;) {
    EXPECT_EQ(panel->moved(of_tile_event(visited[n]), Move::left, kEvents, shown.scene()),
              of_tile_event(visited[n - 1]));
  }
  EXPECT_EQ(panel->moved({}, Move::last, kEvents, shown.scene()), of_tile_event(shown.tile.events));
}

// Regression: while the header read "Read 2: 4 wavefronts", two panels read "read 3 of 8".
TEST(TilePanels, AReadHasOneNumberInTheHeaderAndEveryPanel) {
  for (const TileOrder& order : {TileOrder{}, TileOrder{.path = StagingPath::lds, .page = 64}}) {
    Shown shown(order);
    for (const std::size_t n : {std::size_t{0}, std::size_t{2}, shown.tile.reads.size() - 1}) {
      const TileRead& read = shown.tile.reads[n];
      shown.at(read.event + 1);
      const std::string words = "ead " + std::to_string(read.number);
      EXPECT_THAT(what_happened(shown.tile, shown.now), HasSubstr(words + ":"));
      TextDevice device({1600, 1000});
      QPainter painter(&device);
      shown.staged.scene.view = View::tile;
      paint_board(painter, {1600, 1000}, make_panels(), shown.scene());
      painter.end();
      std::vector<std::string> texts;
      for (const DrawnText& text : device.texts()) {
        if (text.text.contains(QStringLiteral("ead "))) texts.push_back(text.text.toStdString());
      }
      EXPECT_THAT(texts, testing::Contains(testing::StartsWith("R" + words + ": registers ")));
      EXPECT_THAT(texts, testing::Contains(testing::StartsWith("r" + words + ", ")));
    }
  }
}

TEST(TileEventsPanel, EveryActionIsNamedOnce) {
  Shown shown({});
  const auto panel = make_tile_events_panel();
  std::vector<std::string> names;
  std::int64_t before = 0;
  for (const PanelCell& cell : panel->cells(kEvents, shown.scene(), 1000)) {
    EXPECT_GT(cell.object.event, before);
    before = cell.object.event;
    names.push_back(cell.name.toStdString());
  }
  ASSERT_EQ(names.size(), shown.tile.actions.size() - 1);  // all but tile_opened
  EXPECT_EQ(names[0], "thread 0, expect 8,192 B");
  EXPECT_EQ(names[1], "TMA, box 0");
  EXPECT_THAT(names[5], HasSubstr("barrier, phase 0: all 8,192 B have landed"));
  EXPECT_EQ(names[6], "warps, read 0: r0–3, 4 wavefronts");
}

TEST(TileEventsPanel, AReadThatWouldComeTooEarlyIsWrittenBeforeItHappens) {
  Shown shown({});
  const auto panel = make_tile_events_panel();
  const TileEventsLayout layout = tile_events_layout(shown.tile, 0, 0, kEvents, 1);
  const auto wait = std::ranges::find(layout.bars, TileEventBar::Kind::wait, &TileEventBar::kind);
  const auto red = [&] {
    const QImage image = painted(*panel, kEvents, shown.scene(), kImage);
    int pixels = 0;
    for (int y = static_cast<int>(wait->rect.top()); y < wait->rect.bottom(); ++y) {
      for (int x = static_cast<int>(wait->rect.left()); x < wait->rect.right(); ++x) {
        const QColor at = image.pixelColor(x, y);
        pixels += at.red() > at.green() + 60 && at.red() > at.blue() + 40 ? 1 : 0;
      }
    }
    return pixels;
  };
  EXPECT_EQ(red(), 0) << "complete";
  shown.at(shown.tile.copies[1].event);
  EXPECT_GT(red(), 20);
}

TEST(TileEventsPanel, CopiesAndReadsOfThePinnedTokenAreMarked) {
  Shown shown({});
  const auto panel = make_tile_events_panel();
  const TileEventsLayout layout = tile_events_layout(shown.tile, 0, 0, kEvents, 1);
  const QImage before = painted(*panel, kEvents, shown.scene(), kImage);
  shown.pin(of_tile_row(20));  // on the second page: box 1, reads 4 to 7
  const QImage after = painted(*panel, kEvents, shown.scene(), kImage);
  for (const TileEventBar& bar : layout.bars) {
    if (bar.kind != TileEventBar::Kind::flight && bar.kind != TileEventBar::Kind::read) continue;
    const QPoint edge(static_cast<int>(bar.rect.center().x()) + 3, static_cast<int>(bar.rect.bottom()));
    const bool lit = bar.kind == TileEventBar::Kind::flight ? bar.index == 1 : bar.index >= 4 && bar.index < 8;
    EXPECT_EQ(before.pixel(edge) != after.pixel(edge), lit) << static_cast<int>(bar.kind) << ' ' << bar.index;
  }
}

TEST(TilePanels, NothingIsPaintedOutsideTheBody) {
  for (const TileOrder& order : {TileOrder{}, TileOrder{.path = StagingPath::lds, .page = 64}}) {
    Shown shown(order);
    shown.pin(of_tile_row(6));
    for (const double scale : {0.75, 1.0, 1.6, 2.5}) {
      shown.staged.scene.font_scale = scale;
      for (const QSizeF size : {QSizeF(100, 60), QSizeF(294, 330), QSizeF(354, 472)}) {
        const QRectF body(QPointF(20, 15), size);
        for (const auto& panel : {make_registers_panel(), make_tile_events_panel()}) {
          QImage image(420, 520, QImage::Format_ARGB32_Premultiplied);
          image.fill(kUntouched);
          QPainter painter(&image);
          painter.setClipRect(body.adjusted(-3, -3, 3, 3));  // as the board does
          panel->paint_base(painter, body, shown.scene());
          panel->paint_overlay(painter, body, shown.scene());
          painter.end();
          EXPECT_TRUE(is_untouched_outside(image, body));
          for (const PanelCell& cell : panel->cells(body, shown.scene(), 1000)) {
            EXPECT_TRUE(body.contains(cell.rect)) << size.width() << ' ' << scale;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::viz::tile_panels_test
