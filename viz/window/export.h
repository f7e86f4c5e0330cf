// Pictures of what is on screen: PNG, SVG, PDF, animated GIF. The menu and `kvscope-viewer --render` both come here,
// and both paint with paint_board: a picture is what the window shows at that size.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <QtCore/QSize>
#include <QtCore/QString>

#include "viz/playback/run.h"
#include "viz/view/scene.h"

namespace kvscope::viz {

enum class PictureFormat : std::uint8_t { png, svg, pdf, gif };
// By the name's ending, any case; nothing when it is none of the four.
[[nodiscard]] std::optional<PictureFormat> picture_format(const QString& path);

inline constexpr int kSmallestPicture = 64, kLargestPicture = 16384;  // [px] of a side, after scaling
inline constexpr std::int64_t kMostFrames = 10'000;                   // of a GIF
inline constexpr double kSlowestFrames = 0.1, kFastestFrames = 50;    // [frames/s] GIF counts hundredths of a second

struct Picture {
  View view = View::overview;
  QSize size{1600, 1000};  // [px], logical
  double scale = 1;        // device pixels a logical one: 2 for HiDPI. PNG and GIF only
  ThemeKind theme = ThemeKind::dark;
  double font_scale = 1;
  Selection selection;
  std::array<Viewport, kPanels> viewport;
  std::shared_ptr<const Tile> tile;        // of View::tile
  QString tile_instead;                    // without one: why
  std::optional<std::int64_t> tile_event;  // events of the tile that have happened; none: until all has landed
  Position position;                       // the first or only frame
  std::optional<std::int64_t> last_row;    // GIF: one frame a row of the run, from the row of `position` to this one
  double frames_per_second = 4;
};

// Frames done, of all; false stops: Cancelled is thrown and nothing is left behind.
using FrameProgress = std::function<bool(std::int64_t done, std::int64_t all)>;

// Written beside the target and renamed: a picture is whole or not there. Throws InputError (the path, what is wrong,
// what to do): an unknown ending, a size outside the limits, several frames for a format that has one, more than
// kMostFrames, a folder that cannot be written to.
void write_picture(const QString& path, const std::shared_ptr<const Run>& run, const Picture& picture,
                   const FrameProgress& progress = {});

}  // namespace kvscope::viz
