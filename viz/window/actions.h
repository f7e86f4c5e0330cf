// One QAction for each entry of shortcuts.h's table, with text, keys, tool tip and icon.
#pragma once

#include <array>

#include <QtCore/QObject>
#include <QtGui/QAction>

#include "viz/window/shortcuts.h"

namespace kvscope::viz {

class Actions final : public QObject {
  Q_OBJECT
 public:
  explicit Actions(QWidget* window);  // the keys work for any focus within the window

  [[nodiscard]] QAction* operator[](Do id) const { return actions_[static_cast<std::size_t>(id)]; }
  void set_theme(const Theme& theme);  // paints the icons
  void set_playing(bool playing);      // sets icon and text of Do::play
  void set_open(bool open);            // enables or disables the actions that need an open file
  // Disables an action; tool tip and status bar show why, after what it does. An empty reason enables it.
  void set_reason(Do id, const QString& why_not);

 private:
  std::array<QAction*, kActions> actions_{};
  const Theme* theme_ = nullptr;
  bool playing_ = false;
};

}  // namespace kvscope::viz
