// The title of a dock: its name and a button that closes it. A dock among tabs needs none: the tab says what it is.
#pragma once

#include <QtWidgets/QWidget>

#include "viz/view/theme.h"

class QDockWidget;
class QToolButton;

namespace kvscope::viz {

class DockTitle final : public QWidget {
  Q_OBJECT
 public:
  explicit DockTitle(QDockWidget& dock);  // becomes its title bar
  void set_theme(const Theme& theme);
  void update_tabbed();  // call when docks were moved, shown or hidden
  [[nodiscard]] QSize sizeHint() const override;
  [[nodiscard]] QSize minimumSizeHint() const override { return sizeHint(); }

 private:
  QDockWidget& dock_;
  QToolButton* close_;
  bool tabbed_ = false;
};

}  // namespace kvscope::viz
