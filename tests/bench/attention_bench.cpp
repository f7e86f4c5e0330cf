// The strict reference, including a1, a2 and smax, on the same decode step that numpy_attention.py measures.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/attention/fast.h"
#include "core/attention/reference.h"
#include "core/base/convert.h"
#include "core/base/random.h"
#include "tests/bench/large_pages.h"

namespace kvscope::attention {
namespace {

constexpr std::int64_t kHeadSize = 128, kPage = 16;

// Every block of a pool [block, kPage, heads, kHeadSize], each in one place of the table; `pages` of a sequence.
PagedRows paged_rows(const std::byte* data, DType dtype, std::int64_t heads, const std::vector<std::uint32_t>& table,
                     std::int64_t pages) {
  PagedRows rows;
  rows.data = data;
  rows.dtype = dtype;
  rows.blocks = static_cast<std::int64_t>(table.size());
  rows.page_size = kPage;
  rows.heads = heads;
  rows.head_size = kHeadSize;
  rows.block_stride = kPage * heads * kHeadSize;
  rows.token_stride = heads * kHeadSize;
  rows.head_stride = kHeadSize;
  rows.table = table.data();
  rows.table_stride = pages;
  return rows;
}

// Batch 8, 32 query and 8 KV heads, head size 128, 4096 tokens, pages of 16 tokens in blocks in random order.
class Decode {
 public:
  explicit Decode(DType dtype) : k_(pool(dtype, 1)), v_(pool(dtype, 2)), table_(kBatch * kPages) {
    for (std::size_t i = 0; i < table_.size(); ++i) table_[i] = static_cast<std::uint32_t>(i * 997 % table_.size());
    const CounterRng rng(1, 3);
    for (std::uint64_t i = 0; i < kBatch * kQueryHeads * kHeadSize; ++i) q_.push_back(static_cast<float>(rng.bell(i)));
    for (std::int64_t b = 0; b <= kBatch; ++b) offsets_.push_back(b);
    lengths_.assign(kBatch, kTokens);
    problem_.batch = kBatch;
    problem_.query_heads = kQueryHeads;
    problem_.q = reinterpret_cast<const std::byte*>(q_.data());
    problem_.query_offsets = offsets_;
    problem_.key_lengths = lengths_;
    problem_.k = paged_rows(k_.data(), dtype, kKvHeads, table_, kPages);
    problem_.v = paged_rows(v_.data(), dtype, kKvHeads, table_, kPages);
    problem_.options.scale = 1 / std::sqrt(static_cast<double>(kHeadSize));
  }
  Decode(const Decode&) = delete;

  // Created once per type, by the first benchmark that needs it.
  static const Problem& problem(DType dtype) {
    static std::map<DType, std::unique_ptr<Decode>> made;
    std::unique_ptr<Decode>& one = made[dtype];
    if (one == nullptr) one = std::make_unique<Decode>(dtype);
    return one->problem_;
  }
  static std::int64_t cache_bytes(DType dtype) { return 2 * kBatch * kTokens * kKvHeads * kHeadSize * size_of(dtype); }

 private:
  static constexpr std::int64_t kBatch = 8, kQueryHeads = 32, kKvHeads = 8, kTokens = 4096;
  static constexpr std::int64_t kPages = kTokens / kPage;

  static std::vector<std::byte> pool(DType dtype, std::uint64_t stream) {
    // The random numbers repeat after a million, to save time, but not at the same place of a row: rows are not equal,
    // because the reference joins keys with equal weights.
    constexpr std::int64_t kDrawn = (1 << 20) - 37;
    const std::int64_t size = size_of(dtype);
    const CounterRng rng(1, stream);
    std::vector<std::byte> bytes = zero_bytes(static_cast<std::size_t>(kBatch * kTokens * kKvHeads * kHeadSize * size));
    const auto drawn = static_cast<std::size_t>(kDrawn * size);
    for (std::int64_t i = 0; i < kDrawn; ++i) {
      store_from_double(dtype, rng.bell(static_cast<std::uint64_t>(i)), bytes.data() + i * size, Overflow::saturate);
    }
    for (std::size_t at = drawn; at < bytes.size(); ++at) bytes[at] = bytes[at - drawn];
    return bytes;
  }

  std::vector<std::byte> k_, v_;
  std::vector<std::uint32_t> table_;
  std::vector<float> q_;
  std::vector<std::int64_t> offsets_, lengths_;
  Problem problem_;
};

void GoldenDecodeB8H32K8D128T4096P16(benchmark::State& state, DType dtype) {
  const Problem& problem = Decode::problem(dtype);
  for (auto _ : state) benchmark::DoNotOptimize(reference(problem));
}
BENCHMARK_CAPTURE(GoldenDecodeB8H32K8D128T4096P16, f32, DType::f32)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GoldenDecodeB8H32K8D128T4096P16, bf16, DType::bf16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GoldenDecodeB8H32K8D128T4096P16, e4m3, DType::e4m3)->Unit(benchmark::kMillisecond);

// The same decode step by the fast path. bytes: of K and V, each read once.
void GoldenFastB8H32K8D128T4096P16(benchmark::State& state, DType dtype) {
  const Problem& problem = Decode::problem(dtype);
  for (auto _ : state) benchmark::DoNotOptimize(fast_reference(problem));
  state.SetBytesProcessed(state.iterations() * Decode::cache_bytes(dtype));
}
BENCHMARK_CAPTURE(GoldenFastB8H32K8D128T4096P16, f32, DType::f32)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GoldenFastB8H32K8D128T4096P16, bf16, DType::bf16)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GoldenFastB8H32K8D128T4096P16, e4m3, DType::e4m3)->Unit(benchmark::kMillisecond);

// o and lse alone, which is what numpy computes. bytes: of K and V, each read once.
void GoldenOutputB8H32K8D128T4096P16(benchmark::State& state, DType dtype, bool fast) {
  const Problem& problem = Decode::problem(dtype);
  for (auto _ : state) benchmark::DoNotOptimize(fast ? fast_output(problem) : reference_output(problem));
  state.SetBytesProcessed(state.iterations() * Decode::cache_bytes(dtype));
}
BENCHMARK_CAPTURE(GoldenOutputB8H32K8D128T4096P16, strict_f32, DType::f32, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GoldenOutputB8H32K8D128T4096P16, strict_bf16, DType::bf16, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GoldenOutputB8H32K8D128T4096P16, fast_f32, DType::f32, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GoldenOutputB8H32K8D128T4096P16, fast_bf16, DType::bf16, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GoldenOutputB8H32K8D128T4096P16, fast_e4m3, DType::e4m3, true)->Unit(benchmark::kMillisecond);

// The same decode step of sequences that repeat 128 tokens: keys with equal weights are joined (equal_weights.h).
void GoldenRepeatedB8H32K8D128T4096P16(benchmark::State& state, bool fast) {
  const Problem& problem = Decode::problem(DType::bf16);
  std::vector<std::uint32_t> table(static_cast<std::size_t>(problem.batch * problem.k.table_stride));
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint32_t>(i % 8);
  Problem repeated = problem;
  repeated.k.table = repeated.v.table = table.data();
  for (auto _ : state) benchmark::DoNotOptimize(fast ? fast_reference(repeated) : reference(repeated));
}
BENCHMARK_CAPTURE(GoldenRepeatedB8H32K8D128T4096P16, strict, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GoldenRepeatedB8H32K8D128T4096P16, fast, true)->Unit(benchmark::kMillisecond);

// A prompt of 2,048 tokens without a mask, 8 query heads on 2 KV heads: 2 * 2048 * 2048 * 8 * (128 + 128) operations
// for the scores and for o alone.
class Prefill {
 public:
  Prefill() : q_(draw(kTokens * kQueryHeads, 3)), k_(draw(kTokens * kKvHeads, 1)), v_(draw(kTokens * kKvHeads, 2)) {
    for (std::size_t i = 0; i < kPages; ++i) table_.push_back(static_cast<std::uint32_t>(i * 37 % kPages));
    problem_.batch = 1;
    problem_.query_heads = kQueryHeads;
    problem_.q = reinterpret_cast<const std::byte*>(q_.data());
    problem_.query_offsets = offsets_;
    problem_.key_lengths = lengths_;
    problem_.k = paged_rows(reinterpret_cast<const std::byte*>(k_.data()), DType::f32, kKvHeads, table_, kPages);
    problem_.v = paged_rows(reinterpret_cast<const std::byte*>(v_.data()), DType::f32, kKvHeads, table_, kPages);
    problem_.options.scale = 1 / std::sqrt(static_cast<double>(kHeadSize));
    problem_.options.mask = MaskKind::none;
  }
  Prefill(const Prefill&) = delete;
  [[nodiscard]] const Problem& problem() const { return problem_; }
  static constexpr std::int64_t kTokens = 2048, kQueryHeads = 8, kKvHeads = 2;
  static constexpr std::int64_t kPages = kTokens / kPage;

 private:
  static std::vector<float> draw(std::int64_t rows, std::uint64_t stream) {
    const CounterRng rng(2, stream);
    std::vector<float> values;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(rows * kHeadSize); ++i) {
      values.push_back(static_cast<float>(rng.bell(i)));
    }
    return values;
  }
  std::vector<float> q_, k_, v_;
  std::vector<std::uint32_t> table_;
  std::vector<std::int64_t> offsets_{0, kTokens}, lengths_{kTokens};
  Problem problem_;
};

// items: multiply-adds of the scores and of o. Both paths make more, for the terms of the bound: 4 for 2.
template <class F>
void run_prefill(benchmark::State& state, const F& run) {
  const Prefill prefill;
  for (auto _ : state) benchmark::DoNotOptimize(run(prefill.problem()));
  state.SetItemsProcessed(state.iterations() * Prefill::kTokens * Prefill::kTokens * Prefill::kQueryHeads * 2 *
                          kHeadSize);
}
void GoldenPrefill2048(benchmark::State& state) {
  run_prefill(state, [](const Problem& problem) { return reference(problem); });
}
void GoldenFastPrefill2048(benchmark::State& state) {
  run_prefill(state, [](const Problem& problem) { return fast_reference(problem); });
}
// o and lse alone: 2 multiply-adds for 2.
void GoldenOutputPrefill2048(benchmark::State& state, bool fast) {
  run_prefill(state, [&](const Problem& problem) { return fast ? fast_output(problem) : reference_output(problem); });
}
BENCHMARK(GoldenPrefill2048)->Unit(benchmark::kMillisecond);
BENCHMARK(GoldenFastPrefill2048)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GoldenOutputPrefill2048, strict, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GoldenOutputPrefill2048, fast, true)->Unit(benchmark::kMillisecond);

// One benchmark per instruction set: the ratio is the cost of a machine without AVX-512.
void GoldenDecodeWith(benchmark::State& state, InstructionSet set) {
  const auto sets = available_instruction_sets();
  if (std::find(sets.begin(), sets.end(), set) == sets.end()) {
    state.SkipWithError("not on this machine");
    return;
  }
  const Problem& problem = Decode::problem(DType::f32);
  for (auto _ : state) benchmark::DoNotOptimize(reference(problem, set));
}
BENCHMARK_CAPTURE(GoldenDecodeWith, baseline, InstructionSet::baseline)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(GoldenDecodeWith, avx2, InstructionSet::avx2)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvscope::attention
