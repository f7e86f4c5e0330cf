#include "core/tma/tile_map.h"

#include <fmt/format.h>

#include <cstddef>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/tma/tensor_map_rules.h"

namespace kvscope {

TmaDataType tma_data_type(DType dtype, std::string_view object) {
  switch (dtype) {
    case DType::u8:
    case DType::e4m3:  // maps have no 8-bit float type
    case DType::e8m0:
      return TmaDataType::u8;
    case DType::u16:
      return TmaDataType::u16;
    case DType::u32:
      return TmaDataType::u32;
    case DType::i32:
      return TmaDataType::i32;
    case DType::u64:
      return TmaDataType::u64;
    case DType::i64:
      return TmaDataType::i64;
    case DType::f16:
      return TmaDataType::f16;
    case DType::bf16:
      return TmaDataType::bf16;
    case DType::f32:
      return TmaDataType::f32;
    default:
      throw GeometryError(
          object.empty() ? "tensor map" : fmt::format("tensor map of {}", object),
          {{"dtype",
            fmt::format("{} is not supported by TMA: use f32, f16, bf16, e4m3, e8m0, u8, u16, u32, i32, i64 or u64",
                        name(dtype))}});
  }
}

TmaSwizzle tma_swizzle(SwizzleMode mode) {
  return static_cast<TmaSwizzle>(mode);  // both count 0 to 3 as the encoder does
}

TensorMap unchecked_tensor_map_of(std::string_view object, const TmaTile& tile, std::uint64_t base) {
  TensorMap map;
  map.data_type = tma_data_type(tile.dtype, object);
  map.rank = tile.dims.rank;
  const std::int64_t size = size_of(tile.dtype);
  map.base = base + static_cast<std::uint64_t>(tile.base_offset * size);
  for (int axis = 0; axis < map.rank; ++axis) {
    const auto i = static_cast<std::size_t>(map.rank - 1 - axis);
    map.dims[i] = static_cast<std::uint64_t>(tile.dims[axis]);
    map.box[i] = narrow<std::uint32_t>(tile.box[axis], "box extent");
    if (i > 0) map.strides[i - 1] = static_cast<std::uint64_t>(tile.strides[axis] * size);
  }
  map.swizzle = tma_swizzle(tile.swizzle);
  map.l2 = tile.l2;
  map.fill = tile.oob;
  return map;
}

TensorMap tensor_map_of(std::string_view object, const TmaTile& tile, std::uint64_t base, TmaTarget target) {
  const TensorMap map = unchecked_tensor_map_of(object, tile, base);
  const std::int64_t offset = tile.base_offset * size_of(tile.dtype);
  if (offset < 0 && base < static_cast<std::uint64_t>(-offset)) {
    throw GeometryError(
        fmt::format("tensor map of {}", object),
        {{"base", fmt::format("a {} tile begins {} B before the cache, which is at {:#x}: there must be as "
                              "many addresses before it",
                              name(tile.kind), -offset, base)}});
  }
  check_tensor_map(map, target).throw_if_broken(object);
  return map;
}

TensorMap tensor_map_of(std::string_view object, const TmaTile& tile, TmaTarget target) {
  return tensor_map_of(object, tile, reinterpret_cast<std::uintptr_t>(tile.base), target);
}

}  // namespace kvscope
