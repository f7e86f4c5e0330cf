// The state of a stopped launch as text: the position of each lane group, registers of 32 lanes, bytes of shared and
// global memory, barriers, copies in flight.
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

// "all lanes", "lane 3", "lanes 0-15,20".
[[nodiscard]] std::string lanes_text(LaneMask lanes);
// What the lane group waits for: "barrier 0"; "" if it does not wait.
[[nodiscard]] std::string wait_text(const Launch& launch, const LaneGroup& group);
// A number in the notation of its type; untyped bits as the number that they look like: "1.5f", "-3".
[[nodiscard]] std::string value_text(Type type, std::uint64_t value);

// All lane groups of all resident CTAs; `next`, if given, is marked.
[[nodiscard]] std::string where_text(const Launch& launch, const Position* next = nullptr);

// The value of a register in each lane, in the register's width; 0 or 1 for a predicate.
struct RegisterValue {
  std::string name;
  Type type = Type::none;
  LaneMask lanes = 0;               // of the lane group
  bool alive = true;                // false: another register may have reused its storage since
  std::vector<std::uint64_t> bits;  // [32]
};
// "%r12" as written in the PTX. std::nullopt if the lane group's function does not have, or never uses, that register.
[[nodiscard]] std::optional<RegisterValue> read_register(const Launch& launch, std::int32_t cta, std::int32_t warp,
                                                         LaneMask lanes, std::string_view name);
// The registers that are live at the current instruction of the lane group that contains these lanes.
[[nodiscard]] std::vector<RegisterValue> live_registers(const Launch& launch, std::int32_t cta, std::int32_t warp,
                                                        LaneMask lanes);
// One line per distinct value: "lanes 0-15  0x3f800000  1"; eight lanes per line if there are more than four values.
[[nodiscard]] std::string to_text(const RegisterValue& value);

// Named barriers that have waiting threads, and arrival barriers with their phase, pending arrivals and pending bytes;
// "" if there are none.
[[nodiscard]] std::string barriers_text(const Launch& launch, std::int32_t cta);
// Copies that were issued and have not landed; "" if there are none.
[[nodiscard]] std::string copies_text(const Launch& launch, std::int32_t cta);
// 16 bytes per line from `address`; shared addresses are relative to the CTA's window. Unmapped bytes print as "..".
[[nodiscard]] std::string bytes_text(const Launch& launch, const DeviceMemory& memory, Space space, std::int32_t cta,
                                     std::uint64_t address, std::int64_t count);

}  // namespace kvscope::ptx
