// Runs for tests: the included scenarios, small generated ones, and a computation of the state without checkpoints.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/pipeline/run_scenario.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "core/trace/event_text.h"
#include "core/trace/recorder.h"
#include "tests/viz/playback/memory_source.h"
#include "viz/playback/run.h"

namespace kvscope::viz::testing_support {

struct Recorded {
  Scenario scenario;
  std::vector<Request> requests;
  std::vector<trace::Event> events;

  [[nodiscard]] trace::Meta meta() const { return {{"producer", "test"}, {"scenario", json::dump(to_json(scenario))}}; }
  [[nodiscard]] std::unique_ptr<EventSource> source() const { return from_memory(events, meta(), trace::Detail::full); }
  [[nodiscard]] std::shared_ptr<const Run> open() const { return Run::open(source(), "shown"); }
};

inline Recorded record(Scenario scenario, std::vector<Request> requests) {
  trace::MemoryRecorder recorder;
  const EngineRun run = run_engine(scenario, requests, recorder);
  RC_ASSERT(run.broken_invariants.empty());
  return {std::move(scenario), std::move(requests), recorder.events()};
}

inline std::filesystem::path gallery_folder() {
  return std::filesystem::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";
}

// All scenarios except the hour of traffic, whose events would take minutes.
inline std::vector<std::string> gallery_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(gallery_folder())) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".json" && path.stem() != "real_traffic_like") names.push_back(path.stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline Recorded gallery(const std::string& name) {
  Scenario scenario = load_scenario(gallery_folder() / (name + ".json"));
  std::vector<Request> requests = make_requests(scenario, gallery_folder());
  return record(std::move(scenario), std::move(requests));
}

// Few blocks, small pages, common prefixes, samples: sharing, copies, evictions and preemptions within a few hundred
// events; the sizes are chosen so that they do not divide each other.
inline rc::Gen<Recorded> crowded_runs() {
  return rc::gen::exec([] {
    Scenario scenario;
    scenario.name = "crowded";
    scenario.cache.page_size = *rc::gen::inRange<std::int64_t>(1, 7);
    scenario.cache.blocks = *rc::gen::inRange<std::int64_t>(6, 40);
    scenario.cache.prefix_sharing = *rc::gen::inRange(0, 4) > 0;
    scenario.scheduler.max_batch = *rc::gen::inRange<std::int64_t>(1, 6);
    scenario.scheduler.max_step_tokens = *rc::gen::inRange<std::int64_t>(3, 20);
    const int count = *rc::gen::inRange(1, 12);
    for (int i = 0; i < count; ++i) {
      Request request;
      request.arrival_us = *rc::gen::inRange<std::int64_t>(0, 4) * 9000;
      const auto common = *rc::gen::inRange<std::int64_t>(0, 15);
      const auto own = *rc::gen::inRange<std::int64_t>(1, 12);
      request.prompt_tokens = common + own;
      request.generate_tokens = *rc::gen::inRange<std::int64_t>(0, 14);
      if (common > 0) request.content.push_back({*rc::gen::inRange<std::uint64_t>(0, 2), common});
      request.content.push_back({static_cast<std::uint64_t>(100 + i), own});
      request.samples = *rc::gen::inRange<std::int64_t>(1, 4);
      scenario.requests.list.push_back(request);
    }
    std::vector<Request> requests = make_requests(scenario, ".");
    return record(scenario, std::move(requests));
  });
}

inline State fresh_fold(const Recorded& recorded, const Facts& facts, Position position) {
  State state = empty_state(facts);
  for (std::int64_t i = 0; i < position.value; ++i) apply(state, facts, recorded.events[static_cast<std::size_t>(i)]);
  return state;
}

inline Marks fresh_marks(const Recorded& recorded, Position position) {
  Marks marks;
  for (std::int64_t i = 0; i < position.value; ++i) add(marks, recorded.events[static_cast<std::size_t>(i)]);
  return marks;
}

// Small facts for events written by hand: 8 blocks of 4 tokens, 5 sequences.
inline Facts small_facts() {
  Facts facts;
  facts.name = "small";
  facts.blocks = 8;
  facts.page_size = 4;
  facts.sequences = 5;
  facts.table_columns = 6;
  return facts;
}

}  // namespace kvscope::viz::testing_support
