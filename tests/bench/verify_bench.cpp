// The comparison of a candidate with a golden: [4096, 32, 128] elements, the output of 4,096 queries of 32 heads.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/result.h"
#include "core/base/convert.h"
#include "core/base/random.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/verdict/compare.h"

namespace kvscope::golden {
namespace {

constexpr std::int64_t kQueries = 4096, kHeads = 32, kDims = 128;

Tensor filled_by(std::vector<std::int64_t> shape, const auto& value_at) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) values.push_back(value_at(i));
  return tensor_of<double>(std::move(shape), std::span<const double>(values));
}

// Sixteen sequences of 256 queries that see 4,096 keys each. The values are those of normal data.
Bundle golden_of_sixteen() {
  const CounterRng rng(4, 1);
  const std::vector<std::int64_t> elements = {kQueries, kHeads, kDims}, rows = {kQueries, kHeads};
  Bundle golden;
  golden.tensors.emplace("o", filled_by(elements, [&](std::uint64_t i) { return rng.bell(i) / 64; }));
  golden.tensors.emplace("a1", filled_by(elements, [&](std::uint64_t i) { return 0.8 + rng.bell(i) / 100; }));
  golden.tensors.emplace("a2", filled_by(elements, [](std::uint64_t) { return 1.0 / 40; }));
  golden.tensors.emplace("running", filled_by(elements, [](std::uint64_t) { return 1.0 / 80; }));
  golden.tensors.emplace("lse", filled_by(rows, [&](std::uint64_t i) { return 8.5 + rng.bell(i) / 10; }));
  golden.tensors.emplace("smax", filled_by(rows, [](std::uint64_t) { return 3.5; }));
  golden.tensors.emplace("key_counts", filled_by(rows, [](std::uint64_t) { return 4096.0; }));
  golden.tensors.emplace("p2", filled_by(rows, [](std::uint64_t) { return 1.0 / 40; }));
  golden.tensors.emplace("repeats", filled_by(rows, [](std::uint64_t) { return 0.0; }));
  golden.tensors.emplace("clump", filled_by({kQueries, kHeads, static_cast<std::int64_t>(attention::kClumpTypes)},
                                            [](std::uint64_t) { return 0.02; }));
  golden.tensors.emplace("faint", filled_by({kQueries, kHeads, static_cast<std::int64_t>(attention::kFaintTerms)},
                                            [](std::uint64_t) { return 0.001; }));
  std::vector<std::int64_t> offsets, lengths(16, 4096);
  for (std::int64_t b = 0; b <= 16; ++b) offsets.push_back(b * 256);
  golden.tensors.emplace("query_offsets", tensor_of<std::int64_t>({17}, std::span<const std::int64_t>(offsets)));
  golden.tensors.emplace("key_lengths", tensor_of<std::int64_t>({16}, std::span<const std::int64_t>(lengths)));
  return golden;
}

// `error` is added to each element of o before it is rounded, times a normal number: 0 for a candidate that is the
// rounded golden, the fastest case because most terms of the tests on rows are 0.
void VerifyB16Q256H32D128(benchmark::State& state, DType dtype, double error, bool passes) {
  static const Bundle golden = golden_of_sixteen();
  const CounterRng rng(5, 1);
  Bundle candidate;
  for (const char* name : {"o", "lse"}) {
    const Tensor& want = golden.tensors.at(name);
    Tensor have{std::string(name) == "o" ? dtype : DType::f32, want.shape, {}};
    const auto values_of = values<double>(want);
    have.bytes.resize(values_of.size() * static_cast<std::size_t>(size_of(have.dtype)));
    for (std::size_t i = 0; i < values_of.size(); ++i) {
      const double value = values_of[i] + (std::string(name) == "o" && error != 0 ? error * rng.bell(i) : 0);
      store_from_double(have.dtype, value, have.bytes.data() + i * static_cast<std::size_t>(size_of(have.dtype)),
                        Overflow::non_saturating);
    }
    candidate.tensors.emplace(name, std::move(have));
  }
  for (auto _ : state) {
    const CompareResult result = compare(golden, candidate);
    if (result.passed != passes) state.SkipWithError(passes ? "the candidate failed" : "the candidate passed");
  }
}
BENCHMARK_CAPTURE(VerifyB16Q256H32D128, f32, DType::f32, 0, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(VerifyB16Q256H32D128, bf16, DType::bf16, 0, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(VerifyB16Q256H32D128, f32_with_errors, DType::f32, 0x1p-26, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(VerifyB16Q256H32D128, bf16_failing, DType::bf16, 0x1p-6, false)->Unit(benchmark::kMillisecond);

// The same golden from a file that the system holds in memory, with its checksums. bytes: of the file.
void LoadGoldenB16Q256H32D128(benchmark::State& state) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "kvscope_bench_golden.safetensors";
  {
    Bundle golden = golden_of_sixteen();
    golden.manifest = json::Value(json::Object{});
    save_bundle(path, golden);
  }
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  for (auto _ : state) benchmark::DoNotOptimize(load_bundle(path));
  state.SetBytesProcessed(state.iterations() * bytes);
  std::filesystem::remove(path);
}
BENCHMARK(LoadGoldenB16Q256H32D128)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvscope::golden
