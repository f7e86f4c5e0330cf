// Layout expressions in CuTe's notation: nested shapes and strides, "(8,4):(4,1)", "((2,4),8):((1,16),2)", and their
// evaluation. A layout maps a coordinate to an offset: the sum over leaves of coordinate * stride; an integer
// coordinate counts through the shape with the *leftmost* mode fastest. Without strides, a shape is column-major:
// "(8,4)" is "(8,4):(1,8)". Example: "(8,4):(4,1)" sends coordinate (2,3) to 11 and integer coordinate 9 = (1,1) to 5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "core/layout/swizzle.h"

namespace kvscope::layout {

// An integer or a tuple of them, nested.
struct IntTuple {
  std::int64_t value = 0;       // when a leaf
  std::vector<IntTuple> items;  // when a tuple
  bool leaf = true;
  friend bool operator==(const IntTuple&, const IntTuple&) = default;
};

struct Layout {
  IntTuple shape;
  IntTuple stride;                 // congruent with shape
  std::optional<Swizzle> swizzle;  // applied to the offset last: "Sw<3,3,3> o (8,64):(64,1)"
};

// Throws InputError whose message shows the expression with a caret under the first character that
// cannot be parsed:
//   layout "(8,4):(4" rejected: column 9: expected ',' or ')'
//     (8,4):(4
//             ^
// Shapes are 1 or more, strides 0 or more, at most 16 levels and 4096 characters; size and cosize fit in 64 bits.
[[nodiscard]] Layout parse_layout(std::string_view expression);

[[nodiscard]] std::string text(const IntTuple& tuple);  // "((2,4),8)"
[[nodiscard]] std::string text(const Layout& layout);   // "((2,4),8):((1,16),2)"

[[nodiscard]] int rank(const IntTuple& tuple);            // 1 for a leaf
[[nodiscard]] int depth(const IntTuple& tuple);           // 0 for a leaf
[[nodiscard]] std::int64_t size(const IntTuple& tuple);   // product of the leaves
[[nodiscard]] std::int64_t size(const Layout& layout);    // coordinates in the domain
[[nodiscard]] std::int64_t cosize(const Layout& layout);  // largest offset + 1, before the swizzle

// Offset of an integer coordinate or of a nested one congruent (or coarser) with the shape.
// IndexError outside the shape.
[[nodiscard]] std::int64_t offset_of(const Layout& layout, std::int64_t coordinate);
[[nodiscard]] std::int64_t offset_of(const Layout& layout, const IntTuple& coordinate);

// Whether no two coordinates have the same offset. Exact: decided by the strides where these are far enough apart, else
// by trying every coordinate. GeometryError: more than 2^20 coordinates to try, a shape below 1, a stride below 0, or
// strides not nested as the shape is. Example: "(3,2):(2,3)" -> true; "(4,3):(2,3)" -> false, as 3 * 2 = 2 * 3.
[[nodiscard]] bool is_injective(const Layout& layout);

}  // namespace kvscope::layout
