// Box copies against memcpy of the same rows, one by one, in one run: contiguous rows of 128 B in the machine's caches,
// where the overhead of the copy engine is most visible. The bounds in docs/BENCHMARKS.md are half of memcpy's speed
// without a swizzle and a quarter of it with one.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/staging/tma/kv_arrival.h"
#include "core/staging/tma/kv_copy.h"
#include "core/tma/arrival_barrier.h"
#include "core/tma/box_copy.h"
#include "core/tma/gather4.h"
#include "core/tma/tile_map.h"
#include "core/tma/tile_sizes.h"

namespace kvscope {
namespace {

constexpr std::int64_t kTensorRows = 4096;
constexpr std::int64_t kRowBytes = 128;

// bf16 {64, 4096}: contiguous rows of 128 B.
struct Rows {
  std::vector<std::byte> bytes = std::vector<std::byte>(kTensorRows * kRowBytes, std::byte{0x3C});
  GlobalMemory memory;
  TensorMap map;

  Rows(TmaSwizzle swizzle, std::uint32_t columns, std::uint32_t rows) {
    memory.add("rows", bytes);
    map.data_type = TmaDataType::bf16;
    map.rank = 2;
    map.base = reinterpret_cast<std::uintptr_t>(bytes.data());
    map.dims = {64, kTensorRows};
    map.strides = {kRowBytes};
    map.box = {columns, rows};
    map.swizzle = swizzle;
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
};

void count_bytes(benchmark::State& state, std::int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
}

// --- baseline --------------------------------------------------------------------------------------------------------

// Both ways to copy rows of `row_bytes`: for a size known at compile time memcpy is a few inline moves; for other sizes
// it is a call that uses the machine's widest moves. Which one is faster depends on the alignment of the two buffers,
// so they are allocated here as for boxes.
template <class CopyRow>
void memcpy_rows(benchmark::State& state, std::int64_t row_bytes, const CopyRow& copy_row) {
  const Rows source(TmaSwizzle::none, 64, 256);
  SharedImage image(state.range(0) * row_bytes);
  std::byte* const tile = image.overwrite(0, image.size(), CopyIdx{7}).data();
  std::int64_t pitch = kRowBytes;
  benchmark::DoNotOptimize(pitch);
  for ([[maybe_unused]] auto _ : state) {
    for (std::int64_t row = 0; row < state.range(0); ++row) {
      copy_row(tile + row * row_bytes, source.bytes.data() + (64 + row) * pitch);
    }
    benchmark::ClobberMemory();
  }
  count_bytes(state, state.range(0) * row_bytes);
}

template <std::size_t kBytes>
void memcpy_in_place(benchmark::State& state) {
  memcpy_rows(state, kBytes, [](std::byte* to, const std::byte* from) { std::memcpy(to, from, kBytes); });
}

void memcpy_called(benchmark::State& state, std::int64_t row_bytes) {
  auto count = static_cast<std::size_t>(row_bytes);
  benchmark::DoNotOptimize(count);
  memcpy_rows(state, row_bytes, [=](std::byte* to, const std::byte* from) { std::memcpy(to, from, count); });
}

void MemcpyRows128B(benchmark::State& state) {
  memcpy_called(state, 128);
}
BENCHMARK(MemcpyRows128B)->Arg(64)->Arg(256);

void MemcpyRows128BInPlace(benchmark::State& state) {
  memcpy_in_place<128>(state);
}
BENCHMARK(MemcpyRows128BInPlace)->Arg(64)->Arg(256);

void MemcpyRows64B(benchmark::State& state) {
  memcpy_called(state, 64);
}
BENCHMARK(MemcpyRows64B)->Arg(256);

void MemcpyRows64BInPlace(benchmark::State& state) {
  memcpy_in_place<64>(state);
}
BENCHMARK(MemcpyRows64BInPlace)->Arg(256);

// --- boxes -----------------------------------------------------------------------------------------------------------

void load(benchmark::State& state, TmaSwizzle swizzle, std::uint32_t columns, std::int32_t first_row) {
  const auto rows = static_cast<std::uint32_t>(state.range(0));
  const Rows source(swizzle, columns, rows);
  SharedImage image(box_shape(source.map).window_bytes);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(load_box(source.map, {0, first_row}, source.memory, image, 0, CopyIdx{7}));
    benchmark::ClobberMemory();
  }
  count_bytes(state, box_shape(source.map).tx_bytes);
}

void LoadBox(benchmark::State& state) {
  load(state, TmaSwizzle::none, 64, 64);
}
BENCHMARK(LoadBox)->Arg(64)->Arg(256);

void LoadBoxSwizzle128B(benchmark::State& state) {
  load(state, TmaSwizzle::b128, 64, 64);
}
BENCHMARK(LoadBoxSwizzle128B)->Arg(64)->Arg(256);

void LoadBoxSwizzle64B(benchmark::State& state) {
  load(state, TmaSwizzle::b64, 32, 64);
}
BENCHMARK(LoadBoxSwizzle64B)->Arg(256);

// 100 rows past the tensor's last row, which are filled.
void LoadBoxFilledEdge(benchmark::State& state) {
  load(state, TmaSwizzle::b128, 64, static_cast<std::int32_t>(kTensorRows - state.range(0) + 100));
}
BENCHMARK(LoadBoxFilledEdge)->Arg(256);

void store(benchmark::State& state, TmaSwizzle swizzle) {
  Rows target(swizzle, 64, 256);
  SharedImage image(box_shape(target.map).window_bytes);
  load_box(target.map, {0, 64}, target.memory, image, 0, CopyIdx{7});
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(store_box(target.map, {0, 64}, target.memory, image, 0));
    benchmark::ClobberMemory();
  }
  count_bytes(state, box_shape(target.map).tx_bytes);
}

void StoreBox(benchmark::State& state) {
  store(state, TmaSwizzle::none);
}
BENCHMARK(StoreBox);

void StoreBoxSwizzle128B(benchmark::State& state) {
  store(state, TmaSwizzle::b128);
}
BENCHMARK(StoreBoxSwizzle128B);

void Gather4Swizzle128B(benchmark::State& state) {
  const Rows source(TmaSwizzle::b128, 64, 1);
  SharedImage image(512);
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(gather4(source.map, {0, 900, 17, 3000, 4}, source.memory, image, 0, CopyIdx{7}));
    benchmark::ClobberMemory();
  }
  count_bytes(state, 512);
}
BENCHMARK(Gather4Swizzle128B);

// --- a tile of K -----------------------------------------------------------------------------------------------------

// bf16, 128 tokens of one of 8 heads of 128 over pages of `page`, 128B swizzle: 2 boxes a page.
struct KTile {
  std::int64_t page;
  std::vector<std::byte> bytes = std::vector<std::byte>(4096 * 8 * 256, std::byte{0x3C});
  GlobalMemory memory;
  TmaTile tile;
  PagedRowIndices rows;
  KvCopy copy;
  TensorMap map;

  explicit KTile(std::int64_t page_size)
      : page(page_size),
        tile(make_tma_tile({"K", bytes.data(), DType::bf16, 4096, 8, 128},
                           {.mode = SwizzleMode::b128, .BN = page_size, .BK = 128})),
        rows({.BN = 128}, page_size) {
    memory.add("K", bytes);
    for (std::size_t i = 0; i < rows.rows().size(); ++i) {
      rows.rows()[i] = static_cast<std::uint32_t>((i * 37 + 5) % static_cast<std::size_t>(4096 / page) *
                                                  static_cast<std::size_t>(page));
    }
    copy = tma_copy_k(tile, rows, {.head = HeadIdx{3}});
    map = tensor_map_of("K", tile);
  }
  KTile(const KTile&) = delete;
  KTile& operator=(const KTile&) = delete;
};

void CarryOutK(benchmark::State& state) {
  const KTile k(state.range(0));
  SharedImage image(128 * 256);
  for ([[maybe_unused]] auto _ : state) {
    ArrivalBarrier barrier(1);
    benchmark::DoNotOptimize(carry_out(k.copy, k.map, k.memory, image, 0, barrier, CopyIdx{0}));
    benchmark::ClobberMemory();
  }
  count_bytes(state, k.copy.expected_bytes);
}
BENCHMARK(CarryOutK)->Arg(16)->Arg(128);

// The half rows of the same issues.
void MemcpyK(benchmark::State& state) {
  const KTile k(state.range(0));
  SharedImage shared(128 * 256);
  const std::span<std::byte> image = shared.overwrite(0, shared.size(), CopyIdx{0});
  std::size_t row_bytes = kRowBytes;
  benchmark::DoNotOptimize(row_bytes);
  for ([[maybe_unused]] auto _ : state) {
    for (const KvIssue& issue : k.copy.issues) {
      for (std::int64_t row = 0; row < k.page; ++row) {
        const std::int64_t element = ((issue.row + row) * 8 + issue.at.at[1]) * 128 + issue.at.at[0];
        std::memcpy(image.data() + 2 * issue.smem + row * kRowBytes, k.bytes.data() + 2 * element, row_bytes);
      }
    }
    benchmark::ClobberMemory();
  }
  count_bytes(state, k.copy.expected_bytes);
}
BENCHMARK(MemcpyK)->Arg(16)->Arg(128);

}  // namespace
}  // namespace kvscope
