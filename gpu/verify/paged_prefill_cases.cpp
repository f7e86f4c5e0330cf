// Cases of paged_prefill: core/attention's reference in double, each element within its bound. Slots past a sequence's
// end, pages without an owner and unused scales are NaN, so reading one key too many is detected.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gpu/offload/prefill_launch.h"
#include "gpu/verify/attention_check.h"
#include "gpu/verify/cache_fixture.h"
#include "gpu/verify/case.h"

namespace kvscope::gpu {
namespace {

struct PrefillCase {
  const char* name;
  const char* what;
  CacheShape shape;                   // lengths: all keys, this step's included
  std::vector<std::int64_t> queries;  // [sequences]
  std::int64_t query_heads;
  MaskKind mask = MaskKind::causal;
  std::int64_t window_left = -1;
  double soft_cap = 0;
  double sharpness = 1;  // factor of the scale: with 100, powers of two of scores overflow a float
  std::int64_t layer = 0;
  bool demo = false;
  Budget budget{};  // computed by hand, in the comment above each
};

Verdict run(const PrefillCase& c, Device& device) {
  CacheFixture cache(c.shape);
  const UploadedCache there = cache.upload(device);
  const std::int64_t head_size = c.shape.head_size, heads = c.query_heads, batch = cache.sequences();
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t n : c.queries) offsets.push_back(offsets.back() + n);
  const std::int64_t total = offsets.back();
  const std::vector<std::byte> q = exact_noise(c.shape.dtype, total * heads * head_size, c.shape.seed + 100);

  const DeviceArray queries = device.upload("q", q);
  const DeviceArray query_offsets =
      device.upload_values("query offsets", std::vector<std::int32_t>(offsets.begin(), offsets.end()));
  const DeviceArray out = device.filled("out", total * heads * head_size * 2, std::byte{0xff});
  const DeviceArray lse = device.filled("lse", total * heads * 4, std::byte{0xff});

  attention::Problem problem;
  problem.batch = batch;
  problem.query_heads = heads;
  problem.q = q.data();
  problem.q_dtype = c.shape.dtype;
  problem.query_offsets = offsets;
  problem.key_lengths = c.shape.lengths;
  problem.k = cache.rows(c.layer, Slot::key);
  problem.v = cache.rows(c.layer, Slot::value);
  problem.options.mask = c.mask;
  problem.options.window_left = c.window_left;
  problem.options.scale =
      static_cast<double>(static_cast<float>(c.sharpness) / std::sqrt(static_cast<float>(head_size)));
  if (c.soft_cap > 0) problem.options.soft_cap = c.soft_cap;

  PagedPrefillParams params;
  params.queries = device.encode(prefill_query_map(queries.address(), total, heads, head_size, c.shape.dtype));
  params.keys = device.encode(prefill_cache_map(there.layer(c.layer, Slot::key), c.shape.dtype));
  params.values = device.encode(prefill_cache_map(there.layer(c.layer, Slot::value), c.shape.dtype));
  params.cache = there.layer(c.layer, Slot::key);
  params.lengths = there.lengths.as<const std::uint32_t>();
  params.query_offsets = query_offsets.as<const std::int32_t>();
  params.out = out.as<void>();
  params.lse = lse.as<float>();
  params.query_heads = static_cast<std::int32_t>(heads);
  params.causal = c.mask == MaskKind::none ? 0 : 1;
  params.window_left = c.mask == MaskKind::sliding_window ? static_cast<std::int32_t>(c.window_left) : -1;
  params.scale = static_cast<float>(problem.options.scale);
  params.soft_cap = static_cast<float>(c.soft_cap);

  Verdict verdict;
  const std::int64_t most = *std::max_element(c.queries.begin(), c.queries.end());
  if (!verdict.take(device.launch(prefill_launch(c.shape.dtype, head_size, heads, batch, most), bytes_of(params))))
    return verdict;
  check_attention(verdict, problem, c.shape.dtype, out.download(), lse.download_as<float>(), cache.around(c.layer));
  return verdict;
}

CacheShape cache_of(DType dtype, std::int64_t page_size, std::int64_t kv_heads, std::int64_t head_size,
                    std::vector<std::int64_t> lengths) {
  CacheShape shape;
  shape.dtype = dtype;
  shape.page_size = page_size;
  shape.kv_heads = kv_heads;
  shape.head_size = head_size;
  shape.lengths = std::move(lengths);
  shape.seed = static_cast<std::uint64_t>(page_size + head_size);
  return shape;
}

CacheShape with_sentinels(CacheShape shape) {
  shape.sentinels = true;
  return shape;
}

// Bytes by TMA: a CTA copies its queries' tile, 128 rows of head_size, and K and V of 128 keys for each tile that any
// of its queries attends to, including rows past the end.
std::vector<PrefillCase> table() {
  using enum DType;
  using enum MaskKind;
  std::vector<PrefillCase> cases;
  const auto add = [&](PrefillCase c) { cases.push_back(std::move(c)); };

  // 2 heads x (Q 16384 + K 16384 + V 16384). Sectors per head: queries 5 rows x 4, pages 2 x 16 rows x 4 of K and of V,
  // output 5 x 4, lse 2, table 1 + 1, offsets and length read by 12 warps 3 each. Wavefronts per head: 8 warps store
  // 16 words of output, 5 rows are read back, 11 rows of V after the last are zeroed.
  add({.name = "bf16_page16_demo",
       .what = "five queries after sixteen cached tokens: the last page has five keys, and the tile of 128 keys has no "
               "other page",
       .shape = cache_of(bf16, 16, 1, 64, {21}),
       .queries = {5},
       .query_heads = 2,
       .demo = true,
       .budget = {.wavefronts = 2 * (8 * 16 + 5 + 11),
                  .sectors = 2 * (5 * 4 + 2 * 2 * 16 * 4 + 5 * 4 + 2 + 2 + 12 * 3),
                  .tma_bytes = 2 * 3 * 16384}});
  add({.name = "bf16_page16_gqa_ragged",
       .what = "query counts and cached lengths around a page and a product's rows, layer 1: detects exchanged heads "
               "or layers",
       .shape = cache_of(bf16, 16, 2, 128, {1, 16, 31, 33, 81, 165, 5}),
       .queries = {1, 15, 16, 17, 64, 65, 0},
       .query_heads = 4,
       .layer = 1});
  // Two CTAs: positions 100 .. 227 attend to keys of tiles 0 and 1, 228 .. 299 of all three.
  add({.name = "bf16_page16_long",
       .what = "three tiles in two stages; two tiles of queries attend to different numbers of them",
       .shape = cache_of(bf16, 16, 1, 128, {300}),
       .queries = {200},
       .query_heads = 1,
       .budget = {.wavefronts = {}, .sectors = {}, .tma_bytes = 2 * 32768 + (2 + 3) * 2 * 32768}});
  add({.name = "bf16_page1_mqa",
       .what = "every token in a separate block: one box per row",
       .shape = cache_of(bf16, 1, 1, 64, {1, 2, 130, 64}),
       .queries = {1, 2, 66, 64},
       .query_heads = 3});
  add({.name = "f16_page64_gqa_sentinels",
       .what = "table entries past the end are not blocks: using them is detected",
       .shape = with_sentinels(cache_of(f16, 64, 2, 128, {63, 128, 193, 64})),
       .queries = {63, 64, 65, 1},
       .query_heads = 4});
  add({.name = "bf16_page128_page_edges",
       .what = "a page is a tile: sequences that end with it, one key before and one key after",
       .shape = cache_of(bf16, 128, 2, 64, {127, 128, 129, 257, 256}),
       .queries = {127, 128, 129, 1, 2},
       .query_heads = 2,
       .layer = 1});
  add({.name = "f16_page256_halves",
       .what = "a tile is half a page: the slot must advance within the block",
       .shape = cache_of(f16, 256, 1, 64, {255, 256, 257, 400}),
       .queries = {1, 16, 130, 129},
       .query_heads = 2});
  add({.name = "bf16_page64_many_tiles",
       .what = "seven tiles use the ring three times, with alternating barrier phases",
       .shape = cache_of(bf16, 64, 1, 64, {833}),
       .queries = {40},
       .query_heads = 1,
       .budget = {.wavefronts = {}, .sectors = {}, .tma_bytes = 16384 + 7 * 2 * 16384}});
  // Queries 72 .. 199 and 200 .. 299 of 300 with 100 keys before them: from 0 and from 100: tiles 0, 1 and 0 .. 2.
  add({.name = "bf16_page16_window100",
       .what = "the window's left edge moves through tiles and pages",
       .shape = cache_of(bf16, 16, 2, 64, {300, 117}),
       .queries = {228, 17},
       .query_heads = 2,
       .mask = sliding_window,
       .window_left = 100});
  // Queries 298 .. 361: the last attends from 161 on, so tile 1, entirely visible to causal masking, is cut by the
  // window.
  add({.name = "bf16_page16_window200",
       .what = "a tile without any query's own position, with keys that only the first queries attend to",
       .shape = cache_of(bf16, 16, 1, 64, {362}),
       .queries = {64},
       .query_heads = 1,
       .mask = sliding_window,
       .window_left = 200});
  // Query 639 of 640 with 127 before it attends to 512 .. 639: one tile of five. Query 638 attends to 511 .. 638: two.
  add({.name = "f16_page128_window127_whole_tile",
       .what = "a window of exactly one tile: one more key needs another tile; tiles before it are not loaded",
       .shape = cache_of(f16, 128, 1, 128, {640, 639}),
       .queries = {1, 1},
       .query_heads = 1,
       .mask = sliding_window,
       .window_left = 127,
       .budget = {.wavefronts = {}, .sectors = {}, .tma_bytes = 2 * 32768 + (1 + 2) * 2 * 32768}});
  add({.name = "bf16_page16_window0",
       .what = "each query attends only to itself: the output is its V row, and adjacent rows differ in every element",
       .shape = cache_of(bf16, 16, 1, 64, {70, 16}),
       .queries = {65, 16},
       .query_heads = 1,
       .mask = sliding_window,
       .window_left = 0});
  add({.name = "f16_page1_window_without_limit",
       .what = "a window without a left limit is causal",
       .shape = cache_of(f16, 1, 1, 64, {140}),
       .queries = {20},
       .query_heads = 1,
       .mask = sliding_window,
       .window_left = -1});
  add({.name = "bf16_page16_softcap",
       .what = "scores of 8 with a cap of 5: omitting it, or applying it only after the scale, changes every weight",
       .shape = cache_of(bf16, 16, 1, 128, {150, 20}),
       .queries = {17, 20},
       .query_heads = 2,
       .soft_cap = 5});
  add({.name = "f16_page64_softcap_window",
       .what = "a masked score stays masked: a cap applied after the mask would change it to -cap",
       .shape = cache_of(f16, 64, 2, 64, {200}),
       .queries = {70},
       .query_heads = 2,
       .mask = sliding_window,
       .window_left = 33,
       .soft_cap = 20});
  add({.name = "bf16_page16_sharp",
       .what = "scores in the hundreds, of both signs: without subtracting the maximum, weights are infinite or all 0",
       .shape = cache_of(bf16, 16, 1, 64, {150}),
       .queries = {17},
       .query_heads = 2,
       .sharpness = 100});
  add({.name = "bf16_page16_no_mask",
       .what = "all keys, including later ones; only the end of the sequence masks",
       .shape = cache_of(bf16, 16, 2, 64, {150, 16, 128}),
       .queries = {17, 16, 1},
       .query_heads = 4,
       .mask = none});
  add({.name = "bf16_page16_rows_without_keys",
       .what = "more queries than keys, and no keys: o = 0 and lse = -inf, where a top-left mask would have keys",
       .shape = cache_of(bf16, 16, 1, 64, {2, 0, 100, 3}),
       .queries = {5, 20, 200, 3},
       .query_heads = 2});
  return cases;
}

}  // namespace

std::vector<Case> paged_prefill_cases() {
  return cases_of("paged_prefill", table(), run);
}

}  // namespace kvscope::gpu
