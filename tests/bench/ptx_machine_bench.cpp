// The speed of the virtual GPU in warp instructions per second: an arithmetic loop with a divergent branch, and calls.
#include <benchmark/benchmark.h>

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

}  // namespace
