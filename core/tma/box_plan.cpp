#include "core/tma/box_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/layout/swizzle.h"
#include "core/tma/global_memory.h"
#include "core/tma/tensor_map_rules.h"
#include "core/tma/tma_swizzle.h"

namespace kvscope {

namespace {

std::string_view name(BoxDirection direction) {
  return direction == BoxDirection::load ? "load" : "store";
}

using Place = std::array<std::int64_t, kTmaMaxRank>;

// Row R of a tile as coordinates; [0] is left at 0.
Place tile_place(const BoxShape& shape, std::int64_t row) {
  Place j{};
  for (std::size_t i = 1; i < j.size(); ++i) {
    j[i] = row % shape.extents[i];
    row /= shape.extents[i];
  }
  return j;
}

// The tensor position of a tile element; dimensions past the rank stay 0.
Place tensor_position(const TensorMap& map, const TmaCoord& at, const Place& j) {
  Place x{};
  for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i) {
    x[i] = at.at[i] + j[i] * (i == 0 ? 1 : static_cast<std::int64_t>(map.element_strides[i]));
  }
  return x;
}

bool inside(const TensorMap& map, std::size_t dimension, std::int64_t x) {
  return x >= 0 && static_cast<std::uint64_t>(x) < map.dims[dimension];
}

// In every dimension from `first` on.
bool inside(const TensorMap& map, const Place& x, std::size_t first) {
  for (std::size_t i = first; i < static_cast<std::size_t>(map.rank); ++i) {
    if (!inside(map, i, x[i])) return false;
  }
  return true;
}

// Of a position inside the map.
std::uint64_t global_address(const TensorMap& map, const Place& x) {
  std::uint64_t address = map.base;
  bool past = false;
  const auto add = [&](std::int64_t index, std::uint64_t stride) {
    std::uint64_t bytes = 0;
    past = __builtin_mul_overflow(static_cast<std::uint64_t>(index), stride, &bytes) || past;
    past = __builtin_add_overflow(address, bytes, &address) || past;
  };
  add(x[0], static_cast<std::uint64_t>(size_of(map.data_type)));
  for (std::size_t i = 1; i < static_cast<std::size_t>(map.rank); ++i) add(x[i], map.strides[i - 1]);
  if (past) {
    throw IllegalAddress(
        "illegal address (error 700): an element inside the map lies past 2^64: check the map's base and strides",
        map.base, size_of(map.data_type));
  }
  return address;
}

std::vector<Fault> coordinate_faults(const TensorMap& map, const TmaCoord& at, BoxDirection direction) {
  std::vector<Fault> faults;
  if (at.rank != map.rank) {
    faults.push_back({"coordinates",
                      fmt::format("{} for a map of rank {}: give one a dimension, fastest first", at.rank, map.rank)});
    return faults;
  }
  const std::int64_t size = size_of(map.data_type), column = at.at[0], whole = kChunkBytes / size;
  if (column * size % kChunkBytes != 0) {
    faults.push_back({"coordinate 0",
                      fmt::format("{} x {} = {} B is not a multiple of 16 B (error 715 on Hopper): start at {} or {}",
                                  column, name(map.data_type), column * size, floor_div(column, whole) * whole,
                                  (floor_div(column, whole) + 1) * whole)});
  }
  if (direction == BoxDirection::store) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i) {
      if (at.at[i] < 0) {
        faults.push_back(
            {fmt::format("coordinate {}", i),
             fmt::format("{} is below 0, where a store must not start (error 715 on Hopper): clip the tile first",
                         at.at[i])});
      }
    }
  }
  return faults;
}

}  // namespace

std::string to_text(const BoxSwitches& switches) {
  return fmt::format("target {}, short rows {}, NaN fill {}, store edge {}", name(switches.target),
                     switches.padding == BoxSwitches::Padding::to_span ? "padded to the span" : "dense",
                     switches.nan == BoxSwitches::Nan::halves_7ff7 ? "7ff7" : "quiet",
                     switches.store_edge == BoxSwitches::StoreEdge::chunk ? "16 B" : "element");
}

BoxShape box_shape(const TensorMap& map, const BoxSwitches& switches) {
  BoxShape shape;
  shape.extents[0] = map.box[0];
  shape.rows = 1;
  for (std::size_t i = 1; i < static_cast<std::size_t>(map.rank); ++i) {
    shape.extents[i] = map.element_strides[i] == 1 ? map.box[i] : ceil_div(map.box[i], map.element_strides[i]);
    shape.rows *= shape.extents[i];
  }
  shape.inner = shape.extents[0] * size_of(map.data_type);
  const bool padded = map.swizzle != TmaSwizzle::none && switches.padding == BoxSwitches::Padding::to_span;
  shape.pitch = padded ? std::max(shape.inner, swizzle_span(map.swizzle)) : shape.inner;
  shape.tx_bytes = shape.rows * shape.inner;
  shape.window_bytes = shape.rows * shape.pitch;
  return shape;
}

void require_box_copyable(const TensorMap& map, BoxDirection direction, const BoxSwitches& switches) {
  const auto unsupported = [&](const std::string& what) {
    throw UnsupportedError(fmt::format("{} of a box: {}", name(direction), what));
  };
  if (map.interleave != TmaInterleave::none) {
    unsupported(
        fmt::format("where the bytes of a map with {} land is not modeled: use no interleave", name(map.interleave)));
  }
  if (is_packed(map.data_type) || is_tf32(map.data_type)) {
    unsupported(fmt::format("{} is converted on its way, and only byte copies are modeled: use {}", name(map.data_type),
                            is_tf32(map.data_type) ? "f32" : "u8"));
  }
  if (direction == BoxDirection::store && map.swizzle == TmaSwizzle::b128_atom32_flip8) {
    unsupported(fmt::format("{} is for loads only: store with the ATOM_32B swizzle", name(map.swizzle)));
  }
  const TensorMapReport report = check_tensor_map(map, switches.target);
  if (!report.broken.empty()) report.throw_if_broken(fmt::format("the box to {}", name(direction)));
}

void require_box_start(const TensorMap& map, const TmaCoord& at, std::int64_t shared, std::int64_t shared_bytes,
                       BoxDirection direction, const BoxSwitches& switches) {
  std::vector<Fault> faults = coordinate_faults(map, at, direction);
  if (shared < 0 || shared % 128 != 0) {
    faults.push_back({"shared address", fmt::format("{} is not a multiple of 128 B (error 716): use {}", shared,
                                                    std::max<std::int64_t>(0, round_up(shared, 128)))});
  }
  const std::int64_t window = box_shape(map, switches).window_bytes;
  if (shared >= 0 && (window > shared_bytes || shared > shared_bytes - window)) {
    faults.push_back({"shared address", fmt::format("the window of {} bytes at {} leaves the {} bytes of shared memory",
                                                    window, shared, shared_bytes)});
  }
  if (!faults.empty()) throw GeometryError(fmt::format("{} of a box", name(direction)), std::move(faults));
}

std::vector<BoxChunk> box_chunks(const TensorMap& map, const TmaCoord& at, std::int64_t dst,
                                 const BoxSwitches& switches) {
  std::vector<Fault> faults = coordinate_faults(map, at, BoxDirection::load);
  if (dst < 0 || dst % kChunkBytes != 0) {
    faults.push_back({"shared address", fmt::format("{} is not a multiple of 16 B from 0 on", dst)});
  }
  if (!faults.empty()) throw GeometryError("chunks of a box", std::move(faults));

  const BoxShape shape = box_shape(map, switches);
  const std::int64_t size = size_of(map.data_type), per_chunk = kChunkBytes / size;
  std::vector<BoxChunk> chunks;
  chunks.reserve(static_cast<std::size_t>(shape.tx_bytes / kChunkBytes));
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const Place start = tensor_position(map, at, tile_place(shape, row));
    const bool row_inside = inside(map, start, 1);
    for (std::int64_t column = 0; column < shape.extents[0]; column += per_chunk) {
      Place x = start;
      x[0] += column;
      const std::int64_t landing = dst + row * shape.pitch + column * size;
      // FLIP_8B exchanges the halves of a chunk; the chunk's 16 bytes stay together.
      const std::int64_t first_byte = swizzle_address(map.swizzle, landing);
      BoxChunk chunk{.row = row,
                     .column = column,
                     .shared = first_byte / kChunkBytes * kChunkBytes,
                     .halves_swapped = first_byte % kChunkBytes != 0};
      // A start is whole chunks from column 0, so a chunk may end outside the tensor but never begins outside and ends
      // inside.
      if (row_inside && inside(map, 0, x[0])) {
        const std::uint64_t left = map.dims[0] - static_cast<std::uint64_t>(x[0]);
        chunk.data_bytes = static_cast<std::int8_t>(
            static_cast<std::int64_t>(std::min(left, static_cast<std::uint64_t>(per_chunk))) * size);
        chunk.global = global_address(map, x);
      }
      chunks.push_back(chunk);
    }
  }
  return chunks;
}

std::optional<BoxElement> box_element_at(const TensorMap& map, const TmaCoord& at, std::int64_t dst,
                                         std::int64_t shared, const BoxSwitches& switches) {
  const BoxShape shape = box_shape(map, switches);
  if (shared < 0) return std::nullopt;
  const std::int64_t linear = swizzle_address(map.swizzle, shared) - dst;  // every mode is its own inverse
  if (linear < 0 || linear >= shape.window_bytes || linear % shape.pitch >= shape.inner) return std::nullopt;
  const std::int64_t size = size_of(map.data_type);
  BoxElement element;
  element.row = linear / shape.pitch;
  element.tile = tile_place(shape, element.row);
  element.tile[0] = linear % shape.pitch / size;
  element.byte = linear % shape.pitch % size;
  element.position = tensor_position(map, at, element.tile);
  if (inside(map, element.position, 0)) element.global = global_address(map, element.position);
  return element;
}

}  // namespace kvscope
