// A trace of a million events: writing it, opening it, and seeking one step. The bounds in docs/BENCHMARKS.md are 2 s,
// 1 s and 16 ms.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/trace/trace_reader.h"
#include "core/trace/trace_writer.h"

namespace kvscope::trace {
namespace {

constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kPerStep = 25;  // events per step of a batch of eight

// The mix of a decoding batch: most events are tokens, then blocks.
void record_million(TraceWriter& trace) {
  for (std::int64_t step = 0; trace.events() < kMillion; ++step) {
    trace.record(StepBegan{StepIdx{step}, step * 5000});
    for (std::int64_t i = 0; i < kPerStep - 2; ++i) {
      const std::int64_t n = step * kPerStep + i;
      if (i % 8 == 6) {
        trace.record(BlockAllocated{BlockIdx{n % 4096}, SeqIdx{n % 977}, PageIdx{i}});
      } else if (i % 8 == 7) {
        trace.record(BlockReleased{BlockIdx{n % 4096}, SeqIdx{n % 977}, PageIdx{i}, n % 3, n % 2 == 0});
      } else {
        trace.record(TokensWritten{SeqIdx{n % 977}, TokIdx{step}, 1, BlockIdx{n % 4096}, step % 16, true});
      }
    }
    trace.record(StepEnded{StepIdx{step}, step * 5000 + 4900, 3, 8, 2000, 500, 1596, 31000, 0, 8});
  }
}

class MillionEvents {
 public:
  MillionEvents()
      : path_(std::filesystem::temp_directory_path() / ("kvscope_bench_" + std::to_string(::getpid()) + ".kvt")) {}
  MillionEvents(const MillionEvents&) = delete;
  MillionEvents& operator=(const MillionEvents&) = delete;
  ~MillionEvents() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  void write() const {
    TraceWriter trace(path_, Detail::full, {{"producer", "bench"}});
    record_million(trace);
    trace.finish();
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  // Written once, by the first benchmark that needs it.
  static const MillionEvents& kept() {
    static const MillionEvents file;
    if (!std::filesystem::exists(file.path())) file.write();
    return file;
  }

 private:
  std::filesystem::path path_;
};

void TraceWriteMillion(benchmark::State& state) {
  const MillionEvents& file = MillionEvents::kept();
  for (auto _ : state) file.write();
  state.SetItemsProcessed(state.iterations() * kMillion);
  state.counters["bytes"] = static_cast<double>(std::filesystem::file_size(file.path()));
}
BENCHMARK(TraceWriteMillion)->Unit(benchmark::kMillisecond)->UseRealTime();

void TraceOpenMillion(benchmark::State& state) {
  const MillionEvents& file = MillionEvents::kept();
  for (auto _ : state) {
    TraceReader trace(file.path());
    benchmark::DoNotOptimize(trace.rows());
  }
}
BENCHMARK(TraceOpenMillion)->Unit(benchmark::kMillisecond)->UseRealTime();

// Reads one step by its number, far from the previous one, as `kvscope trace show --step` does after opening the file.
void TraceSeek(benchmark::State& state) {
  TraceReader trace(MillionEvents::kept().path());
  const std::int64_t steps = trace.rows() - 1;  // row 0 is the prologue
  std::int64_t step = 0;
  for (auto _ : state) {
    step = (step + 16381) % steps;
    const std::optional<std::int64_t> row = trace.find_step(StepIdx{step});
    if (!row) {
      state.SkipWithError("a step that was written is not found");
      break;
    }
    benchmark::DoNotOptimize(trace.events_of_row(*row));
  }
}
BENCHMARK(TraceSeek)->Unit(benchmark::kMillisecond)->UseRealTime();

void TraceVerifyMillion(benchmark::State& state) {
  TraceReader trace(MillionEvents::kept().path());
  for (auto _ : state) trace.verify_all();
  state.SetItemsProcessed(state.iterations() * kMillion);
}
BENCHMARK(TraceVerifyMillion)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace kvscope::trace
