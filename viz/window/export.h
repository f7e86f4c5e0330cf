// Pictures of the canvas: PNG, SVG, PDF, TikZ, and animations as GIF, WebM or MP4. The menu and
// `kvscope-viewer --render` both use this function. It paints with paint_board, so a picture equals the canvas at the
// same size.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <QtCore/QSize>
#include <QtCore/QString>
#include <QtGui/QImage>

#include "viz/playback/run.h"
#include "viz/view/scene.h"

namespace kvscope::viz {

enum class PictureFormat : std::uint8_t { png, svg, pdf, tikz, gif, webm, mp4 };
// The format of a file name's extension, ignoring case; nullopt for any other extension.
[[nodiscard]] std::optional<PictureFormat> picture_format(const QString& path);
// Whether a file of the format holds several pictures, one after the other.
[[nodiscard]] constexpr bool is_film(PictureFormat format) {
  return format >= PictureFormat::gif;
}

inline constexpr int kSmallestPicture = 64, kLargestPicture = 16384;  // [px] of a side, after scaling
inline constexpr std::int64_t kMostFrames = 10'000;                   // painted for an animation
inline constexpr std::int64_t kMostTikzShapes = 8'000;               // that pdfTeX's memory holds
inline constexpr double kSlowestFrames = 0.1, kFastestFrames = 50;    // [frames/s] GIF delays are multiples of 1/100 s
inline constexpr int kBetweenRuns = 8;       // [px] logical, between two runs: 796 each of 1600
inline constexpr double kMotionShare = 0.6;  // of the time of a frame: with motion, how long it takes to come there

// Flow and errors of one step, for an animation of the attention view.
struct AttentionOfStep {
  std::shared_ptr<const AttentionFlow> flow;
  QString flow_instead;  // without a flow: why
  std::shared_ptr<const AttentionErrors> errors;
  QString errors_instead;
};

struct Picture {
  View view = View::overview;
  QSize size{1600, 1000};  // [px], logical; with font_scale > 1 the picture has the height of whole_size()
  double scale = 1;        // device pixels per logical pixel: 2 for HiDPI. PNG and GIF only
  ThemeKind theme = ThemeKind::dark;
  double font_scale = 1;
  Selection selection;
  std::array<Viewport, kPanels> viewport, beside_viewport;
  std::shared_ptr<const Tile> tile;               // of View::tile
  QString tile_instead;                           // without one: why
  TileSource tile_source;                         // without a tile: the known parts of the requested one
  std::optional<std::size_t> tile_layout;         // as Scene::tile_layout
  std::optional<std::int64_t> tile_event;         // events of the tile that have happened; none: until all has landed
  std::shared_ptr<const AttentionFlow> flow;      // of View::attention
  std::optional<std::int64_t> flow_tiles;         // that have been added; none: all
  QString flow_instead;                           // without a flow: why
  std::shared_ptr<const AttentionErrors> errors;  // of View::attention
  QString errors_instead;
  std::shared_ptr<const Run> compared;  // as Document::compared_run(); null: none
  bool beside = false;                  // it is drawn in the right half, at the same step
  Position position;                    // of the first or only frame
  // An animation: one frame per row of the run, from the row of `position` to this one; or in View::tile with a tile
  // one frame per action from `tile_event` to this one; or in View::attention with a flow one frame per tile of the
  // flow, from `flow_tiles` to this one.
  std::optional<std::int64_t> last_row, last_tile_event, last_flow_tile;
  // Called for each row of an animation of View::attention; without it such an animation has one row.
  std::function<AttentionOfStep(const State& state)> attention_of;
  double frames_per_second = 4;  // of these frames
  bool motion = false;           // also what moves between two of them: see film_writer.h
  // PNG: this share of the way from the row, the action of the tile, or the tile of the flow before; [0, 1]
  std::optional<double> between;
};

// The size that the picture has: higher than `size` where larger text than normal needs it. [px], logical
[[nodiscard]] QSize size_of(const Picture& picture);

// The lowest height at which larger text leaves out nothing that text of the normal size shows at `picture.size`: in
// steps of a tenth, up to twice that of size_of(). picture.size's own for text of the normal size, and if no height
// helps.
[[nodiscard]] int height_for_text(const std::shared_ptr<const Run>& run, const Picture& picture);

// Called with the number of finished frames and the total. If it returns false, Cancelled is thrown and no file is
// left.
using FrameProgress = std::function<bool(std::int64_t done, std::int64_t all)>;

// Writes an image as a PNG file of 96 * `scale` dots per inch, whatever the screen has. As below, the target is never
// incomplete. InputError: it cannot be written.
void write_png(const QString& path, QImage image, double scale);

// Writes a temporary file beside the target and renames it, so the target is never incomplete. Throws InputError (the
// path, the problem, the next step) for an unknown extension, a size outside the limits, several frames for a format
// that has only one, more than kMostFrames, a .tikz of more than kMostTikzShapes, a folder without write permission, a
// video without ffmpeg.
void write_picture(const QString& path, const std::shared_ptr<const Run>& run, const Picture& picture,
                   const FrameProgress& progress = {});

}  // namespace kvscope::viz
