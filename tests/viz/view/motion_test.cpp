// Motion of the picture: at its two ends it is the still picture to the pixel, in the middle things are on their way;
// the canvas plays it, holds it and moves it by hand.
#include "viz/view/motion.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/viz/geometry/staged_tile.h"
#include "tests/viz/view/canvas_fixture.h"
#include "viz/playback/tile_state.h"
#include "viz/view/paint_board.h"

namespace kvscope::viz::view_motion_test {
namespace {

const QSizeF kBoard(1200, 800);

std::shared_ptr<const Tile> staged_tile(bool lds) {
  using testing_support::TileOrder;
  const auto order = lds ? TileOrder{.path = StagingPath::lds, .page = 64} : TileOrder{};
  return std::make_shared<const Tile>(testing_support::staged_tile(order).value());
}

struct Stage {
  std::shared_ptr<const Run> run;
  Cursor cursor;
  std::shared_ptr<const Tile> tile;
  TileState now;
  Panels panels = make_panels();
  Scene scene;

  Stage(const std::string& name, View view) : run(gallery_run(name)), cursor(run) {
    scene.cursor = &cursor;
    scene.theme = &theme(ThemeKind::dark);
    scene.view = view;
  }
  Still at_row(std::int64_t row) {
    cursor.seek_row(row);
    return Still(scene, {});
  }
  Still at_event(std::int64_t event) {
    now = tile_state(*tile, event);
    scene.tile = tile.get();
    scene.tile_now = &now;
    return Still(scene, {tile, nullptr, nullptr});
  }
  QImage still(const Still& of) const {
    QImage image(kBoard.toSize(), QImage::Format_RGB32);
    QPainter painter(&image);
    paint_board_base(painter, kBoard, panels, of.scene());
    return image;
  }
  QImage between(const Motion& motion, double t) const {
    QImage image(kBoard.toSize(), QImage::Format_RGB32);
    image.fill(Qt::magenta);  // every pixel must be painted
    QPainter painter(&image);
    motion.paint_base(painter, t);
    motion.paint_movers(painter, t);
    return image;
  }
};

TEST(ViewMotion, TheEndsAreTheStillsToThePixel) {
  for (const std::string name : {"first_light", "preemption", "parallel_samples"}) {
    for (const View view : {View::overview, View::sequences, View::pool}) {
      Stage stage(name, view);
      int moving = 0;
      for (std::int64_t row = 1; row < std::min<std::int64_t>(stage.run->facts().rows, 12); ++row) {
        const Still before = stage.at_row(row - 1), after = stage.at_row(row);
        const Motion motion(stage.panels, kBoard, 1, before, after);
        EXPECT_TRUE(stage.between(motion, 0) == stage.still(before)) << name << ' ' << row;
        EXPECT_TRUE(stage.between(motion, 1) == stage.still(after)) << name << ' ' << row;
        if (motion.empty()) continue;
        ++moving;
        EXPECT_FALSE(stage.between(motion, 0.4) == stage.still(before)) << name << ' ' << row;
        EXPECT_FALSE(stage.between(motion, 0.4) == stage.still(after)) << name << ' ' << row;
      }
      EXPECT_GT(moving, 0) << name;
    }
  }
}

TEST(ViewMotion, TheEndsOfATilesActionsAreItsStills) {
  for (const bool lds : {false, true}) {
    Stage stage("quantized_e4m3", View::tile);
    stage.cursor.seek_row(2);
    stage.tile = staged_tile(lds);
    int moving = 0;
    for (std::size_t n = 0; n < std::min<std::size_t>(stage.tile->actions.size(), 24); ++n) {
      const TileAction& action = stage.tile->actions[n];
      const Still before = stage.at_event(action.first), after = stage.at_event(action.end);
      const Motion motion(stage.panels, kBoard, 1, before, after);
      EXPECT_TRUE(stage.between(motion, 0) == stage.still(before)) << n;
      EXPECT_TRUE(stage.between(motion, 1) == stage.still(after)) << n;
      EXPECT_EQ(motion.scene_at(0).tile_now->event, action.first);
      EXPECT_EQ(motion.scene_at(1).tile_now->event, action.end);
      if (motion.empty()) continue;
      ++moving;
      EXPECT_FALSE(stage.between(motion, 0.6) == stage.still(before)) << n;
      EXPECT_FALSE(stage.between(motion, 0.6) == stage.still(after)) << n;
    }
    EXPECT_GT(moving, 4);
  }
}

// m, l and o while tiles of the flow are added; the flow's numbers are made up, with tiles that raise m and others.
std::shared_ptr<const AttentionFlow> a_flow() {
  auto flow = std::make_shared<AttentionFlow>();
  flow->request.tile_keys = 8;
  flow->keys = 40;
  flow->queries = flow->heads = 1;
  const std::vector<double> largest{1, 1, 3, 3, 3.5}, tile_sum{2, 1, 4, 0.5, 1};
  double m = -INFINITY, l = 0;
  std::vector<double> o(8, 0.0);
  for (std::size_t n = 0; n < largest.size(); ++n) {
    const double c = n == 0 ? 0 : std::exp(m - largest[n]);
    l = c * l + tile_sum[n];
    for (std::size_t d = 0; d < o.size(); ++d) o[d] = c * o[d] + tile_sum[n] * (static_cast<double>((d + n) % 5) - 2);
    const auto key = static_cast<std::int64_t>(8 * n);
    flow->tiles.push_back({key, key + 8, m, largest[n], c, tile_sum[n], l, o});
    m = largest[n];
  }
  for (const double x : o) flow->o.push_back(x / l);
  flow->golden = flow->o;
  flow->bound.assign(o.size(), 1e-6);
  return flow;
}

TEST(ViewMotion, TheEndsOfATileOfTheFlowAreTheStills) {
  Stage stage("first_light", View::attention);
  stage.cursor.seek_row(5);
  const auto flow = a_flow();
  const auto at = [&](std::int64_t tiles) {
    stage.scene.flow = flow.get();
    stage.scene.flow_tiles = tiles;
    return Still(stage.scene, {nullptr, flow, nullptr});
  };
  for (std::int64_t tiles = 0; tiles < 5; ++tiles) {
    const Still before = at(tiles), after = at(tiles + 1);
    const Motion motion(stage.panels, kBoard, 1, before, after);
    ASSERT_FALSE(motion.empty());
    EXPECT_TRUE(stage.between(motion, 0) == stage.still(before)) << tiles;
    EXPECT_TRUE(stage.between(motion, 1) == stage.still(after)) << tiles;
    std::vector<QImage> all{stage.still(before), stage.still(after)};
    for (const double t : {0.2, 0.4, 0.6, 0.8}) {
      all.push_back(stage.between(motion, t));
      for (std::size_t n = 0; n + 1 < all.size(); ++n) EXPECT_FALSE(all.back() == all[n]) << tiles << ' ' << t;
    }
    const Motion back(stage.panels, kBoard, 1, after, before);
    EXPECT_TRUE(stage.between(back, 0.2) == all[5]) << "the way back is the way there, reversed";
    // Two tiles at once, or none, do not move.
    EXPECT_TRUE(Motion(stage.panels, kBoard, 1, before, before).empty());
    if (tiles == 4) continue;
    EXPECT_TRUE(Motion(stage.panels, kBoard, 1, before, at(tiles + 2)).empty());
  }
}

// It has no memory: the order in which its pictures are painted makes no difference.
TEST(ViewMotion, IsAFunctionOfTime) {
  Stage stage("quantized_e4m3", View::tile);
  stage.cursor.seek_row(2);
  stage.tile = staged_tile(false);
  const auto copy = std::ranges::find(stage.tile->actions, TileAction::Kind::copy, &TileAction::kind);
  const Still before = stage.at_event(copy->first), after = stage.at_event(copy->end);
  const Motion forth(stage.panels, kBoard, 1, before, after), back(stage.panels, kBoard, 1, before, after);
  std::vector<QImage> pictures;
  for (int n = 0; n <= 8; ++n) pictures.push_back(stage.between(forth, n / 8.0));
  for (int n = 8; n >= 0; --n) EXPECT_TRUE(stage.between(back, n / 8.0) == pictures[static_cast<std::size_t>(n)]) << n;
}

// --- the canvas ------------------------------------------------------------------------------------------------------

class CanvasMotion : public CanvasTest {
 protected:
  CanvasMotion() {
    canvas.clearFocus();
    canvas.setMotion(true);
  }
  QImage still_now() {
    const QImage exported = board_image(canvas.size(), canvas.devicePixelRatio(), make_panels(), canvas.sceneNow());
    return exported;
  }
};

TEST_F(CanvasMotion, AStepMovesAndEndsAsTheStill) {
  document.step();
  ASSERT_TRUE(canvas.motionTime());
  EXPECT_FALSE(picture(canvas) == still_now());
  ASSERT_TRUE(QTest::qWaitFor([&] { return !canvas.motionTime(); }, 20'000));
  EXPECT_TRUE(picture(canvas) == still_now());
}

TEST_F(CanvasMotion, AJumpDoesNotMove) {
  document.seek(Position{0});
  EXPECT_FALSE(canvas.motionTime());
  EXPECT_TRUE(picture(canvas) == still_now());
}

TEST_F(CanvasMotion, HeldItStaysHalfwayUntilTheNextStep) {
  document.step();
  canvas.holdMotion();
  const auto t = canvas.motionTime();
  QTest::qWait(450);
  EXPECT_EQ(canvas.motionTime(), t);
  canvas.setMotion(false);
  EXPECT_FALSE(canvas.motionTime());
  EXPECT_TRUE(picture(canvas) == still_now());
}

TEST_F(CanvasMotion, ByHandTwelvePartsAreAStepForthAndBack) {
  const Position start = document.cursor().position();
  const QImage first = picture(canvas);
  for (int n = 0; n < 4; ++n) canvas.nudgeMotion(0.25);
  EXPECT_FALSE(canvas.motionTime());
  const Position next = document.cursor().position();
  EXPECT_GT(next, start);
  EXPECT_TRUE(picture(canvas) == still_now());
  canvas.nudgeMotion(-0.25);
  EXPECT_NEAR(canvas.motionTime().value_or(0), 0.75, 1e-9);
  const QImage halfway = picture(canvas);
  canvas.nudgeMotion(-0.25);
  canvas.nudgeMotion(0.25);
  EXPECT_TRUE(picture(canvas) == halfway);
  for (int n = 0; n < 3; ++n) canvas.nudgeMotion(-0.25);
  EXPECT_FALSE(canvas.motionTime());
  EXPECT_EQ(document.cursor().position(), start);
  EXPECT_TRUE(picture(canvas) == first);
}

// From the middle of a step back to where it began: the document goes back, too.
TEST_F(CanvasMotion, ByHandBackPastTheStartTakesTheStepBack) {
  const Position start = document.cursor().position();
  canvas.nudgeMotion(0.5);
  EXPECT_GT(document.cursor().position(), start);
  canvas.nudgeMotion(-0.5);
  EXPECT_EQ(document.cursor().position(), start);
  EXPECT_FALSE(canvas.motionTime());
}

// In the attention view a step is a tile of the flow; another flow ends its motion.
TEST_F(CanvasMotion, ATileOfTheFlowMovesForthAndBack) {
  AttentionModel& attention = document.attention();
  canvas.setView(View::attention);
  attention.show_flow(a_flow());
  const QImage five = picture(canvas);
  attention.step_back();
  ASSERT_TRUE(canvas.motionTime());
  canvas.holdMotion();
  canvas.nudgeMotion(-0.5);
  const QImage halfway = picture(canvas);
  EXPECT_FALSE(halfway == five);
  EXPECT_FALSE(halfway == still_now());
  canvas.nudgeMotion(-0.5);
  EXPECT_FALSE(canvas.motionTime());
  EXPECT_EQ(attention.tiles_done(), 4);
  EXPECT_TRUE(picture(canvas) == still_now());
  canvas.nudgeMotion(0.5);
  EXPECT_NEAR(canvas.motionTime().value_or(0), 0.5, 1e-9);
  EXPECT_EQ(attention.tiles_done(), 5);
  attention.show_flow(a_flow());
  EXPECT_FALSE(canvas.motionTime());
  EXPECT_TRUE(picture(canvas) == still_now());
}

TEST_F(CanvasMotion, AZoomOrANewThemeEndsIt) {
  document.step();
  ASSERT_TRUE(canvas.motionTime());
  canvas.setTheme(theme(ThemeKind::light));
  EXPECT_FALSE(canvas.motionTime());
  EXPECT_TRUE(picture(canvas) == still_now());
}

}  // namespace
}  // namespace kvscope::viz::view_motion_test
