// Numbers and constant expressions, as accepted by ptxas.
#include "gpu/virtual/text/detail/constant.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

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
  EXPECT_EQ(fault("1.5 << 2"), "operator '<<' on a floating-point constant");
  EXPECT_EQ(fault("(.u32)3"), "expected .s64 or .u64, found '.u32'");
  EXPECT_EQ(fault("(3"), "expected ')', found end of file");
  EXPECT_EQ(fault("3+"), "expected number, found end of file");
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
