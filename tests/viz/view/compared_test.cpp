// Two runs side by side: frames around exactly the objects that differ, and the picture of the compared run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/pipeline/run_scenario.h"
#include "tests/viz/view/canvas_fixture.h"
#include "viz/playback/run_difference.h"
#include "viz/view/motion.h"
#include "viz/view/paint_board.h"

namespace kvscope::viz::compared_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::shared_ptr<const Run> changed_run(const char* name, void (*change)(Scenario&)) {
  const std::filesystem::path folder = std::filesystem::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";
  Scenario scenario = load_scenario(folder / (std::string(name) + ".json"));
  change(scenario);
  TapeRecorder recorder;
  static_cast<void>(run_engine(scenario, make_requests(scenario, folder), recorder));
  return Run::open(from_tape(recorder.take(), {{"scenario", json::dump(to_json(scenario))}}, recorder.detail()), name);
}

const std::shared_ptr<const Run>& small_batch() {
  static const std::shared_ptr<const Run> kRun =
      changed_run("preemption", [](Scenario& s) { s.scheduler.max_batch = 2; });
  return kRun;
}
// 20 blocks instead of 24: blocks 20 to 23 are in one pool only.
const std::shared_ptr<const Run>& small_pool() {
  static const std::shared_ptr<const Run> kRun = changed_run("preemption", [](Scenario& s) { s.cache.blocks = 20; });
  return kRun;
}

// The pixels in which two pictures of one size differ.
QRegion pixels_apart(const QImage& a, const QImage& b) {
  std::vector<QRect> runs;  // by rows from the left, as setRects() takes them
  for (int y = 0; y < a.height(); ++y) {
    for (int x = 0, first = 0; x < a.width(); ++x) {
      if (a.pixel(x, y) == b.pixel(x, y)) continue;
      for (first = x; x < a.width() && a.pixel(x, y) != b.pixel(x, y);) ++x;
      runs.emplace_back(first, y, x - first, 1);
    }
  }
  QRegion apart;
  apart.setRects(runs.data(), static_cast<int>(runs.size()));
  return apart;
}

class Compared : public CanvasTest {
 protected:
  Compared() {
    document.set_compared(small_batch());
    document.show_beside(true);
    document.seek_step(StepIdx{12});
    canvas.clearFocus();
  }

  bool differs(const Scene& scene, const Selection& object) const {
    const Cursor &ours = document.cursor(), &theirs = *document.compared();
    if (object.kind == Selection::Kind::block) return block_differs(ours.state(), theirs.state(), object.block);
    return object.kind == Selection::Kind::page &&
           page_differs(ours.state(), theirs.state(), object.seq, object.page, scene.facts().page_size);
  }

  // Paints one panel with and without the comparison.
  void expect_frames(PanelId id, const Scene& with, QSize size) {
    const Panels panels = make_panels();
    const std::vector<Place> places = board(with.view, size, with.font_scale);
    const Place& at = *std::ranges::find(places, id, &Place::panel);
    Scene without = with;
    without.compared = nullptr;
    const auto paint = [&](const Scene& scene) {
      QImage image(size, QImage::Format_RGB32);
      image.fill(scene.theme->surface);
      QPainter painter(&image);
      panels[static_cast<std::size_t>(id)]->paint_base(painter, at.body, scene);
      return image;
    };
    const QRegion left = pixels_apart(paint(with), paint(without));
    int framed = 0, same = 0;
    for (const PanelCell& cell : panels[static_cast<std::size_t>(id)]->cells(at.body, with, 5000)) {
      const QRect inside = cell.rect.toAlignedRect();
      if (!differs(with, cell.object)) {
        EXPECT_TRUE((left & cell.rect.toRect().adjusted(1, 1, -1, -1)).isEmpty()) << cell.name.toStdString();
        EXPECT_THAT(cell.name.toStdString(), Not(HasSubstr("differs"))) << cell.name.toStdString();
        ++same;
        continue;
      }
      ++framed;
      EXPECT_THAT(cell.name.toStdString(), EndsWith("; differs in the other run"));
      for (const QPoint corner : {inside.topLeft(), inside.bottomRight()}) {
        const QRect there = QRect(corner - QPoint(3, 3), QSize(7, 7)) & inside;
        EXPECT_FALSE((left & there).isEmpty()) << cell.name.toStdString();
      }
      frames_ += inside;
    }
    EXPECT_TRUE(left.subtracted(frames_).isEmpty()) << "outside of the objects that differ";
    frames_ = {};
    framed_ += framed;
    same_ += same;
  }

  QRegion frames_;
  int framed_ = 0, same_ = 0;
};

TEST_F(Compared, FramesAreOnTheBlocksAndEntriesThatDifferAndNowhereElse) {
  for (const auto& other : {small_batch(), small_pool()}) {
    document.set_compared(other);
    for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light, ThemeKind::high_contrast}) {
      canvas.setTheme(theme(kind));
      for (const std::int64_t step : {0, 12, 20, 40}) {
        document.seek_step(StepIdx{step});
        for (const PanelId id : {PanelId::pool, PanelId::table}) {
          for (const QSize size : {QSize(700, 600), QSize(1400, 1100)}) {
            SCOPED_TRACE(testing::Message()
                         << "step " << step << " panel " << static_cast<int>(id) << " width " << size.width());
            expect_frames(id, canvas.sceneNow(), size);
          }
        }
      }
    }
  }
  EXPECT_GT(framed_, 100);
  EXPECT_GT(same_, 100);
}

// Pages of the sequences: as bars, each page is an object.
TEST_F(Compared, PagesThatDifferAreFramedInTheSequences) {
  const Panels panels = make_panels();
  Scene with = canvas.sceneNow();
  const std::vector<Place> places = board(with.view, {900, 700}, 1);
  const QRectF body = std::ranges::find(places, PanelId::sequences, &Place::panel)->body;
  const auto& panel = *panels[static_cast<std::size_t>(PanelId::sequences)];
  Scene without = with;
  without.compared = nullptr;
  const auto paint = [&](const Scene& scene) {
    QImage image(900, 700, QImage::Format_RGB32);
    image.fill(scene.theme->surface);
    QPainter painter(&image);
    panel.paint_base(painter, body, scene);
    return image;
  };
  const QRegion apart = pixels_apart(paint(with), paint(without));
  int framed = 0, same = 0;
  for (const SeqIdx seq : with.state().live) {
    for (std::int64_t page = 0; page < with.state().sequences[seq.value].pages.size(); ++page) {
      const Lit lit = resolve(with.state(), with.facts(), of_page(seq, PageIdx{page}));
      const auto rect = panel.anchor(lit, body, with);
      ASSERT_TRUE(rect);
      const bool is_framed = !(apart & rect->toAlignedRect()).isEmpty();
      EXPECT_EQ(is_framed, differs(with, of_page(seq, PageIdx{page}))) << seq.value << " page " << page;
      ++(is_framed ? framed : same);
    }
  }
  EXPECT_EQ(framed, 12);  // pages 4, 5 and 6 of sequences 0 and 1, all six of sequence 2
  EXPECT_EQ(same, 8);
}

TEST_F(Compared, NothingIsFramedWithoutARunBesideOrWithPagesOfAnotherSize) {
  document.show_beside(false);
  EXPECT_EQ(canvas.sceneNow().compared, nullptr);
  EXPECT_EQ(canvas.sceneNow().compared_run, small_batch());
  document.set_compared(changed_run("preemption", [](Scenario& s) { s.cache.page_size = 5; }));
  document.show_beside(true);
  EXPECT_EQ(canvas.sceneNow().compared, nullptr);
}

// --- the picture of the compared run ---------------------------------------------------------------------------------

class ComparedCanvas : public Compared {
 protected:
  ComparedCanvas() {
    other.resize(1000, 760);
    other.setDocument(&document);
    other.show();
  }
  // From the two runs alone.
  Scene expected() const {
    Scene scene = canvas.sceneNow();
    scene.cursor = document.compared();
    scene.compared = &document.cursor().state();
    scene.of_compared = true;
    scene.compared_run = document.cursor().shared_run();
    scene.pinned_lit = resolve(scene.state(), scene.facts(), scene.pinned);
    scene.hovered_lit = resolve(scene.state(), scene.facts(), scene.hovered);
    return scene;
  }
  Canvas other{Canvas::Side::compared};
};

TEST_F(ComparedCanvas, IsTheBoardOfTheComparedRunWithTheSameSelection) {
  document.pin(of_page(SeqIdx{1}, PageIdx{2}));
  document.hover(of_block(BlockIdx{5}));
  for (const View view : {View::overview, View::sequences, View::pool, View::timeline}) {
    canvas.setView(view);
    other.setView(view);
    for (const std::int64_t step : {3, 12, 45}) {
      document.seek_step(StepIdx{step});
      const QImage image = board_image(other.size(), other.devicePixelRatio(), make_panels(), expected());
      EXPECT_TRUE(picture(other) == image) << name(view) << ", step " << step;
    }
  }
}

TEST_F(ComparedCanvas, IsNamedForScreenReadersAndInItsHeader) {
  EXPECT_EQ(other.accessibleName(), QStringLiteral("Picture of the compared run"));
  EXPECT_EQ(canvas.accessibleName(), QStringLiteral("Picture of the run"));
  const Panel& header = *other.panels()[static_cast<std::size_t>(PanelId::header)];
  EXPECT_THAT(header.summary(other.sceneNow()).toStdString(),
              testing::StartsWith("Compared: Preemption: step 12 of 68"));
  EXPECT_THAT(header.summary(canvas.sceneNow()).toStdString(), testing::StartsWith("Preemption: step 12 of 46"));
}

// A click in either picture selects in both, and a step of the compared run's timeline is one of the document.
TEST_F(ComparedCanvas, AClickSelectsInBoth) {
  const auto at = std::ranges::find(other.places(), PanelId::pool, &Place::panel);
  const Scene scene = other.sceneNow();
  const auto rect = other.panels()[static_cast<std::size_t>(PanelId::pool)]->anchor(
      resolve(scene.state(), scene.facts(), of_block(BlockIdx{12})), at->body, scene);
  ASSERT_TRUE(rect);
  QTest::mouseClick(&other, Qt::LeftButton, Qt::NoModifier, rect->center().toPoint());
  EXPECT_EQ(document.pinned(), of_block(BlockIdx{12}));
  EXPECT_EQ(canvas.sceneNow().pinned_lit, document.pinned_lit());
  EXPECT_EQ(other.sceneNow().pinned_lit, document.compared_pinned_lit());
  EXPECT_NE(document.pinned_lit(), document.compared_pinned_lit());
}

TEST_F(ComparedCanvas, LetsGoWhenTheComparisonEndsAndKeepsNothingOfAnotherRun) {
  other.setViewport(PanelId::pool, Viewport{3, {10, 20}});
  document.set_compared(small_pool());
  EXPECT_EQ(other.document(), &document);
  EXPECT_EQ(other.viewport(PanelId::pool), Viewport{});
  EXPECT_TRUE(picture(other) == board_image(other.size(), other.devicePixelRatio(), make_panels(), expected()));
  document.show_beside(false);
  EXPECT_EQ(other.document(), nullptr);
  EXPECT_TRUE(is_only(picture(other), theme(ThemeKind::dark).surface));
  document.step();  // nothing of the document reaches it
  document.set_compared(nullptr);
  document.set_compared(small_batch());
  EXPECT_EQ(other.document(), nullptr);
}

// --- motion ----------------------------------------------------------------------------------------------------------

TEST_F(ComparedCanvas, StepsWithMotionEndAtTheStillPicture) {
  for (Canvas* one : {&canvas, &other}) one->setMotion(true);
  int motions = 0;
  for (const bool forward : {true, true, false, true}) {
    forward ? document.step() : document.step_back();
    motions += canvas.motionTime() ? 1 : 0;
    static_cast<void>(picture(canvas));
    static_cast<void>(picture(other));
  }
  EXPECT_GT(motions, 0);
  for (Canvas* one : {&canvas, &other}) one->setMotion(false);
  EXPECT_TRUE(picture(other) == board_image(other.size(), other.devicePixelRatio(), make_panels(), expected()));
  EXPECT_TRUE(picture(canvas) ==
              board_image(canvas.size(), canvas.devicePixelRatio(), make_panels(), canvas.sceneNow()));
}

TEST_F(ComparedCanvas, AStillKeepsTheDifferencesOfItsStep) {
  for (Canvas* one : {&canvas, &other}) {
    document.seek_step(StepIdx{12});
    const Still still(one->sceneNow(), {});
    const State then = *one->sceneNow().compared;
    const QImage before = board_image(one->size(), 1, make_panels(), still.scene());
    document.seek_step(StepIdx{40});
    ASSERT_NE(*one->sceneNow().compared, then);
    EXPECT_EQ(*still.scene().compared, then);
    EXPECT_TRUE(board_image(one->size(), 1, make_panels(), still.scene()) == before);
  }
}

}  // namespace
}  // namespace kvscope::viz::compared_test
