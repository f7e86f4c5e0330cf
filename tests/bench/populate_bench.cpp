// Rows per second of PagedKVCache::populate, as a scheduler calls it for each tile of a long context. Tables of 131072
// tokens; every tile is visited in order. "rows" counts entries, one for each sub-tile of a page.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "core/cache/paged_kv_cache.h"

namespace kvscope {
namespace {

// One sequence of `tokens` tokens with pages in random blocks.
struct Sequence {
  std::int64_t page;
  std::int64_t columns;
  std::vector<std::uint32_t> table, lengths{0};
  float element = 0;

  Sequence(std::int64_t page_size, std::int64_t tokens) : page(page_size), columns(tokens / page_size) {
    table.resize(static_cast<std::size_t>(columns));
    std::uint64_t state = 1;
    for (std::uint32_t& entry : table) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      entry = static_cast<std::uint32_t>(state >> 40);
    }
  }
  // No element of the pool is read: rows depend on the table only.
  [[nodiscard]] PagedKVCache cache() {
    return {{.dtype = DType::f32, .kv_params = {1, 1}, .page_size = page},
            {.blocks = {reinterpret_cast<std::byte*>(&element), DType::f32, {1, page, 1, 1}, {4 * page, 1, 1, 1}},
             .cache_lengths = {lengths.data(), {1}},
             .lookup_table = {table.data(), {1, columns}}}};
  }
};

void populate(benchmark::State& state, std::int64_t page, std::int64_t BN, std::int64_t base_alignment) {
  constexpr std::int64_t kTokens = 1 << 17;
  Sequence sequence(page, kTokens);
  const PagedKVCache cache = sequence.cache();
  const PopulateTile tile{.BN = BN, .base_alignment = base_alignment};
  std::int64_t base = 0;
  for (auto _ : state) {
    const PagedRowIndices rows = cache.populate(tile, SeqIdx{0}, TokIdx{base});
    benchmark::DoNotOptimize(rows.rows().data());
    benchmark::ClobberMemory();
    base = (base + BN) & (kTokens - 1);
  }
  const double rows = static_cast<double>(state.iterations()) * static_cast<double>(BN / (page < BN ? page : BN));
  state.counters["rows"] = benchmark::Counter(rows, benchmark::Counter::kIsRate);
}

void PopulateP16BN64(benchmark::State& state) {
  populate(state, 16, 64, 64);
}
void PopulateP16BN256(benchmark::State& state) {
  populate(state, 16, 256, 256);
}
void PopulateP16BN64Align16(benchmark::State& state) {
  populate(state, 16, 64, 16);
}
void PopulateP1BN64(benchmark::State& state) {
  populate(state, 1, 64, 64);
}
void PopulateP1BN256(benchmark::State& state) {
  populate(state, 1, 256, 256);
}
void PopulateP128BN64(benchmark::State& state) {
  populate(state, 128, 64, 64);
}
BENCHMARK(PopulateP16BN64);
BENCHMARK(PopulateP16BN256);
BENCHMARK(PopulateP16BN64Align16);
BENCHMARK(PopulateP1BN64);
BENCHMARK(PopulateP1BN256);
BENCHMARK(PopulateP128BN64);

}  // namespace
}  // namespace kvscope
