// Converts a tile into the map that the encoder takes: the same axes in reverse order, strides in bytes.
//
//   TmaTile (slow -> fast, elements)                       TensorMap (fastest first, bytes)
//   f32, dims [100, 2, 8], strides [16, 8, 1],     ->      dims {8, 2, 100}, strides {32, 64},
//   box [4, 1, 32], 128B swizzle                           box {32, 1, 4}, 128B swizzle, fp8 and e8m0 as u8
//
// Coordinates need no conversion: those of tma_tile.h are already fastest first.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/dtype.h"
#include "core/tma/tensor_map.h"
#include "core/tma/tma_tile.h"

namespace kvscope {

// The type that a map uses for elements of `dtype`. GeometryError for a type that no map can carry (e5m2, e2m1, i8,
// i16, f64): "tensor map of <object> rejected: dtype: ...".
[[nodiscard]] TmaDataType tma_data_type(DType dtype, std::string_view object = {});
[[nodiscard]] TmaSwizzle tma_swizzle(SwizzleMode mode);

// The map of a tile whose first byte of tile.base has the device address `base`, before any rule is checked: base and
// strides wrap modulo 2^64. OverflowError: a box extent of 2^32 or more. GeometryError: see tma_data_type.
[[nodiscard]] TensorMap unchecked_tensor_map_of(std::string_view object, const TmaTile& tile, std::uint64_t base);
// The same, checked. GeometryError when rules are broken (tensor_map_rules.h; the message names `object`) or a ragged
// tile's base would be below address 0.
// Example: the tile above at 0x1000: base 0x1000.
[[nodiscard]] TensorMap tensor_map_of(std::string_view object, const TmaTile& tile, std::uint64_t base,
                                      TmaTarget target = TmaTarget::sm_90);
// At the address that tile.base has in this process (GlobalMemory::add without an address).
[[nodiscard]] TensorMap tensor_map_of(std::string_view object, const TmaTile& tile,
                                      TmaTarget target = TmaTarget::sm_90);

}  // namespace kvscope
