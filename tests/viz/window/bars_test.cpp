// The bars above the picture and the status line: nothing is squeezed or cut within a word, in small windows and with
// large text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <QtWidgets/QComboBox>
#include <QtWidgets/QLabel>

#include "tests/viz/window/window_support.h"
#include "viz/window/attention_bar.h"
#include "viz/window/export_bar.h"
#include "viz/window/flow_row.h"
#include "viz/window/status_line.h"
#include "viz/window/tile_bar.h"

namespace kvscope::viz::bars_test {
namespace {

using testing_support::path_of;

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
};

// Regression: at 1024x640 and 150 % the attention bar read "Seque query 65 head: 0 layer: 0 keys 32 comp lid".
TEST_F(BarsTest, NoFieldAndNoWordIsSqueezed) {
  ASSERT_TRUE(open(path_of("first_light")));
  for (const double font : {1.0, 1.5, 2.0}) {
    for (const QSize size : {QSize(1600, 1000), QSize(1024, 640)}) {
      window->set_font_scale(font);
      window->resize(size);
      const std::string where = std::to_string(size.width()) + " at " + std::to_string(font);
      window->set_view(View::tile);
      QTest::qWait(10);
      expect_whole(*window->findChild<TileBar*>(), "tile, " + where);
      window->set_view(View::attention);
      QTest::qWait(10);
      expect_whole(*window->findChild<AttentionBar*>(), "attention, " + where);
      window->actions()[Do::export_picture]->trigger();
      auto* const bar = window->findChild<ExportBar*>();
      for (int format = 0; format < 6; ++format) {
        bar->findChild<QComboBox*>()->setCurrentIndex(format);
        QTest::qWait(10);
        expect_whole(*bar, "export, " + where + ", format " + std::to_string(format));
      }
      bar->hide();
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
  QTest::qWait(10);
  EXPECT_EQ(line->text(), whole);
  EXPECT_TRUE(line->toolTip().isEmpty());
  window->set_font_scale(2);
  window->resize(1024, 640);
  QTest::qWait(10);
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
