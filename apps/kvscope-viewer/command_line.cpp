#include "apps/kvscope-viewer/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iostream>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/completion.h"
#include "apps/common/help_page.h"
#include "apps/common/usage.h"
#include "apps/common/written_files.h"
#include "apps/kvscope-viewer/kernel_run.h"
#include "apps/launch/options.h"
#include "core/base/errors.h"
#include "viz/window/export.h"
#include "viz/window/theme_choice.h"

namespace kvscope::apps {
namespace {

constexpr double kSmallestScale = 0.25, kLargestScale = 8;

// The options as typed; they are checked together when all of them are known.
struct Words {
  LaunchRequest launch;
  std::vector<const CLI::Option*> of_launch;
  std::optional<std::string> file, render, scenario, trace, simulate, select, tile, tile_layout, completion, view,
      theme;
  std::optional<std::string> flow, candidate, compare;
  std::optional<std::int64_t> step, to, tile_event, tile_to, flow_tiles, flow_to;
  std::optional<double> font_scale, between, frames_per_second;
  bool motion = false, changed = false;
  std::string size = "1600x1000";
  double scale = 1;
};

std::vector<std::string> view_names() {
  std::vector<std::string> names;
  for (const viz::View view : viz::kViews) names.emplace_back(viz::name(view));
  return names;
}

void add_options(CLI::App& app, Words& words) {
  const std::string of_render = "Options of --render";
  app.add_option(
      "FILE", words.file,
      "Scenario (JSON), trace (.kvt), golden bundle (.npz, .safetensors) or kernel (.ptx) to show; for a window also "
      "the result of a lab's check, which opens at its first failed test: without --step, --view and --candidate");
  CLI::Option* render =
      app.add_option("--render", words.render,
                     "Write a picture of a run to a .png, .svg, .pdf or .tikz file, or an animation to a .gif, "
                     ".webm or .mp4 file (videos need the program ffmpeg), and exit; needs no display")
          ->type_name("OUT")
          ->check(writes_file());
  CLI::Option* scenario =
      app.add_option("--scenario", words.scenario, "Scenario to run and show, instead of FILE")->type_name("FILE");
  app.add_option("--trace", words.trace, "Trace to show, instead of FILE")->type_name("FILE")->excludes(scenario);
  app.add_option("--view", words.view, "View to show [default: overview for a picture, else the last one used]")
      ->check(CLI::IsMember(view_names()));
  app.add_option(
      "--step", words.step,
      "Engine step to show, at its end; -1: before the first step; of a kernel: warp instructions that have been "
      "executed [default: for a picture, the step with the most blocks in use; for an animation, the first step; for a "
      "kernel, 0]");
  app.add_option("--compare", words.compare,
                 "Another run of the scenario, a scenario or a trace, to show beside this one: at the same step, with "
                 "frames around what differs; not in the views 'tile' and 'attention' [default: one run is shown]")
      ->type_name("FILE");
  app.add_option("--theme", words.theme, "Colors [default: dark for a picture, else the last one used]")
      ->check(CLI::IsMember(std::vector<std::string>{"dark", "light", "high-contrast"}));
  app.add_option("--font-scale", words.font_scale,
                 fmt::format("Text size relative to 13 px, {} to {} [default: 1 for a picture, else the last one used]",
                             viz::kSmallestFont, viz::kLargestFont));
  app.add_option(
         "--to", words.to,
         "Last step of an animation, which has one frame per step; not in the view 'tile', nor with --tile-to or "
         "--flow-to [default: the last step of the run]")
      ->needs(render)
      ->group(of_render);
  app.add_option("--fps", words.frames_per_second,
                 fmt::format("Steps per second of an animation, {} to {}", viz::kSlowestFrames, viz::kFastestFrames))
      ->default_str("4")
      ->needs(render)
      ->group(of_render);
  app.add_flag("--motion", words.motion, "Animation: also show what moves between two steps")
      ->needs(render)
      ->group(of_render);
  app.add_option("--between", words.between,
                 "Picture between the step before (or the tile's action before) and this one: 0 is the one before, "
                 "0.5 the middle of the motion, 1 this one; a .png")
      ->type_name("T")
      ->needs(render)
      ->group(of_render);
  app.add_option(
         "--size", words.size,
         "Width and height of the picture in pixels, before --scale; with a --font-scale above 1 the picture is higher "
         "if the text needs it")
      ->type_name("WxH")
      ->capture_default_str()
      ->needs(render)
      ->group(of_render);
  app.add_option("--scale", words.scale,
                 fmt::format("Factor for the size and everything drawn, {} to {}; 2 suits a HiDPI screen",
                             kSmallestScale, kLargestScale))
      ->capture_default_str()
      ->needs(render)
      ->group(of_render);
  app.add_option(
         "--select", words.select,
         "Object to highlight: \"token 3:70\" (sequence:position), \"block 7\", \"seq 3\" or \"page 3:2\" "
         "(sequence:page); in the view 'tile' also \"row 6\", \"chunk 6:3\", \"lane 26\" or \"register 26:0\" of "
         "the tile [default: nothing]")
      ->needs(render)
      ->group(of_render);
  app.add_option("--tile", words.tile,
                 "Tile of the view 'tile': \"seq 3 token 70 k layer 0 head 1 tma\" (k or v; tma, lds, gather4 or "
                 "rope), or the number of a tile in the trace [default: the first tile in the trace, else the tile of "
                 "K with the selected token, else the first one of the longest sequence; of these, the path that the "
                 "scenario's notes link to first, else lds for a scenario with an lds section, else tma]")
      ->needs(render)
      ->group(of_render);
  app.add_option("--tile-event", words.tile_event,
                 "Events of the tile that have happened [default: all copies have landed, nothing is read]")
      ->needs(render)
      ->group(of_render);
  app.add_option(
         "--tile-to", words.tile_to,
         "Animation of the tile: the last of its events; one frame for each instruction or wait from --tile-event "
         "on, or from none; not with --to or --flow-to [default: all events]")
      ->needs(render)
      ->group(of_render);
  app.add_option("--flow", words.flow,
                 "Flow of the view 'attention': \"seq 3 query 70 head 1 layer 0 tile 16\" [default: the last query of "
                 "the selected sequence, else of the longest one]")
      ->needs(render)
      ->group(of_render);
  app.add_option("--flow-tiles", words.flow_tiles,
                 "Tiles of the flow that have been added; in an animation only with --flow-to [default: all]")
      ->needs(render)
      ->group(of_render);
  app.add_option("--flow-to", words.flow_to,
                 "Animation of the flow: the last of its tiles; one frame for each tile from --flow-tiles on, or from "
                 "none; not with --to or --tile-to [default: an animation goes through steps of the run]")
      ->needs(render)
      ->group(of_render);
  app.add_option("--candidate", words.candidate,
                 "Kernel's output (.npz, .safetensors, .npy) to compare with the golden, in the view 'attention' "
                 "[default: the tiled flow in f32]")
      ->type_name("FILE");
  app.add_option("--tile-layout", words.tile_layout,
                 "Layout of shared memory to show beside the tile's own: none, 32B, 64B, 128B, '+16 B' and others, as "
                 "the panel names them [default: none, or for a tile without a swizzle the one with the fewest "
                 "wavefronts]")
      ->needs(render)
      ->group(of_render);
  const std::size_t before = app.get_options().size();
  add_launch_options(app, words.launch);
  const std::vector<CLI::Option*> options = app.get_options([](const CLI::Option*) { return true; });
  for (std::size_t i = before; i < options.size(); ++i) {
    options[i]->group("Options of the launch of a kernel (.ptx)");
    words.of_launch.push_back(options[i]);
  }
  app.add_option("--completion", words.completion, "Print a completion script for a shell and exit; alone")
      ->check(CLI::IsMember(completion_shells()));
  app.add_option("--simulate", words.simulate)->group("");
  app.add_flag("--changed", words.changed)->group("");
  add_argument_help(app);
  add_examples(app,
               {"kvscope-viewer apps/scenarios/first_light.json", "kvscope-viewer golden.npz --candidate mine.npz",
                "kvscope-viewer apps/scenarios/preemption.json --compare apps/examples/preemption_two.json",
                "kvscope-viewer apps/examples/reverse.ptx --block 64 --arg 'f32[64]' --arg 'f32[64]'",
                "kvscope-viewer --render pool.png --scenario apps/scenarios/first_light.json --view pool --step 6"});
}

void check_range(const char* option, double value, double low, double high, const char* next_step,
                 std::vector<Fault>& faults) {
  if (value >= low && value <= high) return;
  faults.push_back({option, fmt::format("{} is outside [{}, {}]: {}", value, low, high, next_step)});
}

viz::ThemeKind theme_of(const std::string& name) {
  if (name == "high-contrast") return viz::ThemeKind::high_contrast;
  return name == "light" ? viz::ThemeKind::light : viz::ThemeKind::dark;
}

void check_font(const Words& words, std::vector<Fault>& faults) {
  if (words.font_scale) {
    check_range("--font-scale", *words.font_scale, viz::kSmallestFont, viz::kLargestFont, "1 is 13 px", faults);
  }
}

// "1600x1000". Each side is checked in the pixels of the file, after --scale.
QSize size_of(const Words& words, std::vector<Fault>& faults) {
  const std::string& text = words.size;
  int width = 0, height = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, width);
  const bool cross = first.ec == std::errc() && first.ptr != end && (*first.ptr == 'x' || *first.ptr == 'X');
  const auto second =
      cross ? std::from_chars(first.ptr + 1, end, height) : std::from_chars_result{end, std::errc::invalid_argument};
  if (!cross || second.ec != std::errc() || second.ptr != end) {
    faults.push_back({"--size", fmt::format("'{}' is not WIDTHxHEIGHT in pixels, such as 1600x1000", text)});
    return {};
  }
  for (const auto& [what, side] : {std::pair{"width", width}, std::pair{"height", height}}) {
    const double pixels = side * words.scale;
    if (pixels >= viz::kSmallestPicture && pixels <= viz::kLargestPicture) continue;
    faults.push_back(
        {"--size", fmt::format("a {} of {}{} px is outside [{}, {}]: choose another size{}", what, side,
                               words.scale == 1 ? "" : fmt::format(" * {}", words.scale), viz::kSmallestPicture,
                               viz::kLargestPicture, words.scale == 1 ? "" : " or --scale")});
  }
  return {width, height};
}

std::string one_picture(const std::string& file) {
  return fmt::format("'{}' holds one picture: write a .gif, .webm or .mp4", file);
}

void check_motion(const Words& words, std::optional<viz::PictureFormat> format, std::vector<Fault>& faults) {
  if (words.between) {
    check_range("--between", *words.between, 0, 1, "0.5 is the middle of the motion", faults);
    if (format && *format != viz::PictureFormat::png) {
      faults.push_back({"--between", fmt::format("'{}': a picture of a motion has pixels: write a .png{}",
                                                 *words.render, viz::is_film(*format) ? ", or use --motion" : "")});
    }
  }
  const std::array limits{std::pair{"--to", words.to}, std::pair{"--tile-to", words.tile_to},
                          std::pair{"--flow-to", words.flow_to}};
  if (std::ranges::count_if(limits, [](const auto& limit) { return limit.second.has_value(); }) > 1) {
    faults.push_back({words.flow_to ? "--flow-to" : "--tile-to",
                      "an animation goes through steps (--to), events of a tile (--tile-to) or tiles of a flow "
                      "(--flow-to): leave all but one out"});
  }
  if (!format || viz::is_film(*format)) return;
  if (words.motion) faults.push_back({"--motion", one_picture(*words.render)});
  if (words.frames_per_second) faults.push_back({"--fps", one_picture(*words.render)});
  for (const auto& [option, limit] : limits) {
    if (limit) faults.push_back({option, one_picture(*words.render)});
  }
}

// Without --view, the one that the other options are about.
void choose_view(const Words& words, RenderRequest& request, std::vector<Fault>& faults) {
  const std::array of_tile{
      std::pair{"--tile", words.tile.has_value()}, std::pair{"--tile-event", words.tile_event.has_value()},
      std::pair{"--tile-to", words.tile_to.has_value()}, std::pair{"--tile-layout", words.tile_layout.has_value()}};
  const std::array of_attention{
      std::pair{"--flow", words.flow.has_value()}, std::pair{"--flow-tiles", words.flow_tiles.has_value()},
      std::pair{"--flow-to", words.flow_to.has_value()}, std::pair{"--candidate", words.candidate.has_value()}};
  const auto given = [](const auto& option) { return option.second; };
  request.view = words.view                                 ? *viz::find_view(*words.view)
                 : std::ranges::any_of(of_tile, given)      ? viz::View::tile
                 : std::ranges::any_of(of_attention, given) ? viz::View::attention
                                                            : viz::View::overview;
  const auto need = [&](const auto& options, viz::View view) {
    if (request.view == view) return;
    for (const auto& option : options) {
      if (!option.second) continue;
      faults.push_back({option.first, fmt::format("view '{}' shows no {}: use --view {}", viz::name(request.view),
                                                  viz::name(view), viz::name(view))});
    }
  };
  need(of_tile, viz::View::tile);
  need(of_attention, viz::View::attention);
  if (words.to && !words.tile_to && request.view == viz::View::tile) {
    faults.push_back({"--to",
                      "view 'tile' shows a tile of one step: its animation goes through the tile's events, to "
                      "the one that --tile-to names"});
  }
}

void check_compared(const Words& words, std::optional<viz::View> view, std::vector<Fault>& faults) {
  if (!words.compare || !view || viz::shows_run(*view)) return;
  faults.push_back({"--compare", fmt::format("view '{}' shows one run: choose another view, such as --view pool",
                                             viz::name(*view))});
}

FileKind kind_asked(const Words& words) {
  return words.scenario ? FileKind::scenario : words.trace ? FileKind::trace : FileKind::by_content;
}

RenderRequest render_request(const Words& words) {
  std::vector<Fault> faults;
  RenderRequest request;
  const int sources = (words.file ? 1 : 0) + (words.scenario ? 1 : 0) + (words.trace ? 1 : 0);
  if (sources == 0) faults.push_back({"--render", "needs a run to show: add --scenario FILE or --trace FILE"});
  if (sources > 1) {
    faults.push_back({"FILE", fmt::format("'{}' is a second run, and a picture shows one: leave it out", *words.file)});
  }
  request.out = *words.render;
  const auto format = viz::picture_format(QString::fromStdString(request.out));
  if (!format) {
    faults.push_back(
        {"--render",
         fmt::format("'{}' has no known extension: use .png, .svg, .pdf, .tikz, .gif, .webm or .mp4", request.out)});
  }
  check_motion(words, format, faults);
  request.file = words.scenario ? *words.scenario : words.trace ? *words.trace : words.file.value_or("");
  request.kind = kind_asked(words);
  choose_view(words, request, faults);
  check_compared(words, request.view, faults);
  request.compare = words.compare;
  request.flow = words.flow;
  request.flow_tiles = words.flow_tiles;
  request.flow_to = words.flow_to;
  request.candidate = words.candidate;
  request.step = words.step;
  request.to = words.to;
  check_range("--scale", words.scale, kSmallestScale, kLargestScale, "2 is for a HiDPI screen", faults);
  request.size = size_of(words, faults);
  request.scale = words.scale;
  request.theme = words.theme ? theme_of(*words.theme) : viz::ThemeKind::dark;
  request.select = words.select;
  request.tile = words.tile;
  request.tile_event = words.tile_event;
  request.tile_to = words.tile_to;
  request.tile_layout = words.tile_layout;
  request.motion = words.motion;
  request.between = words.between;
  request.frames_per_second = words.frames_per_second.value_or(request.frames_per_second);
  check_range("--fps", request.frames_per_second, viz::kSlowestFrames, viz::kFastestFrames,
              "a GIF counts hundredths of a second", faults);
  check_font(words, faults);
  request.font_scale = words.font_scale.value_or(1);
  if (!faults.empty()) throw InputError("command line", std::move(faults));
  return request;
}

WindowRequest window_request(const Words& words) {
  std::vector<Fault> faults;
  WindowRequest request;
  request.file = words.scenario ? words.scenario : words.trace ? words.trace : words.file;
  if (words.file && (words.scenario || words.trace)) {
    faults.push_back({"FILE", fmt::format("'{}' is a second run, and a window shows one: leave it out", *words.file)});
  }
  if (words.candidate && !request.file) {
    faults.push_back({"--candidate", "needs a golden to be compared with: add its FILE"});
  }
  if (words.compare && !request.file) faults.push_back({"--compare", "needs a run to compare: add its FILE"});
  if (words.view) request.view = viz::find_view(*words.view);
  request.kind = kind_asked(words);
  request.candidate = words.candidate;
  check_compared(words, first_view(request), faults);
  request.compare = words.compare;
  if (words.step && !request.file) faults.push_back({"--step", "needs a run to show: add its FILE"});
  check_font(words, faults);
  if (!faults.empty()) throw InputError("command line", std::move(faults));
  request.step = words.step;
  if (words.theme) request.theme = theme_of(*words.theme);
  request.font_scale = words.font_scale;
  return request;
}

std::string long_name(const CLI::Option& option) {
  return "--" + option.get_lnames().front();
}

// A fault for each option that is given and not among `taken`, because `option` does not use it.
void check_alone(const CLI::App& app, const char* option, const std::vector<std::string>& taken) {
  std::vector<Fault> faults;
  for (const CLI::Option* other : app.get_options()) {
    const std::string name = other->get_positional() ? other->get_name(true) : long_name(*other);
    if (other->count() == 0 || name == option || std::ranges::find(taken, name) != taken.end()) continue;
    faults.push_back({name, fmt::format("{} does not use it: leave it out", option)});
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
}

KernelRequest kernel_request(const CLI::App& app, const Words& words) {
  std::vector<std::string> taken{"FILE", "--render", "--step", "--theme", "--font-scale", "--size", "--scale"};
  KernelRequest request;
  for (const CLI::Option* option : words.of_launch) {
    taken.push_back(long_name(*option));
    request.has_launch = request.has_launch || option->count() > 0;
  }
  check_alone(app, "a kernel", taken);
  std::vector<Fault> faults;
  check_font(words, faults);
  if (words.render && viz::picture_format(QString::fromStdString(*words.render)) != viz::PictureFormat::png) {
    faults.push_back({"--render", fmt::format("'{}': the picture of a kernel is a .png", *words.render)});
  }
  check_range("--scale", words.scale, kSmallestScale, kLargestScale, "2 is for a HiDPI screen", faults);
  request.size = size_of(words, faults);
  if (words.step && *words.step < 0) {
    faults.push_back({"--step", fmt::format("{} is below 0: a kernel begins at step 0", *words.step)});
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
  request.launch = words.launch;
  request.launch.path = *words.file;
  request.out = words.render;
  if (words.step) request.step = static_cast<std::uint64_t>(*words.step);
  request.scale = words.scale;
  if (words.theme) request.theme = theme_of(*words.theme);
  request.font_scale = words.font_scale;
  return request;
}

// Options of a launch need a kernel.
void check_no_launch(const Words& words) {
  std::vector<Fault> faults;
  for (const CLI::Option* option : words.of_launch) {
    if (option->count() == 0) continue;
    faults.push_back({long_name(*option), words.file ? fmt::format("launches a kernel, and '{}' is no PTX", *words.file)
                                                     : "needs the PTX file of a kernel: add its FILE"});
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
}

CommandLine meaning_of(CLI::App& app, const Words& words) {
  CommandLine line;
  if (words.changed && !words.simulate) {
    throw InputError("command line", "--changed", "needs --simulate FILE: the file that the scenario was in");
  }
  if (words.completion) {
    check_alone(app, "--completion", {});
    std::cout << completion_script(app, *words.completion);
  } else if (words.simulate) {
    if (!words.trace) throw InputError("command line", "--simulate", "needs --trace FILE: where the run's trace goes");
    check_alone(app, "--simulate", {"--trace", "--changed"});
    line.mode = CommandLine::Mode::simulate;
    line.simulate = {*words.simulate, *words.trace, words.changed};
  } else if (words.file && is_ptx(*words.file)) {
    line.mode = CommandLine::Mode::kernel;
    line.kernel = kernel_request(app, words);
    if (words.render) check_program_files(app);
  } else if (words.render) {
    check_no_launch(words);
    line.mode = CommandLine::Mode::render;
    line.render = render_request(words);
    check_program_files(app);
  } else {
    check_no_launch(words);
    line.mode = CommandLine::Mode::window;
    line.window = window_request(words);
  }
  return line;
}

}  // namespace

std::optional<viz::View> first_view(const WindowRequest& request) {
  return request.view || !request.candidate ? request.view : std::optional(viz::View::attention);
}

CommandLine parse_command_line(int argc, char** argv) {
  CLI::App app{"Shows a simulated paged KV cache step by step, in a window or as a picture.", "kvscope-viewer"};
  set_up_program(app, "0 success, 2 invalid input or usage.");
  Words words;
  add_options(app, words);
  CommandLine answered;
  try {
    parse_words(app, argc, argv);
  } catch (const CLI::Success& asked) {  // --help and --version
    answered.exit_code = app.exit(asked);
    return answered;
  } catch (const CLI::ParseError& error) {
    answered.exit_code = usage_fault(app, error, argv[1]);
    return answered;
  }
  return meaning_of(app, words);
}

}  // namespace kvscope::apps
