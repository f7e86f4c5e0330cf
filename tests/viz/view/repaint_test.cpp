// The caches between repaints (glyphs, fonts, cells, plots) must not change any picture. Panels that have painted many
// pictures are compared with new panels on a new thread, where all caches are empty.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "tests/viz/view/pool_scene.h"
#include "tests/viz/view/runs.h"
#include "viz/view/paint_board.h"

namespace kvscope::viz::repaint_test {
namespace {

struct Kept : Staged {
  Panels panels = make_panels();
  QSizeF size{1000, 700};
  double scale = 1;

  explicit Kept(const char* name) : Staged(gallery_run(name)) { go_to(7); }
  void go_to(std::int64_t row) {
    cursor.seek_row(row);
    pin(scene.pinned);
    hover(scene.hovered);
  }
  [[nodiscard]] QImage again() const { return board_image(size, scale, panels, scene); }
  [[nodiscard]] QImage anew() const {
    QImage image;
    std::thread([&] { image = board_image(size, scale, make_panels(), scene); }).join();
    return image;
  }
};

struct Change {
  const char* what;
  std::function<void(Kept&)> make;
};

// All inputs of a picture, each changed alone. The first of each pair of themes and scales was painted before: a cache
// key without them would return the old picture.
std::vector<Change> changes() {
  return {{"theme", [](Kept& to) { to.scene.theme = &theme(ThemeKind::light); }},
          {"theme back", [](Kept& to) { to.scene.theme = &theme(ThemeKind::dark); }},
          {"step", [](Kept& to) { to.go_to(8); }},
          {"step back", [](Kept& to) { to.go_to(3); }},
          {"size",
           [](Kept& to) {
             to.size = {1190, 820};
           }},
          {"device pixel ratio", [](Kept& to) { to.scale = 2; }},
          {"odd device pixel ratio", [](Kept& to) { to.scale = 1.25; }},
          {"device pixel ratio back", [](Kept& to) { to.scale = 1; }},
          {"larger letters", [](Kept& to) { to.scene.font_scale = 1.3; }},
          {"letters back", [](Kept& to) { to.scene.font_scale = 1; }},
          {"pool closer",
           [](Kept& to) {
             to.look(PanelId::pool, {120, {30, 20}});
           }},
          {"table closer",
           [](Kept& to) {
             to.look(PanelId::table, {2, {20, 0}});
           }},
          {"timeline closer",
           [](Kept& to) {
             to.look(PanelId::timeline, {200, {40, 0}});
           }},
          {"sequences closer",
           [](Kept& to) {
             to.look(PanelId::sequences, {2.5, {15, 0}});
           }},
          {"pinned", [](Kept& to) { to.pin(of_block(BlockIdx{1})); }},
          {"another pinned", [](Kept& to) { to.pin(of_sequence(SeqIdx{0})); }},
          {"hovered", [](Kept& to) { to.hover(of_block(BlockIdx{2})); }},
          {"a step hovered", [](Kept& to) { to.hover(of_step(StepIdx{4})); }},
          {"nothing hovered", [](Kept& to) { to.hover({}); }},
          {"pool view", [](Kept& to) { to.scene.view = View::pool; }},
          {"timeline view", [](Kept& to) { to.scene.view = View::timeline; }},
          {"overview", [](Kept& to) { to.scene.view = View::overview; }}};
}

// A cache whose key lacks one of the inputs would show the previous picture.
TEST(Repaint, EveryChangeOfThePictureShowsAtOnceAndAsInANewOne) {
  Kept kept("first_light");
  QImage before = kept.again();
  for (const Change& change : changes()) {
    change.make(kept);
    const QImage after = kept.again();
    EXPECT_NE(after, before) << change.what;
    EXPECT_EQ(after, kept.anew()) << change.what;
    before = after;
  }
}

// Changes in random order, so that cache entries of two or ten pictures ago are used again.
TEST(Repaint, AfterAnyWalkOfChangesThePictureIsThatOfNewPanels) {
  const std::vector<Change> all = changes();
  const CounterRng random(3, 0);
  Kept kept("prefix_sharing");
  std::string walk;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const Change& change = all[static_cast<std::size_t>(random.integer(i, 0, std::ssize(all) - 1))];
    change.make(kept);
    walk += std::string(change.what) + ", ";
    const QImage again = kept.again();
    if (i % 3 != 2) continue;
    ASSERT_EQ(again, kept.anew()) << walk;
  }
}

// Another run in the same panels: its pictures must not contain cached parts of the previous run.
TEST(Repaint, AnotherRunInTheSamePanelsIsPaintedAsInNewOnes) {
  Kept one("first_light"), other("preemption");
  static_cast<void>(one.again());
  std::swap(one.panels, other.panels);
  EXPECT_EQ(other.again(), other.anew());
  EXPECT_EQ(one.again(), one.anew());
}

}  // namespace
}  // namespace kvscope::viz::repaint_test
