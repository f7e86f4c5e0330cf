// A canvas in a visible window with a run of the gallery, and functions for user input.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include <QtGui/QImage>
#include <QtGui/QMouseEvent>
#include <QtGui/QWheelEvent>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QVBoxLayout>

#include "tests/viz/view/runs.h"
#include "viz/view/canvas.h"

namespace kvscope::viz {

inline const std::shared_ptr<const Run>& preemption() {
  static const std::shared_ptr<const Run> kRun = gallery_run("preemption");
  return kRun;
}

inline QImage picture(QWidget& widget) {
  return widget.grab().toImage().convertToFormat(QImage::Format_RGB32);
}

inline bool is_only(const QImage& image, const QColor& color) {
  QImage other(image.size(), image.format());
  other.fill(color);
  other.setDevicePixelRatio(image.devicePixelRatio());
  return image == other;
}

class CanvasTest : public testing::Test {
 protected:
  CanvasTest() {
    canvas.resize(1000, 760);
    canvas.setDocument(&document);
    document.seek_step(StepIdx{8});
    canvas.show();
    canvas.activateWindow();
    static_cast<void>(QTest::qWaitForWindowActive(&canvas));
    canvas.setFocus();
  }

  const Place& place(PanelId panel) const { return *std::ranges::find(canvas.places(), panel, &Place::panel); }
  const Panel& panel(PanelId id) const { return *canvas.panels()[static_cast<std::size_t>(id)]; }
  // The rectangle of an object in a panel.
  QPoint point_of(PanelId id, const Selection& object) const {
    const Scene scene = canvas.sceneNow();
    const auto rect = panel(id).anchor(resolve(scene.state(), scene.facts(), object), place(id).body, scene);
    EXPECT_TRUE(rect) << "not in sight";
    return rect.value_or(QRectF()).center().toPoint();
  }
  QPoint point_of_block(std::int64_t block) const { return point_of(PanelId::pool, of_block(BlockIdx{block})); }
  QPoint nowhere() const { return {2, canvas.height() - 2}; }  // the margin
  Selection under(QPoint at) const {
    for (const Place& p : canvas.places()) {
      if (p.body.contains(at)) return panel(p.panel).hit(at, p.body, canvas.sceneNow());
    }
    return {};
  }

  void move(QPoint to, Qt::MouseButtons buttons = Qt::NoButton) {
    QMouseEvent event(QEvent::MouseMove, QPointF(to), canvas.mapToGlobal(QPointF(to)), Qt::NoButton, buttons,
                      Qt::NoModifier);
    QApplication::sendEvent(&canvas, &event);
  }
  void click(QPoint at) { QTest::mouseClick(&canvas, Qt::LeftButton, Qt::NoModifier, at); }
  void drag(QPoint from, QPoint to) {
    QTest::mousePress(&canvas, Qt::LeftButton, Qt::NoModifier, from);
    const QPoint between = (from + to) / 2;
    move(between, Qt::LeftButton);
    move(to, Qt::LeftButton);
    QTest::mouseRelease(&canvas, Qt::LeftButton, Qt::NoModifier, to);
  }
  bool wheel(QPoint at, QPoint delta, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QWheelEvent event(QPointF(at), canvas.mapToGlobal(QPointF(at)), {}, delta, Qt::NoButton, modifiers,
                      Qt::NoScrollPhase, false);
    QApplication::sendEvent(&canvas, &event);
    return event.isAccepted();
  }
  void key(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) { QTest::keyClick(&canvas, key, modifiers); }

  Document document{preemption(), QStringLiteral("preemption.json")};
  Canvas canvas;
};

class CanvasInAWindow : public CanvasTest {
 protected:
  CanvasInAWindow() {
    auto* column = new QVBoxLayout(&window);
    column->addWidget(before);
    column->addWidget(&canvas);
    column->addWidget(after);
    window.resize(1000, 860);
    window.show();
    window.activateWindow();
    static_cast<void>(QTest::qWaitForWindowActive(&window));
  }
  ~CanvasInAWindow() override { canvas.setParent(nullptr); }

  static void press(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QTest::keyClick(QApplication::focusWidget(), key, modifiers);
  }

  QWidget window;
  QPushButton* before = new QPushButton(QStringLiteral("before"));
  QPushButton* after = new QPushButton(QStringLiteral("after"));
};

}  // namespace kvscope::viz
