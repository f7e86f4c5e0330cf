// The effects of mouse, wheel and keys on the canvas.
#include <vector>

#include <QtGui/QHelpEvent>
#include <QtGui/QShortcut>
#include <QtTest/QSignalSpy>
#include <QtWidgets/QToolTip>

#include "tests/viz/view/canvas_fixture.h"

namespace kvscope::viz::canvas_input_test {
namespace {

// --- mouse -----------------------------------------------------------------------------------------------------------

TEST_F(CanvasTest, HoversWhatIsUnderThePointer) {
  move(point_of_block(5));
  EXPECT_EQ(document.hovered(), of_block(BlockIdx{5}));
  EXPECT_EQ(canvas.cursor().shape(), Qt::PointingHandCursor);
  move(nowhere());
  EXPECT_TRUE(document.hovered().none());
  EXPECT_EQ(canvas.cursor().shape(), Qt::ArrowCursor);
  move(point_of_block(6));
  QEvent leave(QEvent::Leave);
  QApplication::sendEvent(&canvas, &leave);
  EXPECT_TRUE(document.hovered().none());
}

// While the run plays and the pointer does not move, the hovered object must be the one drawn under the pointer now.
TEST_F(CanvasTest, HoversAnewWhenThePictureMovesUnderThePointer) {
  const QPoint at = point_of(PanelId::sequences, of_token(SeqIdx{0}, TokIdx{2}));
  move(at);
  for (int i = 0; i < 40; ++i) {
    document.step();
    EXPECT_EQ(document.hovered(), under(at)) << "step " << i;
  }
  canvas.setView(View::pool);
  EXPECT_EQ(document.hovered(), under(at));
  canvas.resize(700, 500);
  EXPECT_EQ(document.hovered(), under(at));
}

TEST_F(CanvasTest, ClickPinsAndAClickOutsideUnpins) {
  QSignalSpy activated(&canvas, &Canvas::objectActivated);
  click(point_of_block(5));
  EXPECT_EQ(document.pinned(), of_block(BlockIdx{5}));
  ASSERT_EQ(activated.count(), 1);
  click(point_of_block(7));
  EXPECT_EQ(document.pinned(), of_block(BlockIdx{7}));
  click(place(PanelId::pool).title.center().toPoint());  // a title is where a double click begins
  EXPECT_EQ(document.pinned(), of_block(BlockIdx{7}));
  click(nowhere());
  EXPECT_TRUE(document.pinned().none());
}

TEST_F(CanvasTest, OtherButtonsPinNothing) {
  QTest::mouseClick(&canvas, Qt::RightButton, Qt::NoModifier, point_of_block(5));
  QTest::mouseClick(&canvas, Qt::MiddleButton, Qt::NoModifier, point_of_block(5));
  EXPECT_TRUE(document.pinned().none());
}

// A user who follows a block through the steps keeps it pinned: scrubbing must not unpin it.
TEST_F(CanvasTest, ScrubbingKeepsThePinnedObject) {
  document.pin(of_block(BlockIdx{5}));
  const std::int64_t last = document.run().timeline().steps() - 1;
  for (const PanelId scrubbed : {PanelId::header, PanelId::timeline}) {
    const QRectF body = place(scrubbed).body;
    const QPoint from(qRound(scrubbed == PanelId::header ? body.right() - 200 : body.center().x()),
                      qRound(body.center().y()));
    ASSERT_EQ(under(from).kind, Selection::Kind::step);
    click(from);
    EXPECT_EQ(StepIdx{document.cursor().state().step}, under(from).step);
    const QPoint to = from + QPoint(scrubbed == PanelId::header ? -30 : -200, 300);  // far below the panel: it goes on
    const Selection wanted = under({to.x(), from.y()});
    drag(from, to);
    EXPECT_EQ(document.cursor().state().step, wanted.step);
    drag(from, {canvas.width() + 500, from.y()});
    EXPECT_EQ(document.cursor().state().step.value, last) << "past the right end is at the last step";
    drag(from, {-500, from.y()});
    EXPECT_EQ(document.cursor().state().step.value, 0) << "past the left end is at the first step";
  }
  EXPECT_EQ(document.pinned(), of_block(BlockIdx{5}));
}

// The block under the pointer stays there at every notch of the wheel.
TEST_F(CanvasTest, ZoomsAroundThePointer) {
  const QPoint at = point_of_block(6);
  for (int notch = 0; notch < 8; ++notch) {
    EXPECT_TRUE(wheel(at, {0, 120}));
    EXPECT_EQ(under(at), of_block(BlockIdx{6})) << "notch " << notch;
  }
  EXPECT_GT(canvas.viewport(PanelId::pool).zoom, 0);
  EXPECT_EQ(canvas.viewport(PanelId::sequences), Viewport{});
  for (int notch = 0; notch < 16; ++notch) wheel(at, {0, -120});
  EXPECT_EQ(canvas.viewport(PanelId::pool), Viewport{});
  EXPECT_FALSE(wheel(nowhere(), {0, 120})) << "outside the panels the wheel event goes to the window";
}

TEST_F(CanvasTest, ScrollsWithShiftOrSideways) {
  const QPoint at = point_of_block(6);
  for (int notch = 0; notch < 8; ++notch) wheel(at, {0, 120});
  const Viewport before = canvas.viewport(PanelId::pool);
  wheel(at, {0, -120}, Qt::ShiftModifier);
  EXPECT_EQ(canvas.viewport(PanelId::pool).zoom, before.zoom);
  EXPECT_GT(canvas.viewport(PanelId::pool).offset.y(), before.offset.y());
  // The timeline has no rows: with Shift it goes through the steps.
  const QPoint step = place(PanelId::timeline).body.center().toPoint();
  for (int notch = 0; notch < 4; ++notch) wheel(step, {0, 120});
  const Viewport zoomed = canvas.viewport(PanelId::timeline);
  wheel(step, {0, -120}, Qt::ShiftModifier);
  const Viewport scrolled = canvas.viewport(PanelId::timeline);
  EXPECT_DOUBLE_EQ(scrolled.offset.x(), zoomed.offset.x() + 60);
  wheel(step, {120, 0});
  EXPECT_DOUBLE_EQ(canvas.viewport(PanelId::timeline).offset.x(), zoomed.offset.x());
}

TEST_F(CanvasTest, PansAZoomedPanelWithTheHandAndPinsNothing) {
  const QPoint at = point_of_block(6);
  for (int notch = 0; notch < 10; ++notch) wheel(at, {0, 120});
  const Viewport before = canvas.viewport(PanelId::pool);
  drag(at, at - QPoint(0, 40));
  EXPECT_EQ(canvas.viewport(PanelId::pool).offset, before.offset + QPointF(0, 40));
  EXPECT_TRUE(document.pinned().none());
  drag(at, at - QPoint(1, 1));  // a move of 1 px still counts as a click
  EXPECT_FALSE(document.pinned().none());
}

TEST_F(CanvasTest, DoubleClickOnATitleShowsThatViewAloneAndBack) {
  QSignalSpy changed(&canvas, &Canvas::viewChanged);
  for (const auto& [id, view] : {std::pair(PanelId::sequences, View::sequences), std::pair(PanelId::table, View::pool),
                                 std::pair(PanelId::timeline, View::timeline)}) {
    QTest::mouseDClick(&canvas, Qt::LeftButton, Qt::NoModifier, place(id).title.center().toPoint());
    EXPECT_EQ(canvas.view(), view);
    QTest::mouseDClick(&canvas, Qt::LeftButton, Qt::NoModifier, place(id).title.center().toPoint());
    EXPECT_EQ(canvas.view(), View::overview);
  }
  EXPECT_EQ(changed.count(), 6);
}

// An object found by number, or pinned in a table, may be scrolled out of every panel.
TEST_F(CanvasTest, ScrollsToAnObjectThatIsPinnedElsewhere) {
  canvas.setViewport(PanelId::pool, panel(PanelId::pool)
                                        .zoomed(12, place(PanelId::pool).body.topLeft(), place(PanelId::pool).body,
                                                canvas.sceneNow()));
  const Scene scene = canvas.sceneNow();
  const Selection last = of_block(BlockIdx{23});
  ASSERT_FALSE(
      panel(PanelId::pool).anchor(resolve(scene.state(), scene.facts(), last), place(PanelId::pool).body, scene));
  document.pin(last);
  EXPECT_EQ(under(point_of_block(23)), last);
}

TEST_F(CanvasTest, TooltipDescribesTheObjectUnderThePointer) {
  const auto help = [this](QPoint at) {
    QHelpEvent event(QEvent::ToolTip, at, canvas.mapToGlobal(at));
    QApplication::sendEvent(&canvas, &event);
    return QToolTip::isVisible() ? QToolTip::text() : QString();
  };
  const Scene scene = canvas.sceneNow();
  EXPECT_EQ(help(point_of_block(5)),
            QString::fromStdString(describe(scene.state(), scene.facts(), of_block(BlockIdx{5}))));
  EXPECT_EQ(help(place(PanelId::pool).title.center().toPoint()), QStringLiteral("Double click: this view alone"));
  QToolTip::hideText();
  QTRY_VERIFY_WITH_TIMEOUT(!QToolTip::isVisible(), 2000);
}

// --- keys ------------------------------------------------------------------------------------------------------------

TEST_F(CanvasInAWindow, TabWalksThroughThePanelsAndOut) {
  before->setFocus();
  std::vector<PanelId> walked;
  press(Qt::Key_Tab);
  while (canvas.hasFocus() && walked.size() < 9) {
    walked.push_back(*canvas.focusedPanel());
    press(Qt::Key_Tab);
  }
  EXPECT_THAT(walked, testing::ElementsAre(PanelId::header, PanelId::sequences, PanelId::pool, PanelId::table,
                                           PanelId::timeline));
  EXPECT_TRUE(after->hasFocus());
  EXPECT_EQ(canvas.focusedPanel(), std::nullopt);
  press(Qt::Key_Tab, Qt::ShiftModifier);
  EXPECT_EQ(canvas.focusedPanel(), PanelId::timeline);
  for (int i = 0; i < 4; ++i) press(Qt::Key_Tab, Qt::ShiftModifier);
  EXPECT_EQ(canvas.focusedPanel(), PanelId::header);
  press(Qt::Key_Tab, Qt::ShiftModifier);
  EXPECT_TRUE(before->hasFocus());
}

TEST_F(CanvasTest, ArrowsMoveFromObjectToObjectAndEnterPins) {
  canvas.focusPanel(PanelId::pool);
  key(Qt::Key_Home);
  EXPECT_EQ(document.hovered(), of_block(BlockIdx{0}));
  key(Qt::Key_Right);
  key(Qt::Key_Right);
  EXPECT_EQ(document.hovered(), of_block(BlockIdx{2}));
  EXPECT_EQ(canvas.current(), of_block(BlockIdx{2}));
  EXPECT_TRUE(document.pinned().none());
  key(Qt::Key_Return);
  EXPECT_EQ(document.pinned(), of_block(BlockIdx{2}));
  key(Qt::Key_End);
  EXPECT_EQ(document.hovered(), of_block(BlockIdx{24})) << "the null page is the last block";
  key(Qt::Key_Enter);
  EXPECT_EQ(document.pinned(), of_block(BlockIdx{24}));
  key(Qt::Key_Enter);
  EXPECT_TRUE(document.pinned().none()) << "Enter on the pinned object unpins it";
}

TEST_F(CanvasTest, ArrowsBeginAtWhatIsPinned) {
  document.pin(of_block(BlockIdx{7}));
  canvas.focusPanel(PanelId::pool);
  key(Qt::Key_Left);
  EXPECT_EQ(document.hovered(), of_block(BlockIdx{6}));
}

TEST_F(CanvasTest, ArrowsScrollToWhereTheyLead) {
  canvas.focusPanel(PanelId::pool);
  for (int i = 0; i < 12; ++i) key(Qt::Key_Plus);
  ASSERT_GT(canvas.viewport(PanelId::pool).zoom, 0);
  for (const Qt::Key to : {Qt::Key_Home, Qt::Key_End}) {
    key(to);
    const std::int64_t block = to == Qt::Key_Home ? 0 : 24;
    EXPECT_EQ(under(point_of_block(block)), of_block(BlockIdx{block}));
  }
}

TEST_F(CanvasTest, EnterOnAStepGoesThere) {
  document.pin(of_block(BlockIdx{5}));
  canvas.focusPanel(PanelId::timeline);
  document.hover(of_step(StepIdx{8}));
  key(Qt::Key_Right);
  key(Qt::Key_Right);
  EXPECT_EQ(document.hovered(), of_step(StepIdx{10}));
  EXPECT_EQ(document.cursor().state().step, StepIdx{8});
  key(Qt::Key_Return);
  EXPECT_EQ(document.cursor().state().step, StepIdx{10});
  EXPECT_EQ(document.pinned(), of_block(BlockIdx{5}));
}

TEST_F(CanvasTest, EscapeClearsTheSelection) {
  click(point_of_block(5));
  canvas.focusPanel(PanelId::pool);
  key(Qt::Key_Right);
  key(Qt::Key_Escape);
  EXPECT_TRUE(document.pinned().none());
  EXPECT_TRUE(document.hovered().none());
}

TEST_F(CanvasTest, PlusMinusAndZeroZoomThePanelWithTheFocus) {
  move(nowhere());
  canvas.focusPanel(PanelId::sequences);
  key(Qt::Key_Plus);
  key(Qt::Key_Equal);
  key(Qt::Key_Plus);
  EXPECT_GT(canvas.viewport(PanelId::sequences).zoom, 0);
  EXPECT_EQ(canvas.viewport(PanelId::pool), Viewport{});
  const double zoomed = canvas.viewport(PanelId::sequences).zoom;
  key(Qt::Key_Minus);
  EXPECT_LT(canvas.viewport(PanelId::sequences).zoom, zoomed);
  key(Qt::Key_0);
  EXPECT_EQ(canvas.viewport(PanelId::sequences), Viewport{});
  // Only that panel: the others keep their viewports.
  canvas.setViewport(PanelId::pool, {60, {0, 0}});
  key(Qt::Key_0);
  EXPECT_NE(canvas.viewport(PanelId::pool), Viewport{});
  canvas.zoomToFit();
  EXPECT_EQ(canvas.viewport(PanelId::pool), Viewport{});
}

// The zoom actions of the menu apply to the panel under the pointer, even if another one has the focus.
TEST_F(CanvasTest, ZoomOfAMenuIsForThePanelUnderThePointer) {
  canvas.focusPanel(PanelId::sequences);
  move(point_of_block(6));
  for (int i = 0; i < 6; ++i) canvas.zoomIn();
  EXPECT_GT(canvas.viewport(PanelId::pool).zoom, 0);
  EXPECT_EQ(canvas.viewport(PanelId::sequences), Viewport{});
  EXPECT_EQ(under(point_of_block(6)), of_block(BlockIdx{6}));
}

// Plain keys may be shortcuts of the window; the panel with the focus handles its keys first, and only those.
TEST_F(CanvasInAWindow, KeepsItsKeysFromTheWindowsShortcutsAndLeavesAllOthers) {
  QShortcut right(QKeySequence(Qt::Key_Right), &window), space(QKeySequence(Qt::Key_Space), &window),
      with_ctrl(QKeySequence(Qt::CTRL | Qt::Key_Right), &window);
  QSignalSpy right_spy(&right, &QShortcut::activated), space_spy(&space, &QShortcut::activated),
      ctrl_spy(&with_ctrl, &QShortcut::activated);
  canvas.focusPanel(PanelId::pool);
  press(Qt::Key_Right);
  press(Qt::Key_Space);
  press(Qt::Key_Right, Qt::ControlModifier);
  EXPECT_EQ(right_spy.count(), 0);
  EXPECT_FALSE(document.hovered().none());
  EXPECT_EQ(space_spy.count(), 1);
  EXPECT_EQ(ctrl_spy.count(), 1);
}

// While keys are used, a pointer that rests on the canvas must not change the current object until it moves.
TEST_F(CanvasTest, ARestingPointerDoesNotOverrideTheKeys) {
  move(point_of_block(20));
  canvas.focusPanel(PanelId::pool);
  key(Qt::Key_Home);
  document.step();
  EXPECT_EQ(document.hovered(), of_block(BlockIdx{0}));
  move(point_of_block(20));  // reported again by the system, at the same place
  EXPECT_EQ(document.hovered(), of_block(BlockIdx{0}));
  move(point_of_block(20) + QPoint(1, 0));
  EXPECT_EQ(document.hovered(), of_block(BlockIdx{20}));
}

}  // namespace
}  // namespace kvscope::viz::canvas_input_test
