#include "viz/view/canvas_accessible.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include <QtGui/QAccessible>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>

#include "core/staging/focus.h"
#include "core/staging/staging_events.h"
#include "tests/viz/view/runs.h"
#include "viz/playback/tile_selection.h"
#include "viz/view/canvas.h"

#include "viz/playback/tile_fold.h"

namespace kvscope::viz::canvas_accessible_test {
namespace {

class CanvasAccessible : public testing::Test {
 protected:
  CanvasAccessible() {
    canvas.resize(1000, 760);
    canvas.setDocument(&document);
    document.seek_step(StepIdx{8});
    canvas.show();
    canvas.activateWindow();
    static_cast<void>(QTest::qWaitForWindowActive(&canvas));
    canvas.setFocus();
  }
  QAccessibleInterface* root() { return QAccessible::queryAccessibleInterface(&canvas); }
  QAccessibleInterface* panel(PanelId id) {
    for (std::size_t i = 0; i < canvas.places().size(); ++i) {
      if (canvas.places()[i].panel == id) return root()->child(static_cast<int>(i));
    }
    return nullptr;
  }
  static QString name(QAccessibleInterface* of) { return of->text(QAccessible::Name); }
  QAccessibleInterface* block(std::int64_t number) {
    const std::vector<PanelCell>& cells = canvas.cells(PanelId::pool);
    const auto found = std::ranges::find(cells, of_block(BlockIdx{number}), &PanelCell::object);
    return panel(PanelId::pool)->child(static_cast<int>(found - cells.begin()));
  }

  Document document{gallery_run("preemption"), {}};
  Canvas canvas;
};

TEST_F(CanvasAccessible, HasThePanelsAsChildrenInReadingOrder) {
  EXPECT_EQ(root()->role(), QAccessible::Grouping);
  EXPECT_EQ(name(root()), QStringLiteral("Picture of the run"));
  ASSERT_EQ(root()->childCount(), 5);
  for (int i = 0; i < 5; ++i) {
    QAccessibleInterface* const child = root()->child(i);
    const Panel& shown = *canvas.panels()[static_cast<std::size_t>(canvas.places()[static_cast<std::size_t>(i)].panel)];
    EXPECT_EQ(child->role(), i == 0 ? QAccessible::Pane : QAccessible::List);
    EXPECT_EQ(name(child), shown.title());
    EXPECT_FALSE(name(child).isEmpty());
    EXPECT_EQ(child->text(QAccessible::Description), shown.summary(canvas.sceneNow()));
    EXPECT_EQ(child->parent(), root());
    EXPECT_EQ(root()->indexOfChild(child), i);
    EXPECT_TRUE(child->isValid());
    EXPECT_TRUE(child->state().focusable);
  }
  EXPECT_EQ(root()->child(5), nullptr);
  EXPECT_EQ(root()->child(-1), nullptr);
}

// Every visible object has a cell with the right name at the right place; otherwise a screen reader misses it.
TEST_F(CanvasAccessible, HasANamedCellOnScreenForEveryVisibleObject) {
  for (const Place& place : canvas.places()) {
    QAccessibleInterface* const shown = panel(place.panel);
    const std::vector<PanelCell>& cells = canvas.cells(place.panel);
    ASSERT_EQ(shown->childCount(), static_cast<int>(cells.size()));
    EXPECT_GT(shown->childCount(), 0) << name(shown).toStdString();
    for (int i = 0; i < shown->childCount(); ++i) {
      QAccessibleInterface* const cell = shown->child(i);
      const PanelCell& expected = cells[static_cast<std::size_t>(i)];
      EXPECT_EQ(cell->role(), QAccessible::ListItem);
      EXPECT_EQ(name(cell), expected.name);
      EXPECT_FALSE(name(cell).isEmpty());
      EXPECT_EQ(cell->rect().topLeft(), canvas.mapToGlobal(expected.rect.toAlignedRect().topLeft()));
      EXPECT_EQ(cell->rect().size(), expected.rect.toAlignedRect().size());
      EXPECT_EQ(cell->parent(), shown);
      EXPECT_EQ(shown->indexOfChild(cell), i);
      EXPECT_EQ(cell->childCount(), 0);
    }
  }
  EXPECT_EQ(panel(PanelId::pool)->child(panel(PanelId::pool)->childCount()), nullptr);
}

// Names in the registers panel depend on the pinned object: which read of the tile is shown. Regression: they were those
// of the object pinned before.
TEST_F(CanvasAccessible, CellsFollowThePinnedObject) {
  Document tiled{gallery_run("mla"), {}};
  tiled.seek_step(StepIdx{2});
  trace::MemoryRecorder recorder;
  const Scenario& scenario = *tiled.run().facts().scenario;
  const std::filesystem::path folder = std::filesystem::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";
  record_tile(scenario, kvscope::state_at(scenario, make_requests(scenario, folder), StepIdx{2}).cache, TileQuestion{},
              recorder);
  tiled.show_tile(std::make_shared<const Tile>(fold_tile(recorder.events())));
  canvas.setDocument(&tiled);
  canvas.setView(View::tile);
  canvas.resize(1600, 1000);
  const auto names = [](const std::vector<PanelCell>& cells) {
    QStringList list;
    for (const PanelCell& cell : cells) list.push_back(cell.name);
    return list;
  };
  std::set<QStringList> seen;
  for (const std::int64_t row : {0, 17, 63}) {
    tiled.pin(of_tile_row(row));
    for (const Place& place : canvas.places()) {
      const Panel& shown = *canvas.panels()[static_cast<std::size_t>(place.panel)];
      const QStringList now = names(canvas.cells(place.panel));
      EXPECT_EQ(now, names(shown.cells(place.body, canvas.sceneNow(), Canvas::kMostCells)))
          << name(panel(place.panel)).toStdString() << ", row " << row;
      if (place.panel == PanelId::registers) seen.insert(now);
    }
  }
  EXPECT_GT(seen.size(), 1u) << "the names do depend on it";
  canvas.setDocument(&document);
}

TEST_F(CanvasAccessible, FindsPanelsAndCellsByTheirPlaceOnScreen) {
  QAccessibleInterface* const seven = block(7);
  const QPoint at = seven->rect().center();
  EXPECT_EQ(root()->childAt(at.x(), at.y()), panel(PanelId::pool));
  EXPECT_EQ(panel(PanelId::pool)->childAt(at.x(), at.y()), seven);
  const QPoint margin = canvas.mapToGlobal(QPoint(2, canvas.height() - 2));
  EXPECT_EQ(root()->childAt(margin.x(), margin.y()), nullptr);
}

TEST_F(CanvasAccessible, ReportsThePinnedObject) {
  EXPECT_FALSE(block(7)->state().selected);
  EXPECT_TRUE(block(7)->state().selectable);
  document.pin(of_block(BlockIdx{7}));
  EXPECT_TRUE(block(7)->state().selected);
  EXPECT_FALSE(block(6)->state().selected);
}

TEST_F(CanvasAccessible, ReportsThePanelAndThenTheObjectThatKeysHaveReached) {
  canvas.focusPanel(PanelId::pool);
  EXPECT_EQ(root()->focusChild(), panel(PanelId::pool));
  EXPECT_TRUE(panel(PanelId::pool)->state().focused);
  QTest::keyClick(&canvas, Qt::Key_Home);
  QTest::keyClick(&canvas, Qt::Key_Right);
  EXPECT_EQ(root()->focusChild(), block(1));
  EXPECT_TRUE(block(1)->state().focused);
  EXPECT_FALSE(block(0)->state().focused);
  EXPECT_FALSE(panel(PanelId::pool)->state().focused);
  canvas.clearFocus();
  EXPECT_FALSE(block(1)->state().focused);
}

TEST_F(CanvasAccessible, PinsACellThatIsPressed) {
  QAccessibleActionInterface* const action = block(7)->actionInterface();
  ASSERT_NE(action, nullptr);
  EXPECT_EQ(action->actionNames(), QStringList{QAccessibleActionInterface::pressAction()});
  action->doAction(QAccessibleActionInterface::pressAction());
  EXPECT_EQ(document.pinned(), of_block(BlockIdx{7}));
}

// Screen readers keep interfaces: after a step the same cells describe the new state.
TEST_F(CanvasAccessible, DescribesTheCurrentState) {
  QAccessibleInterface* const header = panel(PanelId::header)->child(0);
  const QString before = name(header);
  std::set<QString> pool_before;
  for (int i = 0; i < panel(PanelId::pool)->childCount(); ++i) pool_before.insert(name(panel(PanelId::pool)->child(i)));
  document.to_end();
  EXPECT_NE(name(header), before);
  EXPECT_FALSE(pool_before.contains(name(block(0))));
}

TEST_F(CanvasAccessible, KeepsACellThatIsNoLongerThereWithoutAnswering) {
  QAccessibleInterface* const cell = block(7);
  canvas.setView(View::timeline);
  EXPECT_EQ(root()->childCount(), 2);
  EXPECT_FALSE(cell->isValid());
  EXPECT_TRUE(cell->state().invalid);
  EXPECT_TRUE(name(cell).isEmpty());
  EXPECT_TRUE(cell->rect().isNull());
  EXPECT_EQ(cell->parent(), nullptr);
  canvas.setDocument(nullptr);
  EXPECT_EQ(root()->childCount(), 0);
  EXPECT_FALSE(cell->isValid());
  cell->actionInterface()->doAction(QAccessibleActionInterface::pressAction());
}

// Hundreds of thousands of children would block the screen reader and the window.
TEST_F(CanvasAccessible, HasABoundedNumberOfCells) {
  Scenario scenario;
  scenario.cache.page_size = 1;
  scenario.cache.blocks = 2000;
  scenario.requests.list = {{0, 900, 30, {}, 1, 0}, {0, 900, 30, {}, 1, 0}};
  TapeRecorder recorder;
  static_cast<void>(run_engine(scenario, scenario.requests.list, recorder));
  Document large(
      Run::open(from_tape(recorder.take(), {{"scenario", json::dump(to_json(scenario))}}, recorder.detail()), "large"),
      {});
  canvas.setView(View::pool);
  canvas.resize(1800, 1400);
  canvas.setDocument(&large);
  EXPECT_EQ(panel(PanelId::pool)->childCount(), static_cast<int>(Canvas::kMostCells));
  canvas.setDocument(nullptr);
}

}  // namespace
}  // namespace kvscope::viz::canvas_accessible_test
