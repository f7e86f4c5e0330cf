// The table of actions: complete, every key once, and the icons and colors that go with it.
#include "viz/window/actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include <QtCore/QRegularExpression>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QTreeWidget>

#include "tests/viz/window/window_support.h"
#include "viz/window/command_palette.h"
#include "viz/window/icons.h"
#include "viz/window/theme_choice.h"

namespace kvscope::viz::actions_test {
namespace {

using testing_support::settle;
using testing_support::WindowTest;

TEST(ActionTable, StandsInTheOrderOfItsIds) {
  for (std::size_t i = 0; i < kActions; ++i) EXPECT_EQ(static_cast<std::size_t>(action_table()[i].id), i);
}

// A key with two actions triggers neither of them: Qt reports it as ambiguous.
TEST(ActionTable, GivesEveryActionAKeyAndNoKeyTwice) {
  std::map<QString, const char*> owner;
  for (const ActionEntry& e : action_table()) {
    ASSERT_FALSE(keys_of(e).isEmpty()) << e.text;
    for (const QKeySequence& key : keys_of(e)) {
      EXPECT_FALSE(key.isEmpty()) << e.text << ": " << e.keys;
      EXPECT_NE(key[0].key(), Qt::Key_unknown) << e.text << ": " << e.keys;
      const auto [there, added] = owner.emplace(key.toString(), e.text);
      EXPECT_TRUE(added) << key.toString().toStdString() << " is " << e.text << " and " << there->second;
    }
  }
}

// Keys without a modifier that the canvas needs itself.
TEST(ActionTable, LeavesTheCanvasItsKeys) {
  const std::set<int> canvas{Qt::Key_Left, Qt::Key_Right, Qt::Key_Up,     Qt::Key_Down, Qt::Key_Home,  Qt::Key_End,
                             Qt::Key_Tab,  Qt::Key_Enter, Qt::Key_Return, Qt::Key_Plus, Qt::Key_Minus, Qt::Key_0};
  for (const ActionEntry& e : action_table()) {
    for (const QKeySequence& key : keys_of(e)) {
      EXPECT_FALSE(key[0].keyboardModifiers() == Qt::NoModifier && canvas.contains(key[0].key())) << e.text;
    }
  }
}

TEST(ActionTable, HasWordsAndAMnemonicOfItsOwnInEveryGroup) {
  for (const Group group : kGroups) EXPECT_TRUE(group_title(group).contains(QLatin1Char('&')));
  for (const ActionEntry& e : action_table()) {
    EXPECT_FALSE(tip_of(e).isEmpty()) << e.text;
    EXPECT_TRUE(text_of(e).contains(QLatin1Char('&'))) << e.text;
    EXPECT_FALSE(plain_text_of(e).contains(QLatin1Char('&'))) << e.text;
    EXPECT_FALSE(plain_text_of(e).endsWith(QLatin1Char('.'))) << e.text;
  }
}

TEST_F(WindowTest, HasTheTablesActionsAndNoOtherWithAKey) {
  std::set<QAction*> of_table;
  for (const ActionEntry& e : action_table()) {
    QAction* action = window->actions()[e.id];
    of_table.insert(action);
    EXPECT_EQ(action->shortcuts(), keys_of(e)) << e.text;
    EXPECT_FALSE(action->statusTip().isEmpty()) << e.text;
  }
  for (QAction* action : window->findChildren<QAction*>()) {
    // Text fields have additional shortcuts that work only inside them.
    const bool of_field =
        action->shortcutContext() == Qt::WidgetShortcut || action->objectName().startsWith(QLatin1String("edit-"));
    EXPECT_TRUE(action->shortcut().isEmpty() || of_field || of_table.contains(action)) << action->text().toStdString();
  }
}

TEST_F(WindowTest, ListsEveryActionAndKeyInTheHelpThatF1Opens) {
  press(Qt::Key_F1);
  auto* dialog = window->findChild<ShortcutsDialog*>();
  ASSERT_NE(dialog, nullptr);
  EXPECT_TRUE(dialog->isVisible());
  EXPECT_FALSE(dialog->isModal());
  QString all;
  for (const QTreeWidgetItem* item : dialog->findChild<QTreeWidget*>()->findItems(
           QStringLiteral(".*"), Qt::MatchRegularExpression | Qt::MatchRecursive, 0)) {
    all += item->text(0) + QLatin1Char('|') + item->text(1) + QLatin1Char('|') + item->text(2) + QLatin1Char('\n');
  }
  for (const ActionEntry& e : action_table()) {
    EXPECT_TRUE(
        all.contains(plain_text_of(e) + QLatin1Char('|') + keys_of(e).front().toString(QKeySequence::NativeText)))
        << e.text;
  }
  dialog->close();
}

// Regression: at 200 % the dialog was wider than the screen, and its Close button was outside.
TEST_F(WindowTest, TheHelpFitsTheScreenAtEveryTextSize) {
  for (const double font : {1.0, 2.0, 2.5}) {
    window->set_font_scale(font);
    press(Qt::Key_F1);
    auto* dialog = window->findChild<ShortcutsDialog*>();
    ASSERT_NE(dialog, nullptr);
    EXPECT_LE(dialog->width(), dialog->screen()->availableSize().width()) << font;
    EXPECT_LE(dialog->height(), dialog->screen()->availableSize().height()) << font;
    const auto* const close_button = button(*dialog, QStringLiteral("Close"));
    ASSERT_NE(close_button, nullptr);
    const QRect at(close_button->mapTo(dialog, QPoint(0, 0)), close_button->size());
    EXPECT_TRUE(dialog->rect().contains(at)) << font;
    dialog->close();
    QCoreApplication::sendPostedEvents(dialog, QEvent::DeferredDelete);
    window->activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
  }
}

// --- icons -----------------------------------------------------------------------------------------------------------

QImage drawn(Icon which, const Theme& theme, int side, QIcon::Mode mode = QIcon::Normal) {
  return icon(which, theme).pixmap(QSize(side, side), 1.0, mode).toImage();
}

std::int64_t inked(const QImage& image) {
  std::int64_t count = 0;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) count += qAlpha(image.pixel(x, y)) > 40 ? 1 : 0;
  }
  return count;
}

// --- all actions by name ---------------------------------------------------------------------------------------------

TEST(CommandPalette, FindsActionsByPartsOfTheirNamesTheBestFirst) {
  EXPECT_EQ(actions_meant({}).size(), kActions);
  EXPECT_EQ(actions_meant(QStringLiteral("st ba")).front(), Do::step_back);
  EXPECT_EQ(actions_meant(QStringLiteral("BACK")).front(), Do::go_back) << "a name that begins with it comes first";
  EXPECT_EQ(actions_meant(QStringLiteral("webm")), (std::vector<Do>{Do::export_picture})) << "in the description";
  EXPECT_TRUE(actions_meant(QStringLiteral("no such action")).empty());
  for (const ActionEntry& e : action_table()) EXPECT_EQ(actions_meant(plain_text_of(e)).front(), e.id) << e.text;
}

// With the keyboard alone: open, type, choose, carry out. The focus stays in the field.
TEST_F(WindowTest, CarriesOutAnActionByItsName) {
  ASSERT_TRUE(open(testing_support::path_of("first_light")));
  press(Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
  auto* palette = window->findChild<CommandPalette*>();
  ASSERT_NE(palette, nullptr);
  auto* list = palette->findChild<QTreeWidget*>();
  auto* field = palette->findChild<QLineEdit*>();
  EXPECT_FALSE(field->accessibleName().isEmpty());
  EXPECT_FALSE(list->accessibleName().isEmpty());
  QTest::keyClicks(field, QStringLiteral("view"));
  const auto chosen = [&] { return list->currentItem()->text(0); };
  const QString first = chosen();
  QTest::keyClick(field, Qt::Key_Down);
  EXPECT_NE(chosen(), first);
  field->clear();
  QTest::keyClicks(field, QStringLiteral("block pool"));
  EXPECT_EQ(chosen(), QStringLiteral("Block pool and table"));
  QTest::keyClick(field, Qt::Key_Return);
  settle();
  EXPECT_EQ(window->view(), View::pool);
  EXPECT_EQ(window->findChild<CommandPalette*>(), nullptr);

  window->activateWindow();  // the offscreen platform has no window manager that does it
  ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
  press(Qt::Key_K, Qt::ControlModifier);
  palette = window->findChild<CommandPalette*>();
  ASSERT_NE(palette, nullptr);
  QTest::keyClick(palette->findChild<QLineEdit*>(), Qt::Key_Escape);
  settle();
  EXPECT_EQ(window->findChild<CommandPalette*>(), nullptr);
  EXPECT_EQ(window->view(), View::pool);
}

// What cannot be done now is not offered.
TEST_F(WindowTest, ThePaletteOffersWhatCanBeDone) {
  press(Qt::Key_K, Qt::ControlModifier);
  const auto* list = window->findChild<CommandPalette*>()->findChild<QTreeWidget*>();
  for (int n = 0; n < list->topLevelItemCount(); ++n) {
    EXPECT_NE(list->topLevelItem(n)->text(0), plain_text_of(entry(Do::step))) << "no run is open";
  }
  EXPECT_GT(list->topLevelItemCount(), 5);
}

TEST(Icons, AreAllDrawnAndAllDifferent) {
  EXPECT_TRUE(icon(Icon::none, theme(ThemeKind::dark)).isNull());
  std::vector<QImage> seen;
  for (int i = 1; i < kIcons; ++i) {
    const QImage image = drawn(static_cast<Icon>(i), theme(ThemeKind::dark), 32);
    EXPECT_GT(inked(image), 25) << i;
    for (std::size_t other = 0; other < seen.size(); ++other)
      EXPECT_NE(image, seen[other]) << i << " and " << other + 1;
    seen.push_back(image);
  }
}

// No icon touches the edge: an icon clipped by its button would look wrong at some sizes.
TEST(Icons, KeepAMarginAtEverySizeAndPixelRatio) {
  for (int i = 1; i < kIcons; ++i) {
    for (const int side : {16, 20, 33, 64}) {
      const QImage image = drawn(static_cast<Icon>(i), theme(ThemeKind::light), side);
      ASSERT_EQ(image.size(), QSize(side, side));
      for (int k = 0; k < side; ++k) {
        for (const QPoint edge : {QPoint(k, 0), QPoint(k, side - 1), QPoint(0, k), QPoint(side - 1, k)})
          EXPECT_LT(qAlpha(image.pixel(edge)), 8) << i << " at " << side;
      }
    }
  }
}

TEST(Icons, FollowTheThemeAndFadeWhenDisabled) {
  const QImage dark = drawn(Icon::play, theme(ThemeKind::dark), 32),
               light = drawn(Icon::play, theme(ThemeKind::light), 32);
  EXPECT_EQ(QColor(dark.pixel(13, 16)), theme(ThemeKind::dark).text);
  EXPECT_EQ(QColor(light.pixel(13, 16)), theme(ThemeKind::light).text);
  EXPECT_LT(qAlpha(drawn(Icon::play, theme(ThemeKind::dark), 32, QIcon::Disabled).pixel(13, 16)), 100);
}

// --- theme -----------------------------------------------------------------------------------------------------------

TEST(ThemeChoice, FollowsTheDesktopOnlyWhenItIsToldTo) {
  QPalette dark_desktop, light_desktop;
  dark_desktop.setColor(QPalette::Window, QColor(30, 30, 30));
  dark_desktop.setColor(QPalette::WindowText, QColor(220, 220, 220));
  light_desktop.setColor(QPalette::Window, QColor(240, 240, 240));
  light_desktop.setColor(QPalette::WindowText, QColor(20, 20, 20));
  EXPECT_EQ(theme_kind(ThemeSetting::system, dark_desktop), ThemeKind::dark);
  EXPECT_EQ(theme_kind(ThemeSetting::system, light_desktop), ThemeKind::light);
  for (const QPalette& desktop : {dark_desktop, light_desktop}) {
    EXPECT_EQ(theme_kind(ThemeSetting::dark, desktop), ThemeKind::dark);
    EXPECT_EQ(theme_kind(ThemeSetting::light, desktop), ThemeKind::light);
    EXPECT_EQ(theme_kind(ThemeSetting::high_contrast, desktop), ThemeKind::high_contrast);
  }
}

// Qt 6.4 does not report that the desktop asks for contrast: its palette of black and white does.
TEST(ThemeChoice, ABlackAndWhiteDesktopAsksForHighContrast) {
  for (const bool dark : {true, false}) {
    QPalette desktop;
    desktop.setColor(QPalette::Window, dark ? Qt::black : Qt::white);
    desktop.setColor(QPalette::WindowText, dark ? Qt::white : Qt::black);
    EXPECT_EQ(theme_kind(ThemeSetting::system, desktop), ThemeKind::high_contrast);
    EXPECT_EQ(theme_kind(ThemeSetting::light, desktop), ThemeKind::light) << "a choice in the menu counts more";
  }
  QPalette usual;
  usual.setColor(QPalette::Window, QColor(0xef, 0xef, 0xef));
  usual.setColor(QPalette::WindowText, Qt::black);
  EXPECT_EQ(theme_kind(ThemeSetting::system, usual), ThemeKind::light);
}

// The application's palette must not be mistaken for the desktop's: otherwise the dark theme would stay forever.
TEST(ThemeChoice, FindsTheDesktopsPaletteUnderOurs) {
  const QPalette desktop = desktop_palette();
  for (const ThemeKind kind : kThemeKinds) {
    apply_look(theme(kind), 1);
    EXPECT_EQ(desktop_palette().color(QPalette::Window), desktop.color(QPalette::Window));
    EXPECT_EQ(QApplication::palette().color(QPalette::Window), theme(kind).surface);
  }
}

TEST(ThemeChoice, NamesItsSettingsAndFindsThemAgain) {
  for (const ThemeSetting setting :
       {ThemeSetting::system, ThemeSetting::dark, ThemeSetting::light, ThemeSetting::high_contrast})
    EXPECT_EQ(find_theme_setting(name(setting)), setting);
  EXPECT_EQ(find_theme_setting(QStringLiteral("purple")), std::nullopt);
}

// A color missing in the table of values would stay "@quiet" in the style sheet, which Qt ignores without a warning.
TEST(ThemeChoice, FillsInEveryValueOfItsStyleSheet) {
  for (const ThemeKind kind : kThemeKinds) EXPECT_FALSE(style_sheet(theme(kind), 1.3).contains(QLatin1Char('@')));
}

// Words on buttons, in menus and in fields: WCAG AA in both themes.
TEST(ThemeChoice, EveryPairOfInkAndGroundReads) {
  for (const ThemeKind kind : kThemeKinds) {
    const QPalette palette = widget_palette(theme(kind));
    using Role = QPalette::ColorRole;
    for (const auto& [ink, ground] :
         std::initializer_list<std::pair<Role, Role>>{{Role::WindowText, Role::Window},
                                                      {Role::Text, Role::Base},
                                                      {Role::ButtonText, Role::Button},
                                                      {Role::HighlightedText, Role::Highlight},
                                                      {Role::ToolTipText, Role::ToolTipBase},
                                                      {Role::PlaceholderText, Role::Base}}) {
      EXPECT_GE(contrast(palette.color(ink), palette.color(ground)), 4.5) << static_cast<int>(ink);
    }
  }
}

}  // namespace
}  // namespace kvscope::viz::actions_test
