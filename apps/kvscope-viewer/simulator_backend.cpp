#include "apps/kvscope-viewer/simulator_backend.h"

#include <fmt/format.h>

#include <QtCore/QStandardPaths>

#include "apps/kvscope-viewer/child_simulation.h"
#include "apps/kvscope-viewer/gallery.h"
#include "apps/kvscope-viewer/gallery_picture.h"
#include "apps/kvscope-viewer/golden_run.h"
#include "apps/kvscope-viewer/kernel_run.h"
#include "apps/kvscope-viewer/lab_list.h"
#include "apps/kvscope-viewer/tile_source.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/scenario/requests.h"
#include "core/staging/explain.h"
#include "core/staging/locate.h"
#include "core/staging/staging_events.h"

namespace kvscope::apps {
namespace fs = std::filesystem;
namespace {

std::optional<fs::path> requests_file(const Scenario& scenario, const fs::path& folder) {
  if (!scenario.requests.file) return std::nullopt;
  return folder / scenario.requests.file->path;
}

std::optional<fs::file_time_type> time_of(const std::optional<fs::path>& file) {
  std::error_code error;
  if (!file) return std::nullopt;
  const fs::file_time_type time = fs::last_write_time(*file, error);
  return error ? std::nullopt : std::optional(time);
}

std::vector<Request> requests_of(const Scenario& scenario, const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  const std::optional<fs::path> file = requests_file(scenario, folder);
  std::error_code ignored;
  if (file && !fs::exists(*file, ignored)) {
    throw InputError(file->string(), "",
                     fmt::format("cannot be read: the scenario of '{}' takes its requests from it: put a copy there, "
                                 "then ask again",
                                 path));
  }
  return make_requests(scenario, folder);
}

}  // namespace

FileKind kind_of(const std::string& path) {
  constexpr std::string_view kDatabase = "SQLite format 3";
  std::error_code ignored;
  const bool readable = fs::exists(path, ignored) && !fs::is_directory(path, ignored);
  const std::string start = readable ? read_file_start(path, 64) : std::string();
  if (start.starts_with(kDatabase)) return FileKind::trace;
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && start[first] == '{') return FileKind::scenario;
  const fs::path ending = fs::path(path).extension();
  if (ending == ".npz" || ending == ".npy" || ending == ".safetensors") return FileKind::bundle;
  return ending == ".kvt" ? FileKind::trace : FileKind::scenario;
}

SimulatorBackend::SimulatorBackend(fs::path program, fs::path cache)
    : program_(std::move(program)), cache_(std::move(cache)) {}

std::unique_ptr<viz::EventSource> SimulatorBackend::open(const std::string& path, const viz::OpenProgress& progress) {
  const FileKind kind = kind_of(path);
  if (kind == FileKind::trace) return viz::open_trace(path);
  if (kind == FileKind::bundle) return golden_run(*AttentionStep::of_bundle(path));
  return simulate_in_child(program_.string(), path, progress);
}

std::unique_ptr<viz::EventSource> SimulatorBackend::run_changed(const std::string& scenario, const std::string& path,
                                                                const viz::OpenProgress& progress) {
  return simulate_in_child(program_.string(), path, progress, scenario);
}

StepEngine& SimulatorBackend::engine_for(const viz::Facts& facts, const std::string& path) {
  if (!facts.scenario) {
    throw InputError(path, "",
                     "contains no scenario, so the head size is unknown: record it with 'kvscope run --trace "
                     "full', or put \"scenario\" into its meta");
  }
  const auto time = time_of(requests_file(*facts.scenario, fs::path(path).parent_path()));
  if (engine_ && engine_path_ == path && engine_requests_time_ == time && engine_->scenario() == *facts.scenario) {
    return *engine_;
  }
  engine_.reset();
  std::vector<Request> requests = requests_of(*facts.scenario, path);
  if (static_cast<std::int64_t>(requests.size()) != facts.sequences) {
    throw InputError(path, "",
                     fmt::format("was recorded with {} requests, and its scenario has {}: an address can only be "
                                 "explained with the requests it came from; write their file into $.requests.file and "
                                 "record it again",
                                 facts.sequences, requests.size()));
  }
  engine_ = std::make_unique<StepEngine>(*facts.scenario, std::move(requests));
  engine_path_ = path;
  engine_requests_time_ = time;
  return *engine_;
}

trace::Explanation SimulatorBackend::explain(const viz::Facts& facts, const std::string& path,
                                             const trace::Question& question) {
  StepEngine& engine = engine_for(facts, path);
  if (question.step.value < 0) return kvscope::explain(engine.scenario(), engine.requests(), question);
  return kvscope::explain(engine.scenario(), engine.requests(), question, engine.at(question.step));
}

trace::Question SimulatorBackend::locate(const viz::Facts& facts, const std::string& path, std::int64_t offset,
                                         StepIdx step) {
  StepEngine& engine = engine_for(facts, path);
  return kvscope::locate(engine.scenario(), engine.at(step), offset);
}

std::vector<trace::Event> SimulatorBackend::stage(const viz::Facts& facts, const std::string& path,
                                                  const viz::TileRequest& request) {
  StepEngine& engine = engine_for(facts, path);
  const CacheState& state = engine.at(request.step);
  const StagedRequest staged = staged_request(engine.scenario(), request);
  trace::MemoryRecorder recorder;
  record_tile(engine.scenario(), state, staged.question, recorder, staged.boxes);
  return recorder.events();
}

viz::TileSource SimulatorBackend::tile_source(const viz::Facts& facts, const std::string& path,
                                              const viz::TileRequest& request) {
  StepEngine& engine = engine_for(facts, path);
  return apps::tile_source(engine.scenario(), engine.at(request.step), request);
}

const AttentionStep& SimulatorBackend::attention_at(const viz::Facts& facts, const std::string& path, StepIdx step,
                                                    LayerIdx layer) {
  const bool bundle = !facts.scenario && kind_of(path) == FileKind::bundle;
  if (bundle) step = StepIdx{0}, layer = LayerIdx{0};
  const auto time = time_of(fs::path(path));
  if (attention_ && attention_path_ == path && attention_time_ == time && attention_scenario_ == facts.scenario &&
      attention_step_ == step && attention_layer_ == layer) {
    return *attention_;
  }
  attention_.reset();
  if (bundle) {
    attention_ = AttentionStep::of_bundle(path);
  } else {
    StepEngine& engine = engine_for(facts, path);
    attention_ = AttentionStep::of_scenario(engine.scenario(), engine.focus_at(step), layer);
  }
  attention_path_ = path;
  attention_time_ = time;
  attention_scenario_ = facts.scenario;
  attention_step_ = step;
  attention_layer_ = layer;
  return *attention_;
}

viz::AttentionFlow SimulatorBackend::attend(const viz::Facts& facts, const std::string& path,
                                            const viz::FlowRequest& request) {
  return attention_at(facts, path, request.step, request.layer).flow(request);
}

viz::AttentionErrors SimulatorBackend::compare(const viz::Facts& facts, const std::string& path,
                                               const viz::ErrorsRequest& request) {
  return attention_at(facts, path, request.step, request.layer).errors(request.candidate);
}

viz::Gallery SimulatorBackend::gallery() {
  const fs::path beside = program_.parent_path();
  const std::optional<fs::path> folder = gallery_folder(beside);
  if (!folder) {
    return {{},
            fmt::format("The gallery's folder is missing: neither {} nor apps/scenarios in a folder above {} exists. "
                        "Install kvscope again, or open a scenario by its path.",
                        installed_gallery(beside).string(), beside.string())};
  }
  viz::Gallery gallery{gallery_of(*folder), {}};
  if (gallery.entries.empty()) {
    gallery.why_empty = fmt::format(
        "{} has no scenarios: it has no .json file. Install kvscope again, or open a "
        "scenario by its path.",
        folder->string());
  }
  return gallery;
}

viz::Labs SimulatorBackend::labs() {
  return lab_list(program_.parent_path());
}

std::optional<viz::LabResult> SimulatorBackend::lab_result(const std::string& path) {
  return read_lab_result(path, lab_list(program_.parent_path()));
}

bool SimulatorBackend::is_kernel(const std::string& path) {
  return is_ptx(path);
}

viz::KernelFile SimulatorBackend::kernel_file(const std::string& path) {
  return read_kernel_file(path);
}

std::string SimulatorBackend::kernel_command(const viz::KernelLaunch& launch) {
  return command_of(launch);
}

std::unique_ptr<viz::KernelRun> SimulatorBackend::start_kernel(const viz::KernelLaunch& launch,
                                                               const std::function<bool()>& keep_going) {
  return apps::start_kernel(request_of(launch), keep_going);
}

QImage SimulatorBackend::picture(const std::string& path, viz::ThemeKind theme,
                                 const std::function<bool()>& keep_going) {
  const fs::path cache =
      !cache_.empty()
          ? cache_
          : fs::path(QStandardPaths::writableLocation(QStandardPaths::CacheLocation).toStdString()) / "gallery";
  return gallery_picture(program_, cache, path, theme, keep_going);
}

}  // namespace kvscope::apps
