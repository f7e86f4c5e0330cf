// Cases of tma_tile_load: the copies of core/staging/tma/kv_copy.h are performed on the model's image, at the same
// address modulo 1024. Every byte of the window is compared, including bytes that no copy may change. The bytes copied
// by TMA must equal the bytes that the model's barrier expects.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/cache/continuous_kv_cache.h"
#include "core/staging/tma/kv_arrival.h"
#include "core/staging/tma/kv_copy.h"
#include "core/tma/box_copy.h"
#include "core/tma/tile_map.h"
#include "core/tma/tile_sizes.h"
#include "gpu/kernels/tma_tile_load/config.h"
#include "gpu/kernels/tma_tile_load/params.h"
#include "gpu/verify/cache_fixture.h"
#include "gpu/verify/case.h"
#include "gpu/verify/tma_tile_load_list.h"

namespace kvscope::gpu {
namespace {

constexpr std::int64_t kGuardBytes = 256;  // of the window, after the tile

// The numbers that the model and the kernel share.
struct Shape {
  std::int64_t rows = 0;       // staged by one block
  std::int64_t page_rows = 0;  // of one copy
  std::int64_t chunk_stride = 0;
  std::int64_t gran = 0, chunks = 0, element = 0;
  std::int64_t window_bytes = 0, tiles = 0;
};

// The model's result for one block.
struct Window {
  KvCopy copy;  // the positions of its elements
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
                                    : collection_.get_value_cache(LayerIdx{of.layer})),
        lengths_(of.shape.lengths.begin(), of.shape.lengths.end()) {
    for (std::int64_t b = 0; b < fixture.sequences(); ++b) blocks_.push_back(fixture.table()(b, 0));
    shape_.rows = c_.BN / (c_.slot == Slot::key ? c_.special.ctas : c_.special.parts);
    shape_.page_rows = c_.kind == TmaKind::matrix ? shape_.rows : kv_sub_tile_rows(shape_.rows, cache_.page_size());
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
    const std::int64_t length = c_.shape.length(sequence);
    if (c_.kind == TmaKind::matrix) {
      w.copy = tma_copy_matrix(tile_, c_.slot == Slot::key ? KOrV::k : KOrV::v,
                               continuous().row_idx(SeqIdx{sequence}, TokIdx{tile * c_.BN}), HeadIdx{c_.head},
                               DimIdx{c_.special.depth});
      w.expected_bytes = w.copy.expected_bytes;
      ArrivalBarrier barrier(1);
      carry_out(w.copy, map, memory, w.image, c_.special.tile_at, barrier, CopyIdx{0});
      return w;
    }
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
    if (c_.past_end == PastEnd::skip && valid_pages == 0) return w;  // the producer has nothing to wait for
    w.copy = copy_of(rows, valid_pages);
    w.expected_bytes = w.copy.expected_bytes;
    ArrivalBarrier barrier(1);
    carry_out(w.copy, map, memory, w.image, c_.special.tile_at, barrier, CopyIdx{0});
    return w;
  }

 private:
  // The same layer as a continuous cache, whose blocks are one page per sequence.
  [[nodiscard]] ContinuousBatchingKVCache continuous() const {
    ContinuousLayerTensors tensors;
    tensors.blocks = cache_.blocks();
    tensors.cache_lengths = {lengths_.data(), kvscope::Shape<1>{static_cast<std::int64_t>(lengths_.size())}};
    tensors.lookup_table = {blocks_.data(), kvscope::Shape<1>{static_cast<std::int64_t>(blocks_.size())}};
    for (const std::uint32_t length : lengths_) tensors.max_cache_length = std::max(tensors.max_cache_length, length);
    return {cache_.kv_params(), tensors};
  }

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
      case TmaKind::matrix:
        return continuous().create_tma_tile(c_.BN, options.BK.value_or(cache_.kv_params().head_size), c_.mode,
                                            !c_.special.mn_major);
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

  // The positions of a tile's elements, without its copies.
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

  // Issues the copies of maps for which a tile's producer passes the coordinates one by one.
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
  std::vector<std::uint32_t> lengths_, blocks_;  // [sequences] of the continuous cache
  TmaTile tile_;
  Shape shape_;
};

std::string entry_of(TmaKind kind) {
  return fmt::format("tma_tile_load_{}", kind == TmaKind::rope         ? "plain"
                                         : kind == TmaKind::fold_outer ? "fold_outer"
                                         : kind == TmaKind::fold_inner ? "fold_inner"
                                                                       : name(kind));
}

// The name of the element at a byte of the windows.
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
                                 .past_end = c.past_end,
                                 .box_rows = i32(c.kind == TmaKind::matrix ? golden.tile().box[0] : 0)};
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
