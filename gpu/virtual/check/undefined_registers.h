// The undefined bits of the registers of one activation, in the layout of its registers (program.h): bit i of lane l of a
// register is undefined if the same bit is set here. A predicate has one word, one bit per lane.
//
// Each register with undefined bits has one origin: the read that its value comes from (an index that the caller assigns).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gpu/virtual/machine/program/register_buffer.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

// A register of an op: its offset in the buffer, and its bytes per lane (0: a predicate).
struct RegisterAt {
  std::uint32_t reg = kNoRegister;
  std::uint8_t bytes = 4;
  friend bool operator==(const RegisterAt&, const RegisterAt&) = default;
};

class UndefinedRegisters {
 public:
  UndefinedRegisters() = default;
  explicit UndefinedRegisters(std::size_t bytes)
      : bits_(bytes, std::byte{0}), lanes_((bytes + 3) / 4, 0), origins_((bytes + 3) / 4, 0) {}

  [[nodiscard]] bool empty() const { return bits_.empty(); }
  [[nodiscard]] std::size_t size() const { return bits_.size(); }  // [bytes]
  // Lanes with an undefined bit.
  [[nodiscard]] LaneMask lanes(std::uint32_t reg) const { return lanes_[reg / 4]; }
  [[nodiscard]] std::uint32_t origin(std::uint32_t reg) const { return origins_[reg / 4]; }
  // The bits of all lanes, as a register's value.
  [[nodiscard]] const std::byte* bits(std::uint32_t reg) const { return bits_.data() + reg; }
  [[nodiscard]] std::uint64_t bits(RegisterAt r, int lane) const {  // of a register of at most 64 bits
    if (r.bytes == 0) return lanes_[r.reg / 4] >> lane & 1;
    std::uint64_t out = 0;
    std::memcpy(&out, bits_.data() + r.reg + lane * r.bytes, r.bytes < 8 ? r.bytes : 8);
    return out;
  }
  [[nodiscard]] std::size_t count() const { return count_; }  // of registers with undefined bits

  void define(RegisterAt r, LaneMask lanes) {
    if ((lanes_[r.reg / 4] & lanes) != 0) [[unlikely]] {
      clear(r, lanes);
    }
  }
  void set_origin(std::uint32_t reg, std::uint32_t origin) { origins_[reg / 4] = origin; }
  // Copies the bits of `lanes` from a buffer in the register's layout.
  void assign(RegisterAt r, LaneMask lanes, const std::byte* bits, std::uint32_t origin);
  void mark(RegisterAt r, LaneMask lanes, std::uint32_t origin);  // all bits

 private:
  void set_lanes(LaneMask& word, LaneMask lanes) {
    if (word == 0 && lanes != 0) ++count_;
    if (word != 0 && lanes == 0) --count_;
    word = lanes;
  }
  void clear(RegisterAt r, LaneMask lanes);

  RegisterBuffer bits_;
  std::vector<LaneMask> lanes_;
  std::vector<std::uint32_t> origins_;
  std::size_t count_ = 0;
};

}  // namespace kvscope::ptx
