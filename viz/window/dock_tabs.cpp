#include "viz/window/dock_tabs.h"

#include <algorithm>

#include <QtCore/QEvent>
#include <QtGui/QFontMetrics>
#include <QtWidgets/QApplication>
#include <QtWidgets/QMainWindow>
#include <QtWidgets/QTabBar>

#include "viz/window/theme_choice.h"

namespace kvscope::viz {
namespace {

// [px] of the whole words of all tabs
int words_width(const QTabBar& bar, const QFont& font) {
  const QFontMetrics metrics(font);
  int width = 0;
  for (int tab = 0; tab < bar.count(); ++tab) width += metrics.size(Qt::TextShowMnemonic, bar.tabText(tab)).width();
  return width;
}

}  // namespace

DockTabs::DockTabs(QMainWindow& window) : QObject(&window), window_(window) {}

void DockTabs::fit() {
  // The window creates the bars when docks are put on each other.
  for (QTabBar* bar : window_.findChildren<QTabBar*>(Qt::FindDirectChildrenOnly)) {
    bar->installEventFilter(this);
    fit(*bar);
  }
}

bool DockTabs::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) fit(*static_cast<QTabBar*>(watched));
  return false;
}

void DockTabs::fit(QTabBar& bar) const {
  const int around = bar.sizeHint().width() - words_width(bar, bar.font());
  QFont font = QApplication::font();
  const int smallest = std::min(font.pixelSize(), qRound(kBodySize));
  while (font.pixelSize() > smallest && around + words_width(bar, font) > bar.width()) {
    font.setPixelSize(font.pixelSize() - 1);
  }
  if (bar.font().pixelSize() != font.pixelSize()) bar.setFont(font);
}

}  // namespace kvscope::viz
