#include "apps/kvscope-viewer/simulate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "apps/common/faults.h"
#include "apps/common/scenario_input.h"
#include "core/base/errors.h"
#include "core/scenario/requests.h"
#include "core/scenario/scenario_json.h"
#include "core/staging/staging_events.h"
#include "core/trace/trace_writer.h"
#include "viz/playback/run.h"

namespace kvscope::apps {
namespace {

// A run with broken invariants is not shown: this program has a bug.
void run_checked(const ScenarioInput& input, trace::Recorder& recorder, const ProgressFunction& progress) {
  EngineOptions options;
  options.progress = progress;
  const EngineRun run = run_engine(input.scenario, input.requests, recorder, options);
  if (run.broken_invariants.empty()) return record_staging(input.scenario, input.requests, run.report, recorder);
  std::vector<Fault> faults;
  for (const std::string& broken : run.broken_invariants) faults.push_back({"", broken});
  throw InputError("internal error, please report it with the scenario", std::move(faults));
}

// Writes progress to standard output. Returns false when the reader has closed the pipe.
class Teller {
 public:
  bool operator()(std::int64_t done, std::int64_t all) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(100)) return true;
    last_ = now;
    const std::string line = fmt::format("progress {} {}\n", done, all);
    return ::write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  }

 private:
  std::chrono::steady_clock::time_point last_{};
};

// The scenario from standard input, which was in the file `path` before it was changed.
ScenarioInput read_changed(const std::string& path) {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  ScenarioInput input;
  input.scenario = parse_scenario(text, path);
  input.requests = make_requests(input.scenario, std::filesystem::path(path).parent_path());
  return input;
}

// When memory runs out, Linux ends the process with the highest oom_score_adj: the simulation, not the window.
void matter_least() {
  std::ofstream("/proc/self/oom_score_adj") << 1000;
}

}  // namespace

std::unique_ptr<viz::EventSource> simulate_in_memory(const std::string& scenario, const ProgressFunction& progress) {
  const ScenarioInput input = read_scenario(scenario, {});
  viz::TapeRecorder recorder;
  try {
    run_checked(input, recorder, progress);
  } catch (const Cancelled&) {
    throw viz::Cancelled();
  }
  return viz::from_tape(recorder.take(), trace_meta(input.scenario), recorder.detail());
}

int simulate_to_file(const std::string& scenario, const std::string& trace, bool changed) {
  std::signal(SIGPIPE, SIG_IGN);
  matter_least();
  const ScenarioInput input = changed ? read_changed(scenario) : read_scenario(scenario, {});
  trace::TraceWriter writer(trace, trace::Detail::full, trace_meta(input.scenario));
  try {
    run_checked(input, writer,
                [tell = Teller()](std::int64_t done, std::int64_t all) mutable { return tell(done, all); });
  } catch (const Cancelled&) {
    return kExitBadInput;
  }
  writer.finish();
  return kExitFine;
}

}  // namespace kvscope::apps
