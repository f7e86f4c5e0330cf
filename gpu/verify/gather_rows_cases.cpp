// Compares gather_rows with the model: lists of chosen tokens through remap_sparse_indices and prefill_/decode_tma_row,
// their elements through PagedKVCache::load and load_quantized, their scales through sparse_scale. Memory that the
// kernel must not read is NaN.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/checked.h"
#include "core/base/random.h"
#include "core/cache/element_access.h"
#include "core/cache/sparse_remap.h"
#include "core/layout/filled.h"
#include "gpu/kernels/gather_rows/config.h"
#include "gpu/kernels/gather_rows/params.h"
#include "gpu/verify/cache_fixture.h"
#include "gpu/verify/case.h"

namespace kvscope::gpu {
namespace {

using namespace gather_rows;

struct Gather {
  CacheShape cache;
  std::vector<std::int64_t> lists{};  // [sequences] number of lists per sequence
  std::int64_t list_length = 0;
  DType out = DType::bf16;
  IndexKind kind = IndexKind::logical;
  Slot slot = Slot::key;
  std::int64_t layer = 1;
  bool raw = false;        // elements as stored, without their scales
  bool null_page = false;  // unused entries count as pages: the null page's bytes are gathered
  bool columns = false;    // lists are interleaved instead of consecutive
};

struct Lists {
  xt::xtensor<std::int32_t, 1> logical;  // as passed to the kernel, with the data in between
  std::vector<std::uint32_t> offsets;
  std::int64_t count = 0, list_stride = 0, index_stride = 0;
};

constexpr std::int32_t kBetween = 0x7f7f7f7f;  // not a valid index

// Mostly tokens of the sequence, some of them twice. Every seventh index is -1, past the pages, or past the table's
// columns.
Lists make_lists(const Gather& g, const CacheFixture& fixture) {
  Lists lists{.logical = {}, .offsets = {0}};
  for (const std::int64_t n : g.lists) lists.offsets.push_back(lists.offsets.back() + static_cast<std::uint32_t>(n));
  lists.count = lists.offsets.back();
  lists.list_stride = g.columns ? 1 : g.list_length + 3;
  lists.index_stride = g.columns ? lists.count : 1;
  lists.logical = filled(kBetween, lists.count * (g.columns ? g.list_length : lists.list_stride));
  const CounterRng rng(5, 0x6c697374U);
  std::int64_t seq = 0;
  for (std::int64_t r = 0; r < lists.count; ++r) {
    while (lists.offsets[static_cast<std::size_t>(seq + 1)] <= r) ++seq;
    const std::int64_t P = g.cache.page_size, length = g.cache.length(seq);
    for (std::int64_t c = 0; c < g.list_length; ++c) {
      const std::int64_t n = r * g.list_length + c;
      std::int64_t token = length > 0 ? rng.integer(static_cast<std::uint64_t>(n), 0, length - 1) : -1;
      if (n % 7 == 3)
        token = n % 3 == 0 ? -1 : n % 3 == 1 ? (length + P - 1) / P * P + n % P : fixture.table_stride() * P + n;
      lists.logical(r * lists.list_stride + c * lists.index_stride) = static_cast<std::int32_t>(token);
    }
  }
  return lists;
}

std::int64_t invalid_of(const Gather& g, const CacheFixture& fixture) {
  return fixture.blocks() - (g.null_page ? 0 : 1);
}

// [list entry], one list behind the other.
using Indices = xt::xtensor<std::int32_t, 1>;

Indices model_remap(const Gather& g, CacheFixture& fixture, const Lists& lists, SparseHoles holes = SparseHoles::kept) {
  Indices encoded = filled(0, lists.count * g.list_length);
  remap_sparse_indices(
      {.logical = {lists.logical.data(), {lists.count, g.list_length}, {lists.list_stride, lists.index_stride}},
       .offsets = {lists.offsets.data(), Shape<1>{static_cast<std::int64_t>(lists.offsets.size())}},
       .lookup_table = fixture.collection().lookup_table(),
       .page_size = g.cache.page_size,
       .invalid = invalid_of(g, fixture),
       .holes = holes},
      encoded);
  return encoded;
}

// Adds encoded indices that a remap does not produce but a gather must accept: past the pool, negative other than -1,
// and the pool's last row, which is in the null page. Only for elements that are not converted: the bits of a converted
// NaN are not specified.
void add_strangers(const Gather& g, const CacheFixture& fixture, Indices& encoded) {
  const auto end = static_cast<std::int32_t>(fixture.blocks() * g.cache.page_size);
  const std::array<std::int32_t, 4> strangers{end, -7, end + 1000003, end - (g.cache.dtype == g.out ? 1 : 0)};
  for (std::size_t i = 5; i < encoded.size(); i += 11) encoded(i) = strangers[i % 4];
}

// A cache's pool as one sequence whose page i is block i: the model's loads then accept encoded indices as tokens.
struct Flat {
  std::vector<std::uint32_t> table, lengths{0};
  PagedKVCache cache;
  Flat(const PagedKVCacheCollection& all, const Gather& g) : table(identity(all)), cache(make(all, g)) {}

  static std::vector<std::uint32_t> identity(const PagedKVCacheCollection& all) {
    std::vector<std::uint32_t> table(static_cast<std::size_t>(all.blocks().dim(0)));
    std::iota(table.begin(), table.end(), 0U);
    return table;
  }
  PagedKVCache make(const PagedKVCacheCollection& all, const Gather& g) const {
    const PagedTensors tensors{.blocks = all.blocks(),
                               .cache_lengths = {lengths.data(), Shape<1>{1}},
                               .lookup_table = {table.data(), Shape<2>{1, static_cast<std::int64_t>(table.size())}},
                               .scales = all.scales()};
    return PagedKVCacheCollection(all.params(), tensors)
        .get_cache(g.slot == Slot::key ? KOrV::k : KOrV::v, LayerIdx{g.layer});
  }
};

// Loads one row with the model; false: it is zeros.
bool load_row(const Gather& g, const PagedKVCache& cache, std::int32_t index, std::byte* out) {
  const std::int64_t H = g.cache.kv_heads, D = g.cache.head_size, size = size_of(g.out);
  if (g.kind == IndexKind::row) {
    if (index < 0 || index >= cache.num_kv_rows()) return false;
    cast_elements(cache.dtype(), cache.blocks().data + index * H * D * size_of(cache.dtype()), g.out, out, H * D);
    return true;
  }
  if (index < 0 || index >= cache.blocks().dim(0) * g.cache.page_size) return false;
  for (std::int64_t h = 0; h < H; ++h) {
    const std::int64_t step = cache.quantization_enabled() && !g.raw ? g.cache.granularity : D;
    for (std::int64_t d = 0; d < D; d += step) {
      std::byte* to = out + (h * D + d) * size;
      const std::int64_t width = std::min(step, D - d);
      if (g.raw && cache.quantization_enabled())
        cache.load_quantized_into(SeqIdx{0}, HeadIdx{h}, TokIdx{index}, DimIdx{d}, width, g.out, to);
      else
        cache.load_into(SeqIdx{0}, HeadIdx{h}, TokIdx{index}, DimIdx{d}, width, g.out, to);
    }
  }
  return true;
}

constexpr std::int64_t kGuard = 128;  // [bytes] after every output
constexpr std::byte kUntouched{0xcd};

std::vector<std::byte> guarded(std::span<const std::byte> golden) {
  std::vector<std::byte> bytes(golden.begin(), golden.end());
  bytes.resize(bytes.size() + kGuard, kUntouched);
  return bytes;
}

// The launch data that the cases share.
struct Setup {
  UploadedCache cache;
  DeviceArray indices, offsets;
  GatherRowsParams params;
  Setup(const Gather& g, const CacheFixture& fixture, const Lists& lists, Device& device)
      : cache(fixture.upload(device)), offsets(device.upload_values("offsets", lists.offsets)) {
    params.cache = cache.layer(g.layer, g.slot);
    params.offsets = offsets.as<const std::uint32_t>();
    params.lists = static_cast<std::int32_t>(lists.count);
    params.list_length = static_cast<std::int32_t>(g.list_length);
    params.sequences = static_cast<std::int32_t>(fixture.sequences());
    params.invalid = static_cast<std::int32_t>(invalid_of(g, fixture));
    params.kind = g.kind;
  }
  void use(Device& device, const Indices& list, std::int64_t list_stride, std::int64_t index_stride) {
    indices = upload_tensor(device, "indices", list);
    params.indices = indices.as<const std::int32_t>();
    params.list_stride = list_stride;
    params.index_stride = index_stride;
  }
  // Launches `entry` and compares its output with `golden`.
  void check(Device& device, const std::string& entry, std::int64_t ctas, std::span<const std::byte> golden,
             std::int64_t element_bytes, const std::function<std::string(std::int64_t)>& place, Verdict& verdict) {
    const DeviceArray out = device.filled("out", static_cast<std::int64_t>(golden.size()) + kGuard, kUntouched);
    params.out = out.as<void>();
    const KernelLaunch launch{.kernel = "gather_rows", .entry = entry, .grid = {ctas, 1, 1}, .block = {kThreads, 1, 1}};
    if (!verdict.take(device.launch(launch, bytes_of(params)))) return;
    const auto end = static_cast<std::int64_t>(golden.size()) / element_bytes;
    const auto where = [&](std::int64_t i) { return i < end ? place(i) : std::string("behind the output"); };
    if (const auto fault = first_difference(guarded(golden), out.download(), element_bytes, where))
      verdict.faults.push_back(entry + ": " + *fault);
  }
};

Verdict run(const Gather& g, Device& device) {
  CacheFixture fixture(g.cache);
  const Lists lists = make_lists(g, fixture);
  Indices index = model_remap(g, fixture, lists);
  const PagedKVCacheCollection all = fixture.collection();
  const Flat flat(all, g);
  Setup setup(g, fixture, lists, device);
  if (g.kind != IndexKind::logical) add_strangers(g, fixture, index);
  const Indices encoded = index;
  if (g.kind == IndexKind::row)  // the first index past the pool: the first row after the last
    for (std::int32_t& i : index)
      i = i == fixture.blocks() * g.cache.page_size ? static_cast<std::int32_t>(flat.cache.num_kv_rows())
                                                    : decode_tma_row(flat.cache, i);
  if (g.kind == IndexKind::logical)
    setup.use(device, lists.logical, lists.list_stride, lists.index_stride);
  else
    setup.use(device, index, g.list_length, 1);
  if (g.raw) setup.params.cache.scales = nullptr;

  const std::int64_t H = g.cache.kv_heads, D = g.cache.head_size, row = H * D, size = size_of(g.out);
  const auto count = static_cast<std::int64_t>(index.size());
  auto golden = filled(std::byte{0}, count, row * size);
  for (std::int64_t i = 0; i < count; ++i) load_row(g, flat.cache, index(i), &golden(i, 0));
  const auto whose = [&](std::int64_t i) {
    return fmt::format("list {} entry {}, encoded {} (block {} slot {})", i / g.list_length, i % g.list_length,
                       encoded(i), encoded(i) / g.cache.page_size, encoded(i) % g.cache.page_size);
  };
  Verdict verdict;
  const std::int64_t chunks = row / chunk_elements(size_of(g.cache.dtype), size);
  setup.check(
      device, fmt::format("gather_rows_{}_{}", name(g.cache.dtype), name(g.out)),
      ceil_div(count, rows_of_cta(static_cast<int>(chunks))), bytes_of_tensor(golden), size,
      [&](std::int64_t i) { return fmt::format("{} head {} dim {}", whose(i / row), i % row / D, i % D); }, verdict);
  if (g.cache.granularity == 0 || g.raw || !verdict.faults.empty()) return verdict;

  const std::int64_t scales = H * ((D + g.cache.granularity - 1) / g.cache.granularity);
  auto factors = filled(0.0F, count, scales);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t s = 0; s < scales; ++s)
      factors(i, s) = static_cast<float>(sparse_scale(flat.cache, encoded(i), s));
  setup.check(
      device, "gather_rows_scales", ceil_div(count, rows_of_cta(static_cast<int>(scales))), bytes_of_tensor(factors),
      sizeof(float), [&](std::int64_t i) { return fmt::format("{} scale {}", whose(i / scales), i % scales); },
      verdict);
  return verdict;
}

// Only the indices: remapped, compacted, and as rows.
Verdict run_indices(const Gather& g, Device& device) {
  CacheFixture fixture(g.cache);
  const Lists lists = make_lists(g, fixture);
  Setup setup(g, fixture, lists, device);
  const std::int64_t count = lists.count * g.list_length;
  const auto place = [&](std::int64_t i) {
    return fmt::format("list {} entry {}", i / g.list_length, i % g.list_length);
  };

  Verdict verdict;
  Indices encoded = model_remap(g, fixture, lists);
  setup.use(device, lists.logical, lists.list_stride, lists.index_stride);
  setup.check(device, "gather_rows_remap", ceil_div(count, kThreads), bytes_of_tensor(encoded), 4, place, verdict);

  setup.use(device, encoded, g.list_length, 1);
  const Indices compacted = model_remap(g, fixture, lists, SparseHoles::compacted_left);
  setup.check(device, "gather_rows_compact", ceil_div(lists.count, kWarps), bytes_of_tensor(compacted), 4, place,
              verdict);

  const PagedKVCache cache = fixture.collection().get_key_cache(LayerIdx{g.layer});
  for (std::size_t i = 0; i < encoded.size(); ++i)
    if (i % 5 == 2) encoded(i) = -static_cast<std::int32_t>(i % 37);
  setup.use(device, encoded, g.list_length, 1);
  for (const bool decode : {false, true}) {
    Indices rows = encoded;
    for (std::int32_t& row : rows) row = decode ? decode_tma_row(cache, row) : prefill_tma_row(cache, row);
    setup.params.keep_only_minus_one = decode ? 1 : 0;
    setup.check(device, "gather_rows_tma_row", ceil_div(count, kThreads), bytes_of_tensor(rows), 4, place, verdict);
  }
  return verdict;
}

Case make(std::string name, std::string what, const Gather& g, const Budget& budget = {}) {
  return {.kernel = "gather_rows",
          .name = std::move(name),
          .what = std::move(what),
          .budget = budget,
          .run = [g](Device& device) { return run(g, device); }};
}
Case make_indices(std::string name, std::string what, const Gather& g) {
  Case c = make(std::move(name), std::move(what), g);
  c.run = [g](Device& device) { return run_indices(g, device); };
  return c;
}

}  // namespace

std::vector<Case> gather_rows_cases() {
  // 189 rows of 512 bytes are written, the 135 valid ones are read, 16 sectors each; CTAs of 32 rows read 24 sectors of
  // indices. Shared memory: a warp's step is one row, whose place of 8 bytes is read by each half of the warp; six CTAs
  // write two times 32 places of 8 bytes, 16 apart, four wavefronts each time.
  Budget bare;
  bare.sectors = 189 * 16 + 135 * 16 + 24;
  bare.wavefronts = 189 * 2 + 6 * 2 * 4;
  std::vector<Case> cases;
  const std::vector<std::int64_t> ladder{0, 1, 15, 16, 17, 100};
  cases.push_back(make("bf16_page4_tiny", "tokens of two sequences by the table, some of them -1",
                       {.cache = {.page_size = 4, .kv_heads = 1, .head_size = 32, .lengths = {9, 3}},
                        .lists = {1, 1},
                        .list_length = 9}));
  cases.back().demo = true;
  cases.push_back(make("bf16_page16_gqa_logical",
                       "ragged lists, a sequence without any, one without tokens; V of the last layer",
                       {.cache = {.page_size = 16, .layers = 3, .kv_heads = 2, .lengths = ladder},
                        .lists = {1, 0, 2, 3, 1, 2},
                        .list_length = 21,
                        .slot = Slot::value,
                        .layer = 2}));
  cases.push_back(make("bf16_page16_gqa_encoded", "encoded indices, including negative ones and ones past the pool",
                       {.cache = {.page_size = 16, .kv_heads = 2, .lengths = ladder},
                        .lists = {1, 0, 2, 3, 1, 2},
                        .list_length = 21,
                        .kind = IndexKind::encoded},
                       bare));
  cases.push_back(make("bf16_page16_gqa_rows",
                       "rows of the matrix of all layers; the formula maps -7 to a row before its beginning",
                       {.cache = {.page_size = 16, .kv_heads = 2, .lengths = ladder},
                        .lists = {1, 0, 2, 3, 1, 2},
                        .list_length = 21,
                        .kind = IndexKind::row}));
  cases.push_back(
      make("f16_page1_mqa_columns", "interleaved lists, pages of one token",
           {.cache = {.dtype = DType::f16, .page_size = 1, .kv_heads = 1, .head_size = 64, .lengths = {1, 2, 33}},
            .lists = {2, 1, 4},
            .list_length = 13,
            .out = DType::f16,
            .columns = true}));
  cases.push_back(
      make("f32_page64", "elements of four bytes",
           {.cache = {.dtype = DType::f32, .page_size = 64, .kv_heads = 3, .head_size = 80, .lengths = {63, 64, 65}},
            .lists = {1, 1, 1},
            .list_length = 30,
            .out = DType::f32}));
  cases.push_back(make("bf16_f32_page128", "bf16 converted to f32",
                       {.cache = {.page_size = 128, .kv_heads = 2, .head_size = 64, .lengths = {127, 128, 129}},
                        .lists = {1, 1, 1},
                        .list_length = 20,
                        .out = DType::f32}));
  cases.push_back(make("f16_f32_page256", "f16 converted to f32",
                       {.cache = {.dtype = DType::f16, .page_size = 256, .kv_heads = 1, .lengths = {255, 257}},
                        .lists = {1, 1},
                        .list_length = 20,
                        .out = DType::f32,
                        .kind = IndexKind::encoded}));
  cases.push_back(
      make("f32_bf16_page16", "23 bits to 8 with one rounding",
           {.cache = {.dtype = DType::f32, .page_size = 16, .kv_heads = 2, .head_size = 64, .lengths = {40, 16}},
            .lists = {1, 1},
            .list_length = 40}));
  cases.push_back(
      make("e4m3_bf16_page16_granule32", "four scales per head, each element multiplied by its own",
           {.cache = {.dtype = DType::e4m3, .page_size = 16, .kv_heads = 2, .lengths = ladder, .granularity = 32},
            .lists = {1, 1, 1, 1, 1, 1},
            .list_length = 17}));
  cases.push_back(make("e4m3_f16_page64_short_granule", "the last granule of a head is short",
                       {.cache = {.dtype = DType::e4m3,
                                  .page_size = 64,
                                  .kv_heads = 3,
                                  .head_size = 80,
                                  .lengths = {64, 65},
                                  .granularity = 32},
                        .lists = {2, 1},
                        .list_length = 11,
                        .out = DType::f16,
                        .kind = IndexKind::encoded,
                        .slot = Slot::value}));
  cases.push_back(make("e4m3_f32_mla", "one scale per token, 576 elements, one slot",
                       {.cache = {.dtype = DType::e4m3,
                                  .page_size = 64,
                                  .kv_heads = 1,
                                  .head_size = 576,
                                  .mla = true,
                                  .lengths = {63, 130},
                                  .granularity = 576},
                        .lists = {1, 2},
                        .list_length = 10,
                        .out = DType::f32}));
  cases.push_back(make("e4m3_f32_quantized_page16", "load_quantized: the stored elements, no scale is read",
                       {.cache = {.dtype = DType::e4m3,
                                  .page_size = 16,
                                  .kv_heads = 2,
                                  .head_size = 64,
                                  .lengths = {17, 40},
                                  .granularity = 64},
                        .lists = {1, 1},
                        .list_length = 23,
                        .out = DType::f32,
                        .raw = true}));
  cases.push_back(
      make("e4m3_e4m3_rows_page1", "stored bytes by their rows",
           {.cache = {.dtype = DType::e4m3, .page_size = 1, .kv_heads = 2, .head_size = 64, .lengths = {17, 40}},
            .lists = {1, 1},
            .list_length = 23,
            .out = DType::e4m3,
            .kind = IndexKind::row}));
  cases.push_back(make("bf16_null_page", "the null page counts as a page: its bytes are gathered",
                       {.cache = {.page_size = 16, .kv_heads = 2, .head_size = 64, .lengths = {17, 40}},
                        .lists = {1, 1},
                        .list_length = 23,
                        .null_page = true}));
  cases.push_back(
      make("bf16_sentinels", "entries past the pool are never pages",
           {.cache = {.page_size = 16, .kv_heads = 2, .head_size = 64, .lengths = {17, 40}, .sentinels = true},
            .lists = {1, 1},
            .list_length = 23,
            .null_page = true}));
  cases.push_back(make_indices("indices_page16",
                               "remap, compaction of lists longer than a warp, rows with floor division",
                               {.cache = {.page_size = 16, .kv_heads = 2, .head_size = 8, .lengths = ladder},
                                .lists = {1, 0, 2, 3, 1, 9},
                                .list_length = 71}));
  cases.push_back(make_indices("indices_page1_columns", "pages of one token, interleaved lists shorter than a warp",
                               {.cache = {.page_size = 1, .kv_heads = 1, .head_size = 8, .lengths = {3, 40}},
                                .lists = {5, 4},
                                .list_length = 31,
                                .columns = true}));
  cases.push_back(
      make_indices("indices_page256_mla_null", "a list of exactly one warp, unused entries as pages",
                   {.cache = {.page_size = 256, .kv_heads = 1, .head_size = 64, .mla = true, .lengths = {257, 255}},
                    .lists = {1, 1},
                    .list_length = 32,
                    .null_page = true}));
  return cases;
}

}  // namespace kvscope::gpu
