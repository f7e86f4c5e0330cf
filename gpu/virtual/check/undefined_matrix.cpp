// The undefined elements of a matrix product D = A B + C: row i of A and column j of B, or element (i, j) of C.
//
// The product itself finds them: with ones at the undefined elements of A, zeros elsewhere in A and C, and B all ones,
// exactly the undefined elements of D are not zero. Then the same for B. The metadata of a sparse A keeps its value, so
// elements of B that no metadata selects have no effect. Undefined metadata makes its row of D undefined, an undefined
// block scale its row or column.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "gpu/virtual/check/detail/op_probe.h"
#include "gpu/virtual/check/undefined_results.h"
#include "gpu/virtual/isa/sparse_metadata.h"
#include "gpu/virtual/machine/memory/access.h"
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
    case Type::e2m3:
      return 0x0808'0808'0808'0808;
    case Type::e3m2:
      return 0x0c0c'0c0c'0c0c'0c0c;
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
  int element_bits = 0;  // in a register

  [[nodiscard]] std::uint64_t ones() const {
    if (type != Type::e2m1) return ones_of(type);
    return element_bits == 4 ? 0x2222'2222'2222'2222 : 0x0808'0808'0808'0808;  // in bytes: bits 2 to 5
  }
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
      const Type type = instr_.type(static_cast<int>(i));
      factors_[i] = {{from, from + count}, type, in_bytes() && (i == kA || i == kB) ? 8 : bits(type)};
      from += count;
    }
    if (is_sparse(instr_)) {
      metadata_ = from;
      from += 2;
    }
    if (instr_.has(Mod::block_scale)) scales_ = from;
  }

  // Undefined bits of each register of D, as in a register's value.
  std::vector<Bits> run() {
    std::vector<Bits> out(factors_[kD].registers.size());
    for (const std::size_t side : {kA, kB}) {
      if (!has_undefined(factors_[side])) continue;
      OpProbe probe(exec_, op_);
      probe.fill(exec_.registers);  // operands of other kinds keep their values
      set_scales_to_one(probe);
      const bool zeros = instr_.has(Mod::xor_);  // 0 ^ x: the popcount of x
      set(
          probe, factors_[kC], [](std::uint64_t) { return std::uint64_t{0}; }, nullptr);
      set(
          probe, factors_[side == kA ? kB : kA],
          [&](std::uint64_t) { return zeros ? 0 : factors_[side == kA ? kB : kA].ones(); }, nullptr);
      const std::uint64_t ones = factors_[side].ones();
      const int element = factors_[side].element_bits;
      set(
          probe, factors_[side], [&](std::uint64_t undefined) { return whole_elements(undefined, element) & ones; },
          &registers_);
      probe.run(kAllLanes);
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (factors_[kD].registers[i] != kNoRegister) add(probe.slot(factors_[kD].registers[i]), out[i]);
      }
    }
    for (std::size_t i = 0; i < out.size(); ++i) add(registers_.bits(factors_[kC].registers[i]), out[i]);
    add_lines(out);
    return out;
  }
  // Two operands in the same registers are not told apart.
  [[nodiscard]] bool shares_registers() const {
    const auto reads = [](const Factor& f, std::uint32_t reg) {
      return std::find(f.registers.begin(), f.registers.end(), reg) != f.registers.end();
    };
    for (const std::uint32_t a : factors_[kA].registers) {
      if (reads(factors_[kB], a)) return true;
    }
    std::vector<std::uint32_t> others;
    if (metadata_ != nullptr) others.insert(others.end(), metadata_, metadata_ + 2);
    if (scales_ != nullptr) others.insert(others.end(), scales_, scales_ + 6);
    return std::any_of(others.begin(), others.end(), [&](std::uint32_t reg) {
      return reads(factors_[kA], reg) || reads(factors_[kB], reg) || reads(factors_[kC], reg);
    });
  }
  [[nodiscard]] const std::vector<std::uint32_t>& results() const { return factors_[kD].registers; }
  [[nodiscard]] std::uint8_t result_bytes() const { return bits(factors_[kD].type) == 64 ? 8 : 4; }

 private:
  enum : std::size_t { kD, kA, kB, kC };
  static constexpr int kRows = 16, kColumns = 8;  // of D, with metadata or scales

  [[nodiscard]] bool in_bytes() const { return instr_.has(Mod::kind_f8f6f4) || instr_.has(Mod::kind_mxf8f6f4); }

  void set_scales_to_one(OpProbe& probe) const {
    if (scales_ == nullptr) return;
    const std::byte one{instr_.type(4) == Type::ue8m0 ? std::uint8_t{0x7f} : std::uint8_t{0x38}};
    for (const int at : {0, 3}) std::memset(probe.slot(scales_[at]), std::to_integer<int>(one), 4 * kLanes);
  }

  // The undefined bits of a register in a lane.
  [[nodiscard]] std::uint32_t undefined(std::uint32_t reg, int lane) const {
    std::uint32_t word = 0;
    std::memcpy(&word, registers_.bits(reg) + 4 * lane, sizeof word);
    return word;
  }

  // Rows and columns of D that undefined metadata and undefined scales affect.
  void add_lines(std::vector<Bits>& out) const {
    std::array<bool, kRows> rows{};
    std::array<bool, kColumns> columns{};
    if (metadata_ != nullptr) {
      const int element_bits = factors_[kA].element_bits, k = instr_.shape.k, chunks = k / metadata_chunk(element_bits);
      const auto selector = static_cast<int>(lane_value(exec_, metadata_[1], 4, 0));
      for (int row = 0; row < kRows; ++row) {
        for (int chunk = 0; chunk < chunks; ++chunk) {
          const MetadataPlace at = metadata_place(element_bits, k, selector, row, chunk);
          if ((undefined(metadata_[0], at.lane) >> at.bit & 0xf) != 0) rows[static_cast<std::size_t>(row)] = true;
        }
      }
    }
    if (scales_ != nullptr) {
      const auto chosen = [&](int at) { return static_cast<int>(lane_value(exec_, scales_[at], 2, 0)); };
      const auto bytes = [&](int first) {
        const std::uint64_t count = (std::uint64_t{1} << (8 * block_scales_of(instr_))) - 1;
        return static_cast<std::uint32_t>(count << (8 * (first & 3)));
      };
      for (int row = 0; row < kRows; ++row) {
        const int lane = 4 * (row % 8) + 2 * (chosen(2) & 1) + row / 8;
        if ((undefined(scales_[0], lane) & bytes(chosen(1))) != 0) rows[static_cast<std::size_t>(row)] = true;
      }
      for (int column = 0; column < kColumns; ++column) {
        const int lane = 4 * column + (chosen(5) & 3);
        if ((undefined(scales_[3], lane) & bytes(chosen(4))) != 0) columns[static_cast<std::size_t>(column)] = true;
      }
    }
    if (metadata_ == nullptr && scales_ == nullptr) return;
    const bool halves = factors_[kD].type == Type::f16;
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        for (std::size_t half = 0; half < 2; ++half) {  // of f16: a number; otherwise one number
          const std::size_t row = lane / 4 + 8 * (halves ? i : i / 2);
          const std::size_t column = 2 * (lane % 4) + (halves ? half : i % 2);
          if (rows[row] || columns[column]) std::memset(out[i].data() + 4 * lane + 2 * half, 0xff, 2);
        }
      }
    }
  }

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
  const std::uint32_t* metadata_ = nullptr;  // it, its selector; in Op::list
  const std::uint32_t* scales_ = nullptr;    // of A, byte, lane, of B, byte, lane
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
