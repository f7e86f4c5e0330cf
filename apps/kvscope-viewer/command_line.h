// The command line of kvscope-viewer as plain data: a window, a picture, a kernel, or (for the program itself) a
// simulation.
//
//   kvscope-viewer [FILE] [--candidate F] [--compare F] [--view V] [--step N] [--theme T] [--font-scale X]
//   kvscope-viewer KERNEL.ptx [--block N] [--arg VALUE]... [--step N] [--render OUT] ...
//   kvscope-viewer --render OUT --scenario F | --trace F  [--view V] [--step N] [--to M] [--size WxH] ...
//   kvscope-viewer --simulate F --trace OUT               started by the window for a scenario; not in --help
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <QtCore/QSize>

#include "apps/launch/launch.h"
#include "viz/geometry/board.h"
#include "viz/view/theme.h"

namespace kvscope::apps {

// How a file is read: by its content, or as the option that named it requires.
enum class FileKind : std::uint8_t { by_content, scenario, trace, bundle };

struct RenderRequest {
  std::string out;
  std::string file;
  FileKind kind = FileKind::by_content;
  viz::View view = viz::View::overview;
  std::optional<std::int64_t> step;  // the end of that engine step; -1: before the first
  std::optional<std::int64_t> to;    // animation: the last one
  QSize size{1600, 1000};            // [px], logical
  double scale = 1;
  viz::ThemeKind theme = viz::ThemeKind::dark;
  std::optional<std::string> select;       // as find.h reads it
  std::optional<std::string> tile;         // as tile_request.h reads it, or the number of a tile of the trace
  std::optional<std::int64_t> tile_event;  // events of the tile that have happened
  std::optional<std::int64_t> tile_to;     // animation: the last event of the tile
  std::optional<std::string> flow;         // as attention.h reads it
  std::optional<std::int64_t> flow_tiles;  // tiles of the flow that have been added
  std::optional<std::int64_t> flow_to;     // animation: the last of them
  std::optional<std::string> candidate;    // file compared with the golden
  std::optional<std::string> compare;      // the run in the right half
  std::optional<std::string> tile_layout;  // beside the tile's own: TileLayout::name
  double frames_per_second = 4;
  bool motion = false;            // animation: also what moves between two frames
  std::optional<double> between;  // this share of the way from the step, or the tile's action, before
  double font_scale = 1;
};

// An option that is not given keeps the setting of the last window.
struct WindowRequest {
  std::optional<std::string> file;
  FileKind kind = FileKind::by_content;
  std::optional<std::string> candidate;
  std::optional<std::string> compare;  // the run beside the file's
  std::optional<std::int64_t> step;
  std::optional<viz::View> view;  // not given, with a candidate: attention
  std::optional<viz::ThemeKind> theme;
  std::optional<double> font_scale;
};

// The view that the window shows first; nothing: the one of the last window.
[[nodiscard]] std::optional<viz::View> first_view(const WindowRequest& request);

struct SimulateRequest {
  std::string scenario;
  std::string trace;     // the file to write
  bool changed = false;  // the scenario is read from standard input; the file is the one that it was opened from
};

// A kernel of a PTX file: the kernel window, or a picture of it.
struct KernelRequest {
  LaunchRequest launch;
  bool has_launch = false;            // an option of the launch was given: it is started
  std::optional<std::string> out;     // the picture
  std::optional<std::uint64_t> step;  // warp instructions that have been executed
  QSize size{1600, 1000};             // [px], logical, as are the others those of a picture
  double scale = 1;
  std::optional<viz::ThemeKind> theme;
  std::optional<double> font_scale;
};

struct CommandLine {
  enum class Mode : std::uint8_t { window, render, kernel, simulate, answered };
  Mode mode = Mode::answered;
  int exit_code = 0;  // answered: --help, --version, a fault that has been printed
  WindowRequest window;
  RenderRequest render;
  KernelRequest kernel;
  SimulateRequest simulate;
};

// Prints syntax faults and then returns Mode::answered with kExitBadInput. Throws InputError("command line", every
// fault) for invalid values.
[[nodiscard]] CommandLine parse_command_line(int argc, char** argv);

}  // namespace kvscope::apps
