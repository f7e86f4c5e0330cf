// Labs: the start page and the menu list them, a lab opens its scenario at its place, and the results of a check are
// shown with pictures at the place of the first failing test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QtGui/QTextDocument>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QMenu>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QTextBrowser>

#include "tests/viz/window/window_support.h"
#include "viz/window/lab_panel.h"

namespace kvscope::viz::labs_test {
namespace {

using testing_support::gallery_path;
using testing_support::path_of;
using testing_support::wait_until;

const char* const kPicture =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"200\" height=\"100\"><rect width=\"200\" height=\"100\" "
    "fill=\"#ff0000\"/></svg>";

class LabsTest : public testing_support::WindowTest {
 protected:
  LabsTest() {
    window.reset();
    LabEntry lab{"02_rows", "Rows & blocks", "what a stride counts", "/handout.md", gallery_path("first_light"), {}, 2,
                 60};
    lab.place = {6, {}, "pool", "block 0", {}};
    backend.lab_entries = {lab, {"07_hunt", "Fault hunt", "", "/hunt.md", {}, {}, 7, 45}};
    backend.result.lab = lab;
    backend.result.student = "ada";
    backend.result.tests = {{"one_page", 10, 10, {}, {}, {}, {}},
                            {"blocks",
                             0,
                             20,
                             "the stride is of one layer",
                             "token 3\nexpected 51",
                             kPicture,
                             {4, {}, "sequences", "seq 1", {}}},
                            {"mla", 0, 10, "always two slots", "token 1", {}, {2, {}, "timeline", {}, {}}}};
    start();
  }
  [[nodiscard]] LabPanel& panel() const { return *window->findChild<LabPanel*>(); }
  [[nodiscard]] QDockWidget& dock() const { return *window->findChild<QDockWidget*>(QStringLiteral("lab")); }
  [[nodiscard]] QListWidget& list() const { return *window->findChild<QListWidget*>(QStringLiteral("labs")); }
  [[nodiscard]] bool opened() const {
    return wait_until([&] { return window->document() != nullptr && dock().isVisible(); });
  }
};

TEST_F(LabsTest, TheStartPageListsTitleTimeAndGoal) {
  ASSERT_EQ(list().count(), 2);
  EXPECT_EQ(list().item(0)->text(), QStringLiteral("02  Rows & blocks\n60 min: what a stride counts"));
  EXPECT_EQ(list().item(1)->text(), QStringLiteral("07  Fault hunt\n45 min"));
  EXPECT_FALSE(dock().isVisible());
}

TEST_F(LabsTest, ALabOpensItsScenarioAtItsPlaceAndItsPanel) {
  Q_EMIT list().itemActivated(list().item(0));
  ASSERT_TRUE(opened());
  EXPECT_EQ(document().path(), path_of("first_light"));
  EXPECT_EQ(step(), StepIdx{6});
  EXPECT_EQ(window->view(), View::pool);
  EXPECT_EQ(document().pinned(), of_block(BlockIdx{0}));
  EXPECT_TRUE(panel().text().contains(QStringLiteral("what a stride counts")));
  // Another file is no lab: the panel stays where the user left it, and is not raised.
  dock().hide();
  ASSERT_TRUE(open(path_of("preemption")));
  EXPECT_FALSE(dock().isVisible());
}

TEST_F(LabsTest, TheMenuHasEachLabWithItsNumber) {
  QStringList titles;
  for (const QMenu* menu : window->menuBar()->findChildren<QMenu*>()) {
    if (menu->title() != QStringLiteral("&Labs")) continue;
    for (const QAction* action : menu->actions()) titles.push_back(action->text());
  }
  EXPECT_EQ(titles, QStringList({QStringLiteral("02  Rows && blocks"), QStringLiteral("07  Fault hunt")}));
}

TEST_F(LabsTest, ResultsAreShownAtThePlaceOfTheFirstFailingTest) {
  window->open(QStringLiteral("/made/up/result.json"));
  ASSERT_TRUE(opened());
  EXPECT_EQ(step(), StepIdx{4});
  EXPECT_EQ(window->view(), View::sequences);
  const QString text = panel().text();
  for (const char* part :
       {"PASS one_page", "FAIL blocks", "0 of 20", "the stride is of one layer", "expected 51", "FAIL mla"})
    EXPECT_TRUE(text.contains(QString::fromLatin1(part))) << part << " in " << text.toStdString();
  // The picture of test 1 is red; test 2 has none.
  const QTextDocument& page = *panel().findChild<QTextBrowser*>()->document();
  const auto image = page.resource(QTextDocument::ImageResource, QUrl(QStringLiteral("picture:1"))).value<QImage>();
  ASSERT_FALSE(image.isNull());
  EXPECT_EQ(image.pixelColor(image.width() / 2, image.height() / 2), QColor(Qt::red));
  EXPECT_TRUE(page.resource(QTextDocument::ImageResource, QUrl(QStringLiteral("picture:2"))).value<QImage>().isNull());
}

TEST_F(LabsTest, ALinkShowsThePlaceOfItsTestAlsoAfterAnotherFile) {
  window->open(QStringLiteral("/made/up/result.json"));
  ASSERT_TRUE(opened());
  auto* const browser = panel().findChild<QTextBrowser*>();
  Q_EMIT browser->anchorClicked(QUrl(QStringLiteral("test:2")));
  EXPECT_EQ(step(), StepIdx{2});
  EXPECT_EQ(window->view(), View::timeline);
  ASSERT_TRUE(open(path_of("preemption")));
  Q_EMIT browser->anchorClicked(QUrl(QStringLiteral("lab:0")));
  ASSERT_TRUE(wait_until([&] { return document().path() == path_of("first_light"); }));
  EXPECT_EQ(step(), StepIdx{6});
}

TEST_F(LabsTest, ReloadReadsTheResultsAgain) {
  window->open(QStringLiteral("/made/up/result.json"));
  ASSERT_TRUE(opened());
  const Document* const before = window->document();
  backend.result.tests[1].earned = 20;
  window->actions()[Do::reload]->trigger();
  ASSERT_TRUE(wait_until([&] { return window->document() != before; }));
  EXPECT_TRUE(panel().text().contains(QStringLiteral("PASS blocks")));
  EXPECT_EQ(step(), StepIdx{2});
}

TEST_F(LabsTest, ADamagedResultIsAMessageAndChangesNothing) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->open(QStringLiteral("/made/up/damaged.json"));
  EXPECT_TRUE(window->messages().isVisible());
  EXPECT_EQ(document().path(), path_of("first_light"));
}

}  // namespace
}  // namespace kvscope::viz::labs_test
