#include "apps/kvscope-viewer/render.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <QtGui/QGuiApplication>

#include "apps/common/faults.h"
#include "apps/common/progress.h"
#include "apps/kvscope-viewer/attention_step.h"
#include "apps/kvscope-viewer/display.h"
#include "apps/kvscope-viewer/golden_run.h"
#include "apps/kvscope-viewer/simulate.h"
#include "apps/kvscope-viewer/simulator_backend.h"
#include "core/base/errors.h"
#include "core/base/numbers.h"
#include "viz/playback/attention.h"
#include "viz/playback/find.h"
#include "viz/playback/meant.h"
#include "viz/playback/recorded_tiles.h"
#include "viz/playback/run.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_layouts.h"
#include "viz/playback/tile_request.h"
#include "viz/playback/tile_selection.h"
#include "viz/window/export.h"

namespace kvscope::apps {
namespace {

void print_remarks(const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks) std::cerr << fmt::format("kvscope-viewer: note: {}\n", remark);
}

std::shared_ptr<const viz::Run> open_run(const std::string& file, FileKind asked) {
  const FileKind kind = asked == FileKind::by_content ? kind_of(file) : asked;
  std::unique_ptr<viz::EventSource> source;
  if (kind == FileKind::trace) {
    source = viz::open_trace(file);
  } else if (kind == FileKind::bundle) {
    source = golden_run(*AttentionStep::of_bundle(file));
    print_remarks(source->remarks());
  } else {
    Progress bar("requests");
    source = simulate_in_memory(file, [&](std::int64_t done, std::int64_t all) { return bar.show(done, all), true; });
  }
  Progress bar("events");
  return viz::Run::open(std::move(source), std::filesystem::path(file).filename().string(),
                        [&](std::int64_t done, std::int64_t all) { return bar.show(done, all), true; });
}

// The first step with the maximum number of blocks in use; the start of a run without steps.
std::int64_t busiest_row(const viz::Run& run) {
  const std::vector<float>& used = run.timeline()[viz::Series::utilization];
  return used.empty() ? 0 : std::ranges::max_element(used) - used.begin() + 1;
}

std::int64_t row_of_step(const viz::Run& run, const char* option, std::int64_t step) {
  if (step == -1) return 0;
  const std::optional<std::int64_t> row = run.find_row(StepIdx{step});
  if (!row) {
    throw InputError("command line", option,
                     fmt::format("{} is not in the run: it has {} steps, and -1 is what came before the first", step,
                                 run.facts().rows - 1));
  }
  return *row;
}

bool is_film(const RenderRequest& request) {
  const auto format = viz::picture_format(QString::fromStdString(request.out));
  return format && viz::is_film(*format);
}

// The row of the step of a tile that the trace holds; a kernel's trace has none.
std::optional<std::int64_t> row_of_tile(const viz::Run& run, const std::optional<viz::RecordedTile>& tile) {
  return tile ? run.find_row(tile->opened.step) : std::nullopt;
}

void set_time(viz::Picture& picture, const RenderRequest& request, const viz::Run& run,
              const std::optional<viz::RecordedTile>& tile) {
  const bool film = is_film(request);
  const std::int64_t last = run.facts().rows - 1;
  const std::int64_t without = film ? std::min<std::int64_t>(1, last) : busiest_row(run);
  const std::int64_t first =
      request.step ? row_of_step(run, "--step", *request.step) : row_of_tile(run, tile).value_or(without);
  picture.position = run.end_of_row(first);
  picture.motion = request.motion;
  picture.between = request.between;
  if (request.view == viz::View::tile || request.flow_to) return;
  if (request.to) {
    picture.last_row = row_of_step(run, "--to", *request.to);
    if (*picture.last_row < first) {
      throw InputError(
          "command line", "--to",
          fmt::format("{} comes before --step {}: give the first one first", *request.to, run.span(first).step.value));
    }
  } else if (film) {
    picture.last_row = last;
  }
}

viz::Selection selection_of(const RenderRequest& request, const viz::Run& run) {
  std::optional<viz::Target> target;
  try {
    target = viz::parse_find(*request.select, run.facts());
  } catch (const InputError& error) {
    std::vector<Fault> faults;
    for (const Fault& fault : error.faults()) {
      faults.push_back({"--select", fault.where.empty() ? fault.message : fault.where + ": " + fault.message});
    }
    throw InputError("command line", std::move(faults));
  }
  const auto* selection = std::get_if<viz::Selection>(&*target);
  if (selection == nullptr || selection->kind == viz::Selection::Kind::step) {
    throw InputError(
        "command line", "--select",
        fmt::format("'{}' is not a sequence, page, token or block: select the time with --step", *request.select));
  }
  return *selection;
}

// "the first step with it is 7: choose --step 7", or a general next step.
std::string other_step(const viz::Selection& selection, const viz::Run& run) {
  if (selection.kind == viz::Selection::Kind::token) {
    const auto first = viz::first_step_of(run, selection.seq, selection.token);
    if (first) return fmt::format("the first step with it is {}: choose --step {}", first->value, first->value);
    if (run.tape().size() <= viz::kMostSearched) return "the run never stores it: choose an earlier token";
  }
  return "choose another step with --step";
}

// A row, chunk, lane or register: it must be one of the tile that is shown.
void check_selection_of_tile(const RenderRequest& request, const viz::Picture& picture, const viz::Run& run) {
  const auto fault = [&](const std::string& words) {
    throw InputError("command line", "--select", fmt::format("'{}'{}", *request.select, words));
  };
  if (picture.view != viz::View::tile) fault(" is part of a tile: use --view tile");
  if (!picture.tile) fault(" is part of a tile, and the tile is not staged: leave it out to see the reason");
  const viz::State state = run.state_at(picture.position);
  const viz::Lit lit = viz::resolve(state, run.facts(), picture.tile.get(), picture.selection);
  if (!lit.tile.rows.empty()) return;
  fault(fmt::format(": {}: choose another one",
                    viz::describe(state, run.facts(), picture.tile.get(), picture.selection)));
}

// A picture of one step would show nothing of an object that does not exist then. In an animation it may come later.
void check_selection(const RenderRequest& request, const viz::Picture& picture, const viz::Run& run) {
  if (picture.selection.none()) return;
  if (picture.last_row.value_or(0) > run.row_at(picture.position)) return;
  const viz::State state = run.state_at(picture.position);
  const viz::Lit lit = viz::resolve(state, run.facts(), picture.selection);
  if (lit.seq || lit.block || !lit.places.empty()) return;
  throw InputError(
      "command line", "--select",
      fmt::format("'{}' at step {}: {}: {}", *request.select, state.step.value,
                  viz::describe(state, run.facts(), picture.selection), other_step(picture.selection, run)));
}

bool is_of_another_step(const RenderRequest& request, const viz::Run& run, const viz::RecordedTile& tile) {
  return request.step && *request.step != tile.opened.step.value && row_of_tile(run, tile);
}

// The tile of the trace that is drawn: the n-th one, or without a number the one that its scenario is about, of those
// of the step that --step names. Nothing: the tile is staged on demand.
std::optional<viz::RecordedTile> recorded_tile(const RenderRequest& request, const viz::Run& run) {
  if (request.view != viz::View::tile) return std::nullopt;
  const auto number = request.tile ? whole_number<std::int64_t>(*request.tile) : std::nullopt;
  if (request.tile && !number) return std::nullopt;
  std::vector<viz::RecordedTile> tiles = viz::recorded_tiles(run);
  if (!number) {
    std::erase_if(tiles, [&](const viz::RecordedTile& tile) { return is_of_another_step(request, run, tile); });
    const auto meant = viz::recorded_meant(tiles, run.facts());
    return meant ? std::optional(tiles[*meant]) : std::nullopt;
  }
  const std::int64_t at = number.value_or(0);
  if (at < 0 || at >= std::ssize(tiles)) {
    throw InputError("command line", "--tile",
                     tiles.empty() ? fmt::format("{}: the trace holds no tile: name one as 'seq 3 token 70 k tma'", at)
                                   : fmt::format("{} is outside [0, {}): tiles of the trace", at, tiles.size()));
  }
  const viz::RecordedTile& tile = tiles[static_cast<std::size_t>(at)];
  if (is_of_another_step(request, run, tile)) {
    const std::string name = viz::to_text(viz::request_of(viz::load_tile(run, tile)));
    throw InputError(
        "command line", "--step",
        fmt::format("{} is not the step of tile {} of the trace, which is of step {}: choose --step {}, or "
                    "stage the same tile after step {} with --tile '{}'",
                    *request.step, at, tile.opened.step.value, tile.opened.step.value, *request.step, name));
  }
  return tile;
}

// The tile with its map, scales and row bytes, as the scenario of its trace has them. If the scenario cannot stage it,
// the tile of the trace remains as it is.
std::shared_ptr<const viz::Tile> with_source(viz::Tile tile, const viz::Run& run, const RenderRequest& request,
                                             const char* program) {
  try {
    SimulatorBackend backend{std::filesystem::path(program)};
    tile.source = backend.tile_source(run.facts(), request.file, viz::request_of(tile));
  } catch (const std::exception&) {
  }
  return std::make_shared<const viz::Tile>(std::move(tile));
}

void check_tile_event(const char* option, std::optional<std::int64_t> event, std::int64_t least,
                      const viz::Tile& tile) {
  if (!event || (*event >= least && *event <= tile.events)) return;
  throw InputError("command line", option,
                   fmt::format("{} is outside [{}, {}]: events of the tile", *event, least, tile.events));
}

void set_layout(viz::Picture& picture, const RenderRequest& request) {
  if (!request.tile_layout) return;
  const std::vector<viz::TileLayout> layouts = viz::tile_layouts(*picture.tile);
  const auto found = std::ranges::find(layouts, *request.tile_layout, &viz::TileLayout::name);
  if (found == layouts.end()) {
    std::vector<std::string> names;
    for (const viz::TileLayout& layout : layouts) names.push_back(layout.name);
    throw InputError("command line", "--tile-layout",
                     names.empty()
                         ? "the tile has no reads whose banks are known"
                         : fmt::format("'{}' is not one of {}", *request.tile_layout, fmt::join(names, ", ")));
  }
  picture.tile_layout = static_cast<std::size_t>(found - layouts.begin());
}

QString fault_text(const std::exception& error) {
  QStringList lines;
  for (const std::string& line : fault_lines(error)) lines.push_back(QString::fromStdString(line));
  return lines.join(QLatin1Char('\n'));
}

// Without --tile, as in the window: the tile of what is selected, else of the longest sequence.
viz::TileRequest tile_request(const RenderRequest& request, const viz::Run& run, const viz::State& state,
                              const viz::Selection& selection) {
  viz::TileRequest tile;
  tile.path = viz::path_meant(run.facts());
  if (request.tile) {
    try {
      tile = viz::parse_tile_request(*request.tile, tile.path);
    } catch (const InputError& error) {
      throw InputError("command line", "--tile", error.faults().front().where + " " + error.faults().front().message);
    }
  } else if (const auto meant = token_meant(selection, viz::resolve(state, run.facts(), selection), run.facts())) {
    tile.seq = meant->seq;
    tile.token = meant->token;
  } else {
    tile.seq = longest_running(state);
  }
  tile.step = state.step;
  return tile;
}

// Why the path cannot take the tile is part of the picture; a tile that is not there is a fault of the command line.
void stage_tile(viz::Picture& picture, const RenderRequest& request, const viz::Run& run, const char* program) {
  const viz::State state = run.state_at(picture.position);
  if (!request.tile && state.step.value < 0) {
    picture.tile_instead = QStringLiteral("Before the first step no token is in the cache: choose --step 0 or later.");
    return;
  }
  const viz::TileRequest tile = tile_request(request, run, state, picture.selection);
  try {
    SimulatorBackend backend{std::filesystem::path(program)};
    picture.tile_source = backend.tile_source(run.facts(), request.file, tile);
    viz::Tile staged = viz::fold_tile(backend.stage(run.facts(), request.file, tile));
    staged.source = picture.tile_source;
    picture.tile = std::make_shared<const viz::Tile>(std::move(staged));
  } catch (const IndexError& error) {
    if (request.tile || request.select) {
      throw InputError("command line", request.tile ? "--tile" : "--select", error.what());
    }
    picture.tile_instead = fault_text(error);
  } catch (const InputError&) {
    throw;
  } catch (const std::exception& error) {
    picture.tile_instead = fault_text(error);
  }
}

// Options about parts of what could not be computed. Its reason is the content of a picture without them.
void reject_parts(const char* why, std::initializer_list<std::pair<const char*, bool>> options) {
  std::vector<Fault> faults;
  for (const auto& [option, given] : options) {
    if (given) faults.push_back({option, fmt::format("{}: leave it out to see the reason", why)});
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
}

void set_tile(viz::Picture& picture, const RenderRequest& request, const viz::Run& run,
              const std::optional<viz::RecordedTile>& recorded, const char* program) {
  if (picture.view != viz::View::tile) return;
  if (recorded) {
    picture.tile = std::make_shared<const viz::Tile>(viz::load_tile(run, *recorded));
    if (run.facts().scenario) picture.tile = with_source(*picture.tile, run, request, program);
  }
  if (!picture.tile) stage_tile(picture, request, run, program);
  if (!picture.tile)
    return reject_parts("the tile is not staged", {{"--tile-event", request.tile_event.has_value()},
                                                   {"--tile-to", request.tile_to.has_value()},
                                                   {"--tile-layout", request.tile_layout.has_value()}});
  set_layout(picture, request);
  picture.tile_event = request.tile_event;
  if (is_film(request)) picture.last_tile_event = request.tile_to.value_or(picture.tile->events);
  check_tile_event("--tile-event", request.tile_event, 0, *picture.tile);
  check_tile_event("--tile-to", request.tile_to, request.tile_event.value_or(0), *picture.tile);
}

viz::FlowRequest flow_request(const RenderRequest& request) {
  try {
    return viz::parse_flow_request(*request.flow);
  } catch (const InputError& error) {
    throw InputError("command line", "--flow", error.faults().front().where + " " + error.faults().front().message);
  }
}

// As with tiles: a row that does not exist is a fault of the command line, any other reason is part of the picture. A
// candidate that cannot be compared is a fault. `one_step`: of an animation a row need not exist in each step.
viz::AttentionOfStep attention_at(viz::Backend& backend, const RenderRequest& request, const viz::Run& run,
                                  const viz::State& state, const viz::Picture& picture, bool one_step) {
  viz::AttentionOfStep of;
  viz::FlowRequest flow;
  std::optional<SeqIdx> selected;
  if (request.flow) {
    flow = flow_request(request);
  } else {
    selected = viz::sequence_meant(picture.selection, viz::resolve(state, run.facts(), picture.selection));
    flow.seq = selected.value_or(viz::longest_running(state));
  }
  flow.step = state.step;
  if (flow.step.value < 0) {
    of.flow_instead = QStringLiteral("Before the first step nothing attends to the cache: choose --step 0 or later.");
    return of;
  }
  viz::ErrorsRequest errors;
  errors.candidate = request.candidate.value_or("");
  errors.layer = flow.layer;
  errors.step = flow.step;
  try {
    of.errors = std::make_shared<const viz::AttentionErrors>(backend.compare(run.facts(), request.file, errors));
  } catch (const std::exception& error) {
    if (request.candidate) throw;
    of.errors_instead = fault_text(error);
  }
  if (request.candidate && !request.flow && !selected && of.errors->failing > 0) {
    flow = viz::flow_of_worst(*of.errors, flow);  // as in the window
  }
  try {
    of.flow = std::make_shared<const viz::AttentionFlow>(backend.attend(run.facts(), request.file, flow));
  } catch (const IndexError& error) {
    if (request.flow && one_step) throw InputError("command line", "--flow", error.what());
    of.flow_instead = fault_text(error);
  } catch (const std::exception& error) {
    of.flow_instead = fault_text(error);
  }
  return of;
}

void check_flow_tiles(const char* option, std::optional<std::int64_t> tiles, std::int64_t least,
                      const viz::AttentionFlow& flow) {
  if (!tiles || (*tiles >= least && *tiles <= std::ssize(flow.tiles))) return;
  throw InputError("command line", option,
                   fmt::format("{} is outside [{}, {}]: tiles of the flow", *tiles, least, flow.tiles.size()));
}

void set_attention(viz::Picture& picture, const RenderRequest& request, const std::shared_ptr<const viz::Run>& run,
                   const char* program) {
  if (picture.view != viz::View::attention) return;
  const auto backend = std::make_shared<SimulatorBackend>(std::filesystem::path(program));
  const viz::State state = run->state_at(picture.position);
  const bool several = picture.last_row && *picture.last_row > run->row_at(picture.position);
  if (several) {
    if (request.flow_tiles) {
      throw InputError("command line", "--flow-tiles",
                       "an animation of steps shows the whole flow of each: add --flow-to for one of the flow's tiles");
    }
    const auto printed = std::make_shared<std::once_flag>();
    picture.attention_of = [backend, request, run, picture, printed](const viz::State& state_of_frame) {
      viz::AttentionOfStep of = attention_at(*backend, request, *run, state_of_frame, picture, false);
      if (of.errors) std::call_once(*printed, print_remarks, of.errors->remarks);
      return of;
    };
    return;
  }
  viz::AttentionOfStep of = attention_at(*backend, request, *run, state, picture, true);
  if (of.errors) print_remarks(of.errors->remarks);
  picture.flow = of.flow;
  picture.flow_instead = of.flow_instead;
  picture.errors = of.errors;
  picture.errors_instead = of.errors_instead;
  picture.flow_tiles = request.flow_tiles;
  picture.last_flow_tile = request.flow_to;
  if (!picture.flow)
    return reject_parts("the flow is not computed",
                        {{"--flow-tiles", request.flow_tiles.has_value()}, {"--flow-to", request.flow_to.has_value()}});
  check_flow_tiles("--flow-tiles", request.flow_tiles, 0, *picture.flow);
  check_flow_tiles("--flow-to", request.flow_to, request.flow_tiles.value_or(0), *picture.flow);
}

}  // namespace

int render(const RenderRequest& request, int argc, char** argv) {
  need_no_display();
  const QGuiApplication application(argc, argv);
  if (!viz::load_fonts()) {
    throw InputError("internal error", "", "the embedded fonts are missing: text would be boxes; build it again");
  }
  const std::shared_ptr<const viz::Run> run = open_run(request.file, request.kind);
  viz::Picture picture;
  if (request.compare) picture.compared = open_run(*request.compare, FileKind::by_content);
  picture.beside = request.compare.has_value();
  picture.view = request.view;
  picture.size = request.size;
  picture.scale = request.scale;
  picture.theme = request.theme;
  picture.font_scale = request.font_scale;
  picture.frames_per_second = request.frames_per_second;
  const std::optional<viz::RecordedTile> recorded = recorded_tile(request, *run);
  set_time(picture, request, *run, recorded);
  if (request.select) picture.selection = selection_of(request, *run);
  if (!picture.selection.of_tile()) check_selection(request, picture, *run);
  set_tile(picture, request, *run, recorded, argv[0]);
  if (picture.selection.of_tile()) check_selection_of_tile(request, picture, *run);
  set_attention(picture, request, run, argv[0]);
  picture.size.setHeight(viz::height_for_text(run, picture));
  Progress bar("frames");
  viz::write_picture(QString::fromStdString(request.out), run, picture,
                     [&](std::int64_t done, std::int64_t all) { return bar.show(done, all), true; });
  return kExitFine;
}

}  // namespace kvscope::apps
