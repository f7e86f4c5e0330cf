// The title of a dock: its name and a button that closes it. A tabbed dock has no title, because its tab has the name.
#pragma once

#include <functional>

#include <QtWidgets/QWidget>

#include "viz/view/theme.h"

class QDockWidget;
class QMainWindow;
class QToolButton;

namespace kvscope::viz {

class DockTitle final : public QWidget {
  Q_OBJECT
 public:
  explicit DockTitle(QDockWidget& dock);  // sets itself as the title bar of `dock`
  void set_theme(const Theme& theme);
  void update_tabbed();  // call when docks were moved, shown or hidden
  [[nodiscard]] QSize sizeHint() const override;
  [[nodiscard]] QSize minimumSizeHint() const override { return sizeHint(); }

 private:
  QDockWidget& dock_;
  QToolButton* close_;
  bool tabbed_ = false;
};

// A dock of the window with `content`, whose accessible name it takes over, and with its title. `moved` is called when
// the dock was moved, shown or hidden, until dock->disconnect(&window).
[[nodiscard]] QDockWidget* make_dock(QMainWindow& window, const QString& name, QWidget* content,
                                     const std::function<void()>& moved);

}  // namespace kvscope::viz
