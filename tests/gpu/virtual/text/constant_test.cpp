// Numbers and constant expressions, as accepted by ptxas.
#include "gpu/virtual/text/detail/constant.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <utility>

namespace kvscope::ptx::constant_test {
namespace {

Constant read(const std::string& text) {
  Reader reader(text);
  reader.advance();
  const Constant c = read_constant(reader);
  EXPECT_TRUE(reader.at_end()) << text << " goes on with " << reader.token().shown();
  return c;
}

std::string fault(const std::string& text) {
  Reader reader(text);
  try {
    reader.advance();
    static_cast<void>(read_constant(reader));
  } catch (const TextFault& fault) {
    return fault.error.message;
  }
  return "";
}

void expect_integer(const std::string& text, std::int64_t value) {
  const Constant c = read(text);
  EXPECT_EQ(c.kind, Constant::Kind::integer) << text;
  EXPECT_EQ(c.value, value) << text;
}

TEST(Constant, EveryNumberFormIsRead) {
  expect_integer("10", 10);
  expect_integer("-2147483648", -2147483648ll);
  expect_integer("0x1F", 31);
  expect_integer("0XfU", 15);
  expect_integer("017", 15);  // octal
  expect_integer("0", 0);
  expect_integer("0b1011", 11);
  expect_integer("12U", 12);
  expect_integer("WARP_SZ", 32);
  expect_integer("18446744073709551615", -1);
  expect_integer("0xFFFFFFFFFFFFFFFF", -1);
}

TEST(Constant, FloatingPointIsItsBits) {
  EXPECT_EQ(read("0f3F800000").kind, Constant::Kind::float_bits);
  EXPECT_EQ(read("0f3F800000").value, 0x3f800000);
  EXPECT_EQ(read("0FBF800000").value, 0xbf800000);
  EXPECT_EQ(read("0d3FF8000000000000").value, 0x3ff8000000000000);
  EXPECT_EQ(read("1.5").kind, Constant::Kind::double_bits);
  EXPECT_EQ(read("1.5").value, 0x3ff8000000000000);
  EXPECT_EQ(read("-1.5").value, static_cast<std::int64_t>(0xbff8000000000000));
  EXPECT_EQ(read("1e10").value, 0x4202a05f20000000);
  EXPECT_EQ(read("25e-2").value, 0x3fd0000000000000);
  EXPECT_EQ(read(".5").value, 0x3fe0000000000000);
  EXPECT_EQ(read("1.").value, 0x3ff0000000000000);
  EXPECT_EQ(read("1.5+2.0").value, 0x400c000000000000);
}

// C's precedence; an error in one level changes the result of each of these.
TEST(Constant, ExpressionsFollowC) {
  expect_integer("0x7fffffff+1", 0x80000000);
  expect_integer("(3*4)", 12);
  expect_integer("2+3*4-1", 13);
  expect_integer("20-4-3", 13);
  expect_integer("7 % 4 << 2", 12);
  expect_integer("1 << 2 + 1", 8);
  expect_integer("6 & 3 ^ 1 | 8", 11);
  expect_integer("1 | 2 == 2", 1);
  expect_integer("5 > 3 == 1", 1);
  expect_integer("0 || 2 && 0", 0);
  expect_integer("0 ? 1 : 2 ? 3 : 4", 3);
  expect_integer("!3", 0);
  expect_integer("~5", -6);
  expect_integer("- -5", 5);
  expect_integer("2*-3", -6);
}

// Each operator where the operands are less, equal and greater; a swapped pair of operators changes one of the three.
TEST(Constant, ComparisonsHoldForEachOrder) {
  const struct {
    const char* op;
    int less, equal, greater;
  } rows[] = {{"<", 1, 0, 0}, {"<=", 1, 1, 0}, {">", 0, 0, 1}, {">=", 0, 1, 1}, {"==", 0, 1, 0}, {"!=", 1, 0, 1}};
  for (const auto& row : rows) {
    const auto compared = [&](const std::string& a, const std::string& b) { return a + row.op + b; };
    for (const auto& [small, large] : {std::pair<std::string, std::string>{"-2", "3"},
                                       {"2U", "0xFFFFFFFFFFFFFFFF"},
                                       {"-1.5", "0.25"},
                                       {"1", "1.5"},
                                       {"1.5", "2U"}}) {
      expect_integer(compared(small, large), row.less);
      expect_integer(compared(small, small), row.equal);
      expect_integer(compared(large, small), row.greater);
    }
    expect_integer(compared("1", "1.0"), row.equal);
    expect_integer(compared("1.0", "1U"), row.equal);
  }
}

TEST(Constant, LogicIsThatOfNumbersThatAreNotZero) {
  for (const char* yes : {"1", "-1", "2U", "0.5", "0f3F800000"}) {
    for (const char* no : {"0", "0U", "0.0", "0f00000000"}) {
      const std::string t = yes, f = no;
      expect_integer(t + " && " + t, 1);
      expect_integer(t + " && " + f, 0);
      expect_integer(f + " && " + t, 0);
      expect_integer(f + " && " + f, 0);
      expect_integer(t + " || " + f, 1);
      expect_integer(f + " || " + t, 1);
      expect_integer(f + " || " + f, 0);
      expect_integer("!" + t, 0);
      expect_integer("!" + f, 1);
      expect_integer(t + " ? 7 : 8", 7);
      expect_integer(f + " ? 7 : 8", 8);
    }
  }
}

TEST(Constant, FloatingPointArithmeticIsThatOfDoubles) {
  const auto expect_double = [](const std::string& text, double value) {
    const Constant c = read(text);
    EXPECT_EQ(c.kind, Constant::Kind::double_bits) << text;
    EXPECT_EQ(c.value, std::bit_cast<std::int64_t>(value)) << text;
  };
  expect_double("1.5 - 2.0", -0.5);
  expect_double("1.5 * 3", 4.5);
  expect_double("0.1 / 3.0", 0.1 / 3.0);
  expect_double("1 / 4.0", 0.25);
  expect_double("-1 + 0.5", -0.5);
  expect_double("18446744073709551615 * 1.0", 18446744073709551616.0);
  expect_double("+1.5", 1.5);
  expect_double("1 ? 0.5 : 2", 0.5);
  expect_double("0D3FF8000000000000", 1.5);
  expect_integer("+5", 5);
  expect_integer("0B101", 5);
  expect_integer("(.u64)0xFFFFFFFFFFFFFFFF % 10", 5);
  expect_integer("12U % 5", 2);
}

TEST(Constant, IsSignedUntilSomethingUnsignedComesIn) {
  expect_integer("-8 >> 1", -4);
  expect_integer("-8/3", -2);
  expect_integer("-8 % 3", -2);
  expect_integer("-1 < 0", 1);
  expect_integer("-1 < 0U", 0);
  expect_integer("(.u64)-1 >> 63", 1);
  expect_integer("(.s64)0xFFFFFFFFFFFFFFFF >> 1", -1);
  expect_integer("0x8000000000000000 >> 63", 1);
  expect_integer("-8 / 3U", static_cast<std::int64_t>((0 - 8ull) / 3));
}

// Undefined in C: defined here, independently of the compiler of this program.
TEST(Constant, EdgesWrapAndShiftOut) {
  expect_integer("0x7fffffffffffffff + 1", INT64_MIN);
  expect_integer("(-0x7fffffffffffffff - 1) / -1", INT64_MIN);
  expect_integer("(-0x7fffffffffffffff - 1) % -1", 0);
  expect_integer("1 << 64", 0);
  expect_integer("-1 >> 64", -1);
  expect_integer("(.u64)-1 >> 64", 0);
  expect_integer("1 << -1", 0);
}

TEST(Constant, FaultsNameTheNumber) {
  EXPECT_EQ(fault("08"), "malformed number '08'");
  EXPECT_EQ(fault("0x"), "malformed number '0x'");
  EXPECT_EQ(fault("0x12G"), "malformed number '0x12G'");
  EXPECT_EQ(fault("5u"), "malformed number '5u'");  // ptxas accepts only the capital letter
  EXPECT_EQ(fault("1.5.2"), "malformed number '1.5.2'");
  EXPECT_EQ(fault("0f3F8"), "malformed number '0f3F8': expected 8 hexadecimal digits");
  EXPECT_EQ(fault("0d3F800000"), "malformed number '0d3F800000': expected 16 hexadecimal digits");
  EXPECT_EQ(fault("0fXF800000"), "malformed number '0fXF800000'");
  EXPECT_EQ(fault("18446744073709551616"), "integer '18446744073709551616' does not fit 64 bits");
  EXPECT_EQ(fault("1e999"), "number '1e999' does not fit a double");
  EXPECT_EQ(fault("4/0"), "division by zero in a constant expression");
  EXPECT_EQ(fault("4%(2-2)"), "division by zero in a constant expression");
  EXPECT_EQ(fault("-0f3F800000"), "operator '-' on a 0f number");
  EXPECT_EQ(fault("0f3F800000 + 1"), "operator '+' on a 0f number");
  EXPECT_EQ(fault("1.0 < 0f3F800000"), "operator '<' on a 0f number");
  EXPECT_EQ(fault("~1.5"), "operator '~' on a floating-point constant");
  EXPECT_EQ(fault("7 & 1.5"), "operator '&' on a floating-point constant");
  EXPECT_EQ(fault("1.5 % 2"), "operator '%' on a floating-point constant");
  EXPECT_EQ(fault("2 >> 1.5"), "operator '>>' on a floating-point constant");
  EXPECT_EQ(fault("(.s64)1.5"), "expected an integer after a cast");
  EXPECT_EQ(fault("18446744073709551616U"), "integer '18446744073709551616U' does not fit 64 bits");
  EXPECT_EQ(fault("99999999999999999999x"), "malformed number '99999999999999999999x'");
  EXPECT_EQ(fault("1e"), "malformed number '1e'");
  EXPECT_EQ(fault("1e+"), "malformed number '1e'");
  EXPECT_EQ(fault("1.5 << 2"), "operator '<<' on a floating-point constant");
  EXPECT_EQ(fault("(.u32)3"), "expected .s64 or .u64, found '.u32'");
  EXPECT_EQ(fault("(3"), "expected ')', found end of file");
  EXPECT_EQ(fault("3+"), "expected number, found end of file");
}

// Where the grammar has a count, an offset or a number of a range, instead of a constant.
TEST(Constant, CountsOffsetsAndNumbersOfARangeAreIntegers) {
  const auto with = [](const std::string& text, const auto& read_from) -> std::string {
    Reader reader(text);
    try {
      reader.advance();
      return std::to_string(read_from(reader));
    } catch (const TextFault& fault) {
      return fault.error.message;
    }
  };
  const auto ranged = [](Reader& reader) { return read_integer(reader, "lane", -2, 31); };
  EXPECT_EQ(with("-2", ranged), "-2");
  EXPECT_EQ(with("16 + 15", ranged), "31");
  EXPECT_EQ(with("-3", ranged), "lane -3 is outside [-2, 31]");
  EXPECT_EQ(with("WARP_SZ", ranged), "lane 32 is outside [-2, 31]");
  EXPECT_EQ(with("1.0", ranged), "expected an integer, found a floating-point constant");
  EXPECT_EQ(with("4 * 8", read_count), "4") << "a count is no expression";
  EXPECT_EQ(with("0f3F800000", read_count), "expected an integer, found a floating-point constant");
  EXPECT_EQ(with("+ 4 * 8", read_offset), "32");
  EXPECT_EQ(with("+ -8", read_offset), "-8");
  EXPECT_EQ(with("]", read_offset), "0");
  EXPECT_EQ(with("+ 0.5", read_offset), "expected an integer, found a floating-point constant");
  for (const std::string text : {"1", "WARP_SZ", "-1", "+1", "(1)", "~1", "!1"}) {
    Reader reader(text);
    reader.advance();
    EXPECT_TRUE(at_constant(reader)) << text;
  }
  for (const std::string text : {"x", "%r1", "[1]", "*1", ".b8", ""}) {
    Reader reader(text);
    reader.advance();
    EXPECT_FALSE(at_constant(reader)) << text;
  }
}

// A text with a million parentheses must not use a million stack frames of this program.
TEST(Constant, DeepNestingIsAnErrorNotACrash) {
  const std::string message = "constant expression nested too deeply";
  EXPECT_EQ(fault(std::string(1000000, '(')), message);
  EXPECT_EQ(fault(std::string(1000000, '-')), message);
  std::string conditional;
  for (int i = 0; i < 100000; ++i) conditional += "1?";
  EXPECT_EQ(fault(conditional), message);
  expect_integer(std::string(30, '(') + "7" + std::string(30, ')'), 7);
}

}  // namespace
}  // namespace kvscope::ptx::constant_test
