#include "gpu/virtual/text/detail/statement_printer.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <utility>

namespace kvscope::ptx {
namespace {

template <class... Args>
void put(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

void offset(std::string& out, std::int64_t value) {
  if (value != 0) put(out, "+{}", value);
}

}  // namespace

void StatementPrinter::print(std::string& out, const Statement& s) const {
  if (s.guard >= 0) put(out, "@{}{} ", s.guard_negated ? "!" : "", names_.reg(s.guard));
  out += s.opcode;
  std::string_view between = " ";
  for (const Operand& o : function_.operands_of(s)) {
    out += between;
    operand(out, o);
    between = ", ";
  }
}

void StatementPrinter::operand(std::string& out, const Operand& o) const {
  switch (o.kind) {
    case OperandKind::reg:
      put(out, "{}{}", o.negated ? "!" : "", names_.reg(o.index));
      if (o.value != 0) out += '.';
      for (std::int64_t part = o.value; part != 0; part >>= 8) out += static_cast<char>(part & 0xff);
      break;
    case OperandKind::special:
      out += name(static_cast<SpecialRegister>(o.index));
      break;
    case OperandKind::integer:
      put(out, "{}", o.value);
      break;
    case OperandKind::float_bits:
      put(out, "0f{:08X}", static_cast<std::uint32_t>(o.value));
      break;
    case OperandKind::double_bits:
      put(out, "0d{:016X}", static_cast<std::uint64_t>(o.value));
      break;
    case OperandKind::variable:
      out += names_.variable(o.index);
      offset(out, o.value);
      break;
    case OperandKind::function:
      out += module_.functions[static_cast<std::size_t>(o.index)].name;
      break;
    case OperandKind::label:
      out += names_.label_before(o.index);
      break;
    case OperandKind::address:
      address(out, o);
      break;
    case OperandKind::vector:
      elements(out, o, "{", ", ", "}");
      break;
    case OperandKind::pair:
      elements(out, o, "", "|", "");
      break;
    case OperandKind::list:
      elements(out, o, "(", ", ", ")");
      break;
    case OperandKind::sink:
      out += '_';
      break;
    case OperandKind::table:
      out += names_.table(o.index);
      break;
  }
}

void StatementPrinter::address(std::string& out, const Operand& o) const {
  const auto parts = function_.elements_of(o);
  out += '[';
  operand(out, parts[0]);
  offset(out, o.value);
  for (const Operand& part : parts.subspan(1)) {
    out += ", ";
    operand(out, part);
  }
  out += ']';
}

void StatementPrinter::elements(std::string& out, const Operand& o, std::string_view open, std::string_view between,
                                std::string_view close) const {
  out += open;
  bool first = true;
  for (const Operand& element : function_.elements_of(o)) {
    if (!first) out += between;
    first = false;
    operand(out, element);
  }
  out += close;
}

}  // namespace kvscope::ptx
