// The register buffer of one function during lowering: the places of registers, constants, special registers and
// addresses. A place is assigned at the first use.
//
//   0            predicates, 4 bytes each: declared ones, the hidden carry, true and false
//   then         registers, by width; constants, special registers, addresses in the order of their first use
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {

// Bytes per lane of a register in the buffer: 2 to 16; 0 for a predicate. An 8-bit register occupies two bytes.
[[nodiscard]] int register_bytes_of(Type type);

class FunctionRegisters {
 public:
  // `used` [registers]: registers that a statement names; others get no place. With `same_place` (one number per
  // register, from gpu/virtual/machine/program/detail/liveness.h), registers of equal width and number share a place;
  // empty: each has its own.
  FunctionRegisters(const Function& function, const std::vector<bool>& used,
                    const std::vector<std::int32_t>& same_place, FunctionCode& code);

  [[nodiscard]] std::uint32_t of_register(std::int32_t index) const {
    return code_.registers[static_cast<std::size_t>(index)].reg;
  }
  [[nodiscard]] std::uint32_t constant(std::uint64_t bits, int bytes);
  [[nodiscard]] std::uint32_t special(SpecialRegister special, int bytes);
  [[nodiscard]] std::uint32_t address(std::int32_t variable, Space space, std::int64_t offset, int bytes);
  [[nodiscard]] std::uint32_t carry();

  // Writes FunctionCode::initial: constants in all lanes, zeros elsewhere.
  void finish();

 private:
  [[nodiscard]] std::uint32_t take(int bytes);

  FunctionCode& code_;
  std::uint32_t next_ = 0;
  std::uint32_t carry_ = kNoRegister;
  std::map<std::pair<std::uint64_t, int>, std::uint32_t> constants_;
  std::map<std::pair<SpecialRegister, int>, std::uint32_t> specials_;
  std::map<std::tuple<std::int32_t, std::int64_t, int>, std::uint32_t> addresses_;
};

}  // namespace kvscope::ptx
