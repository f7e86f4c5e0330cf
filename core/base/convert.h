// Conversions between element types, each with one rounding: to nearest, ties to even. A conversion through a third
// type would round twice: 1 + 2^-11 + 2^-30 becomes f16 1.0009765625, but through bf16 or f32 it becomes 1.
//
//   input                         saturate                       non_saturating
//   finite, past the largest      largest finite, sign kept      infinity, or NaN where the type has no infinity
//   infinity                      largest finite, sign kept      infinity, or NaN where the type has no infinity
//   NaN                           the type's NaN                 the type's NaN
//
// The type's NaN is positive and quiet: f16 7e00, bf16 7fc0, e4m3 and e5m2 7f, e8m0 ff. That is NanSign::dropped; with
// NanSign::kept a negative NaN becomes the negative one: f16 fe00, bf16 ffc0, e4m3 and e5m2 ff; e8m0 has no sign.
// Payloads are lost either way. e2m1 has neither infinity nor NaN: all of the above become its largest finite, 6, or -6
// where the sign is kept.
// Example: e4m3, saturate: 464 -> 7e (448: a tie, to even); just above 464 -> 7e; non_saturating: just above 464 -> 7f.
// The table holds for each float type, f16, bf16 and f32 included: use non_saturating for what hardware's conversions
// to those types do. Conversions to integers truncate towards zero and saturate in both modes; NaN becomes 0. f64 is
// stored unchanged, including the sign of a NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/dtype.h"

namespace kvscope {

enum class Overflow : std::uint8_t { saturate, non_saturating };
enum class NanSign : std::uint8_t { dropped, kept };

// Exact: every value of every narrow float is a double (and all but f64 are floats).
[[nodiscard]] double to_double(f16 x);
[[nodiscard]] double to_double(bf16 x);
[[nodiscard]] double to_double(e4m3 x);
[[nodiscard]] double to_double(e5m2 x);
[[nodiscard]] double to_double(e8m0 x);
[[nodiscard]] double to_double(e2m1 x);

// One rounding from a double (a float widens exactly). T: f16 bf16 e4m3 e5m2 e8m0 e2m1 float.
// e8m0 rounds to the nearest power of two, ties to the even pattern: 1.5 is halfway between 7f (1) and 80 (2): 80.
// Zero and negative values become 00 when saturating, ff (NaN) otherwise.
template <class T>
[[nodiscard]] T from_double(double x, Overflow overflow, NanSign nan_sign = NanSign::dropped);

// One element at `src` of any dtype but e2m1, as a double. i64 and u64 round to nearest.
[[nodiscard]] double load_as_double(DType dtype, const std::byte* src);
// One element of any dtype but e2m1 written to `dst`.
void store_from_double(DType dtype, double x, std::byte* dst, Overflow overflow, NanSign nan_sign = NanSign::dropped);

// `src` holds `dst.size()` elements. UnsupportedError for e2m1.
void to_doubles(DType dtype, const std::byte* src, std::span<double> dst);
void to_floats(DType dtype, const std::byte* src, std::span<float> dst);

// `count` elements from one dtype to another, one rounding each; i64 and u64 go directly where both sides are integers.
// The same type on both sides copies the bits. UnsupportedError for e2m1. Otherwise `src` and `dst` must not overlap.
void convert(DType from, const std::byte* src, DType to, std::byte* dst, std::int64_t count, Overflow overflow,
             NanSign nan_sign = NanSign::dropped);

}  // namespace kvscope
