// Where a memory instruction finds the address that is written in brackets.
//
//   ld.global.f32 %f1, [%rd4+8]       at[1] = the register of %rd4, 8 bytes a lane       offset 8
//   ld.shared.u32 %r1, [tile+16]      at[1] = a constant register: the address of tile   offset 16    kUniformAddress
//   ld.param.u64  %rd1, [scale_0]     at[1] = kNoRegister                                offset = the address (params)
//   cp.async.ca.shared.global [%r1], [%rd2+4], 16      two addresses: at[0] and at[1], offsets 0 and 4
//   cp.async.bulk.tensor... [%r1], [%rd2, {%r3, %r4}], [%r5]   at = {%r1, %rd2, %r5}; list = {%r1, %rd2, %r3, %r4, %r5}
//
// A lane's address is its base, widened without a sign, plus the offset, modulo 2^64. The base is 4 or 8 bytes wide
// (width_of). The offset of a statement with one address stands in Op::target; a statement that has a list has the
// offsets of its operands 0 .. 3 behind it: list[count + operand].
//
// What a variable's address is (its register is filled in when a launch begins, or with the activation):
//   global     the device address                     const   likewise, in the window of constants (windows.h)
//   shared     rank << 24 | offset in the CTA's window, from kSharedBase on
//   local      offset in the lane's own memory: Activation::local_base + its placement
//   param      of a kernel: offset in its parameter block, below kBodyParams
//              of a call, or of a .func: kBodyParams + offset in the activation's params, a lane
//   function   kCodeBase + 16 * its number
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

// Parameters that are not the kernel's begin here in the space of parameters; a kernel has 32764 bytes at most.
inline constexpr std::int64_t kBodyParams = 0x10000;

inline constexpr std::uint64_t kCodeBase = 0x7b00'0000'0000;
[[nodiscard]] constexpr std::uint64_t code_address(std::int32_t function) {
  return kCodeBase + 16 * static_cast<std::uint64_t>(function);
}

// What is added to the base of operand `operand` (0 .. 3).
[[nodiscard]] inline std::int64_t address_offset(const Op& op, int operand) {
  if (op.list == nullptr) return op.target;
  return static_cast<std::int32_t>(op.list[op.count + operand]);
}

// The address of one lane. Loops over lanes read the register themselves.
[[nodiscard]] inline std::uint64_t lane_address(const std::byte* registers, const Op& op, int operand, int lane) {
  std::uint64_t base = 0;
  const std::uint32_t reg = op.at[static_cast<std::size_t>(operand)];
  if (reg != kNoRegister) {
    const int width = width_of(op, operand);
    std::memcpy(&base, registers + reg + static_cast<std::ptrdiff_t>(lane) * width, static_cast<std::size_t>(width));
  }
  return base + static_cast<std::uint64_t>(address_offset(op, operand));
}

}  // namespace kvscope::ptx
