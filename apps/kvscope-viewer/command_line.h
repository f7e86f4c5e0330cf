// What a person asks of kvscope-viewer, as plain data: a window, a picture, or (for the program itself) a simulation.
//
//   kvscope-viewer [FILE] [--view V] [--step N] [--theme T] [--font-scale X]
//   kvscope-viewer --render OUT --scenario F | --trace F  [--view V] [--step N] [--to M] [--size WxH] ...
//   kvscope-viewer --simulate F --trace OUT               what the window starts for a scenario; not in --help
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <QtCore/QSize>

#include "viz/geometry/board.h"
#include "viz/view/theme.h"

namespace kvscope::apps {

// What a file is taken for: what its content tells, or what the option says that it was given with.
enum class FileKind : std::uint8_t { by_content, scenario, trace };

struct RenderRequest {
  std::string out;
  std::string file;
  FileKind kind = FileKind::by_content;
  viz::View view = viz::View::overview;
  std::optional<std::int64_t> step;  // the end of that engine step; -1: before the first
  std::optional<std::int64_t> to;    // GIF: the last one
  QSize size{1600, 1000};            // [px], logical
  double scale = 1;
  viz::ThemeKind theme = viz::ThemeKind::dark;
  std::optional<std::string> select;       // as find.h reads it
  std::optional<std::string> tile;         // as tile_request.h reads it, or the number of a tile of the trace
  std::optional<std::int64_t> tile_event;  // events of the tile that have happened
  double frames_per_second = 4;
  double font_scale = 1;
};

// What is left out is as the window was last.
struct WindowRequest {
  std::optional<std::string> file;
  std::optional<std::int64_t> step;
  std::optional<viz::View> view;
  std::optional<viz::ThemeKind> theme;
  std::optional<double> font_scale;
};

struct SimulateRequest {
  std::string scenario;
  std::string trace;  // where it goes
};

struct CommandLine {
  enum class Mode : std::uint8_t { window, render, simulate, answered };
  Mode mode = Mode::answered;
  int exit_code = 0;  // answered: --help, --version, a fault that has been printed
  WindowRequest window;
  RenderRequest render;
  SimulateRequest simulate;
};

// Faults of the line's form are printed, and leave Mode::answered with kExitBadInput. Throws InputError("command line",
// every fault) for values that are not legal.
[[nodiscard]] CommandLine parse_command_line(int argc, char** argv);

}  // namespace kvscope::apps
