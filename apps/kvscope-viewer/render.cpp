#include "apps/kvscope-viewer/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include <QtGui/QGuiApplication>

#include "apps/common/faults.h"
#include "apps/common/progress.h"
#include "apps/kvscope-viewer/display.h"
#include "apps/kvscope-viewer/simulate.h"
#include "apps/kvscope-viewer/simulator_backend.h"
#include "core/base/errors.h"
#include "viz/playback/find.h"
#include "viz/playback/run.h"
#include "viz/window/export.h"

namespace kvscope::apps {
namespace {

std::shared_ptr<const viz::Run> open_run(const RenderRequest& request) {
  const FileKind kind = request.kind == FileKind::by_content ? kind_of(request.file) : request.kind;
  std::unique_ptr<viz::EventSource> source;
  if (kind == FileKind::trace) {
    source = viz::open_trace(request.file);
  } else {
    Progress bar("requests");
    source = simulate_in_memory(request.file,
                                [&](std::int64_t done, std::int64_t all) { return bar.show(done, all), true; });
  }
  Progress bar("events");
  return viz::Run::open(std::move(source), std::filesystem::path(request.file).filename().string(),
                        [&](std::int64_t done, std::int64_t all) { return bar.show(done, all), true; });
}

// The first step with the maximum number of blocks in use; the start of a run without steps.
std::int64_t busiest_row(const viz::Run& run) {
  const std::vector<float>& used = run.timeline()[viz::Series::utilisation];
  return used.empty() ? 0 : std::ranges::max_element(used) - used.begin() + 1;
}

std::int64_t row_of_step(const viz::Run& run, const char* option, std::int64_t step) {
  if (step == -1) return 0;
  const std::vector<std::int64_t>& steps = run.timeline().step;
  const auto found = std::ranges::find(steps, step);
  if (found == steps.end()) {
    throw InputError(
        "command line", option,
        fmt::format("{} is not in the run: it has {} steps, and -1 is what came before the first", step, steps.size()));
  }
  return found - steps.begin() + 1;
}

void set_time(viz::Picture& picture, const RenderRequest& request, const viz::Run& run) {
  const bool film = viz::picture_format(QString::fromStdString(request.out)) == viz::PictureFormat::gif;
  const std::int64_t last = run.facts().rows - 1;
  const std::int64_t first = request.step ? row_of_step(run, "--step", *request.step)
                             : film       ? std::min<std::int64_t>(1, last)
                                          : busiest_row(run);
  picture.position = run.end_of_row(first);
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

}  // namespace

int render(const RenderRequest& request, int argc, char** argv) {
  need_no_display();
  const QGuiApplication application(argc, argv);
  if (!viz::load_fonts()) {
    throw InputError("internal error", "", "the embedded fonts are missing: text would be boxes; build it again");
  }
  const std::shared_ptr<const viz::Run> run = open_run(request);
  viz::Picture picture;
  picture.view = request.view;
  picture.size = request.size;
  picture.scale = request.scale;
  picture.theme = request.theme;
  picture.font_scale = request.font_scale;
  picture.frames_per_second = request.frames_per_second;
  set_time(picture, request, *run);
  if (request.select) picture.selection = selection_of(request, *run);
  Progress bar("frames");
  viz::write_picture(QString::fromStdString(request.out), run, picture,
                     [&](std::int64_t done, std::int64_t all) { return bar.show(done, all), true; });
  return kExitFine;
}

}  // namespace kvscope::apps
