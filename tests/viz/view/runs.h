// Runs for tests of panels and the canvas: a scenario of the gallery, or one of so many steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/pipeline/run_scenario.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "tests/viz/playback/memory_source.h"
#include "viz/playback/run.h"

namespace kvscope::viz {

inline std::shared_ptr<const Run> gallery_run(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";
  const Scenario scenario = load_scenario(folder / (name + ".json"));
  TapeRecorder recorder;
  static_cast<void>(run_engine(scenario, make_requests(scenario, folder), recorder));
  return Run::open(from_tape(recorder.take(), {{"scenario", json::dump(to_json(scenario))}}, recorder.detail()), name);
}

// Steps without blocks: step k (from `first`) ends at 1 ms * (k + 1) with k % 7 waiting and k % 5 running requests;
// every tenth step has a preemption.
inline std::shared_ptr<const Run> run_of_steps(std::int64_t steps, std::int64_t first = 0) {
  std::vector<trace::Event> events;
  for (std::int64_t k = 0; k < steps; ++k) {
    events.push_back(trace::StepBegan{StepIdx{first + k}, 1000 * k});
    trace::StepEnded ended;
    ended.step = StepIdx{first + k};
    ended.time_us = 1000 * (k + 1);
    ended.waiting = k % 7;
    ended.running = k % 5;
    ended.used_blocks = k % 11;
    ended.free_blocks = 10 - k % 11;
    ended.prefill_tokens = k % 100;
    ended.decode_tokens = k % 5;
    events.push_back(ended);
  }
  return Run::open(from_memory(std::move(events), {}, trace::Detail::steps), "steps");
}

}  // namespace kvscope::viz
