// The QActions of shortcuts.h's table, one each, with words, keys, tips and icons.
#pragma once

#include <array>

#include <QtCore/QObject>
#include <QtGui/QAction>

#include "viz/window/shortcuts.h"

namespace kvscope::viz {

class Actions final : public QObject {
  Q_OBJECT
 public:
  explicit Actions(QWidget* window);  // their keys work wherever the focus is in it

  [[nodiscard]] QAction* operator[](Do id) const { return actions_[static_cast<std::size_t>(id)]; }
  void set_theme(const Theme& theme);  // paints the icons
  void set_playing(bool playing);      // the icon and word of Do::play
  void set_open(bool open);            // what needs an open file is enabled with it

 private:
  std::array<QAction*, kActions> actions_{};
  const Theme* theme_ = nullptr;
  bool playing_ = false;
};

}  // namespace kvscope::viz
