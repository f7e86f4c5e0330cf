// The windows of the state spaces in generic addresses, and the conversions.
//
//   generic  0x00007f00'0r000400   shared: rank r of the cluster, byte 0x400 of its window    32 bits: 0x0r000400
//            0x00007e00'00000010   local: byte 16 of the executing thread's local memory
//            0x00007d00'00000000   const: the bank's first byte
//            0x00007c00'00000008   param: byte 8 of the kernel's parameter block
//            anything else         global
//
// cvta.shared adds the window, cvta.to.shared removes it; generated code also sets or drops the high word directly.
// The address of a const variable is always generic; a 32-bit register contains its low half.
// Example: to_generic(Space::shared, 0x01000410) == 0x7f0001000410: byte 0x410 of rank 1.
#pragma once

#include <cstdint>

#include "gpu/virtual/text/types.h"

namespace kvscope::ptx {

inline constexpr std::uint64_t kSharedWindow = 0x7f00'0000'0000;
inline constexpr std::uint64_t kLocalWindow = 0x7e00'0000'0000;
inline constexpr std::uint64_t kConstWindow = 0x7d00'0000'0000;
inline constexpr std::uint64_t kParamWindow = 0x7c00'0000'0000;
inline constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 32;

inline constexpr int kRankShift = 24;  // of a shared address
inline constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kRankShift) - 1;

[[nodiscard]] constexpr std::uint64_t rank_of(std::uint64_t shared) {
  return shared >> kRankShift;
}
[[nodiscard]] constexpr std::uint64_t offset_of(std::uint64_t shared) {
  return shared & kOffsetMask;
}
[[nodiscard]] constexpr std::uint64_t shared_address(std::uint64_t rank, std::uint64_t offset) {
  return rank << kRankShift | offset;
}

// The space whose window contains a generic address; global outside all windows.
[[nodiscard]] constexpr Space space_of(std::uint64_t generic) {
  switch (generic >> 32) {
    case kSharedWindow >> 32:
      return Space::shared;
    case kLocalWindow >> 32:
      return Space::local;
    case kConstWindow >> 32:
      return Space::constant;
    case kParamWindow >> 32:
      return Space::param;
    default:
      return Space::global;
  }
}

// Whether space_of is not global, without a table: the four windows differ in two bits.
[[nodiscard]] constexpr bool is_in_window(std::uint64_t generic) {
  return (generic >> 32 & ~std::uint64_t{0x300}) == 0x7c00;
}

// First generic address of a space; 0 for global and generic, which have no window.
[[nodiscard]] constexpr std::uint64_t window_of(Space space) {
  switch (space) {
    case Space::shared:
      return kSharedWindow;
    case Space::local:
      return kLocalWindow;
    case Space::constant:
      return kConstWindow;
    case Space::param:
      return kParamWindow;
    default:
      return 0;
  }
}

// cvta: converts an address of a space to a generic one. A generic address is returned unchanged.
[[nodiscard]] constexpr std::uint64_t to_generic(Space space, std::uint64_t address) {
  return address < kWindowBytes ? window_of(space) + address : address;
}
// cvta.to: the inverse. Precondition: the address is in that window.
[[nodiscard]] constexpr std::uint64_t from_generic(Space space, std::uint64_t generic) {
  const bool stays = space == Space::global || space == Space::generic || space == Space::constant;
  return stays ? generic : generic - window_of(space);
}

}  // namespace kvscope::ptx
