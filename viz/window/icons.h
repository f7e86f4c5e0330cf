// The icons of the window: paths on a grid of 24 x 24, painted in the theme's colors at the requested size and pixel
// ratio. There are no bitmap files.
#pragma once

#include <cstdint>

#include <QtGui/QIcon>

#include "viz/view/theme.h"

namespace kvscope::viz {

enum class Icon : std::uint8_t {
  none,
  open,
  reload,
  save,
  picture,
  close,
  start,
  step_back,
  event_back,
  play,
  pause,
  event,
  step,
  end,
  run_back,
  run_to,
  find,
  add,
  remove,
  copy,
  zoom_in,
  zoom_out,
  fit,
  warning,
  information,
  drop,
  back,
  forward,
  undo,
  redo,
};
inline constexpr int kIcons = 30;

// A null icon for Icon::none. Disabled icons are faint; the icon of a checked action has the accent color.
[[nodiscard]] QIcon icon(Icon which, const Theme& theme);

}  // namespace kvscope::viz
