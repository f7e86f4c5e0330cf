// The bars above the picture and the status line: nothing is squeezed or cut within a word, in small windows and with
// large text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include <QtWidgets/QComboBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QListView>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSlider>
#include <QtWidgets/QTabBar>

#include "tests/viz/window/window_support.h"
#include "viz/window/attention_bar.h"
#include "viz/window/export_bar.h"
#include "viz/window/flow_row.h"
#include "viz/window/start_page.h"
#include "viz/window/status_line.h"
#include "viz/window/theme_choice.h"
#include "viz/window/tile_bar.h"
#include "viz/window/transport_bar.h"

namespace kvscope::viz::bars_test {
namespace {

using testing_support::path_of;
using testing_support::settle;
using testing_support::wait_until;

// A widget of a fixed size hint.
class Box final : public QWidget {
 public:
  explicit Box(QSize size) : size_(size) {}
  [[nodiscard]] QSize sizeHint() const override { return size_; }

 private:
  QSize size_;
};

// The example of flow_row.h: 100, 60 and 60 px with 12 px between two.
TEST(FlowRow, HasAsManyLinesAsItsWidthNeeds) {
  QWidget bar;
  auto* row = new FlowRow(&bar);
  for (const int width : {100, 60, 60}) row->addWidget(new Box({width, 20}));
  EXPECT_EQ(row->sizeHint(), QSize(244, 20));
  EXPECT_EQ(row->heightForWidth(244), 20);
  EXPECT_EQ(row->heightForWidth(243), 44);
  EXPECT_EQ(row->heightForWidth(172), 44);
  EXPECT_EQ(row->heightForWidth(171), 44) << "100, then 60 and 60";
  EXPECT_EQ(row->heightForWidth(131), 68);
  EXPECT_EQ(row->heightForWidth(1), 68) << "an item wider than the row has a line of its own";
}

TEST(FlowRow, KeepsItemsInOrderApartAndInside) {
  EXPECT_TRUE(rc::check([] {
    QWidget bar;
    auto* row = new FlowRow(&bar);
    const auto count = *rc::gen::inRange<std::size_t>(1, 9);
    std::vector<Box*> boxes;
    std::vector<bool> hidden;
    for (std::size_t n = 0; n < count; ++n) {
      boxes.push_back(new Box({*rc::gen::inRange(10, 200), *rc::gen::inRange(10, 40)}));
      row->addWidget(boxes.back());
      if (*rc::gen::inRange(0, 4) == 0) row->setAlignment(boxes.back(), Qt::AlignRight);
      hidden.push_back(*rc::gen::inRange(0, 5) == 0);
      boxes.back()->setVisible(!hidden.back());
    }
    const int width = *rc::gen::inRange(200, 700);
    const int height = row->heightForWidth(width);
    row->setGeometry(QRect(7, 3, width, height));
    const QWidget* before = nullptr;
    for (std::size_t n = 0; n < count; ++n) {
      if (hidden[n]) continue;
      const QRect at = boxes[n]->geometry();
      RC_ASSERT(at.width() == boxes[n]->sizeHint().width());
      RC_ASSERT(QRect(7, 3, width, height).contains(at));
      if (before != nullptr) {
        const bool right_of = at.left() > before->geometry().right(), below = at.top() > before->geometry().bottom();
        RC_ASSERT(right_of || below);
      }
      before = boxes[n];
    }
  }));
}

class BarsTest : public testing_support::WindowTest {
 protected:
  // Nothing in the bar is narrower than its content, and nothing covers anything else.
  void expect_whole(const QWidget& bar, const std::string& where) const {
    ASSERT_TRUE(bar.isVisible()) << where;
    std::vector<std::pair<const QWidget*, QRect>> parts;
    for (const QWidget* part : bar.findChildren<QWidget*>()) {
      const bool word = qobject_cast<const QLabel*>(part) != nullptr;
      const bool field = qobject_cast<const QAbstractButton*>(part) != nullptr ||
                         qobject_cast<const QComboBox*>(part) != nullptr ||
                         qobject_cast<const QSlider*>(part) != nullptr ||
                         QLatin1String(part->metaObject()->className()).endsWith(QLatin1String("SpinBox"));
      if (!part->isVisible() || (!word && !field)) continue;
      if (qobject_cast<const QComboBox*>(part->parentWidget()) != nullptr) continue;
      const QRect at(part->mapTo(&bar, QPoint(0, 0)), part->size());
      const std::string what = where + ": " + part->metaObject()->className() + " '" +
                               part->accessibleName().toStdString() +
                               (word ? qobject_cast<const QLabel*>(part)->text().toStdString() : "") + "'";
      EXPECT_GE(at.width(), part->minimumSizeHint().width()) << what;
      EXPECT_GE(at.height(), part->minimumSizeHint().height()) << what;
      EXPECT_TRUE(bar.rect().contains(at)) << what;
      for (const auto& [other, there] : parts) {
        EXPECT_FALSE(at.intersects(there)) << what << " and " << other->accessibleName().toStdString();
      }
      parts.emplace_back(part, at);
    }
    EXPECT_GT(parts.size(), 5u) << where;
  }

  // A QToolBar hides what does not fit.
  void expect_whole_transport(const std::string& where) const {
    const auto& bar = *window->findChild<TransportBar*>();
    for (const QWidget* part : {static_cast<const QWidget*>(bar.findChild<QDoubleSpinBox*>()),
                                static_cast<const QWidget*>(bar.findChild<QSlider*>()),
                                static_cast<const QWidget*>(bar.findChild<QLabel*>(QStringLiteral("position")))}) {
      EXPECT_TRUE(part->isVisible()) << "transport, " << where << ": " << part->metaObject()->className();
    }
    expect_whole(bar, "transport, " + where);
  }

  // The words on the tabs of the docks are whole, and not smaller than at 100 %: above two of them, below `count`.
  void expect_whole_tabs(int count, const std::string& where) const {
    std::vector<int> counts;
    for (const QTabBar* bar : window->findChildren<QTabBar*>()) {
      if (!bar->isVisible()) continue;
      counts.push_back(bar->count());
      expect_whole_tabs(*bar, where);
    }
    EXPECT_THAT(counts, testing::UnorderedElementsAre(2, count)) << where;
  }
  void expect_whole_tabs(const QTabBar& bar, const std::string& where) const {
    const int count = bar.count();
    // A layout of docks is animated.
    EXPECT_TRUE(wait_until([&] { return bar.rect().contains(bar.tabRect(count - 1)); }, 2000)) << where;
    EXPECT_GE(bar.font().pixelSize(), qRound(kBodySize)) << where;
    for (int tab = 0; tab < count; ++tab) {
      const QRect at = bar.tabRect(tab);
      const std::string what = "tab '" + bar.tabText(tab).toStdString() + "', " + where;
      EXPECT_GE(at.width(), bar.fontMetrics().horizontalAdvance(bar.tabText(tab)) + 2 * kTabPadding) << what;
      EXPECT_TRUE(bar.rect().contains(at)) << what;
    }
  }

  static constexpr int kTabPadding = 12;  // [px] as in the style sheet
};

// Regressions: at 1024x640 and 150 % the attention bar read "Seque query 65 head: 0 layer: 0 keys 32 comp lid" and the
// tabs "Not... Even... Sequenc... Breakpoin..."; at 200 % the tool bar had no field for the speed.
TEST_F(BarsTest, NoFieldAndNoWordIsSqueezed) {
  ASSERT_TRUE(open(path_of("first_light")));
  for (const double font : {1.0, 1.25, 1.5, 2.0}) {
    window->set_font_scale(font);
    for (const QSize size :
         {QSize(1024, 640), QSize(1366, 768), QSize(1600, 1000), QSize(1920, 1080), QSize(2560, 1440)}) {
      window->resize(size);
      const std::string where = std::to_string(size.width()) + " at " + std::to_string(font);
      for (const bool lab : {false, true}) {
        window->findChild<QDockWidget*>(QStringLiteral("lab"))->setVisible(lab);
        settle();
        expect_whole_tabs(lab ? 5 : 4, where);
      }
      expect_whole_transport(where);
      window->set_view(View::tile);
      settle();
      expect_whole(*window->findChild<TileBar*>(), "tile, " + where);
      window->set_view(View::attention);
      settle();
      expect_whole(*window->findChild<AttentionBar*>(), "attention, " + where);
      window->actions()[Do::export_picture]->trigger();
      auto* const bar = window->findChild<ExportBar*>();
      for (int format = 0; format < 6; ++format) {
        bar->findChild<QComboBox*>()->setCurrentIndex(format);
        settle();
        expect_whole(*bar, "export, " + where + ", format " + std::to_string(format));
      }
      bar->hide();
    }
  }
}

// Regression: at 1024x640 and 200 % the words of the drop area, in one line, made the gallery narrower than the list of
// labs beside it, without room for its pictures.
TEST_F(BarsTest, TheStartPageKeepsItsGalleryAndItsButton) {
  const auto& page = *window->findChild<StartPage*>();
  for (const double font : {1.0, 1.25, 1.5, 2.0}) {
    window->set_font_scale(font);
    for (const QSize size : {QSize(1024, 640), QSize(1366, 768), QSize(1600, 1000), QSize(2560, 1440)}) {
      window->resize(size);
      settle();
      const std::string where = std::to_string(size.width()) + " at " + std::to_string(font);
      EXPECT_GE(page.findChild<QListView*>(QStringLiteral("gallery"))->width(), page.width() / 2) << where;
      const QWidget& drop_area = *page.findChild<QPushButton*>()->parentWidget();
      for (const QWidget* part : drop_area.findChildren<QWidget*>()) {
        if (!part->isVisible()) continue;
        const auto* const words = qobject_cast<const QLabel*>(part);
        const int high = words != nullptr ? words->heightForWidth(part->width()) : part->minimumSizeHint().height();
        EXPECT_GE(part->height(), high) << where << ": " << part->metaObject()->className();
      }
    }
  }
}

// Regression: at 1024x640 and 200 % the faults of a file were in a column of 110 px beside three buttons: "bad.jso n:
// $.kvsco pe_scen ario: missing:".
TEST_F(BarsTest, AMessageHasRoomForItsWords) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->open(testing_support::made_up("faulty"));
  ASSERT_TRUE(wait_until([&] { return window->messages().isVisible(); }));
  for (const double font : {1.0, 1.5, 2.0}) {
    window->set_font_scale(font);
    for (const QSize size : {QSize(1600, 1000), QSize(1024, 640)}) {
      window->resize(size);
      settle();
      const std::string where = std::to_string(size.width()) + " at " + std::to_string(font);
      const QWidget& bar = window->messages();
      const auto* const details = bar.findChild<QPlainTextEdit*>();
      ASSERT_NE(details, nullptr);
      EXPECT_GE(details->width(), bar.width() / 2) << where;
      const auto buttons_are_beside = [&] {
        const QRect words(details->mapTo(&bar, QPoint(0, 0)), details->size());
        const auto buttons = bar.findChildren<QPushButton*>();
        return buttons.size() == 3 && std::ranges::all_of(buttons, [&](const QPushButton* button) {
                 const QRect at(button->mapTo(&bar, QPoint(0, 0)), button->size());
                 return bar.rect().contains(at) && !at.intersects(words);
               });
      };
      EXPECT_TRUE(wait_until(buttons_are_beside, 2000)) << where;
    }
  }
}

// Regression: "Sequence 3, token 37: page 2, slot 5 of bloc" ended within a word, and nothing showed the rest.
TEST_F(BarsTest, TheStatusLineIsCutBetweenWordsAndKeepsTheWholeSentence) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().seek_step(StepIdx{6});
  document().pin(of_token(SeqIdx{3}, TokIdx{37}));
  auto* const line = window->findChild<StatusLine*>();
  ASSERT_NE(line, nullptr);
  const QString whole = QStringLiteral("Sequence 3, token 37: page 2, slot 5 of block 2, shared by 5 sequences");
  window->resize(1600, 1000);
  settle();
  EXPECT_EQ(line->text(), whole);
  EXPECT_TRUE(line->toolTip().isEmpty());
  window->set_font_scale(2);
  window->resize(1024, 640);
  settle();
  EXPECT_TRUE(line->text().endsWith(QStringLiteral(" …"))) << line->text().toStdString();
  EXPECT_TRUE(whole.startsWith(line->text().chopped(2)));
  EXPECT_LE(line->fontMetrics().horizontalAdvance(line->text()), line->contentsRect().width());
  EXPECT_EQ(line->toolTip(), whole);
  EXPECT_EQ(line->accessibleName(), whole);
  document().pin({});
  EXPECT_EQ(line->text(), QString());
  EXPECT_EQ(line->accessibleName(), QStringLiteral("Selection"));
}

}  // namespace
}  // namespace kvscope::viz::bars_test
