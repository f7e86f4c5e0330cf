// The speed of the virtual GPU: warp instructions per second of an arithmetic loop with a divergent branch, and multiply-adds
// per second of wgmma and mma, to be compared with FloorMatrixProduct of floor_bench.cpp.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"

namespace {

using namespace kvscope::ptx;

std::string text_of(const std::string& name) {
  std::ifstream in(std::string(KVSCOPE_SOURCE_DIR) + "/tests/gpu/virtual/kernels/cuda/" + name, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// K02: 128 threads, three instructions in four compute, one in ten is a load, every other round half of the lanes leave
// the others for six instructions.
void alu_rounds(benchmark::State& state) {
  ProgramOptions options;
  options.registers_by_liveness = state.range(1) != 0;
  Device device(options);
  const LoadedModule& module = device.load(parse_module(text_of("elementwise.ptx"), "elementwise.ptx"));
  const std::uint64_t out = device.memory().allocate(512, "out");
  const std::uint64_t in = device.memory().allocate(512, "in");
  std::vector<float> values(128);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  device.memory().write(in, std::as_bytes(std::span(values)));
  LaunchConfig config;
  config.kernel = "alu_rounds";
  config.block = {128, 1, 1};
  config.params = pack_params(module, "alu_rounds", {out, in, static_cast<std::uint64_t>(state.range(0))});
  std::uint64_t steps = 0;
  for (auto _ : state) steps += device.launch(module, config).steps;
  state.counters["warp_instructions"] =
      benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kIsRate, benchmark::Counter::kIs1000);
}
BENCHMARK(alu_rounds)->Args({20000, 1})->Args({20000, 0})->Unit(benchmark::kMillisecond);

// A warpgroup that multiplies a 64 x 16 tile by a 16 x 128 tile of `type` 512 times, in groups of four.
constexpr int kColumns = 128, kProducts = 512;
std::string wgmma_kernel(const std::string& type) {
  std::string registers;
  for (int i = 0; i < kColumns / 2; ++i) registers += fmt::format("{}%f{}", i == 0 ? "" : ", ", i);
  std::string group;
  for (int step = 0; step < 4; ++step) {  // K-major, 128B swizzle: A at 1024, B at 9216, steps of 32 bytes
    group +=
        fmt::format("wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{{}}}, 0x{:x}, 0x{:x}, %p1, 1, 1, 0, 0;\n",
                    kColumns, type, type, registers, 0x4000004000010000ULL + 0x40U + 2U * static_cast<unsigned>(step),
                    0x4000004000010000ULL + 0x240U + 2U * static_cast<unsigned>(step));
  }
  return fmt::format(R"(.version 8.5
.target sm_90a
.address_size 64
.visible .entry products() {{
.reg .f32 %f<{0}>; .reg .pred %p<3>; .reg .b32 %r<8>;
.shared .align 1024 .b8 tiles[25600];
mov.u32 %r1, %tid.x; mov.u32 %r5, tiles; mov.u32 %r3, 0;
fill: shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r5; mad.lo.s32 %r2, %r1, 40503, 77; and.b32 %r2, %r2, 0x007f007f;
or.b32 %r2, %r2, 0x3f003c00; st.shared.u32 [%r4], %r2; add.u32 %r1, %r1, 128; setp.lt.u32 %p2, %r1, 6400; @%p2 bra fill;
fence.proxy.async; bar.sync 0; setp.ne.u32 %p1, %r3, 0;
next: wgmma.fence.sync.aligned;
{1}wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
add.u32 %r3, %r3, 4; setp.ne.u32 %p1, %r3, 0; setp.lt.u32 %p2, %r3, {2}; @%p2 bra next; ret; }}
)",
                     kColumns / 2, group, kProducts);
}

void wgmma(benchmark::State& state, const std::string& type) {
  Device device;
  const LoadedModule& module = device.load(parse_module(wgmma_kernel(type), "products.ptx"));
  LaunchConfig config;
  config.kernel = "products";
  config.block = {128, 1, 1};
  std::int64_t products = 0;
  for (auto _ : state) {
    const LaunchResult result = device.launch(module, config);
    if (!result.reports.empty()) return state.SkipWithError(result.reports.front().message.c_str());
    products += kProducts;
  }
  state.SetItemsProcessed(products * 64 * kColumns * 16);  // multiply-adds
}
BENCHMARK_CAPTURE(wgmma, f16, "f16")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(wgmma, bf16, "bf16")->Unit(benchmark::kMillisecond);

// One warp, eight mma.m16n8k`k` of `type` in a loop, on eight accumulators.
constexpr int kMmaRounds = 2000;
std::string mma_kernel(const std::string& type, int k) {
  std::string products;
  for (int i = 0; i < 8; ++i) {
    products += fmt::format(
        "mma.sync.aligned.m16n8k{0}.row.col.f32.{1}.{1}.f32 {{%f{2}, %f{3}, %f{4}, %f{5}}}, {{%r1, %r2, %r3, %r4}}, "
        "{{%r5, %r6}}, {{%f{2}, %f{3}, %f{4}, %f{5}}};\n",
        k, type, 4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3);
  }
  std::string fill;  // numbers around 1 in each type
  for (int i = 1; i <= 6; ++i)
    fill += fmt::format(
        "mad.lo.u32 %r{0}, %r9, {1}, 77; and.b32 %r{0}, %r{0}, 0x003f003f; or.b32 %r{0}, %r{0}, 0x3c383c38;\n", i,
        40503 * i);
  return fmt::format(R"(.version 8.5
.target sm_90a
.address_size 64
.visible .entry products() {{
.reg .f32 %f<32>; .reg .pred %p<2>; .reg .b32 %r<10>;
mov.u32 %r9, %tid.x; mov.u32 %r8, 0;
{}next:
{}add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, {}; @%p1 bra next; ret; }}
)",
                     fill, products, kMmaRounds);
}
void mma(benchmark::State& state, const std::string& type, int k) {
  Device device;
  const LoadedModule& module = device.load(parse_module(mma_kernel(type, k), "products.ptx"));
  LaunchConfig config;
  config.kernel = "products";
  config.block = {32, 1, 1};
  std::int64_t rounds = 0;
  for (auto _ : state) {
    const LaunchResult result = device.launch(module, config);
    if (!result.reports.empty()) return state.SkipWithError(result.reports.front().message.c_str());
    rounds += kMmaRounds;
  }
  state.SetItemsProcessed(rounds * 8 * 16 * 8 * k);  // multiply-adds
}
BENCHMARK_CAPTURE(mma, f16, "f16", 16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mma, bf16, "bf16", 16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mma, tf32, "tf32", 8)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(mma, e4m3, "e4m3", 32)->Unit(benchmark::kMillisecond);

}  // namespace
