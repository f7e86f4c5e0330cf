#include "viz/window/dock_title.h"

#include <QtWidgets/QDockWidget>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QMainWindow>
#include <QtWidgets/QToolButton>

#include "viz/window/icons.h"

namespace kvscope::viz {
namespace {

constexpr int kDockIconSize = 14;  // [px]

}  // namespace

DockTitle::DockTitle(QDockWidget& dock) : QWidget(&dock), dock_(dock), close_(new QToolButton) {
  auto* name = new QLabel(dock.windowTitle());
  QFont bold = name->font();
  bold.setWeight(QFont::DemiBold);
  name->setFont(bold);
  name->setProperty("dock-title", true);
  close_->setAccessibleName(tr("Close %1").arg(dock.windowTitle()));
  close_->setToolTip(close_->accessibleName());
  close_->setIconSize(QSize(kDockIconSize, kDockIconSize));
  close_->setFocusPolicy(Qt::TabFocus);
  connect(close_, &QToolButton::clicked, &dock, &QDockWidget::close);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(10, 4, 10, 2);
  row->addWidget(name, 1);
  row->addWidget(close_);
  dock.setTitleBarWidget(this);
}

void DockTitle::set_theme(const Theme& theme) {
  close_->setIcon(icon(Icon::close, theme));
}

void DockTitle::update_tabbed() {
  const auto* window = qobject_cast<const QMainWindow*>(dock_.parentWidget());
  bool tabbed = false;
  if (window != nullptr && !dock_.isFloating()) {
    for (const QDockWidget* other : window->tabifiedDockWidgets(&dock_)) tabbed = tabbed || !other->isHidden();
  }
  if (tabbed == tabbed_) return;
  tabbed_ = tabbed;
  close_->setVisible(!tabbed);
  updateGeometry();
}

QSize DockTitle::sizeHint() const {
  return tabbed_ ? QSize(0, 0) : QWidget::sizeHint();
}

QDockWidget* make_dock(QMainWindow& window, const QString& name, QWidget* content, const std::function<void()>& moved) {
  auto* dock = new QDockWidget(content->accessibleName(), &window);
  dock->setObjectName(name);  // saveState() needs it
  dock->setWidget(content);
  dock->setAccessibleName(content->accessibleName());
  content->setAccessibleName({});  // a screen reader reads the names of all widgets around the one with the focus
  new DockTitle(*dock);            // a child of the dock
  QObject::connect(dock, &QDockWidget::visibilityChanged, &window, moved);
  QObject::connect(dock, &QDockWidget::dockLocationChanged, &window, moved);
  QObject::connect(dock, &QDockWidget::topLevelChanged, &window, moved);
  return dock;
}

}  // namespace kvscope::viz
