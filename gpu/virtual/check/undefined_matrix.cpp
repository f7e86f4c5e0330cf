// The undefined elements of a matrix product D = A B + C: row i of A and column j of B, or element (i, j) of C.
//
// The product itself finds them: with ones at the undefined elements of A, zeros elsewhere in A and C, and B all ones,
// exactly the undefined elements of D are not zero. Then the same for B.
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "gpu/virtual/check/detail/op_probe.h"
#include "gpu/virtual/check/undefined_results.h"
#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {
namespace {

// The number one, repeated in 64 bits.
std::uint64_t ones_of(Type type) {
  switch (type) {
    case Type::f16:
      return 0x3c00'3c00'3c00'3c00;
    case Type::bf16:
      return 0x3f80'3f80'3f80'3f80;
    case Type::f64:
      return 0x3ff0'0000'0000'0000;
    case Type::e4m3:
      return 0x3838'3838'3838'3838;
    case Type::e5m2:
      return 0x3c3c'3c3c'3c3c'3c3c;
    case Type::s8:
    case Type::u8:
      return 0x0101'0101'0101'0101;
    case Type::s4:
    case Type::u4:
      return 0x1111'1111'1111'1111;
    case Type::b1:
      return ~std::uint64_t{0};
    default:
      return 0x3f80'0000'3f80'0000;  // tf32, f32
  }
}

// All bits of each element of `bits` that has one set.
std::uint64_t whole_elements(std::uint64_t value, int element_bits) {
  if (element_bits == 64) return value != 0 ? ~std::uint64_t{0} : 0;
  const std::uint64_t element = (std::uint64_t{1} << element_bits) - 1;
  std::uint64_t out = 0;
  for (int at = 0; at < 64; at += element_bits) {
    if ((value >> at & element) != 0) out |= element << at;
  }
  return out;
}

using Bits = std::array<std::byte, OpProbe::kSlot>;

template <class Change>
void each_word(std::byte* bytes, std::size_t count, const Change& change) {
  for (std::size_t i = 0; i < count; i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + i, sizeof word);
    word = change(word);
    std::memcpy(bytes + i, &word, sizeof word);
  }
}

struct Factor {
  std::vector<std::uint32_t> registers;
  Type type = Type::none;
};

class MatrixPropagation {
 public:
  MatrixPropagation(const Exec& exec, const Op& op, const UndefinedRegisters& registers)
      : exec_(exec), op_(op), registers_(registers), instr_(exec.program().instr(op)) {
    const OpSource& source = exec.program().sources[static_cast<std::size_t>(op.source)];
    const Function& f = exec.program().module->functions[static_cast<std::size_t>(source.function)];
    const std::uint32_t* from = op.list;
    const auto operands = f.operands_of(f.body[static_cast<std::size_t>(source.statement)]);
    for (std::size_t i = 0; i < factors_.size(); ++i) {
      const auto count = operands[i].kind == OperandKind::vector ? static_cast<std::size_t>(operands[i].count) : 1;
      factors_[i] = {{from, from + count}, instr_.type(static_cast<int>(i))};
      from += count;
    }
  }

  // Undefined bits of each register of D, as in a register's value.
  std::vector<Bits> run() {
    std::vector<Bits> out(factors_[kD].registers.size());
    for (const std::size_t side : {kA, kB}) {
      if (!has_undefined(factors_[side])) continue;
      OpProbe probe(exec_, op_);
      probe.fill(exec_.registers);               // operands of other kinds keep their values
      const bool zeros = instr_.has(Mod::xor_);  // 0 ^ x: the popcount of x
      set(
          probe, factors_[kC], [](std::uint64_t) { return std::uint64_t{0}; }, nullptr);
      set(
          probe, factors_[side == kA ? kB : kA],
          [&](std::uint64_t) { return zeros ? 0 : ones_of(factors_[side == kA ? kB : kA].type); }, nullptr);
      const std::uint64_t ones = ones_of(factors_[side].type);
      const int element = bits(factors_[side].type);
      set(
          probe, factors_[side], [&](std::uint64_t undefined) { return whole_elements(undefined, element) & ones; },
          &registers_);
      probe.run(kAllLanes);
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (factors_[kD].registers[i] != kNoRegister) add(probe.slot(factors_[kD].registers[i]), out[i]);
      }
    }
    for (std::size_t i = 0; i < out.size(); ++i) add(registers_.bits(factors_[kC].registers[i]), out[i]);
    return out;
  }
  // Two operands in the same registers are not told apart.
  [[nodiscard]] bool shares_registers() const {
    for (const std::uint32_t a : factors_[kA].registers) {
      for (const std::uint32_t b : factors_[kB].registers) {
        if (a == b) return true;
      }
    }
    return false;
  }
  [[nodiscard]] const std::vector<std::uint32_t>& results() const { return factors_[kD].registers; }
  [[nodiscard]] std::uint8_t result_bytes() const { return bits(factors_[kD].type) == 64 ? 8 : 4; }

 private:
  enum : std::size_t { kD, kA, kB, kC };

  [[nodiscard]] bool has_undefined(const Factor& f) const {
    for (const std::uint32_t reg : f.registers) {
      if (registers_.lanes(reg) != 0) return true;
    }
    return false;
  }
  [[nodiscard]] std::size_t bytes_of(const Factor& f) const { return bits(f.type) == 64 ? 8 * kLanes : 4 * kLanes; }

  template <class Value>
  void set(OpProbe& probe, const Factor& f, const Value& value, const UndefinedRegisters* from) {
    for (const std::uint32_t reg : f.registers) {
      Bits bytes{};
      if (from != nullptr) std::memcpy(bytes.data(), from->bits(reg), bytes_of(f));
      each_word(bytes.data(), bytes_of(f), value);
      std::memcpy(probe.slot(reg), bytes.data(), bytes_of(f));
    }
  }
  void add(const std::byte* values, Bits& to) const {
    const int element = bits(factors_[kD].type);
    Bits bytes{};
    std::memcpy(bytes.data(), values, bytes_of(factors_[kD]));
    each_word(bytes.data(), bytes_of(factors_[kD]),
              [element](std::uint64_t word) { return whole_elements(word, element); });
    for (std::size_t i = 0; i < bytes.size(); ++i) to[i] |= bytes[i];
  }

  const Exec& exec_;
  const Op& op_;
  const UndefinedRegisters& registers_;
  const Instr& instr_;
  std::array<Factor, 4> factors_;
};

}  // namespace

void propagate_matrix(const Exec& exec, const Op& op, const UndefinedEffects& effects, UndefinedRegisters& registers) {
  std::optional<std::uint32_t> origin;
  for (const RegisterAt r : effects.reads) {
    if (!origin && registers.lanes(r.reg) != 0) origin = registers.origin(r.reg);
  }
  const Opcode opcode = exec.program().instr(op).opcode;
  if (origin && opcode == Opcode::movmatrix) {
    OpProbe probe(exec, op);
    probe.fill(registers.bits(0));
    probe.run(kAllLanes);
    return registers.assign(effects.writes[0], kAllLanes, probe.slot(effects.writes[0].reg), *origin);
  }
  if (origin && opcode == Opcode::mma) {
    MatrixPropagation product(exec, op, registers);
    if (!product.shares_registers()) {
      const std::vector<Bits> undefined = product.run();
      for (std::size_t i = 0; i < undefined.size(); ++i) {
        const std::uint32_t reg = product.results()[i];
        if (reg != kNoRegister)
          registers.assign({reg, product.result_bytes()}, kAllLanes, undefined[i].data(), *origin);
      }
      return;
    }
  }
  for (const RegisterAt w : effects.writes) {
    registers.define(w, kAllLanes);
    if (origin) registers.mark(w, kAllLanes, *origin);
  }
}

}  // namespace kvscope::ptx
