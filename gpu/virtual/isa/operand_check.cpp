#include "gpu/virtual/isa/detail/operand_check.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

bool is_integer(Type type) {
  const TypeClass c = class_of(type);
  return c == TypeClass::unsigned_integer || c == TypeClass::signed_integer;
}

bool is_bits(Type type) {
  return class_of(type) == TypeClass::bits;
}

bool is_float(Type type) {
  return class_of(type) == TypeClass::floating;
}

std::string_view kind_of(const Operand& o) {
  switch (o.kind) {
    case OperandKind::reg:
      return "a register";
    case OperandKind::special:
      return "a special register";
    case OperandKind::integer:
      return "an integer";
    case OperandKind::float_bits:
    case OperandKind::double_bits:
      return "a floating-point number";
    case OperandKind::variable:
      return "a variable";
    case OperandKind::function:
      return "a function";
    case OperandKind::label:
      return "a label";
    case OperandKind::address:
      return "an address";
    case OperandKind::vector:
      return "a vector";
    case OperandKind::pair:
      return "a pair";
    case OperandKind::list:
      return "a list";
    case OperandKind::sink:
      return "_";
    case OperandKind::table:
      return "a table";
  }
  return "";
}

// Instructions for which the assembler accepts _ as the only result.
bool result_may_be_dropped(Opcode opcode) {
  switch (opcode) {
    case Opcode::atom:
    case Opcode::setp:
    case Opcode::mbarrier_arrive:
    case Opcode::mbarrier_arrive_drop:
      return true;
    default:
      return false;
  }
}

// Instructions for which the assembler accepts _ as d of d|p.
bool first_may_be_dropped(Opcode opcode) {
  return opcode == Opcode::setp || opcode == Opcode::elect || opcode == Opcode::lop3;
}

bool takes_symbols(const Instr& instr) {
  return instr.opcode == Opcode::mov || instr.opcode == Opcode::mapa || instr.opcode == Opcode::getctarank ||
         (instr.opcode == Opcode::cvta && !instr.has(Mod::to));
}

class OperandCheck {
 public:
  explicit OperandCheck(const Checked& s) : s_(s) {}

  std::string fault() {
    const std::span<const Operand> operands = s_.function.operands_of(s_.statement);
    if (s_.instr.opcode == Opcode::call) return call_fault(operands);
    const auto is_vector = [](const Operand& o) { return o.kind == OperandKind::vector; };
    if (!s_.rules.empty() && s_.rules[0].packs && std::ranges::all_of(operands, is_vector)) {
      return fmt::format("{}: packs or unpacks, not both: one operand is not a vector", s_.statement.opcode);
    }
    for (std::size_t i = 0; i < operands.size() && fault_.empty(); ++i) {
      number_ = i + 1;
      check(operands[i], s_.rules[i]);
    }
    return fault_;
  }

 private:
  template <typename... Args>
  void fail(fmt::format_string<Args...> text, Args&&... args) {
    if (fault_.empty()) {
      fault_ = fmt::format("{}: operand {} {}", s_.statement.opcode, number_,
                           fmt::format(text, std::forward<Args>(args)...));
    }
  }

  // call (results), f, (arguments): both lists are optional; call (results), register, (arguments), prototype.
  [[nodiscard]] std::string call_fault(std::span<const Operand> operands) const {
    const std::string_view word = s_.statement.opcode;
    std::size_t at = !operands.empty() && operands[0].kind == OperandKind::list ? 1 : 0;
    const auto results = at == 0 ? 0 : operands[0].count;
    if (at == operands.size()) return fmt::format("{}: no function to call", word);
    const Operand& callee = operands[at++];
    const bool has_arguments = at < operands.size() && operands[at].kind == OperandKind::list;
    const auto arguments = has_arguments ? operands[at++].count : 0;
    std::int32_t called = callee.index;
    if (callee.kind == OperandKind::reg) {
      if (at >= operands.size() || operands[at].kind != OperandKind::table) {
        return fmt::format("{}: '{}' is a register, expected a prototype or a table after it", word, text_of(callee));
      }
      called = s_.function.tables[static_cast<std::size_t>(operands[at++].index)].prototype;
      if (called < 0) return {};  // .calltargets: each target is checked when it is called
    } else if (callee.kind != OperandKind::function) {
      return fmt::format("{}: {} is no function", word, kind_of(callee));
    }
    if (at != operands.size()) return fmt::format("{}: too many operands", word);
    const Function& f = s_.module.functions[static_cast<std::size_t>(called)];
    if (f.entry) return fmt::format("{}: '{}' is a kernel, expected a device function", word, f.name);
    if (std::cmp_not_equal(f.results.size(), results)) {
      return fmt::format("{}: '{}' has {} results, found {}", word, f.name, f.results.size(), results);
    }
    if (std::cmp_not_equal(f.parameters.size(), arguments)) {
      return fmt::format("{}: '{}' has {} parameters, found {}", word, f.name, f.parameters.size(), arguments);
    }
    return {};
  }

  void check(const Operand& o, const OperandRule& rule) {
    switch (rule.role) {
      case Role::address:
        return check_address(o, rule);
      case Role::target:
        if (o.kind != OperandKind::label && o.kind != OperandKind::table) {
          fail("is {}, expected a label", kind_of(o));
        }
        return;
      case Role::arguments:
        return;
      case Role::written:
      case Role::read_written:
      case Role::read:
        break;
    }
    if (rule.or_address && o.kind == OperandKind::address) return check_address(o, {.role = Role::address});
    if (o.kind == OperandKind::pair) return check_pair(o, rule);
    if (rule.pair) return fail("is {}, expected a pair d|p", kind_of(o));
    if (o.kind == OperandKind::vector) return check_vector(o, rule);
    if (rule.alternative != Type::none && is_alternative(o, rule)) return check_value(o, alternative_of(rule));
    if (rule.braces == Braces::required) {
      return fail("is {}, expected a vector of {}", kind_of(o), rule.elements);
    }
    check_value(o, rule);
  }

  // cp.async: a predicate instead of a size. wgmma: a descriptor instead of registers, a number for scale-d.
  [[nodiscard]] bool is_alternative(const Operand& o, const OperandRule& rule) const {
    if (o.kind != OperandKind::reg) return rule.braces == Braces::required;
    return bits(register_of(o).type) == bits(rule.alternative);
  }

  static OperandRule alternative_of(const OperandRule& rule) {
    OperandRule other;
    other.role = Role::read;
    other.type = rule.alternative;
    return other;
  }

  void check_pair(const Operand& o, const OperandRule& rule) {
    const std::span<const Operand> elements = s_.function.elements_of(o);
    if (rule.second == Type::none || elements.size() != 2) return fail("is a pair, expected one register");
    if (elements[0].kind == OperandKind::sink) {
      if (!first_may_be_dropped(s_.instr.opcode)) return fail("is _|p, but its first half must be a register");
    } else {
      check_value(elements[0], rule);
    }
    if (elements[1].kind == OperandKind::sink) return;
    OperandRule second;
    second.role = rule.role;
    second.type = rule.second;
    check_value(elements[1], second);
  }

  void check_vector(const Operand& o, const OperandRule& rule) {
    const std::span<const Operand> elements = s_.function.elements_of(o);
    if (rule.packs) return check_pieces(elements, rule);
    if (rule.braces == Braces::none) return fail("is a vector, expected one {}", expected(rule));
    if (std::ssize(elements) != rule.elements) {
      return fail("has {} elements, expected {}", elements.size(), rule.elements);
    }
    check_elements(elements, rule);
  }

  // {a, b}: mov.b64 of two 32-bit pieces.
  void check_pieces(std::span<const Operand> elements, const OperandRule& rule) {
    const auto count = static_cast<int>(elements.size());
    if (count != 1 && count != 2 && count != 4) return fail("has {} pieces, expected 2 or 4", count);
    OperandRule piece = rule;
    const int width = bits(rule.type) / count;
    switch (width) {
      case 8:
        piece.type = Type::b8;
        break;
      case 16:
        piece.type = Type::b16;
        break;
      case 32:
        piece.type = Type::b32;
        break;
      case 64:
        piece.type = Type::b64;
        break;
      default:
        piece.type = rule.type;
        break;
    }
    if (bits(rule.type) < 8 * count) return fail("has {} pieces of {} bits", count, bits(rule.type));
    check_elements(elements, piece);
  }

  void check_elements(std::span<const Operand> elements, const OperandRule& rule) {
    bool all_dropped = true;
    int width = 0;
    for (const Operand& element : elements) {
      if (element.kind == OperandKind::sink) {
        if (rule.role != Role::written) return fail("has _ among what is read");
        continue;
      }
      all_dropped = false;
      check_value(element, rule);
      if (element.kind != OperandKind::reg) continue;
      const int own = bits(register_of(element).type);
      if (width == 0) width = own;
      if (own != width) return fail("has elements of {} and of {} bits", width, own);
    }
    if (all_dropped) fail("has no element but _");
  }

  // One register or constant.
  void check_value(const Operand& o, const OperandRule& rule) {
    if (o.negated && (rule.type != Type::pred || rule.role != Role::read)) {
      return fail("is negated, but it is not a predicate that is read");
    }
    switch (o.kind) {
      case OperandKind::reg:
        if (rule.constant) return fail("'{}' is a register, expected a number", text_of(o));
        return check_register(register_of(o), text_of(o), rule);
      case OperandKind::sink:
        if (rule.role != Role::written || !result_may_be_dropped(s_.instr.opcode)) fail("may not be _");
        return;
      default:
        break;
    }
    if (rule.role != Role::read) return fail("is {}, expected a register to write", kind_of(o));
    if (rule.in_register) return fail("is {}, expected a register of type {}", kind_of(o), name(rule.type));
    if (rule.type == Type::none) return fail("is {}, expected _", kind_of(o));
    switch (o.kind) {
      case OperandKind::integer:
        if (is_float(rule.type)) fail("is an integer, expected a {} (1.0 or 0f3f800000)", name(rule.type));
        return;
      case OperandKind::float_bits:
        if (rule.type != Type::f32 && rule.type != Type::f64 && rule.type != Type::b32) {
          fail("is a 0f number, expected {}", expected(rule));
        }
        return;
      case OperandKind::double_bits:
        if (rule.type != Type::f32 && rule.type != Type::f64 && rule.type != Type::b64) {
          fail("is a floating-point number, expected {}", expected(rule));
        }
        return;
      case OperandKind::special:
        return check_special(o, rule);
      case OperandKind::variable:
        if (!takes_symbols(s_.instr) || is_float(rule.type)) fail("is a variable, expected a register: use mov");
        return;
      case OperandKind::function:
        if (s_.instr.opcode != Opcode::mov || is_float(rule.type)) fail("is a function, expected a register: use mov");
        return;
      default:
        fail("is {}, expected a register or a number", kind_of(o));
        return;
    }
  }

  void check_register(const Register& r, const std::string& text, const OperandRule& rule) {
    const int width = bits(r.type);
    const int wanted = bits(rule.type);
    if (rule.type == Type::none) return fail("'{}' is a register, expected _", text);
    const bool predicate = rule.type == Type::pred;
    if (predicate != (r.type == Type::pred)) {
      return fail("'{}' is {}, expected {}", text, predicate ? fmt::format(".{}", name(r.type)) : "a predicate",
                  predicate ? "a predicate" : fmt::format(".{}", name(rule.type)));
    }
    if (rule.in_register && r.type != rule.type)
      return fail("'{}' is .{}, expected .{}", text, name(r.type), name(rule.type));
    const bool wide_enough = rule.wider ? width >= wanted : width == wanted;
    if (!wide_enough) {
      return fail("'{}' is {} bits wide, expected {}{}", text, width, wanted, rule.wider ? " or more" : "");
    }
    if (predicate || is_bits(r.type)) return;
    if (is_bits(rule.type)) return;  // .bN accepts all types
    if (is_integer(rule.type) && !is_integer(r.type)) {
      return fail("'{}' is .{}, expected an integer or .b{}", text, name(r.type), width);
    }
    if (is_float(rule.type) && r.type != rule.type) {
      return fail("'{}' is .{}, expected .{}", text, name(r.type), expected_registers(rule.type));
    }
  }

  void check_special(const Operand& o, const OperandRule& rule) {
    const auto special = static_cast<SpecialRegister>(o.index);
    const int width = bits(special);
    const int wanted = bits(rule.type);
    if (s_.instr.opcode == Opcode::cvt && is_integer(s_.instr.type(0)) && is_integer(rule.type)) return;
    if (s_.instr.opcode != Opcode::mov || is_float(rule.type)) {
      return fail("'{}' is a special register, expected a register: read it with mov", name(special));
    }
    if (wanted != width && !(width == 32 && wanted == 16)) {
      fail("'{}' is {} bits wide, expected {}", name(special), width, wanted);
    }
  }

  void check_address(const Operand& o, const OperandRule& rule) {
    if (o.kind != OperandKind::address) return fail("is {}, expected an address [...]", kind_of(o));
    const std::span<const Operand> elements = s_.function.elements_of(o);
    const auto coordinates = elements.size() > 1 ? elements[1].count : 0;
    if (coordinates != rule.coordinates) {
      return fail("has {} coordinate{}, expected {}", coordinates, coordinates == 1 ? "" : "s", rule.coordinates);
    }
    if (elements.empty()) return fail("has no base");
    const Operand& base = elements[0];
    if (base.kind == OperandKind::reg) {
      const Register& r = register_of(base);
      const int width = bits(r.type);
      if (is_float(r.type) || (width != 32 && width != 64)) {
        return fail("'{}' is .{}, expected an address of 32 or 64 bits", text_of(base), name(r.type));
      }
    } else if (base.kind == OperandKind::variable) {
      const Variable& v = s_.module.variables[static_cast<std::size_t>(base.index)];
      const bool generic = rule.space == Space::generic && v.space != Space::param;
      if (v.space != rule.space && !generic) {
        return fail("'{}' is in {} memory, expected {}", v.name, name(v.space), name(rule.space));
      }
    } else if (base.kind != OperandKind::integer) {
      return fail("begins with {}, expected a register, a variable or a number", kind_of(base));
    }
    if (coordinates == 0) return;
    OperandRule coordinate;
    coordinate.type = Type::s32;
    check_elements(s_.function.elements_of(elements[1]), coordinate);
  }

  static std::string expected(const OperandRule& rule) { return fmt::format(".{}", name(rule.type)); }
  // ".f32 or .b32"; .b32 alone for types that registers cannot be declared with
  static std::string expected_registers(Type type) {
    if (type == Type::f16 || type == Type::f32 || type == Type::f64)
      return fmt::format("{} or .b{}", name(type), bits(type));
    return fmt::format("b{}", bits(type));
  }

  [[nodiscard]] const Register& register_of(const Operand& o) const {
    return s_.function.registers[static_cast<std::size_t>(o.index)];
  }
  [[nodiscard]] std::string text_of(const Operand& o) const { return name(register_of(o)); }

  const Checked& s_;
  std::size_t number_ = 0;
  std::string fault_;
};

// "2 or 3"
std::string counts_of(const Instr& instr) {
  std::string text;
  for (int count = 0; count <= kMostOperands; ++count) {
    if (count == 0 ? !takes_no_operand(instr) : operand_rules(instr, count).empty()) continue;
    text += fmt::format("{}{}", text.empty() ? "" : " or ", count);
  }
  return text;
}

}  // namespace

std::string operand_fault(const Checked& s) {
  const int count = s.statement.operand_count;
  if (s.instr.opcode == Opcode::call) return OperandCheck(s).fault();
  if (count == 0 ? !takes_no_operand(s.instr) : s.rules.empty()) {
    return fmt::format("{}: {} operand{}, expected {}", s.statement.opcode, count, count == 1 ? "" : "s",
                       counts_of(s.instr));
  }
  return OperandCheck(s).fault();
}

}  // namespace kvscope::ptx
