// The Tab key: it reaches every field that can be seen, in the order of the eye, and nothing outside the window.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include <QtWidgets/QApplication>
#include <QtWidgets/QComboBox>

#include "tests/viz/window/window_support.h"
#include "viz/window/export_bar.h"

namespace kvscope::viz::tab_test {
namespace {

using testing_support::path_of;
using testing_support::settle;

class TabTest : public testing_support::WindowTest {
 protected:
  // Every widget with the focus on the way round, from the current one.
  std::vector<QWidget*> round(Qt::Key key, Qt::KeyboardModifiers modifiers) const {
    QWidget* const first = QApplication::focusWidget();
    std::vector<QWidget*> seen{first};
    for (int n = 0; n < 200; ++n) {
      press(key, modifiers);
      QWidget* const now = QApplication::focusWidget();
      if (now == seen.back()) continue;  // from panel to panel, or from link to link
      if (now == nullptr || now == first) break;
      seen.push_back(now);
    }
    return seen;
  }
  void expect_visible(const std::vector<QWidget*>& seen) const {
    for (const QWidget* widget : seen) {
      const QRect at(widget->mapTo(window.get(), QPoint(0, 0)), widget->size());
      EXPECT_TRUE(window->rect().intersects(at))
          << widget->metaObject()->className() << " '" << widget->accessibleName().toStdString() << "' at " << at.left()
          << ' ' << at.top();
      EXPECT_FALSE(widget->visibleRegion().isEmpty()) << widget->accessibleName().toStdString();
    }
  }
};

// Regression: eight presses of Tab in a row moved the focus through the docks behind the front tab, whose places are
// outside the window.
TEST_F(TabTest, ReachesWhatIsVisibleAndNothingElse) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->canvas().setFocus();
  const std::vector<QWidget*> there = round(Qt::Key_Tab, Qt::NoModifier);
  expect_visible(there);
  EXPECT_GT(there.size(), 15u);
  for (const char* name : {"Layer", "Description of the run", "Play", "Step", "Speed in steps per second"}) {
    EXPECT_TRUE(std::ranges::any_of(there, [&](const QWidget* widget) {
      return widget->accessibleName() == QLatin1String(name);
    })) << name;
  }
  const std::vector<QWidget*> back = round(Qt::Key_Backtab, Qt::ShiftModifier);
  expect_visible(back);
  EXPECT_EQ(std::set<QWidget*>(there.begin(), there.end()), std::set<QWidget*>(back.begin(), back.end()));
  window->actions()[Do::show_breakpoints]->trigger();
  const std::vector<QWidget*> other = round(Qt::Key_Tab, Qt::NoModifier);
  expect_visible(other);
  EXPECT_TRUE(std::ranges::any_of(
      other, [](const QWidget* widget) { return widget->accessibleName() == QLatin1String("New breakpoint"); }));
}

TEST_F(TabTest, OfTheStartPageStaysOnIt) {
  const std::vector<QWidget*> there = round(Qt::Key_Tab, Qt::NoModifier);
  expect_visible(there);
  EXPECT_GE(there.size(), 3u);
}

// From bar to bar as they stand, and within a bar from left to right.
TEST_F(TabTest, GoesThroughABarFromLeftToRight) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->set_view(View::attention);
  window->actions()[Do::export_picture]->trigger();
  auto* const bar = window->findChild<ExportBar*>();
  auto* const format = bar->findChild<QComboBox*>();
  format->setCurrentIndex(format->findData(static_cast<int>(PictureFormat::gif)));  // all fields
  settle();
  int x = -1, y = -1, fields = 0;
  while (bar->isAncestorOf(QApplication::focusWidget()) && fields < 30) {
    const QPoint at = QApplication::focusWidget()->mapTo(bar, QPoint(0, 0));
    EXPECT_TRUE(at.x() > x || at.y() > y + 5) << QApplication::focusWidget()->accessibleName().toStdString();
    x = at.x();
    y = at.y();
    ++fields;
    press(Qt::Key_Tab);
  }
  EXPECT_EQ(fields, 11);
}

// Regression: the focus went to the header, the first panel, when a bar or a dock was closed.
TEST_F(TabTest, ClosingABarOrADockLeadsBackToThePanel) {
  ASSERT_TRUE(open(path_of("first_light")));
  Canvas& canvas = window->canvas();
  const auto is_back = [&] { return canvas.hasFocus() && canvas.focusedPanel() == PanelId::table; };
  for (const auto& [key, modifier] : {std::pair{Qt::Key_F, Qt::ControlModifier}, {Qt::Key_E, Qt::ControlModifier}}) {
    canvas.focusPanel(PanelId::table);
    press(key, modifier);
    ASSERT_FALSE(canvas.hasFocus());
    press(Qt::Key_Escape);
    EXPECT_TRUE(is_back()) << key << ", Esc";
    press(key, modifier);
    for (const char* name : {"Close the find bar", "Close the export bar"}) {
      if (QAbstractButton* const close = button(*window, QString::fromLatin1(name))) click(close);
    }
    EXPECT_TRUE(is_back()) << key << ", the button";
  }
  for (const Qt::Key key : {Qt::Key_2, Qt::Key_4}) {
    press(key, Qt::AltModifier);
    ASSERT_FALSE(canvas.hasFocus());
    press(key, Qt::AltModifier);
    EXPECT_TRUE(is_back()) << key;
  }
}

// Regression: after Cancel the focus was on the header.
TEST_F(TabTest, ATaskThatEndsLeadsBackToThePanel) {
  ASSERT_TRUE(open(path_of("first_light")));
  Canvas& canvas = window->canvas();
  canvas.focusPanel(PanelId::table);
  window->open(testing_support::made_up("held"));
  const auto cancel = [&] { return button(*window, QStringLiteral("Cancel")); };
  ASSERT_TRUE(testing_support::wait_until([&] { return cancel() != nullptr; }));
  cancel()->setFocus(Qt::TabFocusReason);
  press(Qt::Key_Space);
  ASSERT_TRUE(testing_support::wait_until([&] { return cancel() == nullptr; }));
  EXPECT_TRUE(canvas.hasFocus());
  EXPECT_EQ(canvas.focusedPanel(), PanelId::table);
}

}  // namespace
}  // namespace kvscope::viz::tab_test
