// Generates any legal map and start of a box, for the property tests of copies: element sizes, ranks, swizzles, element
// strides, boxes that begin before the tensor and end after it, rows shorter than the swizzle's span.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "tests/core/tma/gold.h"
#include "tests/property.h"

namespace kvscope::test {

inline TmaDataType type_of(int size) {
  switch (size) {
    case 1:
      return TmaDataType::u8;
    case 2:
      return TmaDataType::bf16;
    case 4:
      return TmaDataType::f32;
    default:
      return TmaDataType::u64;
  }
}

inline TmaCoord coord_of(const std::vector<std::int64_t>& at) {
  TmaCoord coord;
  coord.rank = static_cast<int>(at.size());
  for (std::size_t i = 0; i < at.size(); ++i) coord.at.at(i) = static_cast<std::int32_t>(at[i]);
  return coord;
}

struct AnyBox {
  TensorMap map;
  std::vector<std::int64_t> at;
  std::int64_t dst = 0;
};

// Called from within a property.
inline AnyBox any_box() {
  const int size = prop::one_of(1, 2, 4, 8);
  const int rank = prop::uniform(1, 6);
  const auto swizzle = static_cast<TmaSwizzle>(prop::uniform(0, 7));
  static constexpr std::array<int, 7> kSpans = {96, 32, 64, 128, 128, 128, 128};
  const int chunks = prop::uniform(1, kSpans.at(static_cast<std::size_t>(swizzle)) / 16 + 1);
  // Up to 200 bytes, so that half of the boxes cross an edge.
  std::vector<std::uint64_t> dims{static_cast<std::uint64_t>(prop::uniform(1, 200 / size + 1))}, strides;
  std::vector<std::uint32_t> box{static_cast<std::uint32_t>(16 * chunks / size)}, steps{1};
  std::vector<std::int64_t> at{prop::uniform<std::int64_t>(-3, 6) * 16 / size};
  std::uint64_t row = (dims[0] * static_cast<std::uint64_t>(size) + 15) / 16 * 16;
  for (int i = 1; i < rank; ++i) {
    dims.push_back(prop::uniform<std::uint64_t>(1, 5));
    strides.push_back(row);
    row = row * dims.back() + 16 * prop::uniform<std::uint64_t>(0, 3);
    steps.push_back(prop::uniform(1U, 4U));
    box.push_back(prop::uniform(1U, 5U));
    at.push_back(prop::uniform<std::int64_t>(-3, 5));
  }
  if (rank > 2 && prop::any<bool>()) std::swap(strides[0], strides[1]);  // strides need not increase
  AnyBox any{map_of(type_of(size), dims, strides, box, swizzle, steps), at, 128 * prop::uniform<std::int64_t>(0, 9)};
  if (size == 2 || size == 4) any.map.fill = static_cast<OobFill>(prop::uniform(0, 2));
  return any;
}

}  // namespace kvscope::test
