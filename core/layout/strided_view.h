// Non-owning views: extents and strides in elements; every access is bounds-checked except through the functions that
// say otherwise.
//
//   StridedView<T, Rank>   the element type is known where the code is written
//   AnyView<Rank>          the element type is a run-time DType (a block pool from a scenario or a file)
//
// Both are trivially copyable: kernels and caches take them by value. Example: a [4, 3] matrix inside rows of 8:
//   StridedView<float, 2> m{data, {4, 3}, {8, 1}};
//   m(2, 1) == data[17];   m(2, 3) -> IndexError "axis 1 index 3 is outside [0, 3)"
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/errors.h"

namespace kvscope {

template <int Rank>
using Shape = std::array<std::int64_t, static_cast<std::size_t>(Rank)>;

// Row-major strides of packed extents. Example: {5,2,3,4,2,8} -> {384,192,64,16,8,1}. OverflowError past 64 bits.
template <int Rank>
[[nodiscard]] constexpr Shape<Rank> row_major(const Shape<Rank>& extents) {
  Shape<Rank> strides{};
  std::int64_t product = 1;
  for (std::size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = product;
    product = checked_mul(product, extents[axis], "tensor size");
  }
  return strides;
}

// Number of elements; OverflowError past 64 bits.
template <std::size_t Rank>
[[nodiscard]] constexpr std::int64_t count_of(const std::array<std::int64_t, Rank>& extents) {
  std::int64_t product = 1;
  for (const std::int64_t extent : extents) product = checked_mul(product, extent, "tensor size");
  return product;
}

// Offset of an index tuple from the view's base, in elements. IndexError names the axis.
template <std::size_t Rank>
[[nodiscard]] inline std::int64_t checked_offset(const std::array<std::int64_t, Rank>& index,
                                                 const std::array<std::int64_t, Rank>& extents,
                                                 const std::array<std::int64_t, Rank>& strides) {
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    if (index[axis] < 0 || index[axis] >= extents[axis]) [[unlikely]] {
      check_index("axis " + std::to_string(axis) + " index", index[axis], extents[axis]);
    }
    offset += index[axis] * strides[axis];
  }
  return offset;
}

template <class T, int Rank>
struct StridedView {
  T* data = nullptr;
  Shape<Rank> extents{};
  Shape<Rank> strides{};  // [elements]

  StridedView() = default;
  StridedView(T* base, const Shape<Rank>& e, const Shape<Rank>& s) : data(base), extents(e), strides(s) {}
  StridedView(T* base, const Shape<Rank>& e) : data(base), extents(e), strides(row_major<Rank>(e)) {}

  [[nodiscard]] std::int64_t dim(int axis) const { return extents[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] std::int64_t stride(int axis) const { return strides[static_cast<std::size_t>(axis)]; }

  template <class... I>
  requires(sizeof...(I) == static_cast<std::size_t>(Rank)) [[nodiscard]] T& operator()(I... index) const {
    return data[checked_offset<static_cast<std::size_t>(Rank)>({static_cast<std::int64_t>(index)...}, extents,
                                                               strides)];
  }
  template <class... I>
  requires(sizeof...(I) == static_cast<std::size_t>(Rank)) [[nodiscard]] T& unchecked(I... index) const {
    std::int64_t offset = 0;
    std::size_t axis = 0;
    ((offset += static_cast<std::int64_t>(index) * strides[axis++]), ...);
    return data[offset];
  }
};

template <int Rank>
struct AnyView {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  Shape<Rank> extents{};
  Shape<Rank> strides{};  // [elements]

  AnyView() = default;
  AnyView(std::byte* base, DType type, const Shape<Rank>& e, const Shape<Rank>& s)
      : data(base), dtype(type), extents(e), strides(s) {}
  AnyView(std::byte* base, DType type, const Shape<Rank>& e) : AnyView(base, type, e, row_major<Rank>(e)) {}

  [[nodiscard]] std::int64_t dim(int axis) const { return extents[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] std::int64_t stride(int axis) const { return strides[static_cast<std::size_t>(axis)]; }

  // Address of one element, bounds-checked.
  template <class... I>
  requires(sizeof...(I) == static_cast<std::size_t>(Rank)) [[nodiscard]] std::byte* at(I... index) const {
    return data +
           checked_offset<static_cast<std::size_t>(Rank)>({static_cast<std::int64_t>(index)...}, extents, strides) *
               size_of(dtype);
  }
  // The same memory with a C++ element type; GeometryError when the view has another dtype.
  template <class T>
  [[nodiscard]] StridedView<T, Rank> as() const {
    if (dtype_of<T> != dtype) {
      throw GeometryError("view of " + std::string(name(dtype)) + " read as " + std::string(name(dtype_of<T>)));
    }
    return {reinterpret_cast<T*>(data), extents, strides};
  }
};

}  // namespace kvscope
