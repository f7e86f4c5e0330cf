#include "viz/view/canvas.h"

#include <rapidcheck.h>

#include <QtCore/QProcess>

#include "tests/viz/view/canvas_fixture.h"
#include "viz/view/paint_board.h"

namespace kvscope::viz::canvas_test {
namespace {

// --- the picture -----------------------------------------------------------------------------------------------------

// The window shows the same pixels as the export writes.
TEST_F(CanvasTest, ShowsThePictureThatIsExported) {
  canvas.clearFocus();
  document.pin(of_block(BlockIdx{5}));
  document.hover(of_sequence(SeqIdx{2}));
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
    for (const View view : kViews) {
      canvas.setTheme(theme(kind));
      canvas.setView(view);
      const QImage exported = board_image(canvas.size(), canvas.devicePixelRatio(), make_panels(), canvas.sceneNow());
      EXPECT_TRUE(picture(canvas) == exported) << name(view) << (kind == ThemeKind::dark ? ", dark" : ", light");
    }
  }
}

// Cached images must be dropped at the right moments: single operations would not find a stale base of the previous
// step, or of another size, theme or zoom.
TEST_F(CanvasTest, ShowsTheSameAfterAnyWalkAsAFreshCanvas) {
  canvas.clearFocus();
  EXPECT_TRUE(rc::check([this] {
    canvas.clearFocus();
    const int operations = *rc::gen::inRange(1, 8);
    for (int i = 0; i < operations; ++i) {
      const QPoint at(*rc::gen::inRange(0, canvas.width()), *rc::gen::inRange(0, canvas.height()));
      switch (*rc::gen::inRange(0, 16)) {
        case 0:
        case 1:
          move(at);
          break;
        case 2:
          click(at);
          break;
        case 3:
          document.step();
          break;
        case 4:
          document.step_back();
          break;
        case 5:
          document.seek(Position{*rc::gen::inRange<std::int64_t>(0, document.run().facts().events + 1)});
          break;
        case 6:
        case 7:
          wheel(at, {0, *rc::gen::element(120, 360, -120)});
          break;
        case 8:
          wheel(at, {*rc::gen::element(-240, 0, 240), *rc::gen::element(-120, 120)}, Qt::ShiftModifier);
          break;
        case 9:
          canvas.resize(*rc::gen::inRange(400, 1100), *rc::gen::inRange(300, 800));
          break;
        case 10:
          canvas.setTheme(theme(*rc::gen::element(ThemeKind::dark, ThemeKind::light)));
          break;
        case 11:
          canvas.setView(*rc::gen::elementOf(kViews));
          break;
        case 12:
          canvas.setFontScale(*rc::gen::element(1.0, 1.25, 0.9));
          break;
        case 13:
          drag(at, {*rc::gen::inRange(0, canvas.width()), *rc::gen::inRange(0, canvas.height())});
          break;
        case 14:
          document.pin(of_block(BlockIdx{*rc::gen::inRange<std::int64_t>(0, 25)}));
          break;
        default:
          canvas.setFocus();
          key(*rc::gen::element(Qt::Key_Right, Qt::Key_Down, Qt::Key_Return, Qt::Key_Plus, Qt::Key_Minus, Qt::Key_0,
                                Qt::Key_Tab));
          canvas.clearFocus();
          break;
      }
      if (*rc::gen::arbitrary<bool>()) static_cast<void>(canvas.grab());  // fills caches that may be stale later
    }
    const Scene scene = canvas.sceneNow();
    Canvas fresh;
    fresh.setDocument(&document);
    fresh.setTheme(*scene.theme);
    fresh.setFontScale(scene.font_scale);
    fresh.setView(scene.view);
    for (std::size_t p = 0; p < kPanels; ++p) fresh.setViewport(static_cast<PanelId>(p), scene.viewport[p]);
    fresh.resize(canvas.size());
    RC_ASSERT(picture(canvas) == picture(fresh));
  }));
}

// The scale of a screen is fixed when a program starts, so each scale runs in a separate program. A test at scale 1
// would not find a base that is painted at scale 1 and then enlarged.
TEST(Canvas, ShowsTheSamePixelsAsTheExportOnEveryScreen) {
  for (const char* scale : {"1.25", "2"}) {
    QProcess program;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("QT_SCALE_FACTOR"), QLatin1String(scale));
    environment.insert(QStringLiteral("RC_PARAMS"), QStringLiteral("max_success=20"));
    program.setProcessEnvironment(environment);
    program.start(
        QCoreApplication::applicationFilePath(),
        {QStringLiteral("--gtest_filter=CanvasTest.ShowsThePicture*:CanvasTest.ShowsTheSame*:CanvasInA*Ring*")});
    ASSERT_TRUE(program.waitForFinished(300'000));
    EXPECT_EQ(program.exitCode(), 0) << "scale " << scale << '\n' << program.readAllStandardOutput().toStdString();
  }
}

TEST_F(CanvasTest, WithoutADocumentIsTheSurfaceAlone) {
  canvas.setDocument(nullptr);
  move({300, 300});
  click({300, 300});
  wheel({300, 300}, {0, 120});
  key(Qt::Key_Right);
  key(Qt::Key_Return);
  canvas.zoomIn();
  EXPECT_TRUE(is_only(picture(canvas), theme(ThemeKind::dark).surface));
}

// The window closes the file while the pointer is over a block.
TEST(Canvas, OutlivesItsDocument) {
  Canvas canvas;
  canvas.resize(800, 600);
  const QColor& surface = theme(ThemeKind::dark).surface;
  EXPECT_TRUE(is_only(picture(canvas), surface));
  {
    Document document(preemption(), {});
    canvas.setDocument(&document);
    EXPECT_FALSE(is_only(picture(canvas), surface));
  }
  EXPECT_EQ(canvas.document(), nullptr);
  EXPECT_TRUE(is_only(picture(canvas), surface));
  QTest::mouseClick(&canvas, Qt::LeftButton, Qt::NoModifier, {400, 300});
}

TEST(Canvas, StartsAnotherRunUnzoomed) {
  Document one(preemption(), {}), other(run_of_steps(30), {});
  Canvas canvas;
  canvas.resize(800, 600);
  canvas.setDocument(&one);
  canvas.setViewport(PanelId::pool, {90, {10, 10}});
  canvas.setDocument(&other);
  EXPECT_EQ(canvas.viewport(PanelId::pool), Viewport{});
  EXPECT_TRUE(picture(canvas) ==
              board_image(canvas.size(), canvas.devicePixelRatio(), make_panels(), canvas.sceneNow()));
}

// Keyboard users need a visible focus ring that does not cover the card.
TEST_F(CanvasInAWindow, ShowsTheFocusAsARingAroundTheCardAndNothingElse) {
  canvas.clearFocus();
  const QImage without = picture(canvas);
  for (const Place& at : canvas.places()) {
    canvas.focusPanel(at.panel);
    const QImage with = picture(canvas);
    const double scale = with.devicePixelRatio();
    // The inside of the card is untouched. The header has no card: its ring's corners are inside it.
    const double corner = at.panel == PanelId::header ? 12 : 3;
    const QRectF inside = at.card.adjusted(corner, 3, -corner, -3);
    QRectF changed;
    for (int y = 0; y < with.height(); ++y) {
      for (int x = 0; x < with.width(); ++x) {
        if (with.pixel(x, y) == without.pixel(x, y)) continue;
        const QRectF pixel(x / scale, y / scale, 1 / scale, 1 / scale);
        changed |= pixel;
        ASSERT_FALSE(inside.contains(pixel)) << x << ',' << y;
      }
    }
    EXPECT_TRUE(changed.contains(at.card.adjusted(2, 2, -2, -2)));
    EXPECT_TRUE(at.card.adjusted(-6, -6, 6, 6).contains(changed));
  }
  click(place(PanelId::pool).title.center().toPoint());
  EXPECT_TRUE(canvas.hasFocus());
  EXPECT_TRUE(picture(canvas) == without) << "a click shows no ring";
}

}  // namespace
}  // namespace kvscope::viz::canvas_test
