#include "core/tma/tma_tile_rules.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "core/base/checked.h"
#include "core/base/errors.h"

namespace kvscope {

namespace {

// The element types a tensor map can carry; both fp8 kinds travel as bytes.
bool is_tma_dtype(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::i32:
    case DType::i64:
    case DType::u64:
    case DType::e4m3:
    case DType::e8m0:
      return true;
    default:
      return false;
  }
}

}  // namespace

void TmaRules::throw_if_broken() {
  if (!faults_.empty()) throw GeometryError(fmt::format("tensor map of {}", object_), std::move(faults_));
}

void require_sizes(std::string_view object, std::initializer_list<std::pair<const char*, std::int64_t>> sizes) {
  TmaRules rules(object);
  for (const auto& [what, value] : sizes) {
    rules.require(value > 0, what, fmt::format("{} is not positive: give 1 or more", value));
  }
  rules.throw_if_broken();
}

void require_dtype(std::string_view object, DType dtype) {
  TmaRules rules(object);
  rules.require(is_tma_dtype(dtype), "dtype",
                fmt::format("{} cannot travel by TMA: use f32, f16, bf16, e4m3, e8m0, u8, u16, u32, i32, i64 or u64",
                            name(dtype)));
  rules.throw_if_broken();
}

void require_32_bits(std::string_view object, const char* what, std::int64_t rows) {
  if (rows >= (std::int64_t{1} << 31)) {
    throw OverflowError(
        fmt::format("tensor map of {}: {} {} do not fit a signed 32-bit coordinate, which ends below "
                    "2147483648: use fewer blocks, or a tile with the block as its own coordinate "
                    "(create_paged_tma_tile)",
                    object, rows, what));
  }
}

void require_driver_rules(TmaRules& rules, const TmaTile& tile) {
  const std::int64_t size = size_of(tile.dtype);
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(tile.base)) + tile.base_offset * size;
  rules.require(floor_mod(address, 16) == 0, "base",
                fmt::format("the address is {} bytes past a multiple of 16: align the pool and keep every offset whole "
                            "chunks of 16 bytes",
                            floor_mod(address, 16)));
  const int last = tile.dims.rank - 1;
  for (int axis = 0; axis <= last; ++axis) {
    rules.require(tile.box[axis] >= 1 && tile.box[axis] <= 256, fmt::format("box axis {}", axis),
                  fmt::format("{} is outside 1 to 256: copy the tile in several boxes", tile.box[axis]));
    if (axis < last) {
      rules.require(tile.strides[axis] * size % 16 == 0, fmt::format("stride axis {}", axis),
                    fmt::format("{} x {} = {} B is not a multiple of 16 B: pad the rows", tile.strides[axis],
                                name(tile.dtype), tile.strides[axis] * size));
    }
  }
  rules.require(
      tile.strides[last] == 1, fmt::format("stride axis {}", last),
      fmt::format("the innermost stride is {}, and must be 1: elements of a row are neighbours", tile.strides[last]));
  const std::int64_t inner = tile.box[last] * size;
  rules.require(inner % 16 == 0, fmt::format("box axis {}", last),
                fmt::format("{} x {} = {} B is not a multiple of 16 B: use a multiple of {} elements", tile.box[last],
                            name(tile.dtype), inner, 16 / size));
  rules.require(
      tile.swizzle == SwizzleMode::none || inner <= bytes(tile.swizzle), fmt::format("box axis {}", last),
      fmt::format("{} x {} = {} B, but {} takes at most {} B: use boxes of {} elements", tile.box[last],
                  name(tile.dtype), inner, name(tile.swizzle), bytes(tile.swizzle), bytes(tile.swizzle) / size));
}

void require_whole_granules(TmaRules& rules, std::int64_t BK, std::int64_t granularity) {
  rules.require(
      BK % granularity == 0, "BK",
      fmt::format("{} columns are not whole boxes of {}: use {}", BK, granularity, round_up(BK, granularity)));
}

}  // namespace kvscope
