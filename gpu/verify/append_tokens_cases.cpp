// Compares append_tokens with PagedKVCache::store and store_scale. The whole pool and all scales are compared, so bytes
// that belong to no new token must be unchanged.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/convert.h"
#include "core/base/errors.h"
#include "core/base/random.h"
#include "core/cache/store_drops.h"
#include "gpu/kernels/append_tokens/config.h"
#include "gpu/kernels/append_tokens/params.h"
#include "gpu/verify/cache_fixture.h"
#include "gpu/verify/case.h"

namespace kvscope::gpu {
namespace {

using namespace append_tokens;

// The contents of the new tokens.
enum class Data : std::uint8_t {
  any_bits,  // including NaNs and their payloads: a copy preserves them
  wide,      // numbers of all sizes, ties, and overflows: a conversion rounds them once
  granules,  // each kind of granule that is difficult to quantize
};

struct Append {
  CacheShape cache;
  std::vector<std::int64_t> fresh{};  // [sequences] new tokens
  DType in = DType::bf16;
  Data data = Data::any_bits;
  bool quantize = false;
  std::int64_t gap = 0;  // [elements] between rows of K, for columns of a fused projection; V: half
  bool wanted = true;    // pages are assigned for all new tokens
  std::int64_t layer = 1;
};

double wide_number(const CounterRng& rng, std::uint64_t n) {
  switch (n % 16) {
    case 0:
      return n % 32 == 0 ? 0.0 : -0.0;
    case 1:
      return 1 + std::ldexp(1, -9);  // a tie between two bf16: the even one is below
    case 2:
      return -(1 + 3 * std::ldexp(1, -9));  // the even one is above
    case 3:
      return 1 + std::ldexp(1, -11) + std::ldexp(1, -20);  // f16: just above a tie; rounded through bf16 it would be 1
    case 4:
      return 65520;  // f16: a tie of 65504 and the first number past f16: infinity
    case 5:
      return -65519;  // stays 65504
    case 6:
      return std::ldexp(rng.bell(n), -20);  // f16 subnormal
    case 7:
      return 3.4028234e38;  // bf16: infinity
    case 8:
      return 464 + (n % 32 == 8 ? 0 : 40);  // e4m3: 448 (a tie), and past it
    default:
      return std::ldexp(rng.bell(n), static_cast<int>(rng.integer(n, -12, 9)));
  }
}

// Element n of granules `run` long. `significand` is the input type's [bits].
double granule_number(const CounterRng& rng, std::uint64_t n, std::uint64_t run, int significand) {
  const std::uint64_t i = n % run, granule = n / run;
  switch (granule % 7) {
    case 0:
      return i % 3 == 0 ? -0.0 : 0.0;  // all zeros: scale 1, and the signs are kept
    case 1:
      return static_cast<double>(i * 7 % 128 + 1) / 128;  // 1/448 is not a float: 3/8 is just off a tie
    case 2: {  // the largest is 56 k, the scale k / 8: all but the largest are ties. For most k, 8 / k is not a float
      constexpr std::array<double, 8> kTies{56, 29, -27, 31, -25, 23, 19, -17};
      return kTies[i % 8] * static_cast<double>(2 * rng.integer(granule, 0, (1 << (significand - 7)) / 8) + 1);
    }
    case 3:  // the scale is subnormal; in every other granule it would be 0
      return std::ldexp(rng.bell(n), granule % 2 ? -146 : i % 5 == 0 ? -149 : -140);
    case 4:
      return std::ldexp(rng.bell(n), i % 2 ? 125 : 100);  // and very large
    default:
      return rng.bell(n);
  }
}

std::vector<std::byte> numbers(const Append& a, std::int64_t count, std::uint64_t seed) {
  const std::int64_t size = size_of(a.in);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * size));
  const CounterRng rng(seed, 0x617070656e64U);
  if (a.data == Data::any_bits) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(rng.bits(i) & 0xff);
    return bytes;
  }
  const auto run = static_cast<std::uint64_t>(std::max<std::int64_t>(a.cache.granularity, 1));
  const int significand = a.in == DType::f32 ? 24 : a.in == DType::f16 ? 11 : 8;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto n = static_cast<std::uint64_t>(i);
    store_from_double(a.in, a.data == Data::wide ? wide_number(rng, n) : granule_number(rng, n, run, significand),
                      bytes.data() + i * size, Overflow::saturate);
  }
  return bytes;
}

// The new tokens of K or V, including the data between their rows.
struct Tokens {
  std::vector<std::byte> bytes{};
  std::vector<float> scales{};  // [tokens, heads, granules], if the elements are quantized
  std::int64_t stride = 0;      // [elements]
};

std::int64_t granules_of(const CacheShape& c) {
  return c.granularity > 0 ? (c.head_size + c.granularity - 1) / c.granularity : 0;
}

Tokens make_tokens(const Append& a, std::uint64_t seed, std::int64_t gap) {
  const std::int64_t row = a.cache.kv_heads * a.cache.head_size, size = size_of(a.in);
  const std::int64_t count = std::accumulate(a.fresh.begin(), a.fresh.end(), std::int64_t{0});
  const std::vector<std::byte> packed = numbers(a, count * row, seed);
  Tokens tokens{.stride = row + gap};
  tokens.bytes.assign(static_cast<std::size_t>(std::max<std::int64_t>(count * tokens.stride, 1) * size),
                      std::byte{0xff});
  for (std::int64_t t = 0; t < count; ++t)
    std::copy_n(packed.begin() + t * row * size, row * size, tokens.bytes.begin() + t * tokens.stride * size);
  if (a.in == DType::e4m3 && a.cache.granularity > 0) {
    const CounterRng rng(seed, 0x7363616c65U);
    tokens.scales.resize(static_cast<std::size_t>(count * a.cache.kv_heads * granules_of(a.cache)));
    for (std::size_t i = 0; i < tokens.scales.size(); ++i) tokens.scales[i] = static_cast<float>(rng.uniform(i) + 0.01);
  }
  return tokens;
}

// The quantization rule of docs/FIDELITY.md, in double: scale = largest magnitude / 448 as a float, 1 for zeros, never
// 0; an element is x / scale, rounded once.
void store_quantized(const PagedKVCache& cache, SeqIdx seq, HeadIdx head, TokIdx tok, DType in, const std::byte* from) {
  const std::int64_t D = cache.kv_params().head_size, granularity = cache.quantization_granularity();
  for (std::int64_t first = 0; first < D; first += granularity) {
    const std::int64_t count = std::min(granularity, D - first);
    std::vector<double> x(static_cast<std::size_t>(count));
    to_doubles(in, from + first * size_of(in), x);
    double largest = 0;
    for (const double value : x) largest = std::max(largest, std::abs(value));
    float scale = largest == 0 ? 1.0F : static_cast<float>(largest / 448);
    if (scale == 0) scale = std::ldexp(1.0F, -149);
    for (double& value : x) value /= double{scale};
    cache.store_scale_from(seq, head, tok, DimIdx{first}, 1, DType::f32, reinterpret_cast<const std::byte*>(&scale));
    cache.store_from(seq, head, tok, DimIdx{first}, count, DType::f64, reinterpret_cast<const std::byte*>(x.data()));
  }
}

// Stores the tokens with the model; returns the number of tokens without a page.
std::int64_t store_by_model(const Append& a, CacheFixture& fixture, KOrV kv, const Tokens& tokens) {
  const PagedKVCacheCollection all = fixture.collection();
  StoreDrops drops;
  PagedTensors tensors{.blocks = all.blocks(),
                       .cache_lengths = all.cache_lengths(),
                       .lookup_table = all.lookup_table(),
                       .scales = all.scales(),
                       .drops = &drops};
  const PagedKVCache cache = PagedKVCacheCollection(all.params(), tensors).get_cache(kv, LayerIdx{a.layer});
  const std::int64_t D = a.cache.head_size, granules = granules_of(a.cache), size = size_of(a.in);
  std::int64_t token = 0, dropped = 0;
  for (std::int64_t b = 0; b < fixture.sequences(); ++b)
    for (std::int64_t t = 0; t < a.fresh[static_cast<std::size_t>(b)]; ++t, ++token) {
      drops.count = 0;
      for (std::int64_t h = 0; h < a.cache.kv_heads; ++h) {
        const std::byte* from = tokens.bytes.data() + (token * tokens.stride + h * D) * size;
        const TokIdx at{a.cache.length(b) + t};
        if (a.quantize) {
          store_quantized(cache, SeqIdx{b}, HeadIdx{h}, at, a.in, from);
          continue;
        }
        cache.store_from(SeqIdx{b}, HeadIdx{h}, at, DimIdx{0}, D, a.in, from);
        if (tokens.scales.empty()) continue;
        const float* scales = tokens.scales.data() + (token * a.cache.kv_heads + h) * granules;
        cache.store_scale_from(SeqIdx{b}, HeadIdx{h}, at, DimIdx{0}, granules, DType::f32,
                               reinterpret_cast<const std::byte*>(scales));
      }
      if (drops.count > 0) ++dropped;
    }
  return dropped;
}

std::string entry_of(const Append& a) {
  if (a.quantize) return fmt::format("append_tokens_quantize_{}", name(a.in));
  return fmt::format("append_tokens_{}_{}", name(a.in), name(a.cache.dtype));
}

KernelLaunch launch_of(const Append& a, std::int64_t sequences) {
  const std::int64_t row = a.cache.kv_heads * a.cache.head_size;
  const std::int64_t longest = *std::max_element(a.fresh.begin(), a.fresh.end());
  const std::int64_t elements = chunk_elements(size_of(a.in), size_of(a.cache.dtype));
  std::int64_t threads = (longest * row / elements + kChunks - 1) / kChunks;
  if (a.quantize) {
    const int lanes = granule_lanes(static_cast<int>(a.cache.granularity / elements), static_cast<int>(elements));
    threads = longest * a.cache.kv_heads * granules_of(a.cache) * lanes;
  }
  return {.kernel = "append_tokens",
          .entry = entry_of(a),
          .grid = {std::max<std::int64_t>((threads + kThreads - 1) / kThreads, 1), sequences, a.cache.mla ? 1 : 2},
          .block = {kThreads, 1, 1}};
}

// The name of element `i` of a pool with rows of `row` elements, `per_head` per head: sequence, token, head, dim.
std::string pool_place(const CacheFixture& fixture, std::int64_t i, std::int64_t per_head) {
  const CacheShape& c = fixture.shape();
  const std::int64_t P = c.page_size, row = c.kv_heads * per_head, plane = i / row / P,
                     planes = (c.mla ? 1 : 2) * c.layers;
  const std::int64_t block = plane / planes, slot = i / row % P;
  const auto& table = fixture.table();
  const std::int64_t entry = std::find(table.begin(), table.end(), block) - table.begin();
  const std::int64_t b = entry / fixture.table_stride(), page = entry % fixture.table_stride();
  const std::string whose =
      b == fixture.sequences() ? "of no sequence" : fmt::format("token {} of sequence {}", page * P + slot, b);
  return fmt::format("block {} {} layer {} slot {} ({}) head {} element {}", block,
                     plane % planes / c.layers == 0 ? "K" : "V", plane % c.layers, slot, whose, i % row / per_head,
                     i % per_head);
}

Verdict run(const Append& a, Device& device) {
  CacheShape shape = a.cache;
  if (a.wanted) shape.room = a.fresh;
  CacheFixture fixture(shape);
  const UploadedCache there = fixture.upload(device);
  const Tokens keys = make_tokens(a, 21, a.gap), values = make_tokens(a, 22, a.gap / 2);
  std::vector<std::uint32_t> offsets{0};
  for (const std::int64_t n : a.fresh) offsets.push_back(offsets.back() + static_cast<std::uint32_t>(n));

  const DeviceArray k = device.upload("keys", keys.bytes), v = device.upload("values", values.bytes);
  const DeviceArray ks = device.upload_values("key scales", keys.scales),
                    vs = device.upload_values("value scales", values.scales);
  const DeviceArray starts = device.upload_values("offsets", offsets);
  const DeviceArray drops = device.filled("drops", 2 * sizeof(std::uint32_t), std::byte{0});
  const AppendTokensParams params{.key = there.layer(a.layer, Slot::key),
                                  .value = there.layer(a.layer, Slot::value),
                                  .keys = k.as<const void>(),
                                  .values = v.as<const void>(),
                                  .key_scales = ks.as<const float>(),
                                  .value_scales = vs.as<const float>(),
                                  .offsets = starts.as<const std::uint32_t>(),
                                  .cache_lengths = there.lengths.as<const std::uint32_t>(),
                                  .drops = drops.as<std::uint32_t>(),
                                  .key_stride = keys.stride,
                                  .value_stride = values.stride};
  Verdict verdict;
  if (!verdict.take(device.launch(launch_of(a, fixture.sequences()), bytes_of(params)))) return verdict;

  const auto dropped_keys = static_cast<std::uint32_t>(store_by_model(a, fixture, KOrV::k, keys));
  const auto dropped_values = a.cache.mla ? 0 : static_cast<std::uint32_t>(store_by_model(a, fixture, KOrV::v, values));
  const std::vector<std::uint32_t> counted = drops.download_as<std::uint32_t>();
  if (counted != std::vector<std::uint32_t>{dropped_keys, dropped_values})
    verdict.faults.push_back(fmt::format("{} K and {} V counted as dropped, expected {} and {}", counted[0], counted[1],
                                         dropped_keys, dropped_values));
  if (const auto fault = first_difference(fixture.pool(), there.pool.download(), size_of(a.cache.dtype),
                                          [&](std::int64_t i) { return pool_place(fixture, i, a.cache.head_size); }))
    verdict.faults.push_back(*fault);
  if (a.cache.granularity > 0)
    if (const auto fault =
            first_difference(std::as_bytes(std::span(fixture.scales())), there.scales.download(), sizeof(float),
                             [&](std::int64_t i) { return "scale: " + pool_place(fixture, i, granules_of(a.cache)); }))
      verdict.faults.push_back(*fault);
  return verdict;
}

// A sequence is one block of `longest` tokens. New tokens past its end have no page: the model throws for them, the
// kernel drops and counts them.
Verdict run_continuous(Device& device) {
  constexpr std::int64_t kBlocks = 4, kLayers = 2, kLongest = 21, kHeads = 3, kSize = 64, kRow = kHeads * kSize;
  constexpr std::int64_t kLayer = 1;
  std::vector<std::byte> pool(kBlocks * 2 * kLayers * kLongest * kRow * 2, std::byte{0xff});
  const std::vector<std::uint32_t> table{2, 0, 3}, lengths{0, 19, 7}, offsets{0, 4, 9, 10};
  const Append a{.cache = {.kv_heads = kHeads, .head_size = kSize}, .fresh = {4, 5, 1}};
  const Tokens keys = make_tokens(a, 31, 0), values = make_tokens(a, 32, 0);

  const DeviceArray there = device.upload("pool", pool), k = device.upload("keys", keys.bytes);
  const DeviceArray v = device.upload("values", values.bytes), blocks = device.upload_values("table", table);
  const DeviceArray starts = device.upload_values("offsets", offsets),
                    counts = device.upload_values("lengths", lengths);
  const DeviceArray drops = device.filled("drops", 2 * sizeof(std::uint32_t), std::byte{0});
  const auto view = [&](std::int64_t slot) {
    return PagedCache{.data = there.as<std::byte>() + (slot * kLayers + kLayer) * kLongest * kRow * 2,
                      .table = blocks.as<const std::uint32_t>(),
                      .block_stride = 2 * kLayers * kLongest * kRow,
                      .token_stride = kRow,
                      .table_stride = 1,
                      .blocks = kBlocks,
                      .page_size = kLongest,
                      .heads = kHeads,
                      .head_size = kSize};
  };
  const AppendTokensParams params{.key = view(0),
                                  .value = view(1),
                                  .keys = k.as<const void>(),
                                  .values = v.as<const void>(),
                                  .offsets = starts.as<const std::uint32_t>(),
                                  .cache_lengths = counts.as<const std::uint32_t>(),
                                  .drops = drops.as<std::uint32_t>(),
                                  .key_stride = kRow,
                                  .value_stride = kRow};
  Verdict verdict;
  if (!verdict.take(device.launch(launch_of(a, 3), bytes_of(params)))) return verdict;

  const ContinuousBatchingKVCacheCollection model(
      {kHeads, kSize}, {.blocks = {pool.data(), DType::bf16, Shape<6>{kBlocks, 2, kLayers, kLongest, kHeads, kSize}},
                        .cache_lengths = {lengths.data(), Shape<1>{3}},
                        .lookup_table = {table.data(), Shape<1>{3}}});
  std::uint32_t rejected = 0;
  for (const KOrV kv : {KOrV::k, KOrV::v}) {
    const Tokens& tokens = kv == KOrV::k ? keys : values;
    for (std::int64_t b = 0, token = 0; b < 3; ++b)
      for (std::int64_t t = 0; t < a.fresh[static_cast<std::size_t>(b)]; ++t, ++token) try {
          for (std::int64_t h = 0; h < kHeads; ++h)
            model.get_cache(kv, LayerIdx{kLayer})
                .store_from(SeqIdx{b}, HeadIdx{h}, TokIdx{lengths[static_cast<std::size_t>(b)] + t}, DimIdx{0}, kSize,
                            DType::bf16, tokens.bytes.data() + (token * kRow + h * kSize) * 2);
        } catch (const IndexError&) {
          ++rejected;
        }
  }
  const std::vector<std::uint32_t> counted = drops.download_as<std::uint32_t>();
  if (counted[0] + counted[1] != rejected || counted[0] != counted[1])
    verdict.faults.push_back(
        fmt::format("{} K and {} V counted as dropped, {} rejected by the model", counted[0], counted[1], rejected));
  if (const auto fault = first_difference(pool, there.download(), 2, [&](std::int64_t i) {
        return fmt::format("block {} {} layer {} token {} head {} dim {}", i / (2 * kLayers * kLongest * kRow),
                           i / (kLayers * kLongest * kRow) % 2 == 0 ? "K" : "V", i / (kLongest * kRow) % kLayers,
                           i / kRow % kLongest, i % kRow / kSize, i % kSize);
      }))
    verdict.faults.push_back(*fault);
  return verdict;
}

// Sectors of 32 bytes. A row is read and written in whole sectors; each step of a warp looks up the token it stores,
// one sector; each warp reads its sequence's two offsets and its length, including idle warps of the grid.
Budget sectors(std::int64_t rows, std::int64_t row, std::int64_t ctas) {
  Budget budget;
  budget.sectors = rows * row + ctas * (kThreads / 32) * 3;
  return budget;
}

Case make(std::string name, std::string what, const Append& a, const Budget& budget = {}) {
  return {.kernel = "append_tokens",
          .name = std::move(name),
          .what = std::move(what),
          .budget = budget,
          .run = [a](Device& device) { return run(a, device); }};
}

}  // namespace

std::vector<Case> append_tokens_cases() {
  std::vector<Case> cases;
  cases.push_back(
      make("bf16_page4_tiny", "a decode step and a short prompt, across a page's end",
           {.cache = {.page_size = 4, .kv_heads = 1, .head_size = 32, .lengths = {4, 0, 3}}, .fresh = {1, 5, 1}}));
  cases.back().demo = true;
  // A row of 512 bytes is 16 sectors read and 16 written, and one lookup; at most 33 tokens of 32 chunks are 2 CTAs per
  // sequence. Lengths before the step: 0, one short of a page, a full page, one past it; likewise for the numbers of
  // new tokens.
  cases.push_back(make("bf16_page16_gqa", "ragged lengths around the page's ends, a sequence without new tokens",
                       {.cache = {.page_size = 16, .layers = 3, .kv_heads = 2, .lengths = {0, 1, 15, 16, 17, 40}},
                        .fresh = {17, 1, 2, 0, 15, 33}},
                       sectors(2 * 68, 16 + 16 + 1, 2 * 6 * 2)));
  cases.push_back(make("f16_page1_mqa", "pages of one token: every row is in a separate block",
                       {.cache = {.dtype = DType::f16, .page_size = 1, .kv_heads = 1, .lengths = {0, 1, 2, 9}},
                        .fresh = {3, 1, 0, 20},
                        .in = DType::f16,
                        .layer = 0}));
  cases.push_back(
      make("f32_page64_fused", "rows of a fused projection: the data between them is neither read nor changed",
           {.cache = {.dtype = DType::f32, .page_size = 64, .kv_heads = 3, .head_size = 80, .lengths = {63, 0, 64}},
            .fresh = {2, 3, 1},
            .in = DType::f32,
            .gap = 160}));
  cases.push_back(make("e4m3_page128_scales", "scales that come with their elements, the last granule of a head short",
                       {.cache = {.dtype = DType::e4m3,
                                  .page_size = 128,
                                  .kv_heads = 2,
                                  .head_size = 80,
                                  .lengths = {127, 0, 128, 300},
                                  .granularity = 32},
                        .fresh = {2, 4, 1, 0},
                        .in = DType::e4m3}));
  cases.push_back(make("f32_bf16_page256", "one rounding: ties go to the even bf16, overflows to infinity",
                       {.cache = {.page_size = 256, .kv_heads = 2, .head_size = 64, .lengths = {255, 0, 256}},
                        .fresh = {2, 7, 3},
                        .in = DType::f32,
                        .data = Data::wide},
                       sectors(2 * 12, 16 + 8 + 1, 1 * 3 * 2)));
  cases.push_back(make("f32_f16_page16", "one rounding: through bf16 a number just past a tie would round differently",
                       {.cache = {.dtype = DType::f16, .page_size = 16, .kv_heads = 1, .lengths = {16, 15, 0}},
                        .fresh = {1, 2, 20},
                        .in = DType::f32,
                        .data = Data::wide}));
  cases.push_back(
      make("bf16_e4m3_page64", "no scales: numbers above 448 saturate",
           {.cache = {.dtype = DType::e4m3, .page_size = 64, .kv_heads = 2, .head_size = 64, .lengths = {63, 0}},
            .fresh = {2, 9},
            .data = Data::wide}));
  cases.push_back(make(
      "quantize_bf16_page16_granule32", "a granule on 4 lanes; zeros, ties, tiny and huge magnitudes",
      {.cache = {.dtype = DType::e4m3, .page_size = 16, .kv_heads = 2, .lengths = {0, 15, 16, 33}, .granularity = 32},
       .fresh = {18, 2, 0, 5},
       .data = Data::granules,
       .quantize = true},
      sectors(2 * 25, 16 + 8 + 1 + 1, 3 * 4 * 2)));
  cases.push_back(
      make("quantize_bf16_page1_granule128", "a granule is a head: every lane has four chunks of it",
           {.cache = {.dtype = DType::e4m3, .page_size = 1, .kv_heads = 1, .lengths = {0, 3}, .granularity = 128},
            .fresh = {10, 4},
            .data = Data::granules,
            .quantize = true}));
  cases.push_back(make("quantize_f16_page64_granule64",
                       "the last granule of a head is short, and its idle lanes are not read",
                       {.cache = {.dtype = DType::e4m3,
                                  .page_size = 64,
                                  .kv_heads = 3,
                                  .head_size = 80,
                                  .lengths = {64, 63, 0},
                                  .granularity = 64},
                        .fresh = {1, 2, 7},
                        .in = DType::f16,
                        .data = Data::granules,
                        .quantize = true,
                        .gap = 16}));
  cases.push_back(
      make("quantize_f32_page128_granule8", "two lanes per granule, sixteen scales per head",
           {.cache = {.dtype = DType::e4m3, .page_size = 128, .kv_heads = 2, .lengths = {127, 0}, .granularity = 8},
            .fresh = {3, 6},
            .in = DType::f32,
            .data = Data::granules,
            .quantize = true}));
  cases.push_back(make("quantize_f32_mla", "one scale for a token's 576 elements: one warp, five chunks per lane, no V",
                       {.cache = {.dtype = DType::e4m3,
                                  .page_size = 64,
                                  .kv_heads = 1,
                                  .head_size = 576,
                                  .mla = true,
                                  .lengths = {63, 0, 1},
                                  .granularity = 576},
                        .fresh = {2, 8, 1},
                        .in = DType::f32,
                        .data = Data::granules,
                        .quantize = true}));
  cases.push_back(make(
      "bf16_mla", "one slot that is both K and V is written once",
      {.cache = {.page_size = 16, .kv_heads = 1, .head_size = 576, .mla = true, .lengths = {15, 0}}, .fresh = {3, 2}}));
  cases.push_back(make("sentinel_drops",
                       "unassigned pages: tokens are dropped and counted, memory around the pool is unchanged",
                       {.cache = {.page_size = 16,
                                  .kv_heads = 2,
                                  .head_size = 64,
                                  .lengths = {15, 30, 0},
                                  .room = {1, 40, 0},
                                  .sentinels = true},
                        .fresh = {5, 3, 20},
                        .wanted = false}));
  cases.push_back(make("quantize_sentinel_drops", "scales are dropped with their elements, and a token is counted once",
                       {.cache = {.dtype = DType::e4m3,
                                  .page_size = 16,
                                  .kv_heads = 2,
                                  .head_size = 64,
                                  .lengths = {15, 30, 0},
                                  .room = {1, 40, 0},
                                  .granularity = 16,
                                  .sentinels = true},
                        .fresh = {5, 3, 20},
                        .data = Data::granules,
                        .quantize = true,
                        .wanted = false}));
  cases.push_back(
      make("null_page", "the null page is a page of the pool: its tokens are written, not dropped",
           {.cache = {.page_size = 16, .kv_heads = 2, .head_size = 64, .lengths = {15, 30}, .room = {1, 40}},
            .fresh = {9, 3},
            .wanted = false}));
  cases.push_back(
      {.kernel = "append_tokens",
       .name = "continuous",
       .what = "one page per sequence; the next table entry belongs to another sequence and must not be used",
       .run = run_continuous});
  return cases;
}

}  // namespace kvscope::gpu
