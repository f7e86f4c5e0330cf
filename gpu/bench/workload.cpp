#include "gpu/bench/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/checked.h"
#include "core/base/random.h"
#include "core/tma/tile_map.h"
#include "gpu/bench/bench_cache.h"
#include "gpu/kernels/append_tokens/config.h"
#include "gpu/kernels/append_tokens/params.h"
#include "gpu/kernels/bf16_product/config.h"
#include "gpu/kernels/bf16_product/params.h"
#include "gpu/kernels/gather_rows/config.h"
#include "gpu/kernels/gather_rows/params.h"
#include "gpu/kernels/paged_prefill/params.h"
#include "gpu/offload/decode_launch.h"
#include "gpu/offload/mla_launch.h"
#include "gpu/offload/prefill_launch.h"

namespace kvscope::gpu {
namespace {

template <class Params>
Launch launch_of(KernelLaunch launch, const Params& params) {
  const std::span<const std::byte> bytes = bytes_of(params);
  return {std::move(launch), {bytes.begin(), bytes.end()}};
}

// Stores an array in the workload; returns its address.
std::uint64_t keep(Workload& work, DeviceArray array) {
  work.arrays.push_back(std::move(array));
  return work.arrays.back().address();
}
std::uint64_t room(Workload& work, Device& device, const char* name, std::int64_t bytes) {
  return keep(work, DeviceArray(device, device.allocate(bytes, name), bytes));
}
BenchCache& keep(Workload& work, BenchCache cache) {
  const auto held = std::make_shared<BenchCache>(std::move(cache));
  work.holders.push_back(held);
  return *held;
}
template <class T>
T* pointer(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

std::string megabytes(std::int64_t bytes) {
  return fmt::format("{:.3g} MB", static_cast<double>(bytes) / 1e6);
}

// --- writing and lookup ----------------------------------------------------------------------------------------------

// Appends all tokens of a batch to an empty cache. Data is read once and written once; quantized: plus a scale per
// head.
Workload append(Device& device, const WorkloadSize& size, bool quantize) {
  using namespace append_tokens;
  Workload work;
  BenchCacheShape shape{.dtype = quantize ? DType::e4m3 : DType::bf16, .scaled = quantize, .filled = false};
  if (size.small) shape.batch = 2, shape.tokens = 48, shape.kv_heads = 2;
  const std::int64_t row = shape.kv_heads * shape.head_size, tokens = shape.batch * shape.tokens;
  work.shape = fmt::format("{} tokens of {} x {} bf16 into {}, page {}", tokens, shape.kv_heads, shape.head_size,
                           name(shape.dtype), shape.page_size);
  work.bytes = 2 * tokens * (row * (2 + size_of(shape.dtype)) + (quantize ? shape.kv_heads * 4 : 0));

  std::vector<std::uint32_t> offsets;
  for (std::int64_t b = 0; b <= shape.batch; ++b) offsets.push_back(static_cast<std::uint32_t>(b * shape.tokens));
  AppendTokensParams params;
  params.offsets = pointer<const std::uint32_t>(keep(work, device.upload_values("offsets", offsets)));
  params.cache_lengths = pointer<const std::uint32_t>(
      keep(work, device.upload_values("cache lengths", std::vector<std::uint32_t>(offsets.size(), 0))));
  params.key_stride = params.value_stride = row;
  const std::int64_t elements = chunk_elements(2, size_of(shape.dtype));
  std::int64_t threads = ceil_div(shape.tokens * row / elements, kChunks);
  if (quantize)
    threads = shape.tokens * shape.kv_heads *
              granule_lanes(static_cast<int>(shape.head_size / elements), static_cast<int>(elements));
  const KernelLaunch launch{.kernel = "append_tokens",
                            .entry = quantize ? "append_tokens_quantize_bf16" : "append_tokens_bf16_bf16",
                            .grid = {ceil_div(threads, kThreads), shape.batch, 2},
                            .block = {kThreads, 1, 1}};
  for (int copy = 0; copy < size.copies; ++copy) {
    const auto seed = static_cast<std::uint64_t>(copy);
    const BenchCache& cache = keep(work, make_bench_cache(device, shape, seed));
    params.key = cache.k;
    params.value = cache.v;
    params.keys =
        pointer<const void>(keep(work, device.upload("keys", bench_noise(DType::bf16, tokens * row * 2, seed))));
    params.values =
        pointer<const void>(keep(work, device.upload("values", bench_noise(DType::bf16, tokens * row * 2, seed + 9))));
    work.turns.push_back({launch_of(launch, params)});
  }
  return work;
}

// Gathers every token of every sequence once, in a shuffled order.
Workload gather(Device& device, const WorkloadSize& size) {
  using namespace gather_rows;
  Workload work;
  BenchCacheShape shape;
  if (size.small) shape.batch = 2, shape.tokens = 48, shape.kv_heads = 2;
  const std::int64_t row = shape.kv_heads * shape.head_size, rows = shape.batch * shape.tokens;
  work.shape = fmt::format("{} rows of {} x {} bf16, page {}", rows, shape.kv_heads, shape.head_size, shape.page_size);
  work.bytes = rows * (2 * row * 2 + 4);

  std::vector<std::int32_t> indices;
  std::vector<std::uint32_t> offsets{0};
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    std::vector<std::int32_t> own(static_cast<std::size_t>(shape.tokens));
    std::iota(own.begin(), own.end(), 0);
    const CounterRng cards(static_cast<std::uint64_t>(b), 0x676174686572U);
    for (std::size_t i = own.size() - 1; i > 0; --i)
      std::swap(own[i], own[static_cast<std::size_t>(cards.integer(i, 0, static_cast<std::int64_t>(i)))]);
    indices.insert(indices.end(), own.begin(), own.end());
    offsets.push_back(static_cast<std::uint32_t>(b + 1));
  }
  GatherRowsParams params;
  params.indices = pointer<const std::int32_t>(keep(work, device.upload_values("indices", indices)));
  params.offsets = pointer<const std::uint32_t>(keep(work, device.upload_values("offsets", offsets)));
  params.list_stride = shape.tokens;
  params.lists = params.sequences = static_cast<std::int32_t>(shape.batch);
  params.list_length = static_cast<std::int32_t>(shape.tokens);
  const int a_cta = rows_of_cta(static_cast<int>(row / chunk_elements(2, 2)));
  const KernelLaunch launch{.kernel = "gather_rows",
                            .entry = "gather_rows_bf16_bf16",
                            .grid = {ceil_div(rows, a_cta), 1, 1},
                            .block = {kThreads, 1, 1}};
  for (int copy = 0; copy < size.copies; ++copy) {
    params.cache = keep(work, make_bench_cache(device, shape, static_cast<std::uint64_t>(copy))).k;
    params.invalid = params.cache.blocks;
    params.out = pointer<void>(room(work, device, "rows", rows * row * 2));
    work.turns.push_back({launch_of(launch, params)});
  }
  return work;
}

// --- attention -------------------------------------------------------------------------------------------------------

Workload decode(Device& device, const WorkloadSize& size, DType dtype, std::int64_t page_size) {
  Workload work;
  const bool scaled = dtype == DType::e4m3;
  BenchCacheShape shape{.dtype = dtype, .page_size = page_size, .scaled = scaled};
  std::int64_t query_heads = 32;
  if (size.small) shape.batch = 2, shape.tokens = 128, shape.kv_heads = 2, query_heads = 8;
  const std::int64_t D = shape.head_size, rows = shape.batch * query_heads;
  const std::int64_t cache_bytes =
      2 * shape.batch * shape.tokens * shape.kv_heads * (D * size_of(dtype) + (scaled ? 4 : 0));
  work.shape = fmt::format("batch {}, {}/{} heads of {}, {} tokens, page {}: {}", shape.batch, query_heads,
                           shape.kv_heads, D, shape.tokens, page_size, megabytes(cache_bytes));
  work.bytes = cache_bytes + 2 * rows * D * 2;
  for (int copy = 0; copy < size.copies; ++copy) {
    const auto seed = static_cast<std::uint64_t>(copy);
    const BenchCache& cache = keep(work, make_bench_cache(device, shape, seed));
    DecodeStep step{.cache = dtype, .out = DType::bf16, .k = cache.k, .v = cache.v};
    step.q = pointer<const void>(keep(work, device.upload("q", bench_noise(DType::bf16, rows * D * 2, seed + 5))));
    step.lengths = cache.lengths.as<const std::uint32_t>();
    step.host_lengths.assign(static_cast<std::size_t>(shape.batch), static_cast<std::uint32_t>(shape.tokens));
    step.o = pointer<void>(room(work, device, "o", rows * D * 2));
    step.lse = pointer<float>(room(work, device, "lse", rows * 4));
    step.query_heads = static_cast<int>(query_heads);
    step.scale = 1 / std::sqrt(static_cast<double>(D));
    const auto call = std::make_shared<DecodeCall>(device, step);
    work.holders.push_back(call);
    work.turns.push_back({launch_of(call->attend, call->params), launch_of(call->combine, call->params)});
  }
  return work;
}

// 16 heads, the share of one of eight GPUs for a model with 128: with 64 or more, the tensor cores are the limit.
Workload latent_decode(Device& device, const WorkloadSize& size, bool fp8) {
  Workload work;
  BenchCacheShape shape{.dtype = fp8 ? DType::e4m3 : DType::bf16,
                        .page_size = 64,
                        .batch = 32,
                        .kv_heads = 1,
                        .head_size = fp8 ? mla::kFp8Row : mla::kRow,
                        .slots = 1};
  if (size.small) shape.batch = 1, shape.tokens = 128;
  const std::int64_t heads = 16, rows = shape.batch * heads;
  const std::int64_t cache_bytes = shape.batch * shape.tokens * shape.head_size * size_of(shape.dtype);
  work.shape = fmt::format("batch {}, {} heads, {} tokens of {} bytes, page {}: {}", shape.batch, heads, shape.tokens,
                           shape.head_size * size_of(shape.dtype), shape.page_size, megabytes(cache_bytes));
  work.bytes = cache_bytes + rows * (mla::kRow + mla::kValue) * 2;
  const std::int64_t splits = mla_splits(shape.tokens, heads, shape.batch, device.info().multiprocessors);
  for (int copy = 0; copy < size.copies; ++copy) {
    const auto seed = static_cast<std::uint64_t>(copy);
    const BenchCache& cache = keep(work, make_bench_cache(device, shape, seed));
    MlaDecodeParams params;
    params.cache = cache.k;
    params.q =
        pointer<const void>(keep(work, device.upload("q", bench_noise(DType::bf16, rows * mla::kRow * 2, seed))));
    params.lengths = cache.lengths.as<const std::uint32_t>();
    params.out = pointer<void>(room(work, device, "o", rows * mla::kValue * 2));
    params.lse = pointer<float>(room(work, device, "lse", rows * 4));
    params.part = pointer<float>(room(work, device, "parts", rows * splits * mla::kValue * 4));
    params.part_lse = pointer<float>(room(work, device, "sums of parts", rows * splits * 4));
    params.query_heads = static_cast<std::int32_t>(heads);
    params.splits = static_cast<std::int32_t>(splits);
    params.scale = 1 / std::sqrt(192.0F);
    work.turns.push_back(
        {launch_of(mla_decode_launch(fp8 ? MlaRows::fp8 : MlaRows::bf16, heads, shape.batch, splits), params),
         launch_of(mla_combine_launch(heads, shape.batch), params)});
  }
  return work;
}

// Prompts without cached tokens, causal: token i attends to i + 1 keys.
Workload prompts(Device& device, const WorkloadSize& size) {
  Workload work;
  BenchCacheShape shape{.batch = 4};
  std::int64_t query_heads = 32;
  if (size.small) shape.batch = 1, shape.tokens = 160, shape.kv_heads = 1, query_heads = 2;
  const std::int64_t D = shape.head_size, total = shape.batch * shape.tokens;
  const std::int64_t pairs = shape.batch * (shape.tokens * (shape.tokens + 1) / 2);
  work.shape = fmt::format("batch {}, {}/{} heads of {}, {} new tokens each, causal, page {}", shape.batch, query_heads,
                           shape.kv_heads, D, shape.tokens, shape.page_size);
  work.bytes = 2 * total * (shape.kv_heads + query_heads) * D * 2;
  work.flops = 4.0 * static_cast<double>(D * query_heads) * static_cast<double>(pairs);
  std::vector<std::int32_t> offsets;
  for (std::int64_t b = 0; b <= shape.batch; ++b) offsets.push_back(static_cast<std::int32_t>(b * shape.tokens));
  const std::uint64_t query_offsets = keep(work, device.upload_values("query offsets", offsets));
  for (int copy = 0; copy < size.copies; ++copy) {
    const auto seed = static_cast<std::uint64_t>(copy);
    const BenchCache& cache = keep(work, make_bench_cache(device, shape, seed));
    const std::uint64_t q =
        keep(work, device.upload("q", bench_noise(DType::bf16, total * query_heads * D * 2, seed + 5)));
    PagedPrefillParams params;
    params.queries = device.encode(prefill_query_map(q, total, query_heads, D, DType::bf16));
    params.keys = device.encode(prefill_cache_map(cache.k, DType::bf16));
    params.values = device.encode(prefill_cache_map(cache.v, DType::bf16));
    params.cache = cache.k;
    params.lengths = cache.lengths.as<const std::uint32_t>();
    params.query_offsets = pointer<const std::int32_t>(query_offsets);
    params.out = pointer<void>(room(work, device, "o", total * query_heads * D * 2));
    params.lse = pointer<float>(room(work, device, "lse", total * query_heads * 4));
    params.query_heads = static_cast<std::int32_t>(query_heads);
    params.scale = 1 / std::sqrt(static_cast<float>(D));
    work.turns.push_back({launch_of(prefill_launch(DType::bf16, D, query_heads, shape.batch, shape.tokens), params)});
  }
  return work;
}

Workload large_product(Device& device, const WorkloadSize& size) {
  Workload work;
  const std::int64_t m = size.small ? 256 : 8192, n = m, k = size.small ? 128 : 8192;
  work.shape = fmt::format("[{}, {}] of [{}, {}] and [{}, {}]", m, n, m, k, n, k);
  work.bytes = (m * k + n * k + m * n) * 2;
  work.flops = 2.0 * static_cast<double>(m * n) * static_cast<double>(k);
  for (int copy = 0; copy < size.copies; ++copy) {
    const auto seed = static_cast<std::uint64_t>(copy);
    const std::uint64_t a = keep(work, device.upload("A", bench_noise(DType::bf16, m * k * 2, seed)));
    const std::uint64_t b = keep(work, device.upload("B", bench_noise(DType::bf16, n * k * 2, seed + 5)));
    work.turns.push_back({product_call(device, a, b, room(work, device, "C", m * n * 2), m, n, k)});
  }
  return work;
}

}  // namespace

Launch product_call(Device& device, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::int64_t m, std::int64_t n,
                    std::int64_t k) {
  const auto map = [&](std::uint64_t base, std::int64_t rows, int box_rows) {
    TensorMap made;
    made.data_type = tma_data_type(DType::bf16);
    made.rank = 2;
    made.base = base;
    made.dims = {static_cast<std::uint64_t>(k), static_cast<std::uint64_t>(rows)};
    made.strides = {static_cast<std::uint64_t>(k) * 2};
    made.box = {product::kDepth, static_cast<std::uint32_t>(box_rows)};
    made.swizzle = TmaSwizzle::b128;
    made.l2 = L2Promotion::b256;
    return device.encode(made);
  };
  Bf16ProductParams params;
  params.a = map(a, m, product::kRows);
  params.b = map(b, n, product::kColumns);
  params.c = pointer<void>(c);
  params.m = static_cast<std::int32_t>(m);
  params.n = static_cast<std::int32_t>(n);
  params.k = static_cast<std::int32_t>(k);
  const std::int64_t tiles = m / product::kRows * (n / product::kColumns);
  return launch_of({.kernel = "bf16_product",
                    .entry = "bf16_product",
                    .grid = {std::min<std::int64_t>(tiles, device.info().multiprocessors), 1, 1},
                    .block = {product::kThreads, 1, 1},
                    .dynamic_shared = product::kSharedBytes},
                   params);
}

const std::vector<WorkloadRow>& workload_rows() {
  using Size = WorkloadSize;
  static const std::vector<WorkloadRow> rows = {
      {"append_tokens_bf16", "append_tokens", "copy", 0.8, false,
       [](Device& d, const Size& s) { return append(d, s, false); }},
      {"append_tokens_quantize",
       "append_tokens",
       "copy",
       {},
       false,
       [](Device& d, const Size& s) { return append(d, s, true); }},
      {"gather_rows_bf16", "gather_rows", "copy", 0.8, false, [](Device& d, const Size& s) { return gather(d, s); }},
      {"paged_decode_bf16_page16", "paged_decode", "copy", 0.6, false,
       [](Device& d, const Size& s) { return decode(d, s, DType::bf16, 16); }},
      {"paged_decode_bf16_page1", "paged_decode", "copy", 0.5, false,
       [](Device& d, const Size& s) { return decode(d, s, DType::bf16, 1); }},
      {"paged_decode_e4m3_page16", "paged_decode", "paged_decode_bf16_page16", 1.4, true,
       [](Device& d, const Size& s) { return decode(d, s, DType::e4m3, 16); }},
      {"mla_decode_bf16", "mla_decode", "copy", 0.6, false,
       [](Device& d, const Size& s) { return latent_decode(d, s, false); }},
      {"mla_decode_fp8", "mla_decode", "copy", 0.6, false,
       [](Device& d, const Size& s) { return latent_decode(d, s, true); }},
      {"bf16_product", "bf16_product", "", {}, false, [](Device& d, const Size& s) { return large_product(d, s); }},
      {"paged_prefill_bf16", "paged_prefill", "bf16_product", 0.45, false,
       [](Device& d, const Size& s) { return prompts(d, s); }},
  };
  return rows;
}

}  // namespace kvscope::gpu
