// The cost of checks: kernels that mainly use shared memory, without checks, with checks, and with counters.
#include <benchmark/benchmark.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/check/counters.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/kernels/decode_case.h"
#include "tests/gpu/virtual/kernels/plain_case.h"
#include "tests/gpu/virtual/kernels/qk_case.h"

namespace kvscope::ptx {
namespace {

enum Watch : int { kNobody, kRaces, kInit, kAll, kCounters, kGlobalRaces };

// Runs the launch with these watchers and reports warp instructions per second.
template <class Case>
void run_watched(benchmark::State& state, test::Gpu& gpu, const Case& launch) {
  std::int64_t steps = 0;
  for (auto _ : state) {
    const auto watch = static_cast<int>(state.range(0));
    const bool all = watch == kAll || watch == kGlobalRaces;
    CheckOptions options{.init = watch == kInit || all,
                         .nc_modified = all,
                         .wgmma = all,
                         .tensor = all,
                         .global_race = watch == kGlobalRaces};
    options.race.races = options.race.proxy = watch == kRaces || all;
    Checks checks(options);
    Counters counters(gpu.program());
    if (watch == kCounters) checks.add(counters);
    const LaunchResult result = gpu.run(launch.run, checks.monitor());
    if (!result.clean()) state.SkipWithError("not clean");
    steps += static_cast<std::int64_t>(result.steps);
  }
  state.SetItemsProcessed(steps);
  state.counters["warp_instructions"] =
      benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kAvgIterations);
}

struct Plain {
  test::Run run;
};
// K02: arithmetic, and one load of global memory in ten instructions.
void alu(benchmark::State& state) {
  test::Gpu gpu("elementwise.ptx");
  const std::uint64_t in = gpu.upload("in", std::vector<float>(128, 1.0f)), out = gpu.zeros("out", 512);
  run_watched(state, gpu,
              Plain{{.kernel = "alu_rounds", .block = {128, 1, 1}, .values = {out, in, test::value(1000)}}});
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
// Without tensor cores: two loads of shared memory for each fma.
void plain_gemm(benchmark::State& state) {
  const test::PlainGemmCase data;
  test::Gpu gpu("plain.ptx");
  run_watched(state, gpu, data.launch(gpu));
}
void plain_flash(benchmark::State& state) {
  const test::PlainFlashCase data;
  test::Gpu gpu("plain.ptx");
  run_watched(state, gpu, data.launch(gpu));
}

// All checks on this number of threads: items are warp instructions per second of the clock.
void decode_jobs(benchmark::State& state) {
  const test::DecodeCase data(4096);
  test::Gpu gpu("decode.ptx", {"threads", Policy::late, 0, state.range(0)});
  const auto launch = data.launch(gpu, "paged_decode", -1);
  std::int64_t steps = 0;
  for (auto _ : state) {
    Checks checks;
    const LaunchResult result = gpu.run(launch.run, checks.monitor());
    if (!result.clean() || result.threads != state.range(0)) state.SkipWithError("not clean, or on one thread");
    steps += static_cast<std::int64_t>(result.steps);
  }
  state.SetItemsProcessed(steps);
}
BENCHMARK(decode_jobs)
    ->Name("ptx_jobs/decode")
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

// 0 no checks, 1 races and fences, 2 uninitialized bytes, 3 all checks, 4 counters, 5 all checks and races in global memory.
BENCHMARK(alu)->Name("ptx_check/alu")->DenseRange(0, 5)->Unit(benchmark::kMillisecond);
BENCHMARK(decode)->Name("ptx_check/decode")->DenseRange(0, 5)->Unit(benchmark::kMillisecond);
BENCHMARK(qk_tensor)->Name("ptx_check/qk_tensor")->DenseRange(0, 5)->Unit(benchmark::kMillisecond);
BENCHMARK(qk_cp_async)->Name("ptx_check/qk_cp_async")->DenseRange(0, 5)->Unit(benchmark::kMillisecond);
BENCHMARK(plain_gemm)->Name("ptx_check/plain_gemm")->DenseRange(0, 5)->Unit(benchmark::kMillisecond);
BENCHMARK(plain_flash)->Name("ptx_check/plain_flash")->DenseRange(0, 5)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvscope::ptx
