// Ways through the window: back and forward, F6 from part to part, the focus that is always visible, keys in text
// fields, and messages that go with their cause and move nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QtGui/QAccessible>
#include <QtWidgets/QAbstractSpinBox>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QTextBrowser>

#include "tests/viz/window/window_support.h"
#include "viz/window/attention_bar.h"
#include "viz/window/busy_bar.h"
#include "viz/window/export_bar.h"
#include "viz/window/find_bar.h"
#include "viz/window/overlay.h"
#include "viz/window/tile_bar.h"
#include "viz/window/transport_bar.h"
#include "viz/window/why_panel.h"

namespace kvscope::viz::ways_test {
namespace {

using testing_support::made_up;
using testing_support::path_of;
using testing_support::settle;
using testing_support::wait_until;

class WaysTest : public testing_support::WindowTest {
 protected:
  // A key, and all that it leads to.
  static void press_and_settle(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    press(key, modifiers);
    settle();
  }
  static void connect_to(const QAction& action, int& count) {
    QObject::connect(&action, &QAction::triggered, &action, [&count] { ++count; });
  }
  [[nodiscard]] QDockWidget& dock(const char* name) const {
    return *window->findChild<QDockWidget*>(QString::fromLatin1(name));
  }
  // The bar, dock or page with the focus.
  [[nodiscard]] const QWidget* focused_part() const {
    for (const QWidget* at = QApplication::focusWidget(); at != nullptr; at = at->parentWidget()) {
      if (at == &window->canvas() || qobject_cast<const QDockWidget*>(at) != nullptr ||
          qobject_cast<const TransportBar*>(at) != nullptr || qobject_cast<const FindBar*>(at) != nullptr ||
          qobject_cast<const MessageBar*>(at) != nullptr) {
        return at;
      }
    }
    return nullptr;
  }
};

// --- back and forward ------------------------------------------------------------------------------------------------

TEST_F(WaysTest, BackUndoesASelectionAJumpAndAView) {
  ASSERT_TRUE(open(path_of("first_light")));
  settle();
  const Position start = document().cursor().position();
  EXPECT_FALSE(window->actions()[Do::go_back]->isEnabled());
  document().pin(of_block(BlockIdx{2}));
  settle();
  document().seek_step(StepIdx{20});
  settle();
  window->set_view(View::pool);
  settle();
  const Position there = document().cursor().position();
  press_and_settle(Qt::Key_Left, Qt::AltModifier);
  EXPECT_EQ(window->view(), View::overview);
  EXPECT_EQ(document().cursor().position(), there);
  press_and_settle(Qt::Key_Left, Qt::AltModifier);
  EXPECT_EQ(document().cursor().position(), start);
  EXPECT_EQ(document().pinned(), of_block(BlockIdx{2}));
  press_and_settle(Qt::Key_Left, Qt::AltModifier);
  EXPECT_TRUE(document().pinned().none());
  EXPECT_FALSE(window->actions()[Do::go_back]->isEnabled());
  for (int i = 0; i < 3; ++i) press_and_settle(Qt::Key_Right, Qt::AltModifier);
  EXPECT_EQ(window->view(), View::pool);
  EXPECT_EQ(document().pinned(), of_block(BlockIdx{2}));
  EXPECT_EQ(document().cursor().position(), there);
  EXPECT_FALSE(window->actions()[Do::go_forward]->isEnabled());
}

// A link in Why is followed by mouse; the button in the bar and the mouse's own button lead back.
TEST_F(WaysTest, BackIsAButtonOfTheBarAndOfTheMouse) {
  ASSERT_TRUE(open(path_of("first_light")));
  settle();
  document().pin(of_token(SeqIdx{0}, TokIdx{3}));
  settle();
  document().pin(of_block(BlockIdx{0}));
  settle();
  click(button(*window, QStringLiteral("Back")));
  EXPECT_EQ(document().pinned(), of_token(SeqIdx{0}, TokIdx{3}));
  click(button(*window, QStringLiteral("Forward")));
  EXPECT_EQ(document().pinned(), of_block(BlockIdx{0}));
  QTest::mouseClick(&window->canvas(), Qt::BackButton);
  EXPECT_EQ(document().pinned(), of_token(SeqIdx{0}, TokIdx{3}));
}

TEST_F(WaysTest, SteppingIsOneWayAndAnotherRunHasItsOwn) {
  ASSERT_TRUE(open(path_of("first_light")));
  settle();
  const Position start = document().cursor().position();
  for (int i = 0; i < 5; ++i) press_and_settle(Qt::Key_Period);
  EXPECT_EQ(step(), StepIdx{5});
  press_and_settle(Qt::Key_Left, Qt::AltModifier);
  EXPECT_EQ(document().cursor().position(), start);
  ASSERT_TRUE(open(path_of("preemption")));
  settle();
  EXPECT_FALSE(window->actions()[Do::go_back]->isEnabled());
  EXPECT_FALSE(window->actions()[Do::go_forward]->isEnabled());
}

// The flow, its tiles and the candidate are part of a place.
TEST_F(WaysTest, BackUndoesAFlowAndACandidate) {
  ASSERT_TRUE(open(path_of("first_light")));
  document().seek_step(StepIdx{6});
  settle();
  window->set_view(View::attention);
  AttentionModel& attention = document().attention();
  const auto head_shown = [&](std::int64_t head) {
    return wait_until([&] { return attention.flow() != nullptr && attention.flow()->request.head == HeadIdx{head}; });
  };
  ASSERT_TRUE(head_shown(0));
  settle();
  FlowRequest request = attention.request();
  request.head = HeadIdx{2};
  attention.choose(request);
  ASSERT_TRUE(head_shown(2));
  settle();
  attention.set_candidate(QStringLiteral("/mine.npz"));
  settle();
  press_and_settle(Qt::Key_Home, Qt::ControlModifier);
  EXPECT_EQ(attention.tiles_done(), 0);
  press_and_settle(Qt::Key_Left, Qt::AltModifier);
  EXPECT_EQ(attention.tiles_done(), 2);
  EXPECT_EQ(attention.candidate(), QStringLiteral("/mine.npz"));
  press_and_settle(Qt::Key_Left, Qt::AltModifier);
  EXPECT_EQ(attention.candidate(), QString());
  EXPECT_TRUE(head_shown(2));
  press_and_settle(Qt::Key_Left, Qt::AltModifier);
  EXPECT_TRUE(head_shown(0));
  EXPECT_EQ(window->view(), View::attention);
  press_and_settle(Qt::Key_Left, Qt::AltModifier);
  EXPECT_EQ(window->view(), View::overview);
  for (int i = 0; i < 4; ++i) {
    press_and_settle(Qt::Key_Right, Qt::AltModifier);
    QTest::qWait(20);  // the answers
  }
  EXPECT_TRUE(head_shown(2));
  EXPECT_EQ(attention.candidate(), QStringLiteral("/mine.npz"));
  EXPECT_EQ(attention.tiles_done(), 0);
  EXPECT_FALSE(window->actions()[Do::go_forward]->isEnabled());
}

// --- from part to part -----------------------------------------------------------------------------------------------

// F6 reaches each visible part once, and Shift+F6 the same in reverse.
TEST_F(WaysTest, F6GoesRoundBarsPictureAndDocks) {
  ASSERT_TRUE(open(path_of("first_light")));
  press(Qt::Key_F, Qt::ControlModifier);
  window->open(made_up("faulty"));
  ASSERT_TRUE(wait_until([&] { return window->messages().isVisible(); }));
  window->canvas().setFocus();
  std::vector<const QWidget*> parts;
  for (int i = 0; i < 20 && (parts.empty() || parts.front() != focused_part()); ++i) {
    parts.push_back(focused_part());
    press(Qt::Key_F6);
    ASSERT_NE(focused_part(), nullptr);
    EXPECT_TRUE(focused_part()->isVisible());
  }
  EXPECT_THAT(parts, testing::UnorderedElementsAre(&window->canvas(), &window->messages(), &dock("why"), &dock("notes"),
                                                   window->findChild<TransportBar*>(), window->findChild<FindBar*>()));
  std::vector<const QWidget*> back;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    back.push_back(focused_part());
    press(Qt::Key_F6, Qt::ShiftModifier);
  }
  std::reverse(parts.begin() + 1, parts.end());
  EXPECT_EQ(back, parts);
}

// The bar above the picture of a tile, or of an attention, is a part, too.
TEST_F(WaysTest, F6ReachesTheBarOfAView) {
  ASSERT_TRUE(open(path_of("first_light")));
  const auto reached = [&](const QWidget* bar) {
    window->canvas().setFocus();
    for (int i = 0; i < 12; ++i) {
      press(Qt::Key_F6);
      if (bar->isAncestorOf(QApplication::focusWidget())) return true;
    }
    return false;
  };
  window->set_view(View::tile);
  EXPECT_TRUE(reached(window->findChild<TileBar*>()));
  window->set_view(View::attention);
  EXPECT_TRUE(reached(window->findChild<AttentionBar*>()));
}

TEST_F(WaysTest, AltZeroLeadsToThePictureFromEveryDock) {
  ASSERT_TRUE(open(path_of("first_light")));
  for (const Qt::Key key : {Qt::Key_1, Qt::Key_2, Qt::Key_3, Qt::Key_4, Qt::Key_5}) {
    press(key, Qt::AltModifier);
    press(Qt::Key_0, Qt::AltModifier);
    EXPECT_TRUE(window->canvas().hasFocus()) << key;
    EXPECT_TRUE(window->canvas().focusedPanel().has_value()) << key;
  }
}

// A dock is opened by its key: a widget inside has the focus, not the frame around it.
TEST_F(WaysTest, ADockOpenedByKeyHasTheFocusInside) {
  ASSERT_TRUE(open(path_of("first_light")));
  press(Qt::Key_2, Qt::AltModifier);
  QWidget* const focus = QApplication::focusWidget();
  ASSERT_NE(focus, nullptr);
  EXPECT_TRUE(dock("events").isAncestorOf(focus));
  EXPECT_TRUE(focus->focusPolicy() & Qt::TabFocus);
}

// The same picture with and without the focus would leave a person at the keyboard lost.
TEST_F(WaysTest, TheFocusIsVisibleInEveryWidget) {
  ASSERT_TRUE(open(path_of("first_light")));
  press(Qt::Key_F, Qt::ControlModifier);
  press(Qt::Key_E, Qt::ControlModifier);
  window->open(made_up("faulty"));
  ASSERT_TRUE(wait_until([&] { return window->messages().isVisible(); }));
  std::vector<QWidget*> all;
  for (QWidget* widget : window->findChildren<QWidget*>()) {
    if ((widget->focusPolicy() & Qt::TabFocus) != 0 && widget->isVisible() && widget->isEnabled() &&
        widget->window() == window.get() && !widget->visibleRegion().isEmpty() && widget->focusProxy() == nullptr) {
      all.push_back(widget);
    }
  }
  ASSERT_GT(all.size(), 20u);
  const auto picture = [&](const QWidget* of) {
    settle();
    const QRect around(of->mapTo(window.get(), QPoint(0, 0)) - QPoint(3, 3), of->size() + QSize(6, 6));
    return window->grab(around & window->rect()).toImage();
  };
  for (QWidget* widget : all) {
    QWidget* const other = widget == all.front() ? all.back() : all.front();
    other->setFocus(Qt::OtherFocusReason);
    const QImage without = picture(widget);
    widget->setFocus(Qt::OtherFocusReason);
    EXPECT_NE(picture(widget), without) << widget->metaObject()->className() << " "
                                        << widget->accessibleName().toStdString();
  }
}

// --- keys ------------------------------------------------------------------------------------------------------------

// A text field that has Ctrl+E for the end of its line, as on X11.
class Field final : public QLineEdit {
 public:
  using QLineEdit::QLineEdit;

 protected:
  bool event(QEvent* event) override {
    if (event->type() == QEvent::ShortcutOverride) {
      const auto* key = static_cast<QKeyEvent*>(event);
      if (key->modifiers() == Qt::ControlModifier && key->key() == Qt::Key_E) {
        event->accept();
        return true;
      }
    }
    return QLineEdit::event(event);
  }
};

TEST_F(WaysTest, TheWindowsKeysWorkInATextField) {
  ASSERT_TRUE(open(path_of("first_light")));
  auto* field = new Field(window.get());
  field->show();
  field->setFocus();
  ASSERT_TRUE(field->hasFocus());
  press(Qt::Key_E, Qt::ControlModifier);
  EXPECT_TRUE(window->findChild<ExportBar*>()->isVisible());
  field->setFocus();
  field->setText(QStringLiteral("3:70"));
  press(Qt::Key_A, Qt::ControlModifier);  // not a key of the window: the field keeps it
  EXPECT_EQ(field->selectedText(), QStringLiteral("3:70"));
}

// Keys that write a character: in a text field each of them writes it, and no action of the window is carried out.
// Regression: in a presentation, "." and "b" in the find field blacked out the screen.
TEST_F(WaysTest, PlainKeysAreWrittenIntoATextField) {
  ASSERT_TRUE(open(path_of("first_light")));
  press(Qt::Key_B, Qt::ControlModifier);  // the field of a breakpoint
  int carried_out = 0;
  std::vector<QKeyCombination> keys{Qt::Key_B, Qt::Key_Plus, Qt::Key_0};  // of a presentation, and of the canvas
  for (const ActionEntry& entry : action_table()) {
    connect_to(*window->actions()[entry.id], carried_out);
    for (const QKeySequence& key : keys_of(entry)) {
      const bool plain = (key[0].keyboardModifiers() & ~Qt::ShiftModifier) == Qt::NoModifier;
      if (plain && key[0].key() < Qt::Key_Escape) keys.push_back(key[0]);
    }
  }
  ASSERT_EQ(keys.size(), 3u + 8) << "Space, . , [ ] and three with Shift";
  for (const bool presents : {false, true}) {
    if (presents) press(Qt::Key_F11);
    press(Qt::Key_F, Qt::ControlModifier);
    press(Qt::Key_E, Qt::ControlModifier);
    settle();
    int fields = 0;
    for (QLineEdit* field : window->findChildren<QLineEdit*>()) {
      if (!field->isVisible() || !field->isEnabled() || field->isReadOnly()) continue;
      ++fields;
      const bool of_number = qobject_cast<QAbstractSpinBox*>(field->parentWidget()) != nullptr;
      for (const QKeyCombination key : keys) {
        const std::string where = field->metaObject()->className() + (" " + field->accessibleName().toStdString()) +
                                  " of " + field->parentWidget()->metaObject()->className() + ": " +
                                  QKeySequence(key).toString().toStdString() + (presents ? " presenting" : "");
        (field->focusProxy() != nullptr ? field->focusProxy() : of_number ? field->parentWidget() : field)->setFocus();
        ASSERT_TRUE(field->hasFocus() || field->parentWidget()->hasFocus()) << where;
        carried_out = 0;
        if (!of_number) field->clear();
        const char text = static_cast<char>(key.key());
        QTest::keyClick(QApplication::focusWidget(), text, key.keyboardModifiers());
        EXPECT_EQ(carried_out, 0) << where;
        EXPECT_FALSE(document().playing()) << where;
        for (const QWidget* child : window->findChildren<QWidget*>()) {
          EXPECT_NE(child->accessibleName(), QStringLiteral("Black screen")) << where;
        }
        EXPECT_TRUE(of_number || field->text().size() == 1) << where << ": " << field->text().toStdString();
      }
    }
    EXPECT_GE(fields, presents ? 2 : 5) << presents;
  }
}

// Text that is only read: the space bar turns its pages, as in a browser; it plays where all of the text is visible.
TEST_F(WaysTest, TheSpaceBarScrollsATextThatIsLongerThanItsField) {
  ASSERT_TRUE(open(path_of("first_light")));
  press(Qt::Key_5, Qt::AltModifier);
  press(Qt::Key_5, Qt::AltModifier);
  auto* const notes = dock("notes").findChild<QTextBrowser*>();
  ASSERT_NE(notes, nullptr);
  dock("notes").show();
  dock("notes").raise();
  notes->setFocus();
  notes->setPlainText(QStringLiteral("a line\n").repeated(400));
  settle();
  ASSERT_TRUE(notes->hasFocus());
  press(Qt::Key_Space);
  EXPECT_FALSE(document().playing());
  EXPECT_GT(notes->verticalScrollBar()->value(), 0);
  press(Qt::Key_Space, Qt::ShiftModifier);
  EXPECT_FALSE(document().playing());
  EXPECT_EQ(notes->verticalScrollBar()->value(), 0);
  notes->setPlainText(QStringLiteral("a line"));
  settle();
  press(Qt::Key_Space);
  EXPECT_TRUE(document().playing());
}

// Desktops take Ctrl+Alt and an arrow for themselves.
TEST(WaysKeys, NoneIsCtrlAltAndAnArrow) {
  for (const ActionEntry& entry : action_table()) {
    for (const QKeySequence& key : keys_of(entry)) {
      const bool taken = key[0].keyboardModifiers() == (Qt::ControlModifier | Qt::AltModifier) &&
                         key[0].key() >= Qt::Key_Left && key[0].key() <= Qt::Key_Down;
      EXPECT_FALSE(taken) << entry.text;
    }
  }
}

// --- messages --------------------------------------------------------------------------------------------------------

TEST_F(WaysTest, AMessageOrATaskMovesNothing) {
  ASSERT_TRUE(open(path_of("first_light")));
  const QRect before(window->canvas().mapTo(window.get(), QPoint(0, 0)), window->canvas().size());
  const auto now = [&] { return QRect(window->canvas().mapTo(window.get(), QPoint(0, 0)), window->canvas().size()); };
  window->messages().show_message({QStringLiteral("write"),
                                   true,
                                   QStringLiteral("could not be written"),
                                   {QStringLiteral("line 1"), QStringLiteral("line 2")},
                                   {}});
  window->open(made_up("held"));
  ASSERT_TRUE(wait_until([&] {
    for (const BusyBar* bar : window->findChildren<BusyBar*>()) {
      if (bar->isVisible()) return true;
    }
    return false;
  }));
  settle();
  EXPECT_TRUE(window->messages().isVisible());
  EXPECT_EQ(now(), before);
  backend.release = true;
  window->messages().dismiss(QStringLiteral("write"));
  settle();
  EXPECT_EQ(now(), before);
}

TEST_F(WaysTest, AMessageGoesWithItsCause) {
  ASSERT_TRUE(open(path_of("first_light")));
  const auto show = [&](const char* topic) {
    window->messages().show_message({QString::fromLatin1(topic), true, QString::fromLatin1(topic), {}, {}});
  };
  show("trace");
  document().step();  // this position can be read
  EXPECT_FALSE(window->messages().showing(QStringLiteral("trace")));
  show("write");
  ASSERT_TRUE(open(path_of("preemption")));  // another run: the one that was not written is gone
  EXPECT_FALSE(window->messages().showing(QStringLiteral("write")));
  for (const char* topic : {"trace", "write", "drop"}) show(topic);
  window->close_document();
  EXPECT_FALSE(window->messages().isVisible());
}

// A message that goes by itself must not take the focus from a field that is being typed into.
TEST_F(WaysTest, AMessageThatGoesLeavesTheFocusWhereItIs) {
  ASSERT_TRUE(open(path_of("first_light")));
  window->messages().show_message({QStringLiteral("trace"), true, QStringLiteral("unreadable"), {}, {}});
  press(Qt::Key_F, Qt::ControlModifier);
  QWidget* const field = QApplication::focusWidget();
  ASSERT_NE(field, &window->canvas());
  document().step();
  EXPECT_FALSE(window->messages().isVisible());
  EXPECT_EQ(QApplication::focusWidget(), field);
}

// --- for a screen reader ---------------------------------------------------------------------------------------------

void expect_no_name_twice(QAccessibleInterface* of, const QStringList& above, int& seen) {
  if (of == nullptr || of->state().invisible || of->state().offscreen) return;
  const QString name = of->text(QAccessible::Name);
  // Plain text, such as the title of a dock, is not read when the focus moves.
  // Qt names a row of tabs after its current tab.
  const bool read = !name.isEmpty() && of->role() != QAccessible::StaticText && of->role() != QAccessible::PageTabList;
  if (read) {
    EXPECT_FALSE(above.contains(name)) << name.toStdString() << " is the name of a widget and of one around it";
    ++seen;
  }
  const QStringList names = read ? above + QStringList{name} : above;
  for (int i = 0; i < of->childCount(); ++i) {
    QAccessibleInterface* const child = of->child(i);
    expect_no_name_twice(child, names, seen);
  }
}

// A screen reader reads the names of all widgets around the one with the focus.
TEST_F(WaysTest, NothingIsReadTwice) {
  ASSERT_TRUE(open(path_of("first_light")));
  for (const Do id : {Do::show_why, Do::show_events, Do::show_sequences, Do::show_breakpoints, Do::show_notes}) {
    window->actions()[id]->trigger();
    window->open(made_up("faulty"));
    ASSERT_TRUE(wait_until([&] { return window->messages().isVisible(); }));
    settle();
    int seen = 0;
    expect_no_name_twice(QAccessible::queryAccessibleInterface(window.get()), {}, seen);
    EXPECT_GT(seen, 40);
  }
}

}  // namespace
}  // namespace kvscope::viz::ways_test
