#include "gpu/virtual/text/detail/constant.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstddef>

namespace kvscope::ptx {
namespace {

constexpr int kDeepest = 64;

enum class ConstantClass : std::uint8_t { signed_integer, unsigned_integer, floating, float_bits };

struct Value {
  ConstantClass cls = ConstantClass::signed_integer;
  std::uint64_t bits = 0;  // of a double if floating
};

Value signed_value(std::int64_t v) {
  return {ConstantClass::signed_integer, static_cast<std::uint64_t>(v)};
}
Value boolean(bool b) {
  return signed_value(b ? 1 : 0);
}
std::int64_t as_signed(Value v) {
  return static_cast<std::int64_t>(v.bits);
}
double as_double(Value v) {
  if (v.cls == ConstantClass::floating) return std::bit_cast<double>(v.bits);
  return v.cls == ConstantClass::unsigned_integer ? static_cast<double>(v.bits) : static_cast<double>(as_signed(v));
}
bool is_integer(Value v) {
  return v.cls == ConstantClass::signed_integer || v.cls == ConstantClass::unsigned_integer;
}
bool is_true(Value v) {
  return v.cls == ConstantClass::floating ? as_double(v) != 0 : v.bits != 0;
}

// Reads the digits of the base and accepts nothing else; a fault is reported at the token.
std::uint64_t digits(const Token& token, std::string_view digits, int base) {
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
  if (error == std::errc::result_out_of_range && stop == end) {
    fail(token.at, fmt::format("integer {} does not fit 64 bits", token.shown()));
  }
  if (error != std::errc() || stop != end) fail(token.at, fmt::format("malformed number {}", token.shown()));
  return value;
}

std::uint64_t float_digits(const Token& token, std::size_t count) {
  if (token.text.size() != 2 + count) {
    fail(token.at, fmt::format("malformed number {}: expected {} hexadecimal digits", token.shown(), count));
  }
  return digits(token, token.text.substr(2), 16);
}

Value decimal_float(const Token& token) {
  double value = 0;
  const char* end = token.text.data() + token.text.size();
  const auto [stop, error] = std::from_chars(token.text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) {
    fail(token.at, fmt::format("malformed number {}", token.shown()));
  }
  if (error != std::errc()) fail(token.at, fmt::format("number {} does not fit a double", token.shown()));
  return {ConstantClass::floating, std::bit_cast<std::uint64_t>(value)};
}

Value number(const Token& token) {
  std::string_view text = token.text;
  const char second = text.size() > 1 && text[0] == '0' ? text[1] : '\0';
  if (second == 'f' || second == 'F') return {ConstantClass::float_bits, float_digits(token, 8)};
  if (second == 'd' || second == 'D') return {ConstantClass::floating, float_digits(token, 16)};
  const bool hex = second == 'x' || second == 'X';
  const bool binary = second == 'b' || second == 'B';
  if (!hex && !binary && text.find_first_of(".eE") != std::string_view::npos) return decimal_float(token);
  const bool suffix = text.back() == 'U';
  if (suffix) text.remove_suffix(1);
  std::uint64_t value = 0;
  if (hex || binary) {
    value = digits(token, text.substr(2), hex ? 16 : 2);
  } else {
    value = digits(token, text, text.size() > 1 && text[0] == '0' ? 8 : 10);
  }
  return {suffix || value >> 63 != 0 ? ConstantClass::unsigned_integer : ConstantClass::signed_integer, value};
}

// Lowest precedence first; 0: not a binary operator.
int precedence(const Token& token) {
  if (token.kind != TokenKind::punct) return 0;
  struct Row {
    std::string_view op;
    int level;
  };
  constexpr Row kRows[] = {{"||", 1}, {"&&", 2}, {"|", 3}, {"^", 4},  {"&", 5},  {"==", 6},
                           {"!=", 6}, {"<", 7},  {">", 7}, {"<=", 7}, {">=", 7}, {"<<", 8},
                           {">>", 8}, {"+", 9},  {"-", 9}, {"*", 10}, {"/", 10}, {"%", 10}};
  for (const Row& row : kRows) {
    if (row.op == token.text) return row.level;
  }
  return 0;
}

Value float_result(const Token& op, double a, double b) {
  const bool shift = op.text == "<<" || op.text == ">>";
  switch (shift ? 's' : op.text[0]) {
    case '+':
      return {ConstantClass::floating, std::bit_cast<std::uint64_t>(a + b)};
    case '-':
      return {ConstantClass::floating, std::bit_cast<std::uint64_t>(a - b)};
    case '*':
      return {ConstantClass::floating, std::bit_cast<std::uint64_t>(a * b)};
    case '/':
      return {ConstantClass::floating, std::bit_cast<std::uint64_t>(a / b)};
    case '<':
      return boolean(op.text.size() == 1 ? a < b : a <= b);
    case '>':
      return boolean(op.text.size() == 1 ? a > b : a >= b);
    case '=':
      return boolean(a == b);
    case '!':
      return boolean(a != b);
    default:
      fail(op.at, fmt::format("operator {} on a floating-point constant", op.shown()));
  }
}

Value divided(const Token& op, Value a, Value b, bool is_unsigned) {
  if (b.bits == 0) fail(op.at, "division by zero in a constant expression");
  const bool remainder = op.text == "%";
  if (is_unsigned) return {ConstantClass::unsigned_integer, remainder ? a.bits % b.bits : a.bits / b.bits};
  if (as_signed(b) == -1)
    return {ConstantClass::signed_integer, remainder ? 0 : 0 - a.bits};  // the smallest number by -1 wraps
  return signed_value(remainder ? as_signed(a) % as_signed(b) : as_signed(a) / as_signed(b));
}

Value shifted(const Token& op, Value a, Value b) {
  const bool left = op.text == "<<";
  if (b.bits < 64) {
    if (left) return {a.cls, a.bits << b.bits};
    return a.cls == ConstantClass::signed_integer ? signed_value(as_signed(a) >> b.bits)
                                                  : Value{a.cls, a.bits >> b.bits};
  }
  return {a.cls, !left && a.cls == ConstantClass::signed_integer && as_signed(a) < 0 ? ~std::uint64_t{0} : 0};
}

Value result(const Token& op, Value a, Value b) {
  if (op.text == "&&") return boolean(is_true(a) && is_true(b));
  if (op.text == "||") return boolean(is_true(a) || is_true(b));
  if (!is_integer(a) || !is_integer(b)) {
    if (a.cls == ConstantClass::float_bits || b.cls == ConstantClass::float_bits) {
      fail(op.at, fmt::format("operator {} on a 0f number", op.shown()));
    }
    return float_result(op, as_double(a), as_double(b));
  }
  if (op.text == "<<" || op.text == ">>") return shifted(op, a, b);
  const bool is_unsigned = a.cls == ConstantClass::unsigned_integer || b.cls == ConstantClass::unsigned_integer;
  const ConstantClass cls = is_unsigned ? ConstantClass::unsigned_integer : ConstantClass::signed_integer;
  const bool less = is_unsigned ? a.bits < b.bits : as_signed(a) < as_signed(b);
  if (op.text == "<") return boolean(less);
  if (op.text == ">=") return boolean(!less);
  if (op.text == "<=") return boolean(less || a.bits == b.bits);
  if (op.text == ">") return boolean(!less && a.bits != b.bits);
  if (op.text == "==") return boolean(a.bits == b.bits);
  if (op.text == "!=") return boolean(a.bits != b.bits);
  switch (op.text[0]) {
    case '+':
      return {cls, a.bits + b.bits};
    case '-':
      return {cls, a.bits - b.bits};
    case '*':
      return {cls, a.bits * b.bits};
    case '&':
      return {cls, a.bits & b.bits};
    case '|':
      return {cls, a.bits | b.bits};
    case '^':
      return {cls, a.bits ^ b.bits};
    default:
      return divided(op, a, b, is_unsigned);
  }
}

Value unary(Reader& reader, int depth);
Value binary(Reader& reader, int depth, int loosest);

Value conditional(Reader& reader, int depth) {
  const Value condition = binary(reader, depth, 1);
  if (!reader.accept('?')) return condition;
  if (depth >= kDeepest) fail(reader.at(), "constant expression nested too deeply");
  const Value yes = conditional(reader, depth + 1);
  reader.expect(':');
  const Value no = conditional(reader, depth + 1);
  return is_true(condition) ? yes : no;
}

// After '(': an expression and ')', or a type cast and its operand.
Value parenthesis(Reader& reader, int depth) {
  if (reader.at_directive()) {
    const Token type = reader.take();
    if (type.text != ".s64" && type.text != ".u64") {
      fail(type.at, fmt::format("expected .s64 or .u64, found {}", type.shown()));
    }
    reader.expect(')');
    const TextPlace at = reader.at();
    const Value v = unary(reader, depth + 1);
    if (!is_integer(v)) fail(at, "expected an integer after a cast");
    return {type.text == ".u64" ? ConstantClass::unsigned_integer : ConstantClass::signed_integer, v.bits};
  }
  const Value v = conditional(reader, depth + 1);
  reader.expect(')');
  return v;
}

Value negated(const Token& op, Value v) {
  if (v.cls == ConstantClass::floating) return {v.cls, std::bit_cast<std::uint64_t>(-std::bit_cast<double>(v.bits))};
  if (v.cls == ConstantClass::float_bits) fail(op.at, "operator '-' on a 0f number");
  return {v.cls, 0 - v.bits};
}

Value unary(Reader& reader, int depth) {
  const Token token = reader.token();
  if (token.kind == TokenKind::number) {
    reader.advance();
    return number(token);
  }
  if (depth >= kDeepest) fail(token.at, "constant expression nested too deeply");
  if (reader.accept('(')) return parenthesis(reader, depth);
  if (reader.accept('-')) return negated(token, unary(reader, depth + 1));
  if (reader.accept('+')) return unary(reader, depth + 1);
  if (reader.accept('!')) return boolean(!is_true(unary(reader, depth + 1)));
  if (reader.accept('~')) {
    const Value v = unary(reader, depth + 1);
    if (!is_integer(v)) fail(token.at, "operator '~' on a floating-point constant");
    return {v.cls, ~v.bits};
  }
  if (reader.at_word() && reader.accept("WARP_SZ")) return signed_value(32);
  reader.fail_expected("number");
}

Value binary(Reader& reader, int depth, int loosest) {
  Value left = unary(reader, depth);
  for (;;) {
    const int level = precedence(reader.token());
    if (level < loosest || level == 0) return left;
    const Token op = reader.take();
    left = result(op, left, binary(reader, depth, level + 1));
  }
}

Constant constant_of(Value v) {
  const auto bits = static_cast<std::int64_t>(v.bits);
  if (v.cls == ConstantClass::floating) return {Constant::Kind::double_bits, bits};
  if (v.cls == ConstantClass::float_bits) return {Constant::Kind::float_bits, bits};
  return {Constant::Kind::integer, bits};
}

std::int64_t integer_of(Value v, TextPlace at) {
  if (!is_integer(v)) fail(at, "expected an integer, found a floating-point constant");
  return as_signed(v);
}

}  // namespace

bool at_constant(const Reader& reader) {
  const Token& t = reader.token();
  if (t.kind == TokenKind::number) return true;
  if (t.kind == TokenKind::word) return t.text == "WARP_SZ";
  return t.is('-') || t.is('+') || t.is('(') || t.is('~') || t.is('!');
}

Constant read_constant(Reader& reader) {
  return constant_of(conditional(reader, 0));
}

std::int64_t read_count(Reader& reader) {
  const TextPlace at = reader.at();
  return integer_of(unary(reader, 0), at);
}

std::int64_t read_integer(Reader& reader, std::string_view what, std::int64_t low, std::int64_t high) {
  const TextPlace at = reader.at();
  const std::int64_t value = integer_of(conditional(reader, 0), at);
  if (value < low || value > high) {
    fail(at, fmt::format("{} {} is outside [{}, {}]", what, value, low, high));
  }
  return value;
}

std::int64_t read_offset(Reader& reader) {
  if (!reader.accept('+')) return 0;
  const TextPlace at = reader.at();
  return integer_of(binary(reader, 0, 9), at);
}

}  // namespace kvscope::ptx
