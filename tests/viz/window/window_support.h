// A window for tests, with a separate settings folder, a fake simulator, and functions that wait for a condition.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include <QtCore/QCoreApplication>
#include <QtCore/QElapsedTimer>
#include <QtCore/QTemporaryDir>
#include <QtCore/QTimer>
#include <QtTest/QTest>
#include <QtWidgets/QAbstractButton>
#include <QtWidgets/QLabel>

#include "tests/viz/window/fake_backend.h"
#include "viz/view/canvas.h"
#include "viz/window/main_window.h"
#include "viz/window/message_bar.h"

namespace kvscope::viz::testing_support {

inline constexpr int kPatience = 20'000;  // [ms] for slow machines; usually a wait takes a few ms

// Processes events until the condition is true or kPatience is over; returns the condition.
inline bool wait_until(const std::function<bool()>& so, int patience = kPatience) {
  QElapsedTimer clock;
  for (clock.start(); clock.elapsed() < patience; QTest::qWait(2)) {
    if (so()) return true;
  }
  return so();
}

// Until what has happened is laid out and painted, however slow the machine: a layout, a header or a queued call begins a
// timer of 0 ms, often one after another, and each round of the event loop ends those begun before it. A fixed time can
// be over after one round.
inline void settle() {
  constexpr int kRounds = 10;  // the longest known chain has 3
  for (int round = 0; round < kRounds; ++round) {
    bool over = false;
    QTimer::singleShot(0, [&over] { over = true; });
    while (!over) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
    QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
  }
}

inline QString path_of(const char* name) {
  return QString::fromStdString(gallery_path(name));
}
// The path of a file that does not exist: its name selects the behavior of FakeBackend.
inline QString made_up(const char* name) {
  return QStringLiteral("/made/up/%1.json").arg(QString::fromLatin1(name));
}

class WindowTest : public testing::Test {
 protected:
  WindowTest() { start(); }
  ~WindowTest() override {
    backend.release = true;
    window.reset();
  }

  void start() {
    window = std::make_unique<MainWindow>(backend, folder.path());
    window->resize(1200, 800);
    window->show();
    window->activateWindow();
    ASSERT_TRUE(QTest::qWaitForWindowActive(window.get()));
  }

  [[nodiscard]] bool open(const QString& path) {
    const Document* before = window->document();
    window->open(path);
    return wait_until([&] { return window->document() != nullptr && window->document() != before; });
  }
  [[nodiscard]] Document& document() const { return *window->document(); }
  [[nodiscard]] StepIdx step() const { return document().cursor().state().step; }

  // Sends a key to the focused widget.
  static void press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QWidget* focus = QApplication::focusWidget();
    QTest::keyClick(focus != nullptr ? focus : QApplication::activeWindow(), key, modifiers);
  }
  static void write(const char* text) { QTest::keyClicks(QApplication::focusWidget(), QString::fromLatin1(text)); }

  // The visible button with this accessible name, or this text.
  [[nodiscard]] static QAbstractButton* button(const QWidget& in, const QString& name) {
    for (QAbstractButton* b : in.findChildren<QAbstractButton*>()) {
      if (b->isVisible() && (b->accessibleName() == name || b->text() == name)) return b;
    }
    return nullptr;
  }
  static void click(QWidget* widget) {
    ASSERT_NE(widget, nullptr);
    QTest::mouseClick(widget, Qt::LeftButton);
  }

  QTemporaryDir folder;
  FakeBackend backend;
  std::unique_ptr<MainWindow> window;
};

}  // namespace kvscope::viz::testing_support
