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

// Algebra, as CuTe defines it. GeometryError for shapes below 1, strides below 0, strides not nested as the shape is.

// The same function with the fewest modes: "(2,(1,6)):(1,(6,2))" -> "12:1".
[[nodiscard]] Layout coalesce(const Layout& layout);

// c -> outer(inner(c)), in the modes of `inner`: "(6,2):(8,2)" with "(4,3):(3,1)" -> "((2,2),3):((24,2),8)".
// GeometryError when inner reaches outside the outer layout or is swizzled, and when no layout does it: a step of inner
// crosses an outer mode unevenly. Where two such crossings cancel by chance, it is refused as well.
[[nodiscard]] Layout composition(const Layout& outer, const Layout& inner);

// What is missing to reach each offset of [0, cosize_hi) once, up to a whole period: "4:2" in 24 -> "(2,3):(1,8)".
// GeometryError when the modes overlap or interleave.
[[nodiscard]] Layout complement(const Layout& layout, std::int64_t cosize_hi);

// layout(right_inverse(i)) == i from 0 on, as far as the modes reach without a hole: "(4,8):(8,1)" -> "(8,4):(4,1)".
[[nodiscard]] Layout right_inverse(const Layout& layout);

// Exact. Decided by the strides where those are apart; else by trying, up to 2^20 coordinates, past which it
// throws GeometryError.
[[nodiscard]] bool is_injective(const Layout& layout);

}  // namespace kvscope::layout
