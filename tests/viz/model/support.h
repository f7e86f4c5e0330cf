// Documents to test models with: a scenario of the gallery, simulated, and runs written by hand.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/pipeline/run_scenario.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "core/trace/recorder.h"
#include "tests/viz/playback/memory_source.h"
#include "viz/model/document.h"

namespace kvscope::viz::testing_support {

inline std::filesystem::path gallery_folder() {
  return std::filesystem::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";
}

struct Simulated {
  Scenario scenario;
  std::vector<Request> requests;
  std::shared_ptr<const Run> run;
};

inline Simulated simulate(const std::string& name) {
  Simulated s;
  s.scenario = load_scenario(gallery_folder() / (name + ".json"));
  s.requests = make_requests(s.scenario, gallery_folder());
  trace::MemoryRecorder recorder;
  static_cast<void>(run_engine(s.scenario, s.requests, recorder));
  s.run = Run::open(
      from_memory(recorder.events(), {{"scenario", json::dump(to_json(s.scenario))}}, trace::Detail::full), name);
  return s;
}

// 24 blocks of 4 tokens, six sequences, 47 steps: preemptions in steps 3, 6, 10, 19 and 26, no shared block.
inline std::shared_ptr<const Run> preemption_run() {
  static const std::shared_ptr<const Run> kRun = simulate("preemption").run;
  return kRun;
}

// Steps without blocks: a long run that needs little memory. Its trace has no scenario.
inline std::shared_ptr<const Run> run_of_steps(std::int64_t steps) {
  std::vector<trace::Event> events;
  for (std::int64_t k = 0; k < steps; ++k) {
    events.emplace_back(trace::StepBegan{StepIdx(k), 10 * k});
    trace::StepEnded ended;
    ended.step = StepIdx(k);
    ended.time_us = 10 * k + 9;
    events.emplace_back(ended);
  }
  return Run::open(from_memory(std::move(events), {}, trace::Detail::steps), "steps");
}

}  // namespace kvscope::viz::testing_support
