// ptx_random_kernels <file.ptx> <expected.bin> <kernels> <threads> <words>: runs kernels k0 .. of the PTX and compares
// their outputs with the expected bytes: the common input, then one output per kernel, [threads][words] of 32 bits
// each.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"

namespace {

using namespace kvscope::ptx;

std::string whole_file(const char* path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

int compare(char** argv) {
  Device device;
  const LoadedModule& module = device.load(parse_module(whole_file(argv[1]), "random.ptx"));
  const std::string expected = whole_file(argv[2]);
  const int kernels = std::stoi(argv[3]), threads = std::stoi(argv[4]), words = std::stoi(argv[5]);
  const std::size_t bytes = static_cast<std::size_t>(threads) * static_cast<std::size_t>(words) * 4;
  if (expected.size() != bytes * (static_cast<std::size_t>(kernels) + 1)) {
    std::puts("the expected bytes are not one input and one output a kernel");
    return 2;
  }
  const std::uint64_t in = device.memory().allocate(static_cast<std::int64_t>(bytes), "in");
  device.memory().write(in, std::as_bytes(std::span(expected.data(), bytes)));

  int faults = 0;
  std::uint64_t steps = 0;
  for (int kernel = 0; kernel < kernels; ++kernel) {
    const std::string name = "k" + std::to_string(kernel);
    for (const std::uint64_t seed : {0, 1, 2}) {
      const std::uint64_t out = device.memory().allocate(static_cast<std::int64_t>(bytes), name);
      LaunchConfig config;
      config.kernel = name;
      config.block = {threads, 1, 1};
      config.params = pack_params(module, name, {out, in});
      config.options.policy = seed == 0 ? Policy::late : Policy::seeded;
      config.options.seed = seed;
      const LaunchResult result = device.launch(module, config);
      steps += result.steps;
      const std::vector<std::byte> got = device.memory().read(out, static_cast<std::int64_t>(bytes));
      device.memory().free(out);
      const char* want = expected.data() + bytes * (static_cast<std::size_t>(kernel) + 1);
      if (result.clean() && std::memcmp(got.data(), want, bytes) == 0) continue;
      ++faults;
      std::printf("%s, seed %d: %s\n", name.c_str(), static_cast<int>(seed),
                  result.clean() ? "other bits than the host's" : to_text(result.reports.at(0)).c_str());
      for (std::size_t i = 0, shown = 0; i < bytes / 4 && shown < 4; ++i) {
        std::uint32_t mine = 0, theirs = 0;
        std::memcpy(&mine, got.data() + 4 * i, 4);
        std::memcpy(&theirs, want + 4 * i, 4);
        if (mine == theirs) continue;
        ++shown;
        std::printf("  thread %d word %d: %08x, expected %08x\n", static_cast<int>(i) / words,
                    static_cast<int>(i) % words, mine, theirs);
      }
    }
  }
  std::printf("%d kernels, 3 schedules, %llu warp instructions, %d differ\n", kernels,
              static_cast<unsigned long long>(steps), faults);
  return faults == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    return compare(argv);
  } catch (const std::exception& error) {
    std::puts(error.what());
    return 2;
  }
}
