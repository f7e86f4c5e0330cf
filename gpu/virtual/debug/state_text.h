// What a stopped launch holds, as a person reads it: who stands where, registers of 32 lanes, shared and global bytes,
// barriers, copies on their way.
//
//   cta (0,0,0)
//     warp 0  lanes ffffffff  next      scale.cu:12   add.f32 %f3, %f1, %f2;
//     warp 1  lanes ffff0000  waits     scale.cu:15   bar.sync 0;                    barrier 0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/debug/controlled_run.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// The instruction at a pc with its guard, on one line: "@!%p1 ld.global.u32 %r3, [%rd3+4]".
[[nodiscard]] std::string instruction_text(const Program& program, std::int32_t pc);

// Every lane group of every CTA that has started and not ended; `next`, when given, is marked.
[[nodiscard]] std::string where_text(const Launch& launch, const Position* next = nullptr);

// A register's lanes. Bits are of the register's width; a predicate's are 0 and 1.
struct RegisterValue {
  std::string name;
  Type type = Type::none;
  LaneMask lanes = 0;               // of the lane group
  bool alive = true;                // false: another register may have taken its place since
  std::vector<std::uint64_t> bits;  // [32]
};
// "%r12" as the PTX has it. Nothing when the lane group's function has no such register, or never uses it.
[[nodiscard]] std::optional<RegisterValue> read_register(const Launch& launch, std::int32_t cta, std::int32_t warp,
                                                         LaneMask lanes, std::string_view name);
// Names of the registers that are alive where the lane group of those lanes stands.
[[nodiscard]] std::vector<std::string> live_registers(const Launch& launch, std::int32_t cta, std::int32_t warp,
                                                      LaneMask lanes);
// One line a distinct value: "lanes 0-15  0x3f800000  1"; with more than four of them eight lanes a line.
[[nodiscard]] std::string to_text(const RegisterValue& value);

// Named barriers that somebody waits at, arrival barriers with phase, pending arrivals and bytes.
[[nodiscard]] std::string barriers_text(const Launch& launch, std::int32_t cta);
// Copies that have been handed to an engine and are not there yet.
[[nodiscard]] std::string copies_text(const Launch& launch, std::int32_t cta);
// 16 bytes a line, from `address` on; shared addresses count from the CTA's window. Bytes that are not there are "..".
[[nodiscard]] std::string bytes_text(const Launch& launch, const DeviceMemory& memory, Space space, std::int32_t cta,
                                     std::uint64_t address, std::int64_t count);

}  // namespace kvscope::ptx
