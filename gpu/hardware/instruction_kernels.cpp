#include "gpu/hardware/instruction_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "core/base/fnv.h"
#include "core/base/random.h"
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::gpu {
namespace {

using ptx::Opcode;
using ptx::Role;
using ptx::Type;

// --- which words -----------------------------------------------------------------------------------------------------

bool computes(Opcode opcode) {
  switch (opcode) {
    case Opcode::mov:
      return false;
    case Opcode::mma:
    case Opcode::wmma_mma:
    case Opcode::shfl:
    case Opcode::vote:
    case Opcode::match:
    case Opcode::redux:
    case Opcode::elect:
    case Opcode::movmatrix:
    case Opcode::atom:
      return true;
    default:
      return opcode <= Opcode::cvt_pack;
  }
}

// The last operand of these is the mask of the lanes that take part.
bool takes_lane_mask(Opcode opcode) {
  return opcode == Opcode::shfl || opcode == Opcode::vote || opcode == Opcode::match || opcode == Opcode::redux ||
         opcode == Opcode::elect;
}

bool is_matrix_product(Opcode opcode) {
  return opcode == Opcode::mma || opcode == Opcode::wmma_mma;
}

// Atomic operations count only with a state space, and without an order, a scope, a hint or a vector.
bool is_plain(Opcode opcode, std::string_view word) {
  constexpr std::array<std::string_view, 10> kOthers{".relaxed", ".acq",  ".release", ".gpu", ".cta",
                                                     ".sys",     ".clus", ".L2",      "::",   ".v"};
  return opcode != Opcode::atom ||
         ((word.find(".global") != word.npos || word.find(".shared") != word.npos) &&
          std::none_of(kOthers.begin(), kOthers.end(), [&](auto other) { return word.find(other) != word.npos; }));
}

// Every choice of every slot from `slot` on.
void spell(const ptx::Pattern& pattern, std::size_t slot, const std::string& so_far, std::vector<std::string>& words) {
  if (slot == pattern.slots.size()) {
    words.push_back(so_far);
    return;
  }
  const ptx::Slot& s = pattern.slots[slot];
  if (s.optional) spell(pattern, slot + 1, so_far, words);
  for (const ptx::Choice& choice : s.choices) spell(pattern, slot + 1, so_far + "." + choice.written, words);
}

// --- operands --------------------------------------------------------------------------------------------------------

// A format of floating-point numbers in the low bits of a word.
struct NumberFormat {
  int exponent = 8, fraction = 23;
  [[nodiscard]] int bias() const { return (1 << (exponent - 1)) - 1; }
  [[nodiscard]] std::uint64_t mask() const { return (std::uint64_t{2} << (exponent + fraction)) - 1; }
};

std::optional<NumberFormat> format_of(Type type) {
  switch (type) {
    case Type::f16:
    case Type::f16x2:
      return NumberFormat{5, 10};
    case Type::bf16:
    case Type::bf16x2:
      return NumberFormat{8, 7};
    case Type::f32:
    case Type::tf32:
      return NumberFormat{8, 23};
    case Type::f64:
      return NumberFormat{11, 52};
    case Type::e4m3:
    case Type::e4m3x2:
      return NumberFormat{4, 3};
    case Type::e5m2:
    case Type::e5m2x2:
      return NumberFormat{5, 2};
    default:
      return std::nullopt;
  }
}

int element_bits(Type type) {
  switch (type) {
    case Type::f16x2:
    case Type::bf16x2:
    case Type::u16x2:
    case Type::s16x2:
      return 16;
    case Type::e4m3x2:
    case Type::e5m2x2:
      return 8;
    case Type::tf32:
      return 32;
    default:
      return ptx::bits(type);
  }
}

std::uint64_t low_bits(std::uint64_t x, int bits) {
  return bits >= 64 ? x : x & ((std::uint64_t{1} << bits) - 1);
}

std::uint64_t number(const NumberFormat& f, bool negative, std::int64_t exponent, std::uint64_t fraction) {
  const std::int64_t biased = std::clamp<std::int64_t>(exponent + f.bias(), 0, (std::int64_t{1} << f.exponent) - 1);
  return (std::uint64_t{negative} << (f.exponent + f.fraction)) | static_cast<std::uint64_t>(biased) << f.fraction |
         low_bits(fraction, f.fraction);
}

// Zeros, the least and greatest subnormal and normal numbers, one, a half, infinities, quiet and signaling NaN.
std::uint64_t edge_of(const NumberFormat& f, std::uint64_t random) {
  const std::uint64_t all = low_bits(~std::uint64_t{0}, f.fraction), top = (std::uint64_t{1} << f.exponent) - 1;
  const std::array<std::uint64_t, 14> edges{0,
                                            1,
                                            all,
                                            std::uint64_t{1} << f.fraction,
                                            (std::uint64_t{1} << f.fraction) + 1,
                                            number(f, false, 0, 0),
                                            number(f, false, 0, 0) - 1,
                                            number(f, false, 0, 0) + 1,
                                            number(f, false, -1, 0),
                                            (top << f.fraction) - 1,
                                            top << f.fraction,
                                            (top << f.fraction) + 1,
                                            (top << f.fraction) | std::uint64_t{1} << (f.fraction - 1),
                                            (top << f.fraction) | all};
  const std::uint64_t edge = edges[random % edges.size()];
  return edge | (random >> 32 & 1) << (f.exponent + f.fraction);
}

// One number; `n` chooses the kind, `shared` is equal in all registers of a set, so that neighbors meet.
std::uint64_t float_number(const NumberFormat& f, int n, std::uint64_t random, std::uint64_t shared) {
  constexpr std::array<int, 11> kIntegerWidths{7, 8, 10, 15, 16, 23, 24, 31, 32, 53, 63};
  const bool negative = (random >> 63) != 0;
  const auto small = static_cast<std::int64_t>(random >> 40 & 0xff);
  switch (n) {
    case 0:
      return random & f.mask();
    case 1:
      return edge_of(f, random);
    case 2:
      return number(f, negative, small % 9 - 4, random);
    case 3: {  // near a number that all registers share
      const std::uint64_t base = number(f, false, static_cast<std::int64_t>(shared >> 40 & 0xff) % 13 - 6, shared);
      return (base + random % 5 - 2) | std::uint64_t{negative} << (f.exponent + f.fraction);
    }
    case 4: {  // a multiple of a half, up to 32
      const auto halves = static_cast<std::uint64_t>(1 + small % 63);
      const int exponent = static_cast<int>(std::bit_width(halves)) - 1;
      const std::uint64_t below = halves - (std::uint64_t{1} << exponent);
      const std::uint64_t fraction =
          f.fraction >= exponent ? below << (f.fraction - exponent) : below >> (exponent - f.fraction);
      return number(f, negative, exponent - 1, fraction);
    }
    case 5: {  // around the ends of integer types
      const std::uint64_t power = number(f, negative, kIntegerWidths[random % kIntegerWidths.size()], 0);
      return (power + (random >> 20) % 7 - 3) & f.mask();
    }
    case 6:  // subnormal, or the least normal ones
      return number(f, negative, -f.bias() + static_cast<std::int64_t>(small % 3), random >> (small % 16));
    default:  // any exponent
      return number(f, negative, static_cast<std::int64_t>(random >> 32) % (2 * f.bias()) - f.bias(), random);
  }
}

std::uint64_t integer_number(int bits, int n, std::uint64_t random, std::uint64_t shared) {
  constexpr std::array<std::uint64_t, 8> kEdges{0, 1, 2, 3, ~std::uint64_t{0}, ~std::uint64_t{1}, 0x55, 0x80};
  const std::uint64_t top = std::uint64_t{1} << (bits - 1);
  switch (n) {
    case 0:
      return random;
    case 1:
      return kEdges[random % kEdges.size()];
    case 2:  // ends of the signed and the unsigned range
      return top + (random % 5) - 2;
    case 3:
      return (random % 97) - 48;
    case 4:  // any magnitude
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(random) >> (random >> 8) % 63);
    case 5:
      return shared + random % 3 - 1;
    case 6:
      return (std::uint64_t{1} << random % 64) - (random >> 10) % 3 + 1;
    default:
      return random >> (random % 64);
  }
}

std::uint64_t packed(Type type, int bits, int n, const CounterRng& random, std::uint64_t counter,
                     std::uint64_t shared) {
  const int each = std::clamp(element_bits(type), 1, bits);
  const std::optional<NumberFormat> format = format_of(type);
  std::uint64_t value = 0;
  for (int at = 0, i = 0; at < bits; at += each, ++i) {
    const std::uint64_t r = random.bits(counter + static_cast<std::uint64_t>(i));
    value |=
        low_bits(format ? float_number(*format, n, r, shared) : integer_number(std::max(each, 8), n, r, shared), each)
        << at;
  }
  return value;
}

// Two of four, as PTX allows them: positions in ascending order. One of two of tf32 has the first or the second pair.
std::uint64_t metadata(Type type, std::uint64_t random) {
  constexpr std::array<std::uint64_t, 6> kPairs{0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};
  constexpr std::array<std::uint64_t, 2> kHalves{0b0100, 0b1110};
  std::uint64_t value = 0;
  for (int nibble = 0; nibble < 8; ++nibble, random >>= 8)
    value |= (type == Type::tf32 ? kHalves[random % 2] : kPairs[random % 6]) << (4 * nibble);
  return value;
}

std::uint64_t value_of(const InstructionRegister& reg, std::uint64_t set, const CounterRng& random,
                       const CounterRng& shared) {
  const std::uint64_t counter = set * 64;
  const std::uint64_t r = random.bits(counter + 63);
  switch (reg.operands) {
    case Operands::carry:
      return r >> 63;
    case Operands::metadata:
      return metadata(reg.type, r);
    case Operands::shape:
      return set % 4 == 0 ? r & 0xffffffffU : (r >> 32) % 71;
    case Operands::matrix: {
      // One kind for a whole matrix: 32 sets. A NaN in a row hides all other numbers of it.
      const std::uint64_t tile = set / 32;
      const int n = tile % 8 < 4 ? 2 : tile % 8 < 6 ? 4 : tile % 8 == 6 ? 3 : static_cast<int>(tile / 8 % 8);
      return low_bits(packed(reg.type, reg.bits, n, random, counter, shared.bits(tile)), reg.bits);
    }
    case Operands::scalar:
    case Operands::divisor:
      break;
  }
  if (reg.bits == 1) return r >> 63;
  const bool divides = reg.operands == Operands::divisor;
  const int n = static_cast<int>(set % 8);
  const int number_bits = std::min(reg.bits, std::max(8, ptx::bits(reg.type)));
  std::uint64_t value = packed(reg.type, number_bits, n, random, counter, shared.bits(set));
  if (number_bits < reg.bits) value |= r << number_bits;  // bits that the instruction must ignore
  value = low_bits(value, reg.bits);
  return divides && value == 0 ? 3 : value;
}

// --- the kernel ------------------------------------------------------------------------------------------------------

int register_bits(Type type) {
  if (type == Type::pred) return 1;
  const int bits = ptx::bits(type);
  return bits < 16 ? 32 : bits;
}

std::string_view register_type(int bits) {
  return bits == 1 ? "pred" : bits == 16 ? "b16" : bits == 32 ? "b32" : "b64";
}

// The element type of a matrix operand, counted D A B C.
Type matrix_type(const ptx::Instr& instr, int operand) {
  if (instr.opcode == Opcode::wmma_mma && instr.type_count == 2)
    return operand == 0 ? instr.type(0) : operand == 3 ? instr.type(1) : Type::f16;
  return instr.type(operand);
}

class KernelMaker {
 public:
  explicit KernelMaker(const std::string& word) : instr_(ptx::understand(word)) { made_.word = word; }

  std::optional<InstructionKernel> make() {
    if (!instr_.unsupported.empty() || instr_.least_target > 90 || instr_.only_100a || instr_.only_120a ||
        !computes(instr_.opcode) || !is_plain(instr_.opcode, made_.word))
      return std::nullopt;
    std::vector<ptx::OperandRule> rules;
    for (int count = 1; rules.empty() && count <= ptx::kMostOperands; ++count) rules = operand_rules(instr_, count);
    if (rules.empty()) return std::nullopt;
    std::string statement = made_.word;
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const bool mask = takes_lane_mask(instr_.opcode) && i + 1 == rules.size();
      const std::optional<std::string> operand = mask ? "0xffffffff" : this->operand(rules[i], static_cast<int>(i));
      if (!operand) return std::nullopt;
      statement += (i == 0 ? " " : ", ") + *operand;
    }
    made_.text = before_ + with_carry(statement + ";\n") + after_;
    return made_;
  }

 private:
  std::string read(InstructionRegister reg) {
    made_.reads.push_back(reg);
    return fmt::format("%a{}", made_.reads.size() - 1);
  }
  std::string write(Type type) {
    made_.writes.push_back({.type = type, .bits = register_bits(type), .operands = Operands::scalar, .same_as = -1});
    return fmt::format("%d{}", made_.writes.size() - 1);
  }

  std::optional<std::string> operand(const ptx::OperandRule& rule, int position) {
    if (rule.role == Role::address && instr_.opcode == Opcode::atom) return cell();
    if (rule.role == Role::address || rule.role == Role::target || rule.packs || ptx::bits(rule.type) > 64)
      return std::nullopt;
    if (rule.constant) return instr_.opcode == Opcode::lop3 ? "0xd8" : "0";
    const bool matrix = is_matrix_product(instr_.opcode);
    std::vector<std::string> registers;
    for (int e = 0; e < rule.elements; ++e) {
      if (rule.role == Role::written) {
        registers.push_back(write(rule.type));
        continue;
      }
      InstructionRegister reg{
          .type = rule.type, .bits = register_bits(rule.type), .operands = Operands::scalar, .same_as = -1};
      if (matrix && position < 4) {
        reg.type = matrix_type(instr_, position);
        reg.operands = Operands::matrix;
        // wmma stores each element of A and B in f16 twice.
        if (instr_.opcode == Opcode::wmma_mma && reg.type == Type::f16 && position < 3 && e >= 4)
          reg.same_as = static_cast<int>(made_.reads.size()) - 4;
      } else if (matrix) {
        reg.type = instr_.type(1);
        reg.operands = Operands::metadata;
      } else if (rule.type == Type::u32 && instr_.type_count > 0 && instr_.type(0) != Type::u32) {
        reg.operands = Operands::shape;  // a shift, a position, a length
      } else if (instr_.opcode == Opcode::shfl && position > 1) {
        reg.operands = Operands::shape;
      } else if ((instr_.opcode == Opcode::div || instr_.opcode == Opcode::rem) && position == 2 &&
                 ptx::class_of(rule.type) != ptx::TypeClass::floating) {
        reg.operands = Operands::divisor;  // probe P3 divides by zero
      }
      registers.push_back(read(reg));
    }
    std::string text = registers[0];
    if (rule.elements > 1 || rule.braces == ptx::Braces::required)
      text = fmt::format("{{{}}}", fmt::join(registers, ", "));
    if (rule.role == Role::written && rule.second != Type::none) text += "|" + write(rule.second);
    return text;
  }

  // The address of the thread's cell, which holds the operation's type.
  std::string cell() {
    const Type type = instr_.type(0);
    const std::string_view space = instr_.has(ptx::Mod::shared) ? "shared" : "global";
    const std::string old =
        read({.type = type, .bits = register_bits(type), .operands = Operands::scalar, .same_as = -1});
    const std::string now = write(type);
    const std::string address =
        space == "shared" ? "[%cell]" : fmt::format("[%out+{}]", (made_.writes.size() - 1) * 8 * kOperandSets);
    before_ = fmt::format("st.{}.b{} {}, {};\n", space, ptx::bits(type), address, old);
    after_ = fmt::format("ld.{}.b{} {}, {};\n", space, ptx::bits(type), now, address);
    return address;
  }

  // Sets the carry flag before an instruction that reads it, and reads it after one that writes it.
  std::string with_carry(std::string text) {
    const bool subtracts = instr_.opcode == Opcode::sub || instr_.opcode == Opcode::subc;
    if (instr_.opcode == Opcode::addc || instr_.opcode == Opcode::madc || instr_.opcode == Opcode::subc) {
      const std::string carry = read({.type = Type::u32, .bits = 32, .operands = Operands::carry, .same_as = -1});
      text = (subtracts ? "sub.cc.u32 %t, 0, " + carry : "add.cc.u32 %t, -1, " + carry) + ";\n" + text;
    }
    if (instr_.has(ptx::Mod::cc))
      text += fmt::format("{}.u32 {}, 0, 0;\n", subtracts ? "subc" : "addc", write(Type::u32));
    return text;
  }

  ptx::Instr instr_;
  InstructionKernel made_;
  std::string before_, after_;
};

std::string entry_text(const InstructionKernel& kernel, std::size_t number) {
  std::string text = fmt::format(".visible .entry i{}(.param .align 8 .b8 p[16]) {{\n", number);
  text += ".reg .b32 %t, %cell; .reg .b64 %in, %out, %at, %x; .shared .align 8 .b8 cells[2048];\n";
  const auto declare = [&](const std::vector<InstructionRegister>& registers, char family) {
    for (std::size_t i = 0; i < registers.size(); ++i)
      text += fmt::format(".reg .{} %{}{};{}", register_type(registers[i].bits), family, i,
                          i + 1 == registers.size() ? "\n" : " ");
  };
  declare(kernel.reads, 'a');
  declare(kernel.writes, 'd');
  text +=
      "ld.param.u64 %in, [p]; ld.param.u64 %out, [p+8];\n"
      "mov.u32 %t, %ctaid.x; shl.b32 %t, %t, 8; cvt.u64.u32 %at, %t; mov.u32 %t, %tid.x; cvt.u64.u32 %x, %t;\n"
      "shl.b32 %cell, %t, 3; mov.u32 %t, cells; add.u32 %cell, %cell, %t;\n"
      "add.u64 %at, %at, %x; shl.b64 %at, %at, 3; add.u64 %in, %in, %at; add.u64 %out, %out, %at;\n";
  for (std::size_t i = 0; i < kernel.reads.size(); ++i) {
    // In the register's own width: ptxas 13.0 takes the upper word of a 64-bit load for the upper half of the operand of
    // atom.shared.add.noftz.f16x2, if the operand is the load's lower word.
    const std::string from = fmt::format("[%in+{}]", static_cast<std::int64_t>(i) * 8 * kOperandSets);
    const int bits = kernel.reads[i].bits;
    text += bits == 1 ? fmt::format("ld.global.u32 %t, {}; setp.ne.u32 %a{}, %t, 0;\n", from, i)
                      : fmt::format("ld.global.b{} %a{}, {};\n", bits, i, from);
  }
  text += kernel.text;
  for (std::size_t i = 0; i < kernel.writes.size(); ++i) {
    const int bits = kernel.writes[i].bits;
    text += bits == 1    ? fmt::format("selp.u64 %x, 1, 0, %d{};", i)
            : bits == 64 ? fmt::format("mov.b64 %x, %d{};", i)
                         : fmt::format("cvt.u64.u{} %x, %d{};", bits, i);
    text += fmt::format(" st.global.u64 [%out+{}], %x;\n", static_cast<std::int64_t>(i) * 8 * kOperandSets);
  }
  return text + "ret;\n}\n";
}

}  // namespace

std::optional<InstructionKernel> instruction_kernel(const std::string& word) {
  return KernelMaker(word).make();
}

const std::vector<std::string>& measured_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all;
    for (const ptx::Pattern& pattern : ptx::patterns()) {
      if (!computes(pattern.opcode) || pattern.form->target > 90) continue;
      std::vector<std::string> of_form;
      spell(pattern, 0, std::string(pattern.form->base), of_form);
      for (std::string& word : of_form)
        if (instruction_kernel(word)) all.push_back(std::move(word));
    }
    // Two forms may spell one word, with other operands.
    std::vector<std::string> once;
    for (std::string& word : all)
      if (std::find(once.begin(), once.end(), word) == once.end()) once.push_back(std::move(word));
    return once;
  }();
  return words;
}

std::string ptx_of(std::span<const InstructionKernel> kernels) {
  std::string text = ".version 8.7\n.target sm_90a\n.address_size 64\n";
  for (std::size_t i = 0; i < kernels.size(); ++i) text += entry_text(kernels[i], i);
  return text;
}

std::vector<std::uint64_t> operand_sets(const InstructionKernel& kernel) {
  const std::uint64_t seed = fnv1a(std::as_bytes(std::span(kernel.word)));
  const CounterRng shared(seed, 1);
  std::vector<std::uint64_t> values;
  values.reserve(kernel.reads.size() * kOperandSets);
  for (std::size_t i = 0; i < kernel.reads.size(); ++i) {
    const int same_as = kernel.reads[i].same_as;
    if (same_as >= 0) {
      const auto from = static_cast<std::ptrdiff_t>(same_as) * kOperandSets;
      const std::vector<std::uint64_t> same(values.begin() + from, values.begin() + from + kOperandSets);
      values.insert(values.end(), same.begin(), same.end());
      continue;
    }
    const CounterRng random(seed, 2 + i);
    for (std::uint64_t set = 0; set < kOperandSets; ++set)
      values.push_back(value_of(kernel.reads[i], set, random, shared));
  }
  return values;
}

}  // namespace kvscope::gpu
