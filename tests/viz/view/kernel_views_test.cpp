// The views of the kernel window: lines, margin and breakpoints of a file of code at several text sizes; words of shared
// memory, their sentences, keys and painting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <QtGui/QTextBlock>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QScrollBar>

#include "tests/viz/view/drawn_texts.h"
#include "viz/view/kernel_code_view.h"
#include "viz/view/kernel_shared_view.h"

namespace kvscope::viz::kernel_views_test {
namespace {

using testing::ElementsAre;

std::vector<int> numbers_of(const QSignalSpy& spy) {
  std::vector<int> out;
  for (const QList<QVariant>& arguments : spy) out.push_back(arguments[0].toInt());
  return out;
}

// --- code ------------------------------------------------------------------------------------------------------------

KernelSource source_of(int lines) {
  KernelSource source{.path = "/a/scale.cu", .lines = {}, .lines_with_code = {}};
  for (int n = 1; n <= lines; ++n) {
    source.lines.push_back("  line " + std::to_string(n) + (n % 7 == 0 ? "\twith a tab" : ""));
    if (n % 3 == 0) source.lines_with_code.push_back(n);
  }
  return source;
}

class KernelCode : public testing::Test {
 protected:
  explicit KernelCode(int lines = 300) {
    view.set_theme(theme(ThemeKind::dark), 1);
    view.resize(500, 320);
    view.set_source(source_of(lines));
    view.show();
    view.activateWindow();
    static_cast<void>(QTest::qWaitForWindowActive(&view));
  }
  // The backgrounds of whole lines, from 1.
  [[nodiscard]] std::vector<int> marked_lines() const {
    std::vector<int> out;
    for (const QTextEdit::ExtraSelection& selection : view.extraSelections())
      out.push_back(selection.cursor.blockNumber() + 1);
    return out;
  }
  [[nodiscard]] int first_line() const { return view.cursorForPosition({2, 2}).blockNumber() + 1; }
  [[nodiscard]] QImage margin() const { return view.margin().grab().toImage(); }

  KernelCodeView view;
};

TEST_F(KernelCode, ShowsThePlaceAndRelatedLinesButNotBothOnOne) {
  view.set_related({4, 9});
  EXPECT_THAT(marked_lines(), ElementsAre(4, 9));
  view.set_place(4, {7});
  EXPECT_EQ(view.place(), 4);
  EXPECT_EQ(view.current_line(), 4);
  EXPECT_THAT(marked_lines(), ElementsAre(9, 4));
  view.set_place(0, {});  // the next instruction is in another file
  EXPECT_THAT(marked_lines(), ElementsAre(4, 9));
  EXPECT_EQ(view.current_line(), 4);
}

TEST_F(KernelCode, ThePlaceIsVisibleWithALineBeforeAndTwoBehindIt) {
  for (const double scale : {0.7, 1.0, 2.5}) {
    view.set_theme(theme(ThemeKind::dark), scale);
    for (const int line : {1, 2, 150, 151, 152, 165, 3, 299, 300}) {
      view.set_place(line, {});
      for (const int near : {line - 1, line, line + 1, line + 2}) {
        if (near < 1 || near > 300) continue;
        const QRect row = view.margin_of(near);
        EXPECT_TRUE(row.top() >= 0 && row.bottom() <= view.viewport()->height())
            << near << " near " << line << " at " << scale;
      }
    }
  }
}

TEST_F(KernelCode, ALineThatIsVisibleDoesNotScroll) {
  view.set_place(150, {});
  const int before = first_line();
  view.set_place(151, {});
  view.set_place(149, {});
  EXPECT_EQ(first_line(), before);
}

TEST_F(KernelCode, ALineBeyondTheEndMarksNothing) {
  view.set_related({0, 400});
  view.set_place(301, {500});
  EXPECT_THAT(marked_lines(), testing::IsEmpty());
  view.set_breakpoints({-3, 0, 301});
  EXPECT_FALSE(margin().isNull());
}

TEST_F(KernelCode, AnEmptySourceHasOneLineAndNoMarks) {
  view.set_place(3, {});
  view.set_source({.path = "/a/empty.cu", .lines = {}, .lines_with_code = {}});
  EXPECT_EQ(view.place(), 0);
  EXPECT_EQ(view.blockCount(), 1);
  EXPECT_THAT(marked_lines(), testing::IsEmpty());
  const QSignalSpy wanted(&view, &KernelCodeView::breakpoint_wanted);
  QTest::mouseClick(&view.margin(), Qt::LeftButton, Qt::NoModifier, {4, 200});
  EXPECT_EQ(wanted.size(), 0) << "below the last line";
}

// Regression: characters at which Qt begins another paragraph moved all lines below them.
TEST_F(KernelCode, ALineIsOneLineWhateverItsCharacters) {
  std::vector<std::string> odd{"a\rb",
                               "a\fb",
                               "a\vb",
                               "a\xe2\x80\xa8"
                               "b",
                               "a\xe2\x80\xa9"
                               "b",
                               "a\xc2\x85"
                               "b",
                               "a\xef\xb7\x90"
                               "b",
                               "a\xef\xb7\x91"
                               "b",
                               "a\x1e"
                               "b",
                               std::string("a\0b", 3),
                               "\xff\xfe",
                               ""};
  odd.emplace_back("the last");
  view.set_source({.path = "/a/odd.cu", .lines = odd, .lines_with_code = {}});
  EXPECT_EQ(view.blockCount(), static_cast<int>(odd.size()));
  EXPECT_EQ(view.document()->lastBlock().text(), QStringLiteral("the last"));
  for (QTextBlock block = view.document()->begin(); block.isValid(); block = block.next()) {
    EXPECT_LE(block.layout()->lineCount(), 1) << block.blockNumber();
  }
}

// Each pixel of the margin belongs to the line beside it, also after scrolling.
TEST_F(KernelCode, AClickInTheMarginIsForTheLineBesideIt) {
  for (const double scale : {0.7, 1.0, 2.5}) {
    view.set_theme(theme(ThemeKind::dark), scale);
    for (const int top : {1, 2, 57, 280}) {
      view.verticalScrollBar()->setValue(top - 1);
      const int lowest = std::min(view.margin().height(), view.margin_of(300).bottom() + 1);
      int before = 0;
      for (int y = std::max(0, view.margin_of(top).top()); y < lowest; ++y) {
        QSignalSpy wanted(&view, &KernelCodeView::breakpoint_wanted);
        QTest::mouseClick(&view.margin(), Qt::LeftButton, Qt::NoModifier, {5, y});
        ASSERT_EQ(wanted.size(), 1) << "nothing at " << y << ", scale " << scale;
        const int line = numbers_of(wanted)[0];
        EXPECT_TRUE(view.margin_of(line).contains(5, y)) << line << " at " << y << ", scale " << scale;
        EXPECT_TRUE(before == 0 || line == before || line == before + 1) << line << " after " << before;
        before = line;
      }
      EXPECT_EQ(first_line(), std::min(top, first_line()));
      EXPECT_GT(before, 0);
    }
  }
}

TEST_F(KernelCode, OnlyTheLeftButtonSetsABreakpoint) {
  const QSignalSpy wanted(&view, &KernelCodeView::breakpoint_wanted);
  const QPoint at = view.margin_of(3).center();
  QTest::mouseClick(&view.margin(), Qt::RightButton, Qt::NoModifier, at);
  QTest::mouseClick(&view.margin(), Qt::MiddleButton, Qt::NoModifier, at);
  EXPECT_EQ(wanted.size(), 0);
  QTest::mouseClick(&view.margin(), Qt::LeftButton, Qt::NoModifier, at);
  EXPECT_THAT(numbers_of(wanted), ElementsAre(3));
}

TEST_F(KernelCode, F9IsForTheLineOfTheCursor) {
  const QSignalSpy wanted(&view, &KernelCodeView::breakpoint_wanted);
  QTest::keyClick(&view, Qt::Key_Down);
  QTest::keyClick(&view, Qt::Key_Down);
  QTest::keyClick(&view, Qt::Key_F9);
  EXPECT_THAT(numbers_of(wanted), ElementsAre(view.current_line()));
}

TEST_F(KernelCode, OnlyAPersonChoosesALine) {
  const QSignalSpy chosen(&view, &KernelCodeView::line_chosen);
  view.set_place(200, {});
  view.set_place(7, {});
  view.set_source(source_of(20));
  EXPECT_EQ(chosen.size(), 0);
  const QRect row = view.margin_of(5);
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, {40, row.center().y()});
  EXPECT_THAT(numbers_of(chosen), ElementsAre(5));
}

TEST_F(KernelCode, TheMarginShowsBreakpointsThePlaceAndOtherLanes) {
  const auto row = [&](int line) {
    return margin().copy(QRect(0, view.margin_of(line).top(), 16, view.margin_of(line).height()));
  };
  const QImage nothing = row(3);
  view.set_breakpoints({3});
  const QImage breakpoint = row(3);
  EXPECT_NE(breakpoint, nothing);
  EXPECT_EQ(row(4), nothing.copy());
  view.set_place(3, {5});
  EXPECT_NE(row(3), breakpoint) << "both are seen";
  EXPECT_NE(row(5), nothing);
  view.set_breakpoints({});
  EXPECT_NE(row(3), row(5));
  view.set_place(0, {});
  EXPECT_EQ(row(3), nothing);
}

TEST_F(KernelCode, TheMarginHasRoomForItsNumbers) {
  for (const double scale : {0.7, 1.0, 2.5}) {
    view.set_theme(theme(ThemeKind::light), scale);
    const int three = view.margin().width();
    EXPECT_GE(three, 16 + view.fontMetrics().horizontalAdvance(QStringLiteral("300")));
    EXPECT_LE(view.margin().geometry().right(), view.viewport()->geometry().left());
    view.set_source(source_of(1200));
    EXPECT_GT(view.margin().width(), three);
    view.set_source(source_of(300));
  }
}

// --- shared memory ---------------------------------------------------------------------------------------------------

// 62 bytes at bank 8: word 2 is written by warp 1, word 3 half by a copy, the last word has two bytes.
KernelShared small_shared() {
  KernelShared shared;
  shared.base = 0x420;
  shared.bytes.assign(62, 0);
  shared.writer.assign(62, -1);
  shared.writers = {{.text = "warp 1  st.shared.f32", .step = 9, .instruction = 3, .warp = 1},
                    {.text = "cp.async issued by warp 0", .step = 20, .instruction = 4, .warp = -1}};
  const std::uint8_t one[] = {0x00, 0x00, 0x80, 0x3f};
  for (std::size_t i = 0; i < 4; ++i) {
    shared.bytes[8 + i] = one[i];
    shared.writer[8 + i] = 0;
    shared.bytes[12 + i] = 0xff;
    shared.writer[12 + i] = i < 2 ? 0 : 1;
  }
  shared.bytes[60] = 0x34;
  shared.bytes[61] = 0x12;
  shared.writer[60] = shared.writer[61] = 0;
  shared.variables = {{0x424, "tile"}, {0x440, "total"}};
  return shared;
}

KernelShared large_shared(std::int64_t bytes) {
  KernelShared shared;
  shared.base = 0x400;
  shared.bytes.assign(static_cast<std::size_t>(bytes), 0x5a);
  shared.writer.assign(static_cast<std::size_t>(bytes), 0);
  shared.writers = {{.text = "warp 0", .step = 1, .instruction = 0, .warp = 0}};
  return shared;
}

QString dotted(std::initializer_list<const char*> parts) {
  QStringList out;
  for (const char* part : parts) out.push_back(QString::fromUtf8(part));
  return out.join(QStringLiteral("  ·  "));
}

TEST(KernelWordSentence, HasAddressVariableBankValueAndWriter) {
  const KernelShared shared = small_shared();
  EXPECT_EQ(word_sentence(shared, 0), dotted({"0x00420", "bank 8", "not written"}));
  EXPECT_EQ(word_sentence(shared, 1), dotted({"0x00424", "tile + 0", "bank 9", "not written"}));
  EXPECT_EQ(word_sentence(shared, 2), dotted({"0x00428", "tile + 4", "bank 10", "3f800000 = 1065353216 = 1f",
                                              "written by warp 1  st.shared.f32 after step 9"}));
  // The last write of any of its bytes.
  EXPECT_EQ(word_sentence(shared, 3), dotted({"0x0042c", "tile + 8", "bank 11", "ffffffff = -1 = nanf",
                                              "written by cp.async issued by warp 0 after step 20"}));
  EXPECT_EQ(word_sentence(shared, 8), dotted({"0x00440", "total + 0", "bank 16", "not written"}));
}

// Regression: the bytes beyond the end were shown as zeros.
TEST(KernelWordSentence, AWordThatIsCutOffHasOnlyItsBytes) {
  EXPECT_EQ(word_sentence(small_shared(), 15),
            dotted({"0x0045c", "total + 28", "bank 23", "1234", "written by warp 1  st.shared.f32 after step 9"}));
}

class KernelSharedTest : public testing::Test {
 protected:
  KernelSharedTest() {
    view.set_theme(theme(ThemeKind::dark), 1);
    view.resize(2600, 300);
    view.show();
    view.activateWindow();
    static_cast<void>(QTest::qWaitForWindowActive(&view));
    view.setFocus();
    QObject::connect(&view, &KernelSharedView::told, &view, [this](const QString& sentence) { last_told = sentence; });
  }
  [[nodiscard]] QPoint point_of(std::int64_t word) const { return view.layout_now().word(word).center().toPoint(); }
  void hover(QPoint at) {
    QMouseEvent event(QEvent::MouseMove, QPointF(at), view.viewport()->mapToGlobal(QPointF(at)), Qt::NoButton,
                      Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(view.viewport(), &event);
  }
  void leave() {
    QEvent event(QEvent::Leave);
    QApplication::sendEvent(view.viewport(), &event);
  }
  [[nodiscard]] std::vector<DrawnText> painted() {
    TextDevice device(view.viewport()->size());
    view.viewport()->render(&device, QPoint(), QRegion(), QWidget::RenderFlags());
    return device.texts();
  }

  QString last_told;
  KernelSharedView view;
};

TEST_F(KernelSharedTest, TellsOfThePointerElseOfTheCurrentWordElseOfTheColors) {
  const KernelShared shared = small_shared();
  view.set_shared(shared, 10);
  EXPECT_TRUE(last_told.contains(QStringLiteral("color and pattern:"))) << last_told.toStdString();
  hover(point_of(2));
  EXPECT_EQ(last_told, word_sentence(shared, 2));
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, point_of(1));
  EXPECT_EQ(view.current_word(), 1);
  hover(point_of(3));
  EXPECT_EQ(last_told, word_sentence(shared, 3));
  leave();
  EXPECT_EQ(last_told, word_sentence(shared, 1));
  hover({3, 3});  // the axis
  EXPECT_EQ(last_told, word_sentence(shared, 1));
}

// Regression: another state told of the current word, though the pointer was at another.
TEST_F(KernelSharedTest, AnotherStateTellsOfTheWordThatIsStillUnderThePointer) {
  KernelShared shared = small_shared();
  view.set_shared(shared, 10);
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, point_of(1));
  hover(point_of(2));
  shared.bytes[8] = 5;
  view.set_shared(shared, 11);
  EXPECT_EQ(last_told, word_sentence(shared, 2));
  // A key is about the current word.
  QTest::keyClick(&view, Qt::Key_Right);
  EXPECT_EQ(view.current_word(), 2);
  QTest::keyClick(&view, Qt::Key_Right);
  EXPECT_EQ(last_told, word_sentence(shared, 3));
  // The word is not there any more.
  hover(point_of(15));
  view.set_shared({}, 12);
  EXPECT_EQ(last_told, QString());
  EXPECT_EQ(view.current_word(), -1);
}

// Regression: screen readers kept the sentence of an earlier state.
TEST_F(KernelSharedTest, TheDescriptionIsThatOfTheStateThatIsShown) {
  KernelShared shared = small_shared();
  view.set_shared(shared, 10);
  EXPECT_EQ(view.accessibleDescription(), QString());
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, point_of(2));
  EXPECT_EQ(view.accessibleDescription(), word_sentence(shared, 2));
  shared.bytes[8] = 5;
  view.set_shared(shared, 11);
  EXPECT_EQ(view.accessibleDescription(), word_sentence(shared, 2));
  view.set_shared({}, 12);
  EXPECT_EQ(view.accessibleDescription(), QString());
}

TEST_F(KernelSharedTest, KeysMoveByWordsAndLinesAndStopAtTheEnds) {
  view.set_shared(large_shared(1000), 3);  // 250 words
  const auto press = [&](Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QTest::keyClick(&view, key, modifiers);
    return view.current_word();
  };
  EXPECT_EQ(view.current_word(), -1);
  EXPECT_EQ(press(Qt::Key_Down), 0) << "the first key shows the first word";
  EXPECT_EQ(press(Qt::Key_Right), 1);
  EXPECT_EQ(press(Qt::Key_Down), 33);
  EXPECT_EQ(press(Qt::Key_Left), 32);
  EXPECT_EQ(press(Qt::Key_Up), 0);
  EXPECT_EQ(press(Qt::Key_Up), 0);
  EXPECT_EQ(press(Qt::Key_Left), 0);
  EXPECT_EQ(press(Qt::Key_End), 249);
  EXPECT_EQ(press(Qt::Key_Right), 249);
  EXPECT_EQ(press(Qt::Key_Down), 249);
  EXPECT_EQ(press(Qt::Key_Home), 0);
  EXPECT_EQ(press(Qt::Key_Right, Qt::KeypadModifier), 1);
  EXPECT_EQ(press(Qt::Key_Right, Qt::ControlModifier), 1) << "a key of the window";
}

TEST_F(KernelSharedTest, TheCurrentWordIsScrolledIntoSight) {
  view.set_shared(large_shared(227 * 1024), 3);
  for (const Qt::Key key : {Qt::Key_End, Qt::Key_Up, Qt::Key_Home, Qt::Key_Down}) {
    QTest::keyClick(&view, key);
    const QRectF cell = view.layout_now().word(view.current_word());
    EXPECT_GE(cell.top(), view.layout_now().head - 1) << key;
    EXPECT_LE(cell.bottom(), view.viewport()->height() + 1) << key;
  }
}

// Regression: the Enter key of the keypad did nothing.
TEST_F(KernelSharedTest, EnterAndADoubleClickAskForTheWrite) {
  view.set_shared(small_shared(), 30);
  const QSignalSpy wanted(&view, &KernelSharedView::write_wanted);
  QTest::keyClick(&view, Qt::Key_Return);                                            // no word is chosen
  QTest::mouseDClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, point_of(0));  // not written
  EXPECT_EQ(wanted.size(), 0);
  QTest::mouseDClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, point_of(2));
  EXPECT_THAT(numbers_of(wanted), ElementsAre(9));
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, point_of(3));
  QTest::keyClick(&view, Qt::Key_Return);
  QTest::keyClick(&view, Qt::Key_Enter, Qt::KeypadModifier);
  EXPECT_THAT(numbers_of(wanted), ElementsAre(9, 20, 20));
}

TEST_F(KernelSharedTest, WithShiftTheyAskForTheNextWrite) {
  view.set_shared(small_shared(), 30);
  const QSignalSpy writes(&view, &KernelSharedView::write_wanted);
  const QSignalSpy changes(&view, &KernelSharedView::next_write_wanted);
  QTest::keyClick(&view, Qt::Key_Return, Qt::ShiftModifier);  // no word is chosen
  EXPECT_EQ(changes.size(), 0);
  QTest::mouseDClick(view.viewport(), Qt::LeftButton, Qt::ShiftModifier, point_of(0));  // not written: it may be later
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, point_of(3));
  QTest::keyClick(&view, Qt::Key_Return, Qt::ShiftModifier);
  QTest::keyClick(&view, Qt::Key_Enter, Qt::ShiftModifier | Qt::KeypadModifier);
  const int base = static_cast<int>(small_shared().base);
  EXPECT_THAT(numbers_of(changes), ElementsAre(base, base + 12, base + 12));
  for (const QList<QVariant>& change : changes) EXPECT_EQ(change[1].toInt(), 4);
  EXPECT_EQ(writes.size(), 0);
}

// 227 KiB, the largest shared memory of a CTA: 1816 lines, of which a few are seen.
TEST_F(KernelSharedTest, OnlyLinesThatAreSeenArePainted) {
  view.set_shared(large_shared(227 * 1024), 3);
  const auto [first, last] = view.layout_now().visible(view.viewport()->height());
  ASSERT_EQ(view.layout_now().lines(), 1816);
  ASSERT_LT(last - first, 20);
  const std::vector<DrawnText> texts = painted();
  const auto count = [&](const auto& is) { return std::ranges::count_if(texts, is); };
  EXPECT_EQ(count([](const DrawnText& t) { return t.text.startsWith(QStringLiteral("0x")); }), last - first);
  EXPECT_EQ(count([](const DrawnText& t) { return t.text == QStringLiteral("5a5a5a5a"); }), 32 * (last - first));
  EXPECT_EQ(std::ssize(texts), 33 * (last - first) + 32);
  view.verticalScrollBar()->setValue(view.verticalScrollBar()->maximum());
  const std::vector<DrawnText> end = painted();
  EXPECT_LE(std::ssize(end), 33 * (last - first + 1) + 32);
  EXPECT_TRUE(std::ranges::any_of(end, [](const DrawnText& t) { return t.text == QStringLiteral("0x38f80"); }));
}

TEST_F(KernelSharedTest, TheLastStepsWritesAreOutlined) {
  view.set_shared(small_shared(), 10);
  const auto picture = [&] { return view.viewport()->grab(view.layout_now().word(2).toAlignedRect()).toImage(); };
  const QImage outlined = picture();
  view.set_shared(small_shared(), 11);
  EXPECT_NE(picture(), outlined);
}

TEST_F(KernelSharedTest, WithoutSharedMemoryThereIsASentenceThatFits) {
  view.set_shared({}, 3);
  EXPECT_EQ(last_told, QString());
  QTest::keyClick(&view, Qt::Key_Down);
  QTest::keyClick(&view, Qt::Key_End);
  QTest::keyClick(&view, Qt::Key_Return);
  EXPECT_EQ(view.current_word(), -1);
  QTest::mouseClick(view.viewport(), Qt::LeftButton, Qt::NoModifier, {200, 100});
  EXPECT_EQ(view.current_word(), -1);
  for (const double scale : {1.0, 2.5}) {
    view.set_theme(theme(ThemeKind::dark), scale);
    view.resize(360, 300);
    QString all;
    for (const DrawnText& text : painted()) {
      EXPECT_LE(text.rect.right(), view.viewport()->width()) << text.text.toStdString() << " at " << scale;
      EXPECT_LE(text.rect.bottom(), view.viewport()->height()) << text.text.toStdString() << " at " << scale;
      all += text.text + QLatin1Char(' ');
    }
    EXPECT_TRUE(all.simplified().contains(QStringLiteral("has no shared memory"))) << all.toStdString();
  }
}

}  // namespace
}  // namespace kvscope::viz::kernel_views_test
