#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>

#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/program/detail/lower.h"

namespace kvscope::ptx {
namespace {

using Place = OperandRegisters::Place;

class Reader {
 public:
  Reader(const Module& module, const Function& function, const Program& program, FunctionRegisters& registers,
         OperandRegisters& out)
      : module_(module), function_(function), program_(program), registers_(registers), out_(out) {}

  void read(const Operand& o, const OperandRule& rule, int number) {
    switch (o.kind) {
      case OperandKind::address:
        address(o, number);
        return;
      case OperandKind::vector:
        out_.lists = true;
        vector(o, rule);
        return;
      case OperandKind::pair: {
        const auto elements = function_.elements_of(o);
        out_.flat.push_back(value(elements[0], rule.type));
        out_.has_second = true;
        out_.second = value(elements[1], rule.second == Type::none ? Type::pred : rule.second);
        if (elements[1].negated) out_.negated = static_cast<std::uint8_t>(out_.negated | 1u << 4);
        return;
      }
      default: {
        Type type = rule.type;
        if (rule.alternative != Type::none && alternative(o, rule)) type = rule.alternative;
        out_.flat.push_back(value(o, type));
        if (o.negated && number < 8) out_.negated = static_cast<std::uint8_t>(out_.negated | 1u << number);
        return;
      }
    }
  }

 private:
  // Whether the operand matches the rule's alternative: cp.async's predicate instead of a size, wgmma's descriptor.
  [[nodiscard]] bool alternative(const Operand& o, const OperandRule& rule) const {
    if (o.kind != OperandKind::reg) return rule.elements > 1;  // a number in place of a vector: a descriptor
    return register_bytes_of(type_of(o)) == register_bytes_of(rule.alternative) &&
           register_bytes_of(type_of(o)) != register_bytes_of(rule.type);
  }

  [[nodiscard]] Type type_of(const Operand& reg) const {
    return function_.registers[static_cast<std::size_t>(reg.index)].type;
  }

  void reject(std::string why) {
    if (out_.rejection.empty()) out_.rejection = std::move(why);
  }

  void vector(const Operand& o, const OperandRule& rule) {
    const auto elements = function_.elements_of(o);
    Type type = rule.type;
    if (rule.packs && !elements.empty()) type = piece(bits(rule.type) / static_cast<int>(elements.size()));
    std::uint8_t bytes = 0;
    for (const Operand& e : elements) {
      const Place p = value(e, type);
      if (p.reg != kNoRegister && bytes != 0 && p.bytes != bytes) reject("registers of different widths in one vector");
      if (p.reg != kNoRegister) bytes = p.bytes;
      out_.flat.push_back(p);
    }
  }

  static Type piece(int width) {
    switch (width) {
      case 8:
        return Type::b8;
      case 16:
        return Type::b16;
      case 32:
        return Type::b32;
      default:
        return Type::b64;
    }
  }

  void address(const Operand& o, int number) {
    const auto elements = function_.elements_of(o);
    std::int64_t offset = o.value;
    const Place base = address_base(elements[0], offset);
    out_.flat.push_back(base);
    ++out_.addresses;
    if (elements[0].kind != OperandKind::reg) out_.uniform_address = true;
    if (offset < std::numeric_limits<std::int32_t>::min() || offset > std::numeric_limits<std::int32_t>::max()) {
      reject(fmt::format("an address offset of {} does not fit 32 bits", offset));
    } else if (number < 4) {
      out_.offsets[static_cast<std::size_t>(number)] = offset;
    } else if (offset != 0) {
      reject("an address offset after the fourth operand");
    }
    if (elements.size() < 2) return;
    out_.lists = true;
    for (const Operand& c : function_.elements_of(elements[1])) out_.flat.push_back(value(c, Type::b32));
  }

  // Moves the known part of a parameter's or a number's address into the offset.
  Place address_base(const Operand& e, std::int64_t& offset) {
    if (e.kind == OperandKind::reg) return value(e, Type::b64);
    if (e.kind == OperandKind::integer) return {registers_.constant(static_cast<std::uint64_t>(e.value), 8), 8};
    if (e.kind != OperandKind::variable) {
      reject("an address that is neither a register, a variable nor a number");
      return {};
    }
    const Variable& v = module_.variables[static_cast<std::size_t>(e.index)];
    if (v.space == Space::param) {
      offset += program_.placements[static_cast<std::size_t>(e.index)] + e.value;
      return {};
    }
    offset += e.value;
    return {registers_.address(e.index, v.space, 0, 8), 8};
  }

  // One register, constant or address. `type`: the type that the instruction reads or writes.
  Place value(const Operand& e, Type type) {
    const auto bytes = static_cast<std::uint8_t>(type == Type::none ? 4 : register_bytes_of(type));
    switch (e.kind) {
      case OperandKind::reg: {
        const Register& r = function_.registers[static_cast<std::size_t>(e.index)];
        if (e.value != 0) reject("a part of a register");

        return {registers_.of_register(e.index), static_cast<std::uint8_t>(register_bytes_of(r.type))};
      }
      case OperandKind::integer:
      case OperandKind::float_bits:
      case OperandKind::double_bits:
        return {registers_.constant(literal_bits(e, type), bytes), bytes};
      case OperandKind::special:
        return {registers_.special(static_cast<SpecialRegister>(e.index), bytes), bytes};
      case OperandKind::function:
        return {registers_.constant(code_address(e.index), bytes), bytes};
      case OperandKind::variable: {
        const Variable& v = module_.variables[static_cast<std::size_t>(e.index)];
        if (v.space != Space::param) return {registers_.address(e.index, v.space, e.value, bytes), bytes};
        const std::int64_t at = program_.placements[static_cast<std::size_t>(e.index)];
        if (at >= kBodyParams) reject("the address of a function's own parameter");
        return {registers_.constant(static_cast<std::uint64_t>(at + e.value), bytes), bytes};
      }
      case OperandKind::sink:
        return {};
      default:
        reject("an operand of a kind that no register can hold");
        return {};
    }
  }

  const Module& module_;
  const Function& function_;
  const Program& program_;
  FunctionRegisters& registers_;
  OperandRegisters& out_;
};

}  // namespace

std::uint64_t literal_bits(const Operand& o, Type type) {
  const auto raw = static_cast<std::uint64_t>(o.value);
  if (o.kind == OperandKind::float_bits && type == Type::f64) {
    return std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(raw))));
  }
  if (o.kind == OperandKind::double_bits && bits(type) == 32) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(raw)));
  }
  return raw;
}

OperandRegisters operand_registers(const Module& module, const Function& function, const Statement& statement,
                                   const std::vector<OperandRule>& rules, const Program& program,
                                   FunctionRegisters& registers) {
  OperandRegisters out;
  Reader reader(module, function, program, registers, out);
  const auto operands = function.operands_of(statement);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const OperandRule rule = i < rules.size() ? rules[i] : OperandRule{};
    if (rule.role == Role::target || rule.role == Role::arguments) continue;
    if (i < out.first.size()) out.first[i] = static_cast<std::int32_t>(out.flat.size());
    reader.read(operands[i], rule, static_cast<int>(i));
  }
  if (operands.size() > 4 || out.addresses > 1) out.lists = true;
  return out;
}

}  // namespace kvscope::ptx
