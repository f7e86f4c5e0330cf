// What tma_tile_load must leave in shared memory: the copies of core/tma/kv_copy.h carried out on the model's image, at
// the same place modulo 1024. Every byte of the window is held, also those that no copy may touch. Bytes by TMA are
// exactly what the model says a barrier must be told, neither more nor less.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/cache/scalar_functions.h"
#include "core/tma/box_copy.h"
#include "core/tma/cache_maps.h"
#include "core/tma/kv_arrival.h"
#include "core/tma/kv_copy.h"
#include "gpu/kernels/tma_tile_load/config.h"
#include "gpu/kernels/tma_tile_load/params.h"
#include "gpu/verify/cache_fixture.h"
#include "gpu/verify/case.h"

namespace kvscope::gpu {
namespace {

constexpr std::int64_t kGuardBytes = 256;  // of the window, behind the tile

// What most tiles have no use for.
struct Special {
  std::int64_t ctas = 1;                // K: 2 share a tile
  std::int64_t smem_rows = 0;           // K: rows from chunk to chunk; 0: those of one block
  std::int64_t parts = 1, part = 0;     // V
  std::int64_t depth = 0, columns = 0;  // the first, how many; 0: all, padded to whole chunks
  std::int64_t padded_depth = 0;        // rope: bytes of content before it
  std::int64_t tile_at = 0;             // [bytes] of the window
  bool demo = false;
};

struct TileCase {
  const char* name;
  const char* what;
  CacheShape shape;
  Slot slot;
  std::int64_t layer, head;
  TmaKind kind;
  SwizzleMode mode;
  std::int64_t BN;
  PastEnd past_end;
  std::int64_t tma_bytes;  // by hand, above each
  Special special{};
};

// What both sides are told in numbers.
struct Shape {
  std::int64_t rows = 0;       // that one block stages
  std::int64_t page_rows = 0;  // of one copy
  std::int64_t chunk_stride = 0;
  std::int64_t gran = 0, chunks = 0, element = 0;
  std::int64_t window_bytes = 0, tiles = 0;
};

// The model's side of one block.
struct Window {
  KvCopy copy;  // where its elements stand
  std::int64_t sequence = 0, first_token = 0;
  std::int64_t expected_bytes = 0;
  SharedImage image;
};

class Golden {
 public:
  Golden(const TileCase& of, CacheFixture& fixture)
      : c_(of),
        collection_(fixture.collection()),
        cache_(of.slot == Slot::key ? collection_.get_key_cache(LayerIdx{of.layer})
                                    : collection_.get_value_cache(LayerIdx{of.layer})) {
    shape_.rows = c_.BN / (c_.slot == Slot::key ? c_.special.ctas : c_.special.parts);
    shape_.page_rows = kv_sub_tile_rows(shape_.rows, cache_.page_size());
    shape_.chunk_stride = c_.slot == Slot::key && c_.special.smem_rows > 0 ? c_.special.smem_rows : shape_.rows;
    tile_ = make_tile();
    shape_.element = size_of(tile_.dtype);
    shape_.gran = swizzle_granularity(tile_.dtype, c_.mode);
    shape_.chunks = ceil_div(tile_.columns, shape_.gran);
    const std::int64_t span = ((shape_.chunks - 1) * shape_.chunk_stride + shape_.rows) * shape_.gran * shape_.element;
    shape_.window_bytes = c_.special.tile_at + span + kGuardBytes;
    const auto longest = *std::max_element(c_.shape.lengths.begin(), c_.shape.lengths.end());
    shape_.tiles = std::max<std::int64_t>(1, ceil_div(longest, c_.BN));
  }

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] const TmaTile& tile() const { return tile_; }

  [[nodiscard]] Window window(const TensorMap& map, const GlobalMemory& memory, std::int64_t sequence,
                              std::int64_t tile, std::int64_t rank) const {
    Window w{.copy = places(),
             .sequence = sequence,
             .first_token = tile * c_.BN + (c_.slot == Slot::key ? rank : c_.special.part) * shape_.rows,
             .image = SharedImage(shape_.window_bytes, std::byte{kTileLoadPoison})};
    const std::int64_t length = c_.shape.lengths[static_cast<std::size_t>(sequence)];
    const PagedRowIndices rows =
        cache_.populate(PopulateTile{.BN = c_.BN, .pair_cta = c_.special.ctas == 2, .is_leader = rank == 0},
                        SeqIdx{sequence}, TokIdx{tile * c_.BN});
    std::int64_t valid_pages = 0;
    for (std::int64_t page = 0; page < shape_.rows / shape_.page_rows; ++page)
      if (w.first_token + page * shape_.page_rows < length) ++valid_pages;

    if (c_.kind == TmaKind::rope || c_.kind == TmaKind::ragged || c_.kind == TmaKind::page) {
      issue_others(w, rows, map, memory, length);
      return w;
    }
    if (c_.past_end == PastEnd::skip && valid_pages == 0) return w;  // a producer has nothing to wait for
    w.copy = copy_of(rows, valid_pages);
    w.expected_bytes = w.copy.expected_bytes;
    ArrivalBarrier barrier(1);
    carry_out(w.copy, map, memory, w.image, c_.special.tile_at, barrier, CopyIdx{0});
    return w;
  }

 private:
  [[nodiscard]] TmaTile make_tile() const {
    TileOptions options{.mode = c_.mode, .BN = shape_.page_rows};
    if (c_.special.columns > 0) options.BK = c_.special.columns;
    switch (c_.kind) {
      case TmaKind::rope:
        return cache_.create_rope_tma_tile(
            {.mode = c_.mode, .BN = shape_.page_rows, .padded_depth = c_.special.padded_depth});
      case TmaKind::ragged:
        return cache_.create_ragged_tma_tile(options);
      case TmaKind::page:
        return cache_.create_paged_tma_tile(options);
      case TmaKind::fold_outer:
      case TmaKind::fold_inner:
        options.BK = options.BK.value_or(cache_.kv_params().head_size);
        options.fold_chunks = *options.BK / swizzle_granularity(cache_.dtype(), c_.mode);
        options.row_major = c_.kind == TmaKind::fold_inner;
        return cache_.create_tma_tile(options);
      default:
        return cache_.create_tma_tile(options);
    }
  }

  [[nodiscard]] KvCopy copy_of(const PagedRowIndices& rows, std::int64_t valid_pages) const {
    const bool partial = c_.past_end != PastEnd::copy;
    if (c_.slot == Slot::key) {
      return tma_copy_k(tile_, rows,
                        {.head = HeadIdx{c_.head},
                         .depth_offset = DimIdx{c_.special.depth},
                         .smem_BN = shape_.chunk_stride,
                         .needs_partial = partial,
                         .valid_pages = valid_pages});
    }
    return tma_copy_v(tile_, rows,
                      {.head = HeadIdx{c_.head},
                       .depth_offset = DimIdx{c_.special.depth},
                       .num_v_sub_tiles = c_.special.parts,
                       .v_idx = c_.special.part,
                       .needs_partial = partial,
                       .valid_pages = valid_pages,
                       .oob_fill_pages = c_.past_end == PastEnd::fill});
  }

  // A tile's places without its copies.
  [[nodiscard]] KvCopy places() const {
    KvCopy copy;
    copy.kind = c_.kind == TmaKind::fold_inner ? TmaKind::fold_inner : TmaKind::plain;
    copy.swizzle = c_.mode;
    copy.element_bytes = shape_.element;
    copy.tile_rows = shape_.rows;
    copy.issue_rows = shape_.page_rows;
    copy.pages = shape_.rows / shape_.page_rows;
    copy.chunks = shape_.chunks;
    copy.gran = shape_.gran;
    copy.chunk_stride = shape_.chunk_stride;
    return copy;
  }

  // Maps that a tile's producer takes coordinates for one by one.
  void issue_others(Window& w, const PagedRowIndices& rows, const TensorMap& map, const GlobalMemory& memory,
                    std::int64_t length) const {
    CopyIdx number{0};
    for (std::int64_t page = 0; page < w.copy.pages; ++page) {
      const std::int64_t token = w.first_token + page * shape_.page_rows;
      const std::int64_t valid = std::clamp<std::int64_t>(length - token, 0, shape_.page_rows);
      if (valid == 0 && c_.past_end == PastEnd::skip) continue;
      const std::int64_t row = rows.get_row(token - (token / c_.BN) * c_.BN).value;
      for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
        const DimIdx depth{c_.special.depth + chunk * shape_.gran};
        TmaCoord at;
        if (c_.kind == TmaKind::rope) at = tile_coords(tile_, row, HeadIdx{c_.head}, depth);
        if (c_.kind == TmaKind::ragged) at = ragged_coords(tile_, valid == 0 ? 0 : row, valid, HeadIdx{c_.head}, depth);
        if (c_.kind == TmaKind::page)
          at = page_coords(tile_, cache_.kv_tma_coords(SeqIdx{w.sequence}, TokIdx{token}), HeadIdx{c_.head}, depth);
        const std::int64_t place = kv_smem_offset(w.copy, page * shape_.page_rows, chunk * shape_.gran);
        w.expected_bytes +=
            load_box(map, at, memory, w.image, c_.special.tile_at + place * shape_.element, number, {}).tx_bytes;
        number = number + 1;
      }
    }
  }

  const TileCase& c_;
  PagedKVCacheCollection collection_;
  PagedKVCache cache_;
  TmaTile tile_;
  Shape shape_;
};

std::string entry_of(TmaKind kind) {
  return fmt::format("tma_tile_load_{}", kind == TmaKind::rope         ? "plain"
                                         : kind == TmaKind::fold_outer ? "fold_outer"
                                         : kind == TmaKind::fold_inner ? "fold_inner"
                                                                       : name(kind));
}

// Which element a byte of the windows is, in words.
std::string place_of(const TileCase& c, const std::vector<Window>& windows, std::int64_t window_bytes,
                     std::int64_t byte) {
  const Window& w = windows[static_cast<std::size_t>(byte / window_bytes)];
  const std::int64_t address = byte % window_bytes;
  const auto element = kv_element_at_address(w.copy, c.special.tile_at, address);
  const std::string where = fmt::format("window of block {}, byte {}", byte / window_bytes, address);
  if (!element) return fmt::format("{}, outside the tile", where);
  const std::int64_t token = w.first_token + element->row;
  return fmt::format("{}: sequence {}, token {}, head {}, dim {} (page {}, slot {})", where, w.sequence, token, c.head,
                     c.special.depth + element->depth, token / c.shape.page_size, token % c.shape.page_size);
}

Verdict run(const TileCase& c, Device& device) {
  CacheFixture fixture(c.shape);
  const UploadedCache there = fixture.upload(device);
  const Golden golden(c, fixture);
  const Shape& shape = golden.shape();

  const std::uint64_t pool = there.pool.address();
  const TensorMap map = tensor_map_of(c.name, golden.tile(),
                                      pool + static_cast<std::uint64_t>(golden.tile().base - fixture.pool().data()));
  GlobalMemory memory;
  memory.add("pool", pool, fixture.pool());

  std::vector<Window> windows;
  std::vector<std::byte> expected;
  std::int64_t bytes = 0;
  for (std::int64_t sequence = 0; sequence < fixture.sequences(); ++sequence)
    for (std::int64_t tile = 0; tile < shape.tiles; ++tile)
      for (std::int64_t rank = 0; rank < c.special.ctas; ++rank) {
        windows.push_back(golden.window(map, memory, sequence, tile, rank));
        const auto image = windows.back().image.bytes();
        expected.insert(expected.end(), image.begin(), image.end());
        bytes += windows.back().expected_bytes;
      }

  const DeviceArray out = device.filled("windows", static_cast<std::int64_t>(expected.size()), std::byte{0});
  const auto i32 = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
  const TmaTileLoadParams params{.map = device.encode(map),
                                 .cache = there.layer(c.layer, c.slot),
                                 .lengths = there.lengths.as<const std::uint32_t>(),
                                 .windows = out.as<unsigned char>(),
                                 .window_bytes = i32(shape.window_bytes),
                                 .tile_at = i32(c.special.tile_at),
                                 .is_value = c.slot == Slot::value ? 1 : 0,
                                 .head = i32(c.head),
                                 .depth = i32(c.special.depth),
                                 .BN = i32(c.BN),
                                 .smem_rows = i32(shape.chunk_stride),
                                 .parts = i32(c.special.parts),
                                 .part = i32(c.special.part),
                                 .chunks = i32(shape.chunks),
                                 .chunk_columns = i32(shape.gran),
                                 .chunk_bytes = i32(shape.gran * shape.element),
                                 .past_end = c.past_end};
  Verdict verdict;
  const Outcome outcome = device.launch({.kernel = "tma_tile_load",
                                         .entry = entry_of(c.kind),
                                         .grid = {c.special.ctas, shape.tiles, fixture.sequences()},
                                         .block = {kTileLoadThreads, 1, 1},
                                         .dynamic_shared = shape.window_bytes + kTileLoadBarrierBytes},
                                        bytes_of(params));
  if (!verdict.take(outcome)) return verdict;
  if (const auto fault = first_difference(expected, out.download(), 1, [&](std::int64_t byte) {
        return place_of(c, windows, shape.window_bytes, byte);
      }))
    verdict.faults.push_back(*fault);
  if (outcome.costs && outcome.costs->tma_bytes != bytes)
    verdict.faults.push_back(fmt::format("{} bytes by TMA, expected {}", outcome.costs->tma_bytes, bytes));
  return verdict;
}

CacheShape cache(DType dtype, std::int64_t page_size, std::int64_t kv_heads, std::int64_t head_size,
                 std::vector<std::int64_t> lengths, std::int64_t layers = 2) {
  return {.dtype = dtype,
          .page_size = page_size,
          .layers = layers,
          .kv_heads = kv_heads,
          .head_size = head_size,
          .lengths = std::move(lengths),
          .room = {}};
}

CacheShape with_sentinels(CacheShape shape) {
  shape.sentinels = true;
  return shape;
}
CacheShape latent(CacheShape shape) {
  shape.mla = true;
  return shape;
}

// The last number of each is what the copies must bring: rows * bytes of a row's chunks, of the pages that are copied.
std::vector<TileCase> tile_cases() {
  constexpr auto bf16 = DType::bf16, f16 = DType::f16, f32 = DType::f32, e4m3 = DType::e4m3;
  constexpr auto none = SwizzleMode::none, b32 = SwizzleMode::b32, b64 = SwizzleMode::b64, b128 = SwizzleMode::b128;
  constexpr auto K = Slot::key, V = Slot::value;
  constexpr auto plain = TmaKind::plain;
  return {
      // 2 pages of 16 rows of 128 B.
      {"k_bf16_b128_page16_tiny",
       "a tile over two pages that are not neighbours, the second of 4 tokens",
       cache(bf16, 16, 2, 64, {20}),
       K,
       1,
       1,
       plain,
       b128,
       32,
       PastEnd::skip,
       4096,
       {.demo = true}},
      // 51 tokens, 256 B each.
      {"k_f16_b128_page1", "a copy for every token and chunk: each row has its own place in the pool",
       cache(f16, 1, 2, 128, {0, 1, 17, 33}), K, 1, 0, plain, b128, 16, PastEnd::skip, 51 * 256},
      // 1 + 1 + 2 + 7 pages of 16 rows, 3 chunks of 64 B.
      {"k_bf16_b64_page16_padded", "80 columns in chunks of 32: the last 16 are zeros, not the next head",
       cache(bf16, 16, 3, 80, {15, 16, 17, 100}), K, 0, 1, plain, b64, 64, PastEnd::skip, 11 * 16 * 192},
      // 1 + 1 + 2 pages of 64 rows, 2 chunks of 32 B.
      {"k_e4m3_b32_page64_third_layer",
       "a tile as tall as a page, at an offset that is no multiple of 1024",
       cache(e4m3, 64, 2, 64, {63, 64, 65}, 3),
       K,
       2,
       1,
       plain,
       b32,
       64,
       PastEnd::skip,
       4 * 64 * 64,
       {.tile_at = 256}},
      // 1 + 2 + 3 tiles of 64 rows, 8 chunks of 16 B.
      {"k_f32_none_page128_below", "tiles that end inside a page: poison behind the last token travels as it is",
       cache(f32, 128, 2, 32, {1, 127, 129}), K, 1, 1, plain, none, 64, PastEnd::skip, 6 * 64 * 128},
      // 4 tiles of 64 rows, 2 chunks of 128 B.
      {"k_bf16_b128_page256_gap",
       "chunks 96 rows apart: 32 rows between them stay as they were",
       cache(bf16, 256, 1, 128, {200}),
       K,
       0,
       0,
       plain,
       b128,
       64,
       PastEnd::copy,
       4 * 64 * 256,
       {.smem_rows = 96}},
      // 1 tile of 256 rows of 128 B.
      {"k_e4m3_b128_page256_mqa", "the tallest box there is, one head", cache(e4m3, 256, 1, 128, {255}), K, 1, 0, plain,
       b128, 256, PastEnd::copy, 256 * 128},
      // 4 sequences, 2 tiles, 32 rows of 2 chunks: pages without tokens are fetched as zeros and counted.
      {"v_bf16_b128_page16_parts_fill",
       "the second half of V's tile; pages past the end are zeros, not poison",
       cache(bf16, 16, 2, 128, {0, 31, 40, 97}),
       V,
       1,
       1,
       plain,
       b128,
       64,
       PastEnd::fill,
       8 * 32 * 256,
       {.parts = 2, .part = 1}},
      // 2 sequences, 3 tiles, 32 rows of 128 B.
      {"v_bf16_b64_page256_part_of_page",
       "the third quarter of a tile that lies in one page",
       cache(bf16, 256, 2, 64, {100, 321}),
       V,
       0,
       1,
       plain,
       b64,
       128,
       PastEnd::copy,
       6 * 32 * 128,
       {.parts = 4, .part = 2}},
      // 0 + 1 + 2 + 3 pages of 64 rows, 3 chunks of 32 B.
      {"v_f16_b32_page64_skip",
       "no page, one, two and three of V; what is skipped is 0xCD still",
       cache(f16, 64, 2, 48, {0, 64, 65, 130}),
       V,
       1,
       0,
       plain,
       b32,
       128,
       PastEnd::skip,
       6 * 64 * 96,
       {.tile_at = 512}},
      // 2 sequences, 3 tiles, 16 rows of 128 B.
      {"v_bf16_none_page16_null_pages", "the null page is a page: its poison is copied where nobody skips",
       cache(bf16, 16, 2, 64, {16, 33}), V, 0, 1, plain, none, 16, PastEnd::copy, 6 * 16 * 128},
      // 4 pages of 16 rows of 128 B, of which two are rows that the map does not have.
      {"k_bf16_b128_page16_sentinels", "table entries past the pool: zeros by the map's end, no fault",
       with_sentinels(cache(bf16, 16, 2, 64, {20})), K, 1, 1, plain, b128, 64, PastEnd::copy, 64 * 128},
      // 4 and 0, 4 and 3, 8 and 8 pages of 16 rows, 2 chunks of 128 B.
      {"k_bf16_b128_page16_pair",
       "each of two blocks has half the pages; the second has 0, 3 or all of them",
       cache(bf16, 16, 2, 128, {64, 100, 250}),
       K,
       1,
       0,
       plain,
       b128,
       128,
       PastEnd::skip,
       27 * 16 * 256,
       {.ctas = 2}},
      // 2 tiles, 2 blocks, 64 rows of 2 chunks.
      {"k_bf16_b128_page128_pair_half_page",
       "one page for two blocks: the second begins at its row 64",
       cache(bf16, 128, 2, 128, {130}),
       K,
       0,
       1,
       plain,
       b128,
       128,
       PastEnd::copy,
       4 * 64 * 256,
       {.ctas = 2}},
      // 2 blocks, 128 rows of 128 B.
      {"k_f16_b64_page128_pair_pages",
       "two pages for two blocks: the second has the second",
       cache(f16, 128, 2, 64, {200}),
       K,
       1,
       1,
       plain,
       b64,
       256,
       PastEnd::copy,
       2 * 128 * 128,
       {.ctas = 2}},
      // 2 tiles of 64 rows, 2 chunks of 128 B in one copy.
      {"k_bf16_b128_page128_fold_outer",
       "columns 128..255 of a head in one copy",
       cache(bf16, 128, 2, 256, {70}),
       K,
       1,
       1,
       TmaKind::fold_outer,
       b128,
       64,
       PastEnd::copy,
       2 * 64 * 256,
       {.depth = 128, .columns = 128}},
      // 2 + 4 pages of 16 rows, 4 chunks of 64 B.
      {"k_bf16_b64_page16_fold_inner", "chunks inside groups of 8 rows, a copy a page",
       cache(bf16, 16, 2, 128, {17, 64}), K, 1, 1, TmaKind::fold_inner, b64, 64, PastEnd::skip, 6 * 16 * 256},
      // 4 pages of 8 rows, 2 chunks of 128 B.
      {"v_bf16_b128_page8_fold_inner_fill", "zeros from a group of rows past the last one", cache(bf16, 8, 2, 128, {9}),
       V, 1, 0, TmaKind::fold_inner, b128, 32, PastEnd::fill, 32 * 256},
      // 1 + 3 pages of 64 rows of 64 rope values.
      {"k_rope_b128_page64",
       "bf16 behind 512 bytes of content, 640 bytes from row to row",
       latent(cache(e4m3, 64, 1, 640, {30, 130})),
       K,
       1,
       0,
       TmaKind::rope,
       b128,
       64,
       PastEnd::skip,
       4 * 64 * 128,
       {.padded_depth = 512}},
      // 3 pages of 16 rows of 32 rope values in 2 chunks.
      {"k_rope_b32_page16_heads",
       "rope values of the second head, behind its own content",
       cache(e4m3, 16, 2, 128, {40}),
       K,
       0,
       1,
       TmaKind::rope,
       b32,
       32,
       PastEnd::skip,
       3 * 16 * 64,
       {.padded_depth = 64}},
      // 6 sequences, 64 rows of 2 chunks, whatever is valid of them.
      {"k_ragged_b128_page16", "rows behind the last token are zeros although memory has poison there",
       cache(bf16, 16, 2, 128, {0, 1, 15, 16, 17, 40}), K, 1, 1, TmaKind::ragged, b128, 64, PastEnd::copy,
       6 * 64 * 256},
      // 2 sequences, 2 tiles, 32 rows of 2 chunks of 64 B.
      {"k_ragged_b64_page64_below", "a ragged tile in the second half of a page", cache(f16, 64, 3, 64, {33, 63}), K, 0,
       2, TmaKind::ragged, b64, 32, PastEnd::copy, 4 * 32 * 128},
      // 1 + 3 tiles of 32 rows of 128 B.
      {"v_page_map_b128_page64", "slot and block as coordinates of their own", cache(bf16, 64, 2, 64, {30, 65}), V, 1,
       1, TmaKind::page, b128, 32, PastEnd::skip, 4 * 32 * 128},
  };
}

}  // namespace

std::vector<Case> tma_tile_load_cases() {
  std::vector<Case> cases;
  for (const TileCase& c : tile_cases())
    cases.push_back({.kernel = "tma_tile_load",
                     .name = c.name,
                     .what = c.what,
                     .demo = c.special.demo,
                     .budget = {.wavefronts = {}, .sectors = {}, .tma_bytes = c.tma_bytes},
                     .run = [c](Device& device) { return run(c, device); }});
  return cases;
}

}  // namespace kvscope::gpu
