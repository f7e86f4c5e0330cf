// Parses the operands of a statement by their form. The instruction checks their kinds later.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "gpu/virtual/text/detail/body.h"
#include "gpu/virtual/text/detail/constant.h"

namespace kvscope::ptx {
namespace {

// ".b3210" -> the characters "b3210", packed: 'b' lowest.
std::int64_t packed(std::string_view selection) {
  std::uint64_t value = 0;
  for (std::size_t i = selection.size(); i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(selection[i - 1]);
  }
  return static_cast<std::int64_t>(value);
}

// "b0" "h1" "b3210" "h10" of the video instructions.
bool is_selection(std::string_view member) {
  if (member.size() < 2 || member.size() > 5 || (member[0] != 'b' && member[0] != 'h')) return false;
  return member.find_first_not_of("01234567", 1) == std::string_view::npos;
}

}  // namespace

void Body::operands(Statement& statement) {
  scratch_.clear();
  statement_uses_.clear();
  const bool ends = reader_.is(';') || reader_.is('}') || reader_.is('@') || reader_.at_directive() || reader_.at_end();
  if (!ends) {
    do {
      const Operand read = operand();
      scratch_.push_back(read);
    } while (reader_.accept(','));
  }
  end_of_statement();
  const std::int32_t first = size32(f_.operands.size());
  statement.first_operand = first;
  statement.operand_count = size32(scratch_.size());
  f_.operands.insert(f_.operands.end(), scratch_.begin(), scratch_.end());
  for (Use& use : statement_uses_) {
    use.operand += first;
    uses_.push_back(use);
  }
}

Operand Body::operand() {
  const Token token = reader_.token();
  if (token.kind == TokenKind::punct) {
    switch (token.text[0]) {
      case '[':
        return address();
      case '{':
        return list(OperandKind::vector, '}');
      case '(':
        if (is_call_) return list(OperandKind::list, ')');
        break;
      case '!':
        if (token.text.size() == 1) return negated();
        break;
      default:
        break;
    }
  }
  if (is_branch_ && token.kind == TokenKind::word) return branch_label();
  const Operand first = simple();
  if (!reader_.is('|')) return first;
  reader_.advance();
  const std::size_t start = scratch_.size();
  scratch_.push_back(first);
  const Operand second = simple();
  scratch_.push_back(second);
  Operand pair = make(OperandKind::pair, token);
  gather(pair, start);
  return pair;
}

Operand Body::simple() {
  if (reader_.at_word() && !reader_.is("WARP_SZ")) return symbol();
  if (at_constant(reader_)) return constant();
  reader_.fail_expected("operand");
}

Operand Body::symbol() {
  const std::string_view base = reader_.token().text;
  std::string_view member;
  if (reader_.lexer().join_member()) member = reader_.token().text.substr(base.size() + 1);
  const Token token = reader_.take();
  if (token.text == "_") return make(OperandKind::sink, token);
  const Found found = context_.symbols.find(base);
  if (!found) {
    if (const auto known = special_from_name(token.text)) return special(*known, token);
    fail_unknown(token);
  }
  const SymbolKind kind = found.symbol->kind;
  if (kind == SymbolKind::reg || kind == SymbolKind::range) return register_operand(found.index, member, token);
  if (!member.empty()) fail(token.at, fmt::format("'{}' has no part '.{}'", base, member));
  if (kind == SymbolKind::variable) return variable(found.index, token);
  if (kind == SymbolKind::function) return make(OperandKind::function, token, found.index);
  if (kind == SymbolKind::table) return make(OperandKind::table, token, found.index);
  return make(OperandKind::label, token, found.index);
}

// x, x+4, and x[2]: its element 2, an address for each instruction except mov.
Operand Body::variable(std::int32_t index, const Token& token) {
  Operand symbol = make(OperandKind::variable, token, index);
  if (in_address_) return symbol;
  if (!reader_.accept('[')) {
    symbol.value = read_offset(reader_);
    return symbol;
  }
  const Variable& v = context_.module.variables[static_cast<std::size_t>(index)];
  const std::int64_t element = bits(v.type) / 8 * v.vector;
  const std::int64_t offset = element * read_integer(reader_, "element", 0, kMostVariableBytes);
  reader_.expect(']');
  if (is_move_) {
    symbol.value = offset;
    return symbol;
  }
  const std::size_t start = scratch_.size();
  scratch_.push_back(symbol);
  Operand whole = make(OperandKind::address, token, -1, offset);
  gather(whole, start);
  return whole;
}

Operand Body::register_operand(std::int32_t index, std::string_view member, const Token& token) {
  const std::int8_t element = f_.registers[static_cast<std::size_t>(index)].element;
  if (element < 0) {
    if (member.empty()) return make(OperandKind::reg, token, index);
    if (is_selection(member)) return make(OperandKind::reg, token, index, packed(member));
    fail(token.at, fmt::format("'{}' is not a vector: it has no part '.{}'", token.text, member));
  }
  std::int32_t elements = 0;  // of the vector: the consecutive registers with its name
  const auto all = static_cast<std::int32_t>(f_.registers.size());
  while (index + elements < all && f_.registers[static_cast<std::size_t>(index + elements)].element == elements)
    ++elements;
  if (member.empty()) {
    const std::size_t start = scratch_.size();
    for (std::int32_t i = 0; i < elements; ++i) scratch_.push_back(make(OperandKind::reg, token, index + i));
    Operand vector = make(OperandKind::vector, token);
    gather(vector, start);
    return vector;
  }
  constexpr std::string_view kPosition = "xyzw";
  constexpr std::string_view kColor = "rgba";
  const std::size_t at = std::min(kPosition.find(member[0]), kColor.find(member[0]));
  if (member.size() != 1 || at >= static_cast<std::size_t>(elements)) {
    fail(token.at, fmt::format("'{}': a vector of {} registers has no part '.{}'", token.text, elements, member));
  }
  return make(OperandKind::reg, token, index + static_cast<std::int32_t>(at));
}

// %tid alone is the vector %tid.x, %tid.y, %tid.z, 0.
Operand Body::special(SpecialRegister known, const Token& token) {
  const auto index = static_cast<std::int32_t>(known);
  const bool is_vector = name(known).ends_with(".x") && !token.text.ends_with(".x");
  if (!is_vector) return make(OperandKind::special, token, index);
  const std::size_t start = scratch_.size();
  for (std::int32_t i = 0; i < 3; ++i) scratch_.push_back(make(OperandKind::special, token, index + i));
  scratch_.push_back(make(OperandKind::integer, token));
  Operand vector = make(OperandKind::vector, token);
  gather(vector, start);
  return vector;
}

Operand Body::branch_label() {
  const Token token = reader_.take();
  statement_uses_.push_back({token, size32(scratch_.size()), -1, -1});
  return make(OperandKind::label, token);
}

void Body::fail_unknown(const Token& token) const {
  const bool is_register = token.text[0] == '%' || !(in_address_ || is_call_);
  fail(token.at, fmt::format("unknown {} '{}'", is_register ? "register" : "symbol", token.text));
}

Operand Body::constant() {
  const Token token = reader_.token();
  const Constant c = read_constant(reader_);
  switch (c.kind) {
    case Constant::Kind::float_bits:
      return make(OperandKind::float_bits, token, -1, c.value);
    case Constant::Kind::double_bits:
      return make(OperandKind::double_bits, token, -1, c.value);
    default:
      return make(OperandKind::integer, token, -1, c.value);
  }
}

// !p, or a constant: !3.
Operand Body::negated() {
  const Token token = reader_.token();
  Lexer ahead = reader_.lexer();
  ahead.advance();
  if (ahead.token().kind != TokenKind::word || ahead.token().is("WARP_SZ")) return constant();
  reader_.advance();
  Operand predicate = symbol();
  if (predicate.kind != OperandKind::reg) fail(token.at, "expected a predicate register after '!'");
  predicate.negated = true;
  predicate.column = token.at.column;
  return predicate;
}

// [base], [base + 4], [base, {c0, c1}]: the base is the first element; its offset is the address's.
Operand Body::address() {
  const Token token = reader_.take();
  const std::size_t start = scratch_.size();
  in_address_ = true;
  const Operand base = simple();
  scratch_.push_back(base);
  in_address_ = false;
  Operand whole = make(OperandKind::address, token);
  if (base.kind != OperandKind::integer) whole.value = read_offset(reader_);
  while (reader_.accept(',')) {
    const Operand more = reader_.is('{') ? list(OperandKind::vector, '}') : simple();
    scratch_.push_back(more);
  }
  reader_.expect(']');
  gather(whole, start);
  return whole;
}

Operand Body::list(OperandKind kind, char close) {
  const Token token = reader_.token();
  in_braces_ = kind == OperandKind::vector;
  reader_.advance();
  const std::size_t start = scratch_.size();
  if (kind == OperandKind::vector || !reader_.is(close)) {
    do {
      const Operand element = simple();
      scratch_.push_back(element);
    } while (reader_.accept(','));
  }
  if (!reader_.is(close)) reader_.fail_expected(close);
  in_braces_ = false;
  reader_.advance();
  Operand whole = make(kind, token);
  gather(whole, start);
  return whole;
}

void Body::gather(Operand& whole, std::size_t start) {
  whole.first = size32(f_.operands.size());
  whole.count = size32(scratch_.size() - start);
  f_.operands.insert(f_.operands.end(), scratch_.begin() + static_cast<std::ptrdiff_t>(start), scratch_.end());
  scratch_.resize(start);
}

Operand Body::make(OperandKind kind, const Token& token, std::int32_t index, std::int64_t value) const {
  Operand o;
  o.kind = kind;
  o.index = index;
  o.value = value;
  o.column = token.at.column;
  return o;
}

}  // namespace kvscope::ptx
