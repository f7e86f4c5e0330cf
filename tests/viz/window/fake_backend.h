// A fake simulator for tests of the window: it runs scenarios of the gallery, or simulates slow and failing files. The
// name of a file selects its behavior.
#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/pipeline/run_scenario.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "core/staging/explain.h"
#include "core/staging/focus.h"
#include "core/staging/staging_events.h"
#include "tests/viz/playback/memory_source.h"
#include "tests/viz/window/fake_kernel.h"
#include "viz/window/backend.h"

namespace kvscope::viz::testing_support {

inline std::string gallery_path(const std::string& name) {
  return std::string(KVSCOPE_SOURCE_DIR) + "/apps/scenarios/" + name + ".json";
}

class FakeBackend final : public Backend {
 public:
  std::atomic<int> opens = 0, changes = 0, explains = 0, locates = 0, stages = 0, attends = 0, compares = 0;
  std::string last_candidate;  // read it only when no question is being answered
  std::atomic<int> opens_now = 0,
                   most_opens_now = 0;  // threads in open() and run_changed(): now, and the maximum so far
  std::atomic<bool> release = false;    // makes "held" files and scenarios return
  std::atomic<int> explain_ms = 0;      // [ms] an explanation takes
  std::atomic<bool> explain_throws = false;

  std::unique_ptr<EventSource> open(const std::string& path, const OpenProgress& progress) override {
    ++opens;
    const Inside inside(*this);
    const std::string name = std::filesystem::path(path).stem().string();
    if (name == "faulty") throw InputError(path, {{"$.cache.blocks", "0 is below 1"}, {"$.seed", "missing"}});
    if (name == "out_of_memory") throw std::bad_alloc();
    if (name == "runtime_error") throw std::runtime_error("the disk is on fire");
    if (name == "no_exception") throw 42;
    if (name == "contradiction") return contradiction();
    if (name == "held") hold(progress);
    if (name == "deaf") std::this_thread::sleep_for(std::chrono::milliseconds(300));  // ignores progress()
    if (name == "trace") return trace_without_scenario();
    if (std::filesystem::path(path).extension() == ".npz") {
      if (name == "old") return simulate(gallery_path("first_light"), {path + ": bundle version 1 has no checksum"});
      if (name != "golden") throw InputError(path, "golden 'a1'", "is missing");
      return simulate(gallery_path("first_light"));
    }
    const bool made_up = name == "held" || name == "deaf";
    return simulate(made_up ? gallery_path("first_light") : path);
  }

  std::unique_ptr<EventSource> run_changed(const std::string& scenario, const std::string& path,
                                           const OpenProgress& progress) override {
    ++changes;
    const Inside inside(*this);
    const Scenario parsed = parse_scenario(scenario, path);
    if (parsed.name == "held") hold(progress);
    if (parsed.name == "faulty") throw InputError(path, "$.requests.file.path", "cannot be read");
    return simulate(parsed, path, {});
  }

  trace::Explanation explain(const Facts& facts, const std::string&, const trace::Question& question) override {
    ++explains;
    std::this_thread::sleep_for(std::chrono::milliseconds(explain_ms));
    if (explain_throws) throw std::bad_alloc();
    return kvscope::explain(*facts.scenario, make_requests(*facts.scenario, {}), question);
  }

  trace::Question locate(const Facts&, const std::string&, std::int64_t offset, StepIdx step) override {
    ++locates;
    if (offset > 1000) throw IndexError("byte 5000 is outside [0, 1000): the pool ends there");
    trace::Question place;
    place.seq = SeqIdx{0};
    place.token = TokIdx{offset / 10};
    place.layer = LayerIdx{1};
    place.dim = DimIdx{offset % 8};
    place.kv = KOrV::v;
    place.step = step;
    return place;
  }

  std::vector<trace::Event> stage(const Facts& facts, const std::string&, const TileRequest& request) override {
    ++stages;
    const StagingPath path = request.path == TilePath::lds ? StagingPath::lds : StagingPath::tma;
    const TmaBoxes boxes = request.path == TilePath::gather4 ? TmaBoxes::gather4
                           : request.path == TilePath::rope  ? TmaBoxes::rope
                                                             : TmaBoxes::pages;
    TileQuestion question;
    question.path = path;
    question.seq = request.seq;
    question.layer = request.layer;
    question.head = request.head;
    question.kv = request.kv;
    question.dim = request.dim;
    question.tile = request.token.value / tile_tokens(*facts.scenario, path, request.kv);
    trace::MemoryRecorder recorder;
    const std::vector<Request> requests = make_requests(*facts.scenario, {});
    record_tile(*facts.scenario, state_at(*facts.scenario, requests, request.step).cache, question, recorder, boxes);
    return recorder.events();
  }

  // Made-up numbers: two tiles of one key, one head of one dim. A candidate named "faulty" cannot be compared, one named
  // "old" has a remark.
  AttentionFlow attend(const Facts&, const std::string&, const FlowRequest& request) override {
    ++attends;
    if (request.head.value > 3) throw IndexError("head 4 is outside [0, 4): query heads");
    AttentionFlow flow;
    flow.request = request;
    if (flow.request.query.value < 0) flow.request.query = TokIdx{1};
    flow.request.tile_keys = 1;
    flow.queries = 1;
    flow.first_query = TokIdx{1};
    flow.keys = 2;
    flow.heads = 4;
    flow.page_size = 16;
    flow.tiles = {{0, 1, -INFINITY, 0, 0, 1, 1, {1}}, {1, 2, 0, 1, 0.5, 1, 1.5, {2}}};
    flow.o = flow.golden = {2 / 1.5};
    flow.bound = {1e-6};
    return flow;
  }
  AttentionErrors compare(const Facts&, const std::string&, const ErrorsRequest& request) override {
    ++compares;
    last_candidate = request.candidate;
    if (request.candidate.find("faulty") != std::string::npos)
      throw InputError(request.candidate, "candidate 'o'", "is missing");
    AttentionErrors errors;
    errors.candidate_name = request.candidate;
    errors.of_flow = request.candidate.empty();
    if (request.candidate.find("old") != std::string::npos) errors.remarks = {request.candidate + ": bundle version 1"};
    errors.heads = errors.dims = 1;
    errors.rows = {{SeqIdx{0}, 0, 1, 0, 0}};
    errors.ratio = {2};
    errors.passed = false;
    index_errors(errors);
    return errors;
  }

  bool empty_gallery = false;  // before the window is created
  Gallery gallery() override {
    if (empty_gallery) return {{}, "/nowhere has no scenarios"};
    std::vector<GalleryEntry> entries;
    for (const char* name : {"first_light", "preemption", "prefix_sharing", "parallel_samples"}) {
      const Scenario scenario = load_scenario(gallery_path(name));
      entries.push_back({gallery_path(name), scenario.name, scenario.description});
    }
    return {entries, {}};
  }

  // Before the window is created. A result is that of any file called result.json.
  std::vector<LabEntry> lab_entries;
  LabResult result;
  Labs labs() override { return {lab_entries, {}}; }
  std::optional<LabResult> lab_result(const std::string& path) override {
    if (std::filesystem::path(path).filename() == "damaged.json") throw InputError(path, "$.lab", "is missing");
    return std::filesystem::path(path).filename() == "result.json" ? std::optional(result) : std::nullopt;
  }

  FakeKernels kernels;
  bool is_kernel(const std::string& path) override { return path.ends_with(".ptx"); }
  KernelFile kernel_file(const std::string& path) override { return FakeKernels::file(path); }
  std::string kernel_command(const KernelLaunch& launch) override { return FakeKernels::command(launch); }
  std::unique_ptr<KernelRun> start_kernel(const KernelLaunch& launch,
                                          const std::function<bool()>& keep_going) override {
    return kernels.start(launch, keep_going);
  }

  std::atomic<int> pictures = 0;
  std::atomic<int> picture_ms = 0;  // [ms] that a picture takes
  // Of one color, by theme; parallel_samples has none.
  QImage picture(const std::string& path, ThemeKind theme, const std::function<bool()>& keep_going) override {
    ++pictures;
    for (int ms = 0; ms < picture_ms; ++ms) {
      if (!keep_going()) return {};
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (path == gallery_path("parallel_samples")) return {};
    QImage image(416, 260, QImage::Format_RGB32);
    image.fill(theme == ThemeKind::dark ? 0xff102030 : 0xffd0e0f0);
    return image;
  }

 private:
  struct Inside {
    FakeBackend& backend;
    explicit Inside(FakeBackend& b) : backend(b) { b.most_opens_now = std::max<int>(b.most_opens_now, ++b.opens_now); }
    ~Inside() { --backend.opens_now; }
  };

  // Waits until it is released or cancelled, and reports progress like a scenario.
  void hold(const OpenProgress& progress) const {
    for (std::int64_t done = 0; !release; ++done) {
      if (!progress(std::min<std::int64_t>(done, 64), 64)) throw Cancelled();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  static std::unique_ptr<EventSource> simulate(const std::string& path, std::vector<std::string> remarks = {}) {
    return simulate(load_scenario(path), path, std::move(remarks));
  }
  static std::unique_ptr<EventSource> simulate(const Scenario& scenario, const std::string& path,
                                               std::vector<std::string> remarks) {
    TapeRecorder recorder;
    static_cast<void>(
        run_engine(scenario, make_requests(scenario, std::filesystem::path(path).parent_path()), recorder));
    return from_tape(recorder.take(), {{"producer", "test"}, {"scenario", json::dump(to_json(scenario))}},
                     recorder.detail(), std::move(remarks));
  }

  // Opens without a fault; reading its events fails.
  static std::unique_ptr<EventSource> contradiction() {
    return from_memory({trace::StepBegan{StepIdx{0}, 0}, trace::BlockEvicted{BlockIdx{3}}}, {}, trace::Detail::full);
  }

  static std::unique_ptr<EventSource> trace_without_scenario() {
    std::vector<trace::Event> events;
    for (std::int64_t k = 0; k < 20; ++k) {
      trace::StepEnded ended;
      ended.step = StepIdx(k);
      events.insert(events.end(), {trace::StepBegan{StepIdx(k), 0}, ended});
    }
    return from_memory(std::move(events), {}, trace::Detail::steps);
  }
};

}  // namespace kvscope::viz::testing_support
