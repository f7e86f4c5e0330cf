// Cases of mla_decode: core/attention's reference in double over rows of 576 elements whose first 512 are the values,
// each element within its bound. This file decodes tokens of 656 bytes and gathers the keys named by indices, with code
// independent of the kernel's. The scale of an e4m3 token is read through the model's KVCacheScalesMHAOperand.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>
#include <xtensor/xview.hpp>

#include "core/base/convert.h"
#include "core/base/random.h"
#include "core/cache/mha_operands.h"
#include "core/layout/filled.h"
#include "gpu/offload/mla_launch.h"
#include "gpu/verify/attention_check.h"
#include "gpu/verify/cache_fixture.h"
#include "gpu/verify/case.h"

namespace kvscope::gpu {
namespace {

constexpr std::int64_t kRow = mla::kRow, kValue = mla::kValue, kFp8Row = mla::kFp8Row;

// The keys that a query attends to: all keys of its sequence, or those in a list.
enum class Holes : std::uint8_t { dense, none, every_third, first_tile, all };

struct MlaCase {
  const char* name;
  const char* what;
  MlaRows rows;
  std::int64_t page_size;
  std::vector<std::int64_t> lengths;
  std::int64_t query_heads;
  std::int64_t splits = 1;
  std::int64_t layer = 0;
  std::int64_t topk = 0;       // 0: dense
  std::vector<Holes> holes{};  // [sequences]
  bool sentinels = false;
  bool scaled = true;    // e4m3: one scale per token
  double sharpness = 1;  // factor of the scale: with 100, powers of two of scores overflow a float
  bool demo = false;
  Budget budget{};  // computed by hand, in the comment above each
};

// --- the cache -------------------------------------------------------------------------------------------------------

// Writes a token of 656 bytes at `row`: any finite e4m3, scales 2^-9 .. 2^-6, so that values stay below 7; rope as in
// the other formats. The scales of the granules differ.
void write_fp8_token(std::byte* row, std::uint64_t number) {
  const CounterRng rng(number, 0x6d6c61U);
  for (std::uint64_t i = 0; i < 512; ++i) {
    const auto bits = static_cast<std::uint8_t>(rng.integer(i, 0, 0x7e) | (rng.integer(1000 + i, 0, 1) << 7));
    row[i] = std::byte{bits};
  }
  for (std::uint64_t g = 0; g < 4; ++g) {
    const auto scale = static_cast<float>(std::ldexp(1.0, static_cast<int>((number + g) % 4) - 9));
    std::memcpy(row + 512 + 4 * g, &scale, 4);
  }
  const std::vector<std::byte> rope = exact_noise(DType::bf16, 64, number + 7);
  std::copy(rope.begin(), rope.end(), row + 528);
}

// Decodes the 576 values of a token. `scale_of_token`: for e4m3.
void decode_token(MlaRows rows, const std::byte* row, float scale_of_token, float* to) {
  if (rows == MlaRows::bf16) {
    to_floats(DType::bf16, row, std::span(to, kRow));
    return;
  }
  if (rows == MlaRows::e4m3) {
    for (std::int64_t i = 0; i < kRow; ++i)
      to[i] = static_cast<float>(load_as_double(DType::e4m3, row + i) * static_cast<double>(scale_of_token));
    return;
  }
  for (std::int64_t i = 0; i < 512; ++i) {
    float scale;
    std::memcpy(&scale, row + 512 + i / 128 * 4, 4);
    to[i] = static_cast<float>(load_as_double(DType::e4m3, row + i) * static_cast<double>(scale));
  }
  to_floats(DType::bf16, row + 528, std::span(to + 512, 64));
}

CacheFixture cache_of(const MlaCase& c) {
  CacheShape shape;
  shape.dtype = c.rows == MlaRows::bf16 ? DType::bf16 : DType::e4m3;
  shape.page_size = c.page_size;
  shape.kv_heads = 1;
  shape.head_size = c.rows == MlaRows::fp8 ? kFp8Row : kRow;
  shape.granularity = c.rows == MlaRows::e4m3 && c.scaled ? kRow : 0;
  shape.mla = true;
  shape.lengths = c.lengths;
  shape.sentinels = c.sentinels;
  shape.seed = static_cast<std::uint64_t>(c.page_size + c.query_heads);
  CacheFixture cache(shape);
  if (c.rows != MlaRows::fp8) return cache;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const attention::PagedRows rows = cache.rows(layer, Slot::key);
    for (std::int64_t b = 0; b < cache.sequences(); ++b) {
      for (std::int64_t t = 0; t < cache.shape().length(b); ++t) {
        const std::int64_t block = cache.table()(b, t / rows.page_size);
        const std::int64_t at = block * rows.block_stride + t % rows.page_size * rows.token_stride;
        write_fp8_token(cache.pool().data() + (rows.data - cache.pool().data()) + at,
                        static_cast<std::uint64_t>((b * 1000 + t) * 2 + layer));
      }
    }
  }
  return cache;
}

// --- key selection ---------------------------------------------------------------------------------------------------

// [batch, topk]: block * page_size + slot of tokens of the sequence, in a shuffled order. Holes are -1; every fourth
// hole is an index past the pool's `blocks`.
xt::xtensor<std::int32_t, 2> indices_of(const MlaCase& c, const CacheFixture& cache) {
  xt::xtensor<std::int32_t, 2> indices = filled(-1, c.lengths.size(), c.topk);
  if (c.topk == 0) return indices;
  for (std::size_t b = 0; b < c.lengths.size(); ++b) {
    const std::int64_t length = c.lengths[b];
    const Holes holes = c.holes[b];
    for (std::int64_t i = 0; i < c.topk; ++i) {
      if (length == 0 || holes == Holes::all || (holes == Holes::every_third && i % 3 == 1) ||
          (holes == Holes::first_tile && i < mla::kKeys)) {
        if (i % 4 == 0) indices(b, i) = static_cast<std::int32_t>(cache.blocks() * c.page_size + i);
        continue;
      }
      const std::int64_t t = (i * 37 + 11) % length, block = cache.table()(b, t / c.page_size);
      indices(b, i) = static_cast<std::int32_t>(block * c.page_size + t % c.page_size);
    }
  }
  return indices;
}

// Rows that the reference reads, each in its own block.
struct Gathered {
  std::vector<float> values;            // [keys of all sequences, 576]
  xt::xtensor<std::uint32_t, 2> table;  // [batch, most keys of a sequence]
  std::vector<std::int64_t> lengths;    // [batch]
};

// The token of sequence `b` in a slot of a block.
TokIdx token_of(const CacheFixture& cache, std::int64_t b, std::int64_t block, std::int64_t slot) {
  const auto pages = xt::row(cache.table(), b);
  const std::int64_t page = std::find(pages.begin(), pages.end(), block) - pages.begin();
  return TokIdx{page * cache.shape().page_size + slot};
}

Gathered gather(const MlaCase& c, CacheFixture& cache, const xt::xtensor<std::int32_t, 2>& indices) {
  Gathered g;
  const attention::PagedRows rows = cache.rows(c.layer, Slot::key);
  const auto element = size_of(rows.dtype);
  const PagedKVCacheCollection collection = cache.collection();
  const KVCacheScalesMHAOperand scales(collection.get_key_cache(LayerIdx{c.layer}));
  g.table = filled(0xffffffffU, cache.sequences(), std::max(std::ranges::max(c.lengths), c.topk));
  for (std::int64_t b = 0; b < cache.sequences(); ++b) {
    const std::int64_t most = c.topk > 0 ? c.topk : cache.shape().length(b);
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < most; ++i) {
      std::int64_t block, slot;
      if (c.topk > 0) {
        const std::int64_t index = indices(b, i);
        if (index < 0 || index >= rows.blocks * c.page_size) continue;
        block = index / c.page_size, slot = index % c.page_size;
      } else {
        block = cache.table()(b, i / c.page_size), slot = i % c.page_size;
      }
      const auto at = static_cast<std::int64_t>(g.values.size());
      g.values.resize(static_cast<std::size_t>(at + kRow));
      float scale = 1;
      if (c.rows == MlaRows::e4m3 && c.scaled)
        std::memcpy(&scale,
                    scales.block_paged_ptr<1>(SeqIdx{b}, token_of(cache, b, block, slot), HeadIdx{0}, DimIdx{kRow - 1}),
                    4);
      decode_token(c.rows, rows.data + (block * rows.block_stride + slot * rows.token_stride) * element, scale,
                   g.values.data() + at);
      g.table(b, count++) = static_cast<std::uint32_t>(at / kRow);
    }
    g.lengths.push_back(count);
  }
  return g;
}

attention::PagedRows rows_of(const Gathered& g, std::int64_t head_size) {
  attention::PagedRows rows;
  rows.data = reinterpret_cast<const std::byte*>(g.values.data());
  rows.dtype = DType::f32;
  rows.blocks = static_cast<std::int64_t>(g.values.size()) / kRow;
  rows.page_size = 1;
  rows.heads = 1;
  rows.head_size = head_size;
  rows.block_stride = rows.token_stride = rows.head_stride = kRow;
  rows.table = g.table.data();
  rows.table_stride = static_cast<std::int64_t>(g.table.shape(1));
  return rows;
}

// --- a case ----------------------------------------------------------------------------------------------------------

Verdict run(const MlaCase& c, Device& device) {
  CacheFixture cache = cache_of(c);
  const UploadedCache there = cache.upload(device);
  const std::int64_t batch = cache.sequences(), heads = c.query_heads;
  const attention::PagedRows stored = cache.rows(c.layer, Slot::key);
  const xt::xtensor<std::int32_t, 2> indices = indices_of(c, cache);
  const std::vector<std::byte> q = exact_noise(DType::bf16, batch * heads * kRow, 5);

  const auto scratch = [&](std::int64_t bytes, std::string_view name) {
    return DeviceArray(device, device.allocate(bytes, name), bytes);
  };
  const DeviceArray queries = device.upload("q", q);
  const DeviceArray index_array = upload_tensor(device, "indices", indices);
  const DeviceArray out = device.filled("out", batch * heads * kValue * 2, std::byte{0xff});
  const DeviceArray lse = device.filled("lse", batch * heads * 4, std::byte{0xff});
  const DeviceArray part = scratch(batch * c.splits * heads * kValue * 4, "parts");
  const DeviceArray part_lse = scratch(batch * c.splits * heads * 4, "lse of parts");

  MlaDecodeParams params;
  params.cache = there.layer(c.layer, Slot::key);
  params.q = queries.as<const void>();
  params.lengths = there.lengths.as<const std::uint32_t>();
  params.indices = c.topk > 0 ? index_array.as<const std::int32_t>() : nullptr;
  params.out = out.as<void>();
  params.lse = lse.as<float>();
  params.part = part.as<float>();
  params.part_lse = part_lse.as<float>();
  params.topk = static_cast<std::int32_t>(c.topk);
  params.query_heads = static_cast<std::int32_t>(heads);
  params.splits = static_cast<std::int32_t>(c.splits);
  params.scale = 0.0721687824F * static_cast<float>(c.sharpness);  // 1 / sqrt(192), of the heads before absorption

  Verdict verdict;
  if (!verdict.take(device.launch(mla_decode_launch(c.rows, heads, batch, c.splits), bytes_of(params))) ||
      !verdict.take(device.launch(mla_combine_launch(heads, batch), bytes_of(params))))
    return verdict;

  std::vector<std::int64_t> offsets;
  for (std::int64_t b = 0; b <= batch; ++b) offsets.push_back(b);
  attention::Problem problem;
  problem.batch = batch;
  problem.query_heads = heads;
  problem.q = q.data();
  problem.q_dtype = DType::bf16;
  problem.query_offsets = offsets;
  problem.options.mask = MaskKind::none;
  problem.options.scale = static_cast<double>(params.scale);
  const Gathered gathered = gather(c, cache, indices);
  if (c.topk == 0 && c.rows != MlaRows::fp8) {
    problem.key_lengths = c.lengths;
    problem.k = stored;
    problem.v = cache.rows(c.layer, Slot::key, kValue);
  } else {
    problem.key_lengths = gathered.lengths;
    problem.k = rows_of(gathered, kRow);
    problem.v = rows_of(gathered, kValue);
  }
  check_attention(verdict, problem, DType::bf16, out.download(), lse.download_as<float>());
  return verdict;
}

// An e4m3 tile adds: scales stored by four warps and loaded in eight, 8 bytes per lane four times, half a warp at once.
constexpr std::int64_t kTileScales = 4 + 8 * 4 * 2;

// Shared wavefronts: a tile of 72 chunks in 64 rows, also of queries, is 576. Per tile of keys: weights 64, maxima
// written and read 32, valid bits 4 and 8. At the end of a CTA, sums written and read, 32.
constexpr std::int64_t kTileStored = 576, kTileSoftmax = 64 + 32 + 12, kSums = 32;

std::vector<MlaCase> table() {
  std::vector<MlaCase> cases;
  const auto add = [&](MlaCase c) { cases.push_back(std::move(c)); };

  // Sectors: rows of 36 for 16 queries and 65 keys; 16 parts of 64, written and read; output 16 x 32; lse of parts 2,
  // read twice by four warps for each head; lse 16; the length for 12 warps; the table for 4 warps, then for one.
  add({.name = "bf16_page64_demo",
       .what = "one token past a page: the second tile has one key",
       .rows = MlaRows::bf16,
       .page_size = 64,
       .lengths = {65},
       .query_heads = 16,
       .demo = true,
       .budget = {.wavefronts = kTileStored + 2 * (kTileStored + kTileSoftmax) + kSums,
                  .sectors = (16 + 65) * 36 + 2 * 16 * 64 + 16 * 32 + 2 + 16 * 4 * 2 + 16 + 12 + 5,
                  .tma_bytes = {}}});
  add({.name = "bf16_page64_heads128_ladder",
       .what = "lengths around a tile, two tiles of heads; empty sequences and splits without a key",
       .rows = MlaRows::bf16,
       .page_size = 64,
       .lengths = {0, 1, 65, 200},
       .query_heads = 128,
       .splits = 2});
  add({.name = "bf16_page16_heads16_sentinels",
       .what = "four pages per tile, layer 1; entries past the end are not blocks",
       .rows = MlaRows::bf16,
       .page_size = 16,
       .lengths = {0, 1, 63, 64, 65, 200, 15, 17},
       .query_heads = 16,
       .splits = 3,
       .layer = 1,
       .sentinels = true});
  add({.name = "bf16_page1_heads20",
       .what = "every token in a separate block; fewer heads than a tile",
       .rows = MlaRows::bf16,
       .page_size = 1,
       .lengths = {1, 2, 130},
       .query_heads = 20,
       .splits = 1,
       .layer = 1});
  add({.name = "bf16_page256_six_tiles",
       .what = "six tiles use the ring three times; a page is four tiles",
       .rows = MlaRows::bf16,
       .page_size = 256,
       .lengths = {383},
       .query_heads = 70});
  add({.name = "bf16_page128_eight_splits",
       .what = "more splits than tiles, and tiles that do not divide",
       .rows = MlaRows::bf16,
       .page_size = 128,
       .lengths = {300, 129},
       .query_heads = 8,
       .splits = 8});
  add({.name = "bf16_page16_sharp",
       .what = "scores in the hundreds, of both signs: without subtracting the maximum, weights are infinite or all 0",
       .rows = MlaRows::bf16,
       .page_size = 16,
       .lengths = {1, 90},
       .query_heads = 16,
       .splits = 2,
       .sharpness = 100});
  add({.name = "fp8_page64_heads16_ladder",
       .what = "tokens of 656 bytes, every e4m3 number, four different scales per token",
       .rows = MlaRows::fp8,
       .page_size = 64,
       .lengths = {0, 1, 63, 64, 65, 200},
       .query_heads = 16,
       .layer = 1});
  add({.name = "fp8_page16_heads128",
       .what = "two tiles of heads convert the same rows",
       .rows = MlaRows::fp8,
       .page_size = 16,
       .lengths = {65, 17},
       .query_heads = 128,
       .splits = 2,
       .sentinels = true});
  // Three tiles in two CTAs: 16 e4m3 become two chunks, stored without a conflict.
  add({.name = "fp8_page1_heads64",
       .what = "every token in a separate block",
       .rows = MlaRows::fp8,
       .page_size = 1,
       .lengths = {66, 1},
       .query_heads = 64,
       .budget = {.wavefronts = 2 * (kTileStored + kSums) + 3 * (kTileStored + kTileSoftmax),
                  .sectors = {},
                  .tma_bytes = {}}});
  // Three tiles in two CTAs. Sectors: rows of 18 for 67 keys; queries 36 per head, for both sequences; a scale per key.
  add({.name = "e4m3_page1_heads64",
       .what = "one scale per token, not a power of two, every token in a separate block",
       .rows = MlaRows::e4m3,
       .page_size = 1,
       .lengths = {66, 1},
       .query_heads = 64,
       .layer = 1,
       .budget = {.wavefronts = 2 * (kTileStored + kSums) + 3 * (kTileStored + kTileSoftmax + kTileScales),
                  .sectors = {},
                  .tma_bytes = {}}});
  // Sectors as bf16_page64_demo, but rows of 18 for the keys, and four scales per sector: 65 keys in 9 sectors.
  add({.name = "e4m3_page64_tile_and_one",
       .what = "rows of 576 bytes and a scale each, one token past a page",
       .rows = MlaRows::e4m3,
       .page_size = 64,
       .lengths = {65},
       .query_heads = 16,
       .budget = {.wavefronts = kTileStored + 2 * (kTileStored + kTileSoftmax + kTileScales) + kSums,
                  .sectors = 16 * 36 + 65 * 18 + 9 + 2 * 16 * 64 + 16 * 32 + 2 + 16 * 4 * 2 + 16 + 12 + 5,
                  .tma_bytes = {}}});
  add({.name = "e4m3_page16_heads128_ladder",
       .what = "lengths around a tile, two tiles of heads; poisoned scales past the end, splits without a key",
       .rows = MlaRows::e4m3,
       .page_size = 16,
       .lengths = {0, 1, 63, 64, 65, 200},
       .query_heads = 128,
       .splits = 2,
       .sentinels = true});
  add({.name = "e4m3_page24_sharp",
       .what = "scores in the tens: without subtracting the maximum, weights overflow; pages smaller than a tile",
       .rows = MlaRows::e4m3,
       .page_size = 24,
       .lengths = {150, 3},
       .query_heads = 20,
       .sharpness = 10});
  add({.name = "e4m3_page16_sparse",
       .what = "scales of tokens by index, with holes",
       .rows = MlaRows::e4m3,
       .page_size = 16,
       .lengths = {100, 33},
       .query_heads = 16,
       .layer = 1,
       .topk = 96,
       .holes = {Holes::first_tile, Holes::every_third}});
  add({.name = "e4m3_page64_unscaled",
       .what = "no scales: every scale is 1",
       .rows = MlaRows::e4m3,
       .page_size = 64,
       .lengths = {70},
       .query_heads = 8,
       .scaled = false});
  add({.name = "bf16_page64_sparse",
       .what = "unordered indices, some holes, only holes: a hole counted as slot 0 is detected",
       .rows = MlaRows::bf16,
       .page_size = 64,
       .lengths = {200, 65, 130, 1, 0},
       .query_heads = 16,
       .splits = 2,
       .layer = 1,
       .topk = 130,
       .holes = {Holes::none, Holes::every_third, Holes::all, Holes::first_tile, Holes::all}});
  add({.name = "fp8_page16_sparse_heads128",
       .what = "a whole tile of holes before the first key: its maxima must not count",
       .rows = MlaRows::fp8,
       .page_size = 16,
       .lengths = {100, 33},
       .query_heads = 128,
       .topk = 96,
       .holes = {Holes::first_tile, Holes::every_third}});
  add({.name = "bf16_page1_sparse",
       .what = "an index is a block",
       .rows = MlaRows::bf16,
       .page_size = 1,
       .lengths = {70},
       .query_heads = 5,
       .topk = 65,
       .holes = {Holes::every_third}});
  return cases;
}

}  // namespace

std::vector<Case> mla_decode_cases() {
  return cases_of("mla_decode", table(), run);
}

}  // namespace kvscope::gpu
