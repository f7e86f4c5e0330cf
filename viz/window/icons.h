// The window's own icons: paths on a grid of 24 x 24, painted at whatever size and pixel ratio is asked for, in the
// theme's colours. There is no bitmap to look blurred or to be missing.
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
};
inline constexpr int kIcons = 26;

// A null icon for Icon::none. Disabled icons are faint; a checked action's is in the accent colour.
[[nodiscard]] QIcon icon(Icon which, const Theme& theme);

}  // namespace kvscope::viz
