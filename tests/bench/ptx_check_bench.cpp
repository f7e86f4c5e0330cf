// What watching costs: a loop of loads, stores and barriers in shared memory, with and without checks.
#include <benchmark/benchmark.h>

#include <fstream>
#include <sstream>
#include <string>

#include "core/ptx/check/checks.h"
#include "core/ptx/check/counters.h"
#include "core/ptx/machine/device.h"
#include "core/ptx/text/parser.h"
#include "tests/core/ptx/kernels/decode_case.h"
#include "tests/core/ptx/kernels/qk_case.h"

namespace kvscope::ptx {
namespace {

enum Watch : int { kNobody, kRaces, kInit, kAll, kCounters };

// Runs the launch with these watchers; warp instructions a second.
template <class Case>
void run_watched(benchmark::State& state, test::Gpu& gpu, const Case& launch) {
  std::int64_t steps = 0;
  for (auto _ : state) {
    const auto watch = static_cast<int>(state.range(0));
    CheckOptions options{.init = watch == kInit || watch == kAll, .nc_modified = watch == kAll};
    options.race.races = options.race.proxy = watch == kRaces || watch == kAll;
    Checks checks(options);
    Counters counters(gpu.program());
    if (watch == kCounters) checks.add(counters);
    const LaunchResult result = gpu.run(launch.run, checks.monitor());
    if (!result.clean()) state.SkipWithError("not clean");
    steps += static_cast<std::int64_t>(result.steps);
  }
  state.SetItemsProcessed(steps);
}

void decode(benchmark::State& state) {
  const test::DecodeCase data(4096);
  test::Gpu gpu("decode.ptx");
  run_watched(state, gpu, data.launch(gpu, "paged_decode", -1));
}
void qk_tensor(benchmark::State& state) {
  const test::QkCase data;
  test::Gpu gpu("qk.ptx");
  run_watched(state, gpu, data.by_tensor_copies(gpu, "qk_tensor", -1));
}
void qk_cp_async(benchmark::State& state) {
  const test::QkCase data;
  test::Gpu gpu("qk.ptx");
  run_watched(state, gpu, data.by_cp_async(gpu, "qk_cp_async", -1));
}

// 0 nobody, 1 races and fences, 2 bytes nobody wrote, 3 all, 4 counters.
BENCHMARK(decode)->Name("ptx_check/decode")->DenseRange(0, 4)->Unit(benchmark::kMillisecond);
BENCHMARK(qk_tensor)->Name("ptx_check/qk_tensor")->DenseRange(0, 4)->Unit(benchmark::kMillisecond);
BENCHMARK(qk_cp_async)->Name("ptx_check/qk_cp_async")->DenseRange(0, 4)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvscope::ptx
