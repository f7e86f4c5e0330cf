// A run of a million events over a pool of 100,000 blocks, as the viewer opens it: from a file and from memory, then
// any position of it. The bound of a seek in docs/BENCHMARKS.md is 50 ms. PlaybackTraceRead only reads the file: it is
// the lower bound for opening it. The benchmarks with Big in their name have ten million events and a million blocks.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/paging/paging_engine.h"
#include "core/scenario/requests.h"
#include "core/trace/trace_reader.h"
#include "core/trace/trace_writer.h"
#include "tests/viz/playback/memory_source.h"
#include "viz/playback/cursor.h"
#include "viz/playback/run_difference.h"

namespace kvscope::viz {
namespace {

constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kBlocks = 100'000;
constexpr std::int64_t kBigEvents = 10 * kMillion, kBigBlocks = kMillion;

// A batch of a thousand sequences in a pool that is nearly always full: blocks change owners everywhere in it.
Scenario busy_scenario() {
  Scenario scenario;
  scenario.name = "playback bench";
  scenario.cache.page_size = 16;
  scenario.cache.blocks = kBlocks;
  scenario.scheduler.max_batch = 1024;
  RequestGenerator generator;
  generator.count = 4096;
  generator.mean_gap_us = 1000;
  generator.prompt_min = 512;
  generator.prompt_max = 3072;
  generator.generate_min = 64;
  generator.generate_max = 512;
  generator.prefix_groups = 16;
  generator.prefix_tokens = 256;
  generator.prefix_share = 0.5;
  scenario.requests.generator = generator;
  return scenario;
}

// The same with eight times as many sequences.
Scenario big_scenario() {
  Scenario scenario = busy_scenario();
  scenario.cache.blocks = kBigBlocks;
  scenario.scheduler.max_batch = 8192;
  scenario.requests.generator->count = 40'000;
  return scenario;
}

const std::vector<trace::Event>& million_events() {
  static const std::vector<trace::Event> events = [] {
    const Scenario scenario = busy_scenario();
    const std::vector<Request> requests = make_requests(scenario, ".");
    trace::MemoryRecorder recorder;
    PagingEngine engine(scenario, requests, recorder);
    while (static_cast<std::int64_t>(recorder.events().size()) < kMillion && engine.step()) {
    }
    return recorder.events();
  }();
  return events;
}

std::unique_ptr<EventSource> memory_source() {
  return from_memory(million_events(), {{"producer", "bench"}}, trace::Detail::full);
}

// A file that is deleted at the end.
class TraceOnDisk {
 public:
  template <class Write>
  TraceOnDisk(const std::string& name, Write&& write)
      : path_(std::filesystem::temp_directory_path() / ("kvscope_" + name + std::to_string(::getpid()) + ".kvt")) {
    trace::TraceWriter trace(path_, trace::Detail::full, {{"producer", "bench"}});
    write(trace);
    trace.finish();
  }
  TraceOnDisk(const TraceOnDisk&) = delete;
  TraceOnDisk& operator=(const TraceOnDisk&) = delete;
  ~TraceOnDisk() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

const std::filesystem::path& million_trace() {
  static const TraceOnDisk file("playback_", [](trace::TraceWriter& trace) {
    for (const trace::Event& event : million_events()) {
      std::visit([&](const auto& e) { trace.record(e); }, event);
    }
  });
  return file.path();
}

const std::filesystem::path& big_trace() {
  static const TraceOnDisk file("playback_big_", [](trace::TraceWriter& trace) {
    const Scenario scenario = big_scenario();
    const std::vector<Request> requests = make_requests(scenario, ".");
    PagingEngine engine(scenario, requests, trace);
    while (trace.events() < kBigEvents && engine.step()) {
    }
  });
  return file.path();
}

std::shared_ptr<const Run> million_run() {
  static const std::shared_ptr<const Run> run = Run::open(memory_source(), "bench");
  return run;
}

std::shared_ptr<const Run> big_run() {
  static const std::shared_ptr<const Run> run = Run::open(open_trace(big_trace()), "bench");
  return run;
}

void count_events(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(million_events().size()));
}

void PlaybackTraceRead(benchmark::State& state) {
  const std::filesystem::path& path = million_trace();
  for (auto _ : state) {
    trace::TraceReader trace(path);
    for (std::int64_t row = 0; row < trace.rows(); ++row) benchmark::DoNotOptimize(trace.events_of_row(row));
  }
  count_events(state);
}
BENCHMARK(PlaybackTraceRead)->Unit(benchmark::kMillisecond)->UseRealTime();

void PlaybackOpenFile(benchmark::State& state) {
  const std::filesystem::path& path = million_trace();
  for (auto _ : state) benchmark::DoNotOptimize(Run::open(open_trace(path), "bench"));
  count_events(state);
}
BENCHMARK(PlaybackOpenFile)->Unit(benchmark::kMillisecond)->UseRealTime();

// One iteration: the file has 200 MB.
void PlaybackOpenFileBig(benchmark::State& state) {
  const std::filesystem::path& path = big_trace();
  for (auto _ : state) benchmark::DoNotOptimize(Run::open(open_trace(path), "bench"));
  state.SetItemsProcessed(state.iterations() * kBigEvents);
}
BENCHMARK(PlaybackOpenFileBig)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(1);

void PlaybackOpenMemory(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    std::unique_ptr<EventSource> source = memory_source();
    state.ResumeTiming();
    benchmark::DoNotOptimize(Run::open(std::move(source), "bench"));
  }
  count_events(state);
}
BENCHMARK(PlaybackOpenMemory)->Unit(benchmark::kMillisecond)->UseRealTime();

// Each seek is timed separately. `worst_ms` is the slowest one, which users notice.
template <class Act>
void each_timed(benchmark::State& state, Act&& act) {
  double worst = 0;
  for (auto _ : state) {
    const auto began = std::chrono::steady_clock::now();
    act();
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    state.SetIterationTime(took);
    worst = std::max(worst, took);
  }
  state.counters["worst_ms"] = worst * 1e3;
}

void seek_anywhere(benchmark::State& state, std::shared_ptr<const Run> run) {
  Cursor cursor(std::move(run));
  const CounterRng random(7, 0);
  std::uint64_t n = 0;
  each_timed(state, [&] { cursor.seek(Position{random.integer(n++, 0, cursor.run().facts().events)}); });
}

void PlaybackSeek(benchmark::State& state) {
  seek_anywhere(state, million_run());
}
BENCHMARK(PlaybackSeek)->Unit(benchmark::kMillisecond)->UseManualTime();

void PlaybackSeekBig(benchmark::State& state) {
  seek_anywhere(state, big_run());
}
BENCHMARK(PlaybackSeekBig)->Unit(benchmark::kMillisecond)->UseManualTime();

// The canvas keeps a copy of the cursor before each step, for motion: the step writes to memory that the copy shares.
void step_forward(benchmark::State& state, std::shared_ptr<const Run> run) {
  Cursor cursor(std::move(run));
  std::optional<Cursor> before;
  each_timed(state, [&] {
    before.emplace(cursor);
    if (!cursor.step()) cursor.seek(Position{0});
  });
}

void PlaybackStep(benchmark::State& state) {
  step_forward(state, million_run());
}
BENCHMARK(PlaybackStep)->Unit(benchmark::kMillisecond)->UseManualTime();

void PlaybackStepBig(benchmark::State& state) {
  step_forward(state, big_run());
}
BENCHMARK(PlaybackStepBig)->Unit(benchmark::kMillisecond)->UseManualTime();

void step_backward(benchmark::State& state, std::shared_ptr<const Run> run) {
  Cursor cursor(std::move(run));
  const Position end{cursor.run().facts().events};
  cursor.seek(end);
  std::optional<Cursor> before;
  each_timed(state, [&] {
    before.emplace(cursor);
    if (!cursor.step_back()) cursor.seek(end);
  });
}

void PlaybackStepBack(benchmark::State& state) {
  step_backward(state, million_run());
}
BENCHMARK(PlaybackStepBack)->Unit(benchmark::kMillisecond)->UseManualTime();

void PlaybackStepBackBig(benchmark::State& state) {
  step_backward(state, big_run());
}
BENCHMARK(PlaybackStepBackBig)->Unit(benchmark::kMillisecond)->UseManualTime();

// A search through the whole run, for a kind that is in every frame and a number that never occurs.
void PlaybackRunTo(benchmark::State& state) {
  Cursor cursor(million_run());
  const std::vector<Breakpoint> never{parse_breakpoint("tokens_written seq=-1")};
  each_timed(state, [&] {
    cursor.seek(Position{0});
    benchmark::DoNotOptimize(cursor.run_to(never));
  });
}
// The search for the next step in which two runs differ, through the whole run: there is none.
void PlaybackNextDifference(benchmark::State& state) {
  const std::shared_ptr<const Run> run = million_run();
  const std::unique_ptr<const Run> other = Run::open(memory_source(), "bench");
  for (auto _ : state) {
    for (std::int64_t row = 0; row < run->facts().rows; ++row) {
      if (step_differs(*run, row, *other)) state.SkipWithError("equal runs differ");
    }
  }
  count_events(state);
}
BENCHMARK(PlaybackNextDifference)->Unit(benchmark::kMillisecond);

// How many of a million blocks differ: counted at each step while two runs are side by side.
void PlaybackDifferenceBig(benchmark::State& state) {
  const std::shared_ptr<const Run> run = big_run();
  const State half = run->state_at(Position{run->facts().events / 2}),
              end = run->state_at(Position{run->facts().events});
  for (auto _ : state) benchmark::DoNotOptimize(difference(half, end));
}
BENCHMARK(PlaybackDifferenceBig)->Unit(benchmark::kMillisecond);
BENCHMARK(PlaybackRunTo)->Unit(benchmark::kMillisecond)->UseManualTime();

}  // namespace
}  // namespace kvscope::viz
