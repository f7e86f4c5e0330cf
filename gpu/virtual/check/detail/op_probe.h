// Executes a computation on a copy of its registers: with other values in its operands, and without an effect on the warp.
//
//   OpProbe probe(exec, op);  probe.fill(exec.registers);  probe.run(lanes);  probe.slot(op.at[0])    the result
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "gpu/virtual/machine/program/register_buffer.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

class OpProbe {
 public:
  static constexpr std::size_t kSlot = 512;  // [bytes] of the widest register

  // Precondition: op.compute is set.
  OpProbe(const Exec& exec, const Op& op)
      : op_(op), size_(exec.warp.activations[static_cast<std::size_t>(exec.lane_group.activation)].registers.size()) {
    for (std::uint32_t& reg : op_.at) reg = slot_of(reg);
    if (op.list != nullptr) {
      list_.assign(op.list, op.list + op.count);
      for (std::uint32_t& reg : list_) reg = slot_of(reg);
      op_.list = list_.data();
    }
    buffer_.resize(places_.size() * kSlot);
  }
  OpProbe(const OpProbe&) = delete;
  OpProbe& operator=(const OpProbe&) = delete;

  // Copies all registers of the op from a buffer in the activation's layout.
  void fill(const std::byte* registers) {
    for (const std::uint32_t place : places_) set(place, registers + place);
  }
  // A register of the op: its value in all lanes.
  [[nodiscard]] std::byte* slot(std::uint32_t reg) {
    const auto found = std::find(places_.begin(), places_.end(), reg);
    return buffer_.data() + static_cast<std::size_t>(found - places_.begin()) * kSlot;
  }
  void set(std::uint32_t reg, const std::byte* value) { std::memcpy(slot(reg), value, std::min(kSlot, size_ - reg)); }
  void run(LaneMask lanes) {
    if (lanes != 0) op_.compute(buffer_.data(), op_, lanes);
  }

 private:
  std::uint32_t slot_of(std::uint32_t reg) {
    if (reg == kNoRegister) return reg;
    auto found = std::find(places_.begin(), places_.end(), reg);
    if (found == places_.end()) found = places_.insert(found, reg);
    return static_cast<std::uint32_t>(static_cast<std::size_t>(found - places_.begin()) * kSlot);
  }

  Op op_;
  std::size_t size_;                   // [bytes] of the activation's registers
  std::vector<std::uint32_t> places_;  // [slots] of the op's registers
  std::vector<std::uint32_t> list_;
  RegisterBuffer buffer_;
};

}  // namespace kvscope::ptx
