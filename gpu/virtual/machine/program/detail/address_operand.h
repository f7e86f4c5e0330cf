// The address operand (in brackets) of a memory instruction.
//
//   ld.global.f32 %f1, [%rd4+8]       at[1] = the register of %rd4, 8 bytes a lane       offset 8
//   ld.shared.u32 %r1, [tile+16]      at[1] = a constant register: the address of tile   offset 16    kUniformAddress
//   ld.param.u64  %rd1, [scale_0]     at[1] = kNoRegister                                offset = the address (params)
//   cp.async.ca.shared.global [%r1], [%rd2+4], 16      two addresses: at[0] and at[1], offsets 0 and 4
//   cp.async.bulk.tensor... [%r1], [%rd2, {%r3, %r4}], [%r5]   at = {%r1, %rd2, %r5}; list = {%r1, %rd2, %r3, %r4, %r5}
//
// A lane's address is its base, zero-extended, plus the offset, modulo 2^64. The base is 4 or 8 bytes wide (width_of).
// A statement with one address stores the offset in Op::target. A statement with a list stores the offsets of its
// operands 0 .. 3 after the list: list[count + operand].
//
// The address of a variable (its register is filled in when the launch or the activation begins):
//   global     the device address                     const   likewise, in the window of constants (windows.h)
//   shared     rank << 24 | offset in the CTA's window, from kSharedBase on
//   local      offset in the lane's local memory: Activation::local_base + its placement
//   param      of a kernel: offset in its parameter block, below kBodyParams
//              of a call, or of a .func: kBodyParams + offset in the activation's params, a lane
//   function   kCodeBase + 16 * its number
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/virtual/machine/program/body_params.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

inline constexpr std::uint64_t kCodeBase = 0x7b00'0000'0000;
[[nodiscard]] constexpr std::uint64_t code_address(std::int32_t function) {
  return kCodeBase + 16 * static_cast<std::uint64_t>(function);
}

// The offset added to the base of operand `operand` (0 .. 3).
[[nodiscard]] inline std::int64_t address_offset(const Op& op, int operand) {
  if (op.list == nullptr) return op.target;
  return static_cast<std::int32_t>(op.list[op.count + operand]);
}

// The address of one lane. Loops over lanes read the register directly.
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
