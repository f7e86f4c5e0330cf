// A floating-point number as an integer: rounded in any direction, clamped to the integer's range.
// Included by the files of one instruction set (lanes.h).
#pragma once

#include "gpu/virtual/semantics/detail/float_bits.h"

namespace kvscope::ptx::semantics {
namespace {

// For integral results with |x| < 2^52: adding and subtracting 2^52 removes the fraction; larger doubles have none.
template <Rounding kRounding>
inline double to_integral(double x) {
  const double magnitude = absolute_of(x);
  double rounded = (magnitude + 0x1p52) - 0x1p52;
  if constexpr (kRounding != Rounding::nearest) {
    const bool negative = (bits_as<u64>(x) >> 63) != 0;
    const bool outwards = kRounding == Rounding::down ? negative : kRounding == Rounding::up ? !negative : false;
    // Rounding to nearest may have gone either way; step to the requested side.
    if (outwards) {
      rounded = rounded < magnitude ? rounded + 1.0 : rounded;
    } else {
      rounded = rounded > magnitude ? rounded - 1.0 : rounded;
    }
  }
  const u64 kept = magnitude < 0x1p52 ? bits_as<u64>(rounded) : bits_as<u64>(magnitude);
  return bits_as<double>(kept | (bits_as<u64>(x) & 0x8000000000000000u));
}

// kNanLowest: NaN becomes the bits of the lowest signed number, otherwise 0.
template <class To, bool kNanLowest, Rounding kRounding>
inline To to_integer(double x) {
  constexpr bool kSigned = To(-1) < To(0);
  constexpr int kBits = 8 * static_cast<int>(sizeof(To));
  constexpr To kHighest = kSigned ? static_cast<To>((u64{1} << (kBits - 1)) - 1) : static_cast<To>(~u64{0});
  constexpr To kLowest = kSigned ? static_cast<To>(u64{1} << (kBits - 1)) : To{0};
  // The highest number plus one: a power of two, exact in double.
  constexpr double kEnd = 2.0 * static_cast<double>(u64{1} << (kBits - (kSigned ? 2 : 1)));
  constexpr double kBegin = kSigned ? -kEnd : 0.0;
  constexpr To kOfNan = kNanLowest ? static_cast<To>(u64{1} << (kBits - 1)) : To{0};
  const double whole = to_integral<kRounding>(x);
  const bool inside = (whole >= kBegin) & (whole < kEnd);
  const To value = static_cast<To>(inside ? whole : 0.0);
  return inside ? value : whole >= kEnd ? kHighest : whole < kBegin ? kLowest : kOfNan;
}

}  // namespace
}  // namespace kvscope::ptx::semantics
