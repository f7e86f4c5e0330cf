// The limits of the machine's core that other benchmarks are compared with: memory read bandwidth, the rate of fused
// multiply-adds in double, and a matrix product as a program of its own would compute it.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/bench/large_pages.h"

namespace kvscope::floor_bench {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 28;  // as many as the f32 cache of attention_bench.cpp
constexpr int kSums = 8;                                  // independent vectors: the latency of an addition is hidden
constexpr int kChains = 16;                               // independent chains: two units of a latency of 4 need eight

// The machine's widest instructions, chosen at run time. Vectors are written out: the compiler contracts nothing here.
#if defined(__x86_64__)
typedef long long Wide __attribute__((vector_size(64)));
typedef double Lanes __attribute__((vector_size(64)));
typedef double HalfLanes __attribute__((vector_size(32)));

__attribute__((target("avx512f"))) std::int64_t read_wide(const std::byte* data) {
  Wide sum[kSums] = {};
  for (std::size_t at = 0; at < kReadBytes; at += sizeof sum) {
    for (int i = 0; i < kSums; ++i) {
      Wide x;
      std::memcpy(&x, data + at + static_cast<std::size_t>(i) * sizeof x, sizeof x);
      sum[i] += x;
    }
  }
  for (int i = 1; i < kSums; ++i) sum[0] += sum[i];
  return sum[0][0];
}

// Returns the multiply-adds of one call.
__attribute__((target("avx512f"), optimize("fp-contract=fast"))) std::int64_t fma_wide(double seed) {
  constexpr std::int64_t kRounds = 1 << 16;
  Lanes sum[kChains];
  for (Lanes& x : sum) x = Lanes{} + seed;
  const Lanes factor = Lanes{} + (1 - 0x1p-30);
  const Lanes step = Lanes{} + 0x1p-30;
  for (std::int64_t i = 0; i < kRounds; ++i) {
    for (Lanes& x : sum) x = x * factor + step;
  }
  for (int i = 1; i < kChains; ++i) sum[0] += sum[i];
  double first = sum[0][0];  // clang binds no reference to an element of a vector
  benchmark::DoNotOptimize(first);
  return kRounds * kChains * 8;
}

__attribute__((target("avx2,fma"), optimize("fp-contract=fast"))) std::int64_t fma_half(double seed) {
  constexpr std::int64_t kRounds = 1 << 16;
  HalfLanes sum[kChains / 2 + 2];
  for (HalfLanes& x : sum) x = HalfLanes{} + seed;
  const HalfLanes factor = HalfLanes{} + (1 - 0x1p-30);
  const HalfLanes step = HalfLanes{} + 0x1p-30;
  for (std::int64_t i = 0; i < kRounds; ++i) {
    for (HalfLanes& x : sum) x = x * factor + step;
  }
  for (int i = 1; i < kChains / 2 + 2; ++i) sum[0] += sum[i];
  double first = sum[0][0];
  benchmark::DoNotOptimize(first);
  return kRounds * (kChains / 2 + 2) * 4;
}
#endif

#if defined(__x86_64__)
typedef float FloatLanes __attribute__((vector_size(64)));
typedef float HalfFloatLanes __attribute__((vector_size(32)));

// D += A B, kRows x kColumns, over kSteps of k, bf16 and f32: both factors are decoded, and each element of D adds its products in
// ascending k. Four rows and `kWidth` vectors of D are in registers.
constexpr int kRows = 64, kColumns = 128, kSteps = 16;
template <class Vector, int kWidth>
[[gnu::always_inline]] inline void add_product(const std::uint16_t* a, const std::uint16_t* b, float* d) {
  constexpr int kLength = sizeof(Vector) / sizeof(float);
  alignas(64) float of_a[kRows * kSteps], of_b[kSteps * kColumns];
  const auto decode = [](const std::uint16_t* from, int count, float* to) {
    for (int i = 0; i < count; ++i) {
      const std::uint32_t bits = std::uint32_t{from[i]} << 16;
      std::memcpy(to + i, &bits, sizeof bits);
    }
  };
  decode(a, kRows * kSteps, of_a);
  decode(b, kSteps * kColumns, of_b);
  for (int j = 0; j < kColumns; j += kWidth * kLength) {
    for (int i = 0; i < kRows; i += 4) {
      Vector sum[4][kWidth];
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) std::memcpy(sum[r], d + (i + r) * kColumns + j, sizeof sum[r]);
      for (int k = 0; k < kSteps; ++k) {
        Vector row[kWidth];
        std::memcpy(row, of_b + k * kColumns + j, sizeof row);
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) {
#pragma GCC unroll 4
          for (int v = 0; v < kWidth; ++v) sum[r][v] = sum[r][v] + of_a[(i + r) * kSteps + k] * row[v];
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) std::memcpy(d + (i + r) * kColumns + j, sum[r], sizeof sum[r]);
    }
  }
}
__attribute__((target("avx512f"), optimize("fp-contract=fast"))) void add_product_wide(const std::uint16_t* a,
                                                                                       const std::uint16_t* b,
                                                                                       float* d) {
  add_product<FloatLanes, 4>(a, b, d);
}
__attribute__((target("avx2,fma"), optimize("fp-contract=fast"))) void add_product_half(const std::uint16_t* a,
                                                                                        const std::uint16_t* b,
                                                                                        float* d) {
  add_product<HalfFloatLanes, 2>(a, b, d);
}
#endif

std::int64_t read_words(const std::byte* data) {
  std::int64_t sum = 0;
  for (std::size_t at = 0; at < kReadBytes; at += sizeof sum) {
    std::int64_t x = 0;
    std::memcpy(&x, data + at, sizeof x);
    sum += x;
  }
  return sum;
}

void FloorMemoryRead(benchmark::State& state) {
  std::vector<std::byte> data = zero_bytes(kReadBytes);
  std::ranges::fill(data, std::byte{1});
  auto* read = &read_words;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) read = &read_wide;
#endif
  for (auto _ : state) benchmark::DoNotOptimize(read(data.data()));
  state.SetBytesProcessed(static_cast<std::int64_t>(kReadBytes) * static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(FloorMemoryRead)->Unit(benchmark::kMillisecond);

#if defined(__x86_64__)
// items: multiply-adds.
void FloorFmaDouble(benchmark::State& state) {
  if (__builtin_cpu_supports("fma") == 0) {
    state.SkipWithError("this processor has no fused multiply-add");
    return;
  }
  auto* run = __builtin_cpu_supports("avx512f") != 0 ? &fma_wide : &fma_half;
  std::int64_t items = 0;
  double seed = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(seed);
    items += run(seed);
  }
  state.SetItemsProcessed(items);
}
BENCHMARK(FloorFmaDouble)->Unit(benchmark::kMillisecond);

// 64 x 128 x 16 in bf16, the product of one wgmma. items: multiply-adds.
void FloorMatrixProduct(benchmark::State& state) {
  if (__builtin_cpu_supports("fma") == 0) {
    state.SkipWithError("this processor has no fused multiply-add");
    return;
  }
  auto* add = __builtin_cpu_supports("avx512f") != 0 ? &add_product_wide : &add_product_half;
  std::vector<std::uint16_t> a(kRows * kSteps), b(kSteps * kColumns);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint16_t>(0x3f00 + i % 61);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::uint16_t>((i % 2 == 0 ? 0xbe00 : 0x3e00) + i % 67);
  std::vector<float> d(kRows * kColumns);
  for (auto _ : state) {
    add(a.data(), b.data(), d.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(std::int64_t{kRows} * kColumns * kSteps * state.iterations());
}
BENCHMARK(FloorMatrixProduct)->Unit(benchmark::kMicrosecond);
#endif

}  // namespace
}  // namespace kvscope::floor_bench
