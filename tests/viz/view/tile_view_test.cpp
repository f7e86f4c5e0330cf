// The panels of the tile view: the object at a point is the one drawn there, a selection highlights the same row in
// every panel, and the cached pixels do not depend on the selection.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "core/staging/focus.h"
#include "core/staging/staging_events.h"
#include "tests/viz/view/drawn_texts.h"
#include "tests/viz/view/runs.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"
#include "viz/view/board_links.h"
#include "viz/view/paint_board.h"
#include "viz/view/tile_paint.h"

namespace kvscope::viz::tile_view_test {
namespace {

// A scene of the tile view: a scenario of the gallery at one step, and one of its tiles.
struct Shown {
  std::shared_ptr<const Run> run;
  Cursor cursor;
  std::shared_ptr<const Tile> tile;
  TileState now;
  Panels panels = make_panels();
  QSizeF size{1600, 1000};
  Scene scene;

  Shown(const std::string& name, StepIdx step, const TileQuestion& question)
      : run(gallery_run(name)), cursor(run), tile(stage(*run->facts().scenario, step, question)) {
    cursor.seek_row(step.value + 1);
    stand(event_of_landed(*tile));
    scene.cursor = &cursor;
    scene.theme = &theme(ThemeKind::dark);
    scene.view = View::tile;
    scene.tile = tile.get();
    scene.tile_now = &now;
  }
  void stand(std::int64_t event) { now = tile_state(*tile, event); }
  void pin(const Selection& selection) {
    scene.pinned = selection;
    scene.pinned_lit = resolve(scene.state(), scene.facts(), scene.tile, selection);
  }
  [[nodiscard]] const Panel& panel(PanelId id) const { return *panels[static_cast<std::size_t>(id)]; }
  [[nodiscard]] QImage base() const {
    QImage image(size.toSize(), QImage::Format_RGB32);
    QPainter painter(&image);
    paint_board_base(painter, size, panels, scene);
    return image;
  }

  [[nodiscard]] std::vector<DrawnText> texts(QSizeF board) const {
    TextDevice device(board.toSize());
    QPainter painter(&device);
    paint_board_base(painter, board, panels, scene);
    painter.end();
    return device.texts();
  }

  static std::shared_ptr<const Tile> stage(const Scenario& scenario, StepIdx step, const TileQuestion& question) {
    const std::filesystem::path folder = std::filesystem::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";
    trace::MemoryRecorder recorder;
    record_tile(scenario, kvscope::state_at(scenario, make_requests(scenario, folder), step).cache, question, recorder);
    return std::make_shared<const Tile>(fold_tile(recorder.events()));
  }
};

Shown shown(const char* name, std::int64_t step, KOrV kv) {
  TileQuestion question;
  question.kv = kv;
  return Shown(name, StepIdx{step}, question);
}

const std::vector<PanelId> kOfTile{PanelId::tile_sequence, PanelId::memory,    PanelId::copies,
                                   PanelId::shared,        PanelId::registers, PanelId::tile_events};

TEST(TileView, UnderTheMiddleOfEveryCellIsItsObject) {
  for (const bool latent : {false, true}) {
    Shown s = latent ? shown("mla", 2, KOrV::k) : shown("quantized_e4m3", 1, KOrV::v);
    std::map<PanelId, std::size_t> cells;
    for (const double font : {0.75, 1.0, 2.0}) {
      for (const QSizeF size : {QSizeF(1600, 1000), QSizeF(900, 600)}) {
        s.scene.font_scale = font;
        for (const Place& place : board(View::tile, size, font)) {
          if (std::ranges::find(kOfTile, place.panel) == kOfTile.end()) continue;
          if (place.panel == PanelId::tile_events) continue;  // cells are actions, points are events in them
          const Panel& panel = s.panel(place.panel);
          for (const PanelCell& cell : panel.cells(place.body, s.scene, 500)) {
            ++cells[place.panel];
            if (cell.object.none()) continue;
            ASSERT_TRUE(place.body.adjusted(-1, -1, 1, 1).contains(cell.rect)) << static_cast<int>(place.panel);
            ASSERT_FALSE(cell.name.isEmpty());
            const Selection found = panel.hit(cell.rect.center(), place.body, s.scene);
            ASSERT_EQ(found, cell.object) << panel.title().toStdString() << ' ' << cell.name.toStdString();
          }
        }
      }
    }
    for (const PanelId id : {PanelId::tile_sequence, PanelId::memory, PanelId::copies}) EXPECT_GT(cells[id], 100u);
  }
}

// The links of a row go around the numbers and words of all panels: along gaps between cards and beside cells. At each
// width the cards are in a row, in pairs, or in a column. Regression: the link of a token near the start of its page
// crossed the page's label, and that of a token of the first pages the line below.
TEST(TileView, LinksCrossNoCellAndNoText) {
  Shown s = shown("quantized_e4m3", 1, KOrV::k);
  for (const double font : {1.0, 1.6}) {
    s.scene.font_scale = font;
    for (const double width : {1600.0, 1100.0, 700.0}) {
      const QSizeF size = whole_size(View::tile, {width, 900}, font);
      std::vector<QRectF> cells;
      for (const Place& place : board(View::tile, size, font)) {
        if (std::ranges::find(kOfTile, place.panel) == kOfTile.end()) continue;
        cells.push_back(place.title);
        for (const PanelCell& cell : s.panel(place.panel).cells(place.body, s.scene, 5000)) {
          const double in = std::min(1.2, std::min(cell.rect.width(), cell.rect.height()) / 3);
          cells.push_back(cell.rect.adjusted(in, in, -in, -in));
        }
      }
      ASSERT_GT(cells.size(), 100u);
      const std::size_t without_texts = cells.size();
      for (const DrawnText& text : s.texts(size)) cells.push_back(text.rect);
      ASSERT_GT(cells.size(), without_texts + 100);
      int links = 0;
      for (const std::int64_t token : {0, 1, 2, 16, 17, 18, 32, 40, 49, 63}) {
        s.pin(of_token(SeqIdx{0}, TokIdx{token}));
        for (const Link& link : board_links(size, s.panels, s.scene, s.scene.pinned_lit)) {
          ++links;
          for (const LinkPath& part : link.parts) {
            for (int i = 0; i <= 100; ++i) {
              const QPointF at = point_at(part, i / 100.0);
              const auto crossed = std::ranges::find_if(cells, [&](const QRectF& c) { return c.contains(at); });
              ASSERT_EQ(crossed, cells.end())
                  << width << " at " << font << ": token " << token << " at " << at.x() << ' ' << at.y() << " of "
                  << crossed->left() << ' ' << crossed->top() << ' ' << crossed->right() << ' ' << crossed->bottom();
            }
          }
        }
      }
      EXPECT_GE(links, 20) << width << " at " << font;
    }
  }
}

TEST(TileView, ATokenStandsInEveryPanelThatHasRows) {
  Shown s = shown("quantized_e4m3", 1, KOrV::k);
  for (const std::int64_t token : {0, 17, 63}) {
    s.pin(of_token(SeqIdx{0}, TokIdx{token}));
    for (const Place& place : board(View::tile, s.size, 1)) {
      if (place.panel != PanelId::tile_sequence && place.panel != PanelId::memory && place.panel != PanelId::copies) {
        continue;
      }
      const auto at = s.panel(place.panel).anchor(s.scene.pinned_lit, place.body, s.scene);
      ASSERT_TRUE(at) << static_cast<int>(place.panel);
      const Selection found = s.panel(place.panel).hit(at->center(), place.body, s.scene);
      const Lit back = resolve(s.scene.state(), s.scene.facts(), s.scene.tile, found);
      EXPECT_EQ(back.token, TokIdx{token});
    }
  }
  s.pin(of_token(SeqIdx{0}, TokIdx{70}));  // of another tile
  const auto places = board(View::tile, s.size, 1);
  const auto memory = std::ranges::find(places, PanelId::memory, &Place::panel);
  EXPECT_EQ(s.panel(PanelId::memory).anchor(s.scene.pinned_lit, memory->body, s.scene), std::nullopt);
}

// The canvas keeps the base as pixels and paints the selection over it.
TEST(TileView, TheBaseDoesNotDependOnTheSelectionAndDoesOnTheEvent) {
  Shown s = shown("quantized_e4m3", 1, KOrV::k);
  const QImage before = s.base();
  s.pin(of_token(SeqIdx{0}, TokIdx{17}));
  EXPECT_TRUE(s.base() == before);
  s.stand(s.now.event - 200);
  EXPECT_FALSE(s.base() == before);
}

TEST(TileView, WithoutATileThePanelOfTheCopiesShowsTheReason) {
  Shown s = shown("quantized_e4m3", 1, KOrV::k);
  s.scene.tile = nullptr;
  s.scene.tile_now = nullptr;
  const QImage without = s.base();
  s.scene.tile_instead = QStringLiteral("dtype: f32 is not staged");
  EXPECT_FALSE(s.base() == without);
  for (const PanelId id : kOfTile) {
    EXPECT_EQ(s.panel(id).summary(s.scene), s.scene.tile_instead);
    EXPECT_TRUE(s.panel(id).cells({0, 0, 400, 300}, s.scene, 100).empty());
    EXPECT_TRUE(s.panel(id).hit({20, 20}, {0, 0, 400, 300}, s.scene).none());
  }
}

TEST(TileView, ArrowsWalkFromRowToRow) {
  Shown s = shown("quantized_e4m3", 1, KOrV::k);
  const QRectF body(0, 0, 300, 480);
  const Panel& memory = s.panel(PanelId::memory);
  const auto token = [](std::int64_t n) { return of_token(SeqIdx{0}, TokIdx{n}); };
  EXPECT_EQ(memory.moved({}, Move::down, body, s.scene), token(0));
  EXPECT_EQ(memory.moved(token(0), Move::down, body, s.scene), token(1));
  EXPECT_EQ(memory.moved(token(15), Move::down, body, s.scene), token(16)) << "over the jump to the next block";
  EXPECT_EQ(memory.moved(token(16), Move::up, body, s.scene), token(15));
  EXPECT_EQ(memory.moved(token(5), Move::last, body, s.scene), token(63));
  EXPECT_EQ(memory.moved(token(5), Move::first, body, s.scene), token(0));
}

// Neighboring rows and neighboring pages must differ, and ink must be legible on both.
TEST(TilePaint, RowsDifferByLightnessPagesByHueAndInkIsLegible) {
  const Shown s = shown("quantized_e4m3", 1, KOrV::k);
  for (const ThemeKind kind : kThemeKinds) {
    const Theme& t = theme(kind);
    for (std::int64_t row = 0; row < 64; ++row) {
      const QColor color = tile_row_color(t, *s.tile, row);
      EXPECT_GE(contrast(tile_ink(t, *s.tile, row, Arrival::there), color), 4.5) << row;
      if (row % 16 == 0) continue;
      const QColor before = tile_row_color(t, *s.tile, row - 1);
      EXPECT_GT(color.lightnessF(), before.lightnessF());
      EXPECT_NEAR(color.hslHueF(), before.hslHueF(), 0.02);
    }
    for (std::int64_t page = 1; page < 4; ++page) {
      const double apart = std::abs(tile_row_color(t, *s.tile, 16 * page).hslHueF() -
                                    tile_row_color(t, *s.tile, 16 * page - 16).hslHueF());
      EXPECT_GT(std::min(apart, 1 - apart), 0.1);
    }
  }
}

}  // namespace
}  // namespace kvscope::viz::tile_view_test
