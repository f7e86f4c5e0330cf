// Cases of gather4_tile_load. The expected contents of shared memory are computed with core/tma/gather4.h on the
// model's image, for groups one after the other. The same lists test the single instruction (sm_100) and the four
// copies (sm_90).
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/cache/sparse_remap.h"
#include "core/tma/gather4.h"
#include "core/tma/tile_map.h"
#include "core/tma/tile_sizes.h"
#include "gpu/kernels/gather4_tile_load/config.h"
#include "gpu/kernels/gather4_tile_load/params.h"
#include "gpu/verify/cache_fixture.h"
#include "gpu/verify/case.h"

namespace kvscope::gpu {
namespace {

constexpr std::int64_t kGuardBytes = 256;  // of the window, after the tile

struct GatherCase {
  const char* name;
  const char* what;
  CacheShape shape;
  Slot slot;
  std::int64_t layer;
  SwizzleMode mode;
  std::int64_t tile_rows;
  std::int64_t tile_columns;         // of the map's type
  std::vector<std::int64_t> counts;  // [sequences] entries of the lists
  std::int64_t tma_bytes;            // computed by hand, in the comment above each
  std::optional<DType> as{};         // the type that rows are viewed as, if different
  std::int64_t padded_depth = -1;    // rope: bytes of content before it
  std::int64_t tile_at = 0;          // [bytes] of the window
  bool demo = false;
};

// The entries of a list: any token, sometimes the previous one again, -1, and indices outside the pool.
std::vector<std::int32_t> list_of(const GatherCase& c, const PagedKVCache& cache, std::int64_t sequence,
                                  std::int64_t blocks, std::int64_t stride) {
  std::vector<std::int32_t> list;
  const CounterRng draw(c.shape.seed, 0x6c697374U + static_cast<std::uint64_t>(sequence));
  const std::int64_t length = c.shape.length(sequence);
  for (std::int64_t i = 0; i < stride; ++i) {
    if (i >= c.counts[static_cast<std::size_t>(sequence)]) {  // for an empty list, entry 0 is read; the rest is poison
      list.push_back(i == 0 ? -1 : static_cast<std::int32_t>((blocks - 1) * c.shape.page_size));
    } else if (i % 7 == 4) {
      list.push_back(-1);
    } else if (i % 11 == 8) {
      list.push_back(static_cast<std::int32_t>(blocks * c.shape.page_size + i));  // past the pool
    } else if (i % 13 == 10) {
      list.push_back(-3);  // a negative number other than -1
    } else if (i % 5 == 2) {
      list.push_back(list.back());
    } else {
      const auto token = static_cast<std::int32_t>(draw.integer(static_cast<std::uint64_t>(i), 0, length - 1));
      list.push_back(remap_sparse_index(token, SeqIdx{sequence}, cache.lookup_table(), cache.page_size(), blocks - 1));
    }
  }
  return list;
}

TmaTile tile_of(const GatherCase& c, const PagedKVCache& cache) {
  const std::int64_t row_bytes = c.shape.kv_heads * c.shape.head_size * size_of(c.shape.dtype);
  if (c.padded_depth >= 0)
    return cache.create_rope_gather4_tma_tile(
        {.tile_height = c.tile_rows, .tile_width = row_bytes / 2, .padded_depth = c.padded_depth, .mode = c.mode});
  return cache.create_gather4_tma_tile({.tile_height = c.tile_rows,
                                        .tile_width = c.tile_columns,
                                        .tile_stride = row_bytes / size_of(c.as.value_or(c.shape.dtype)),
                                        .mode = c.mode,
                                        .tma_dtype = c.as});
}

Verdict run(const GatherCase& c, TmaTarget target, Device& device) {
  CacheFixture fixture(c.shape);
  const UploadedCache there = fixture.upload(device);
  const PagedKVCacheCollection collection = fixture.collection();
  const PagedKVCache cache =
      c.slot == Slot::key ? collection.get_key_cache(LayerIdx{c.layer}) : collection.get_value_cache(LayerIdx{c.layer});
  const TmaTile tile = tile_of(c, cache);
  const std::int64_t element = size_of(tile.dtype), box = tile.box.fastest(), groups = c.tile_columns / box;
  const std::int64_t tile_bytes = c.tile_rows * groups * box * element;
  const std::int64_t window_bytes = c.tile_at + tile_bytes + kGuardBytes;
  std::int64_t longest = 1;
  for (const std::int64_t count : c.counts) longest = std::max(longest, count);
  const std::int64_t tiles = ceil_div(longest, c.tile_rows), stride = longest + 3;

  const std::uint64_t pool = there.pool.address();
  const TensorMap map =
      tensor_map_of(c.name, tile, pool + static_cast<std::uint64_t>(tile.base - fixture.pool().data()), target);
  GlobalMemory memory;
  memory.add("pool", pool, fixture.pool());

  std::vector<std::int32_t> indices, counts;
  std::vector<std::byte> expected;
  std::vector<std::int32_t> encoded;  // [windows, tile_rows] the index loaded into each row, for reports
  for (std::int64_t sequence = 0; sequence < fixture.sequences(); ++sequence) {
    const std::int64_t count = c.counts[static_cast<std::size_t>(sequence)];
    counts.push_back(static_cast<std::int32_t>(count));
    const std::vector<std::int32_t> list = list_of(c, cache, sequence, fixture.blocks(), stride);
    indices.insert(indices.end(), list.begin(), list.end());
    for (std::int64_t t = 0; t < tiles; ++t) {
      SharedImage image(window_bytes, std::byte{kGatherPoison});
      CopyIdx number{0};
      for (std::int64_t four = 0; four < c.tile_rows / 4; ++four) {
        std::array<std::int32_t, 4> rows{};
        for (std::size_t i = 0; i < 4; ++i) {
          const std::int64_t entry = t * c.tile_rows + 4 * four + static_cast<std::int64_t>(i);
          encoded.push_back(list[static_cast<std::size_t>(decode_list_position(entry, count))]);
          rows[i] = decode_tma_row(cache, encoded.back());
        }
        for (std::int64_t group = 0; group < groups; ++group) {
          const TmaCoord at = gather4_coords(tile, rows, group);
          const std::int64_t to = c.tile_at + gather4_smem_offset(tile, group, four) * element;
          if (target == TmaTarget::sm_100)
            gather4(map, at, memory, image, to, number);
          else
            gather4_by_loads(map, at, memory, image, to, number);
          number = number + 4;
        }
      }
      expected.insert(expected.end(), image.bytes().begin(), image.bytes().end());
    }
  }

  const DeviceArray list = device.upload_values("indices", indices), sizes = device.upload_values("counts", counts);
  const DeviceArray out = device.filled("windows", static_cast<std::int64_t>(expected.size()), std::byte{0});
  const auto i32 = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  const Gather4TileLoadParams params{.map = device.encode(map),
                                     .cache = there.layer(c.layer, c.slot),
                                     .indices = list.as<const std::int32_t>(),
                                     .counts = sizes.as<const std::int32_t>(),
                                     .windows = out.as<unsigned char>(),
                                     .index_stride = i32(stride),
                                     .window_bytes = i32(window_bytes),
                                     .tile_at = i32(c.tile_at),
                                     .tile_rows = i32(c.tile_rows),
                                     .groups = i32(groups),
                                     .box_columns = i32(box),
                                     .box_bytes = i32(box * element)};
  Verdict verdict;
  const Outcome outcome = device.launch({.kernel = "gather4_tile_load",
                                         .entry = "gather4_tile_load",
                                         .grid = {tiles, fixture.sequences(), 1},
                                         .block = {kGatherThreads, 1, 1},
                                         .dynamic_shared = window_bytes + kGatherBarrierBytes},
                                        bytes_of(params));
  if (!verdict.take(outcome)) return verdict;
  const auto place = [&](std::int64_t byte) {
    const std::int64_t window = byte / window_bytes, at = byte % window_bytes - c.tile_at;
    if (at < 0 || at >= tile_bytes)
      return fmt::format("window {}, byte {}, outside the tile", window, byte % window_bytes);
    const std::int64_t row = at / (box * element) % c.tile_rows;
    return fmt::format("sequence {}, tile {}, row {} (encoded index {}), group {}", window / tiles, window % tiles, row,
                       encoded[static_cast<std::size_t>(window * c.tile_rows + row)],
                       at / (box * element) / c.tile_rows);
  };
  if (const auto fault = first_difference(expected, out.download(), 1, place)) verdict.faults.push_back(*fault);
  if (outcome.costs && outcome.costs->tma_bytes != tiles * fixture.sequences() * tile_bytes)
    verdict.faults.push_back(fmt::format("{} bytes by TMA, expected {}", outcome.costs->tma_bytes,
                                         tiles * fixture.sequences() * tile_bytes));
  return verdict;
}

CacheShape cache(DType dtype, std::int64_t page_size, std::int64_t kv_heads, std::int64_t head_size,
                 std::vector<std::int64_t> lengths, bool mla = false) {
  return {.dtype = dtype,
          .page_size = page_size,
          .layers = 2,
          .kv_heads = kv_heads,
          .head_size = head_size,
          .mla = mla,
          .lengths = std::move(lengths),
          .room = {}};
}

// Bytes: tiles of all lists (as many as the longest list has) * rows * columns * size.
std::vector<GatherCase> gather_cases() {
  constexpr auto bf16 = DType::bf16, f16 = DType::f16, f32 = DType::f32, e4m3 = DType::e4m3;
  constexpr auto none = SwizzleMode::none, b128 = SwizzleMode::b128;
  constexpr auto K = Slot::key, V = Slot::value;
  GatherCase tiny{"bf16_b128_page16_tiny",
                  "repeated tokens, and -1, which must load zeros and be counted",
                  cache(bf16, 16, 1, 64, {40}),
                  K,
                  1,
                  b128,
                  16,
                  64,
                  {16},
                  16 * 128};
  tiny.demo = true;
  GatherCase content{"e4m3_as_i64_page64",
                     "512 of 640 bytes of a row, seen as 64 numbers of 8 bytes",
                     cache(e4m3, 64, 1, 640, {100, 70}, true),
                     K,
                     1,
                     none,
                     16,
                     64,
                     {16, 30},
                     4 * 16 * 512};
  content.as = DType::i64;
  GatherCase rope{"e4m3_rope_b128_page64",
                  "the rope values after the content of a row: 64 bf16 from byte 512",
                  cache(e4m3, 64, 1, 640, {100, 70}, true),
                  K,
                  0,
                  b128,
                  32,
                  64,
                  {33, 5},
                  4 * 32 * 128};
  rope.padded_depth = 512;
  GatherCase offset{"v_f32_b128_page128_at_offset",
                    "a tile that begins at a multiple of 1024, guard bytes before it",
                    cache(f32, 128, 1, 64, {129}),
                    V,
                    0,
                    b128,
                    8,
                    64,
                    {24},
                    3 * 8 * 256};
  offset.tile_at = 1024;
  return {
      tiny,
      {"bf16_b128_page16_latent",
       "rows of 576 columns in 9 groups; lists that end inside a tile repeat their last entry",
       cache(bf16, 16, 1, 576, {200, 90}, true),
       K,
       1,
       b128,
       64,
       576,
       {100, 64},
       4 * 64 * 1152},
      {"v_bf16_b128_page1",
       "pages of one token: every index is its block",
       cache(bf16, 1, 2, 64, {50, 3}),
       V,
       1,
       b128,
       8,
       128,
       {17, 2},
       6 * 8 * 256},
      {"f16_none_page256",
       "an empty list reads its first entry, which is -1; whole rows, two heads in one",
       cache(f16, 256, 2, 64, {300, 1}),
       K,
       0,
       none,
       4,
       128,
       {9, 0},
       6 * 4 * 256},
      content,
      rope,
      offset,
  };
}

// Narrow rows, which four copies cannot load: their destinations would be at 32, 64 or 96 modulo 128.
std::vector<GatherCase> narrow_cases() {
  return {
      {"bf16_b64_page16",
       "rows of 64 bytes, eight to a period of the swizzle",
       cache(DType::bf16, 16, 2, 64, {90, 20}),
       Slot::key,
       1,
       SwizzleMode::b64,
       32,
       128,
       {33, 20},
       4 * 32 * 256},
      {"v_f16_b32_page128",
       "rows of 32 bytes, the second layer of V",
       cache(DType::f16, 128, 1, 48, {140}),
       Slot::value,
       1,
       SwizzleMode::b32,
       16,
       48,
       {50},
       4 * 16 * 96},
  };
}

void add(std::vector<Case>& cases, const std::vector<GatherCase>& some, TmaTarget target) {
  const bool by_loads = target == TmaTarget::sm_90;
  for (const GatherCase& c : some)
    cases.push_back({.kernel = "gather4_tile_load",
                     .name = fmt::format("{}_{}", c.name, by_loads ? "loads" : "gather4"),
                     .what = c.what,
                     .demo = c.demo && by_loads,
                     .architecture = by_loads ? "sm_90a" : "sm_100a",
                     .budget = {.wavefronts = {}, .sectors = {}, .tma_bytes = c.tma_bytes},
                     .run = [c, target](Device& device) { return run(c, target, device); }});
}

}  // namespace

std::vector<Case> gather4_tile_load_cases() {
  std::vector<Case> cases;
  add(cases, gather_cases(), TmaTarget::sm_90);
  add(cases, gather_cases(), TmaTarget::sm_100);
  add(cases, narrow_cases(), TmaTarget::sm_100);
  return cases;
}

}  // namespace kvscope::gpu
