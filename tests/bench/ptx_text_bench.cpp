// PTX text to a module. The targets are 1 M instructions/s and 30 MB/s on one core: library modules have a few
// megabytes.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gpu/virtual/text/parser.h"
#include "gpu/virtual/text/print.h"

namespace kvscope {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(KVSCOPE_SOURCE_DIR) / "tests" / "gpu" / "virtual" / "text" / "data";

std::string replaced(std::string_view text, std::string_view what, const std::string& with) {
  std::string result;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what)) {
    result.append(text.substr(0, at)).append(with);
    text.remove_prefix(at + what.size());
  }
  return result.append(text);
}

// A file of nvcc in which the kernel `name` is repeated, under a new name each time, until it has `bytes`.
std::string repeated(const std::string& file, const std::string& name, std::size_t bytes) {
  std::ifstream in(kData / file);
  std::stringstream whole;
  whole << in.rdbuf();
  const std::string text = whole.str();
  const std::size_t begin = text.find(".visible .entry " + name + "(");
  const std::size_t end = text.find("\n}\n", begin);
  if (begin == std::string::npos || end == std::string::npos) throw std::runtime_error(file + " has no kernel " + name);
  const std::string_view kernel = std::string_view(text).substr(begin, end + 3 - begin);
  std::string result = text.substr(0, begin);
  for (int i = 0; result.size() < bytes; ++i) result += replaced(kernel, name, name + "_" + std::to_string(i));
  return result + text.substr(end + 3);
}

std::size_t instructions(const ptx::Module& module) {
  std::size_t n = 0;
  for (const ptx::Function& f : module.functions) n += f.body.size();
  return n;
}

void parse(benchmark::State& state, const std::string& text) {
  std::size_t statements = 0;
  for ([[maybe_unused]] auto _ : state) {
    const ptx::Module module = ptx::parse_module(text, "bench.ptx");
    statements = instructions(module);
    benchmark::DoNotOptimize(statements);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(statements));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

void ParsePtx(benchmark::State& state) {
  parse(state, repeated("calls.sm_90.ptx", "_Z5calls4PairPii", 1 << 20));
}
BENCHMARK(ParsePtx)->Unit(benchmark::kMillisecond);

// Every second line is a .loc, often three lines for one source position.
void ParsePtxWithLineInfo(benchmark::State& state) {
  parse(state, repeated("inlining.sm_90a.ptx", "_Z8inliningPKfPfj", 1 << 20));
}
BENCHMARK(ParsePtxWithLineInfo)->Unit(benchmark::kMillisecond);

void PrintPtx(benchmark::State& state) {
  const ptx::Module module = ptx::parse_module(repeated("calls.sm_90.ptx", "_Z5calls4PairPii", 1 << 20), "bench.ptx");
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(ptx::to_ptx(module));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(instructions(module)));
}
BENCHMARK(PrintPtx)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvscope
