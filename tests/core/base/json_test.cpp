#include "core/base/json.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/base/errors.h"
#include "tests/property.h"
#include "tests/whole_grid.h"

namespace kvscope::json::json_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string message(std::string_view text) {
  try {
    (void)parse(text, "a.json");
  } catch (const InputError& e) {
    return e.what();
  }
  return "accepted";
}

// Source, position and the beginning of the message; the rest of a syntax error is the parser's text.
void expect_rejected(std::string_view text, const std::string& place, const std::string& words = "") {
  EXPECT_THAT(message(text), StartsWith("a.json rejected: " + place + ": " + words)) << text.substr(0, 80);
}

TEST(JsonTest, EveryKindIsReadAsWhatItIs) {
  const Value v =
      parse(R"({"n": null, "t": true, "f": false, "i": -7, "d": 2.5, "s": "x\u00e9\n", "a": [1, [2]], "o": {}})", "x");
  EXPECT_TRUE(v.find("n")->is_null());
  EXPECT_EQ(*v.find("t")->as_bool(), true);
  EXPECT_EQ(*v.find("f")->as_bool(), false);
  EXPECT_EQ(*v.find("i")->as_i64(), -7);
  EXPECT_EQ(v.find("d")->number(), 2.5);
  EXPECT_EQ(*v.find("s")->as_string(), "x\xc3\xa9\n");
  ASSERT_EQ(v.find("a")->as_array()->size(), 2u);
  EXPECT_EQ(*(*(*v.find("a")->as_array())[1].as_array())[0].as_i64(), 2);
  EXPECT_TRUE(v.find("o")->as_object()->empty());
  EXPECT_EQ(v.find("absent"), nullptr);
  EXPECT_EQ(v.find("a")->find("0"), nullptr) << "an array has no members";
  std::string kinds;
  for (const Member& m : *v.as_object()) kinds += m.first + "=" + std::string(m.second.kind()) + " ";
  EXPECT_EQ(kinds, "n=null t=boolean f=boolean i=integer d=number s=string a=array o=object ") << "in the file's order";
}

TEST(JsonTest, IntegersStayIntegersUpToTheirRangeAndAreRejectedPastIt) {
  EXPECT_EQ(*parse("9223372036854775807", "x").as_i64(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(*parse("-9223372036854775808", "x").as_i64(), std::numeric_limits<std::int64_t>::min());
  const Value above = parse("9223372036854775808", "x");
  EXPECT_EQ(above.as_i64(), nullptr);
  EXPECT_TRUE(above.is_integer());
  EXPECT_EQ(above.kind(), "integer");
  EXPECT_EQ(std::get<std::uint64_t>(above.data()), 9223372036854775808u);
  EXPECT_EQ(above.number(), 0x1p63);
  EXPECT_EQ(std::get<std::uint64_t>(parse("18446744073709551615", "x").data()),
            std::numeric_limits<std::uint64_t>::max());
  // nlohmann::json would silently convert these to doubles.
  expect_rejected("18446744073709551616", "line 1, column 1",
                  "integer 18446744073709551616 is above 2^64 - 1: it does not fit in 64 bits");
  expect_rejected("[0, -9223372036854775809]", "line 1, column 5",
                  "integer -9223372036854775809 is below -2^63: it does not fit in 64 bits");
  expect_rejected(R"({"a": 18446744073709551616})", "line 1, column 7");
  EXPECT_EQ(Value(std::uint64_t{5}), Value(std::int64_t{5})) << "equal numbers are equal values";
}

TEST(JsonTest, NumbersAreReadWhereverTheyAre) {
  EXPECT_EQ(parse("21.5", "x").number(), 21.5);
  EXPECT_EQ(parse(" -2.5e+1\n", "x").number(), -25);
  const Value v = parse("[1.5,2.25 ,[-3.5],{\"a\":4.5}, 1e2]", "x");
  const Array& items = *v.as_array();
  EXPECT_EQ(items[0].number(), 1.5);
  EXPECT_EQ(items[1].number(), 2.25);
  EXPECT_EQ((*items[2].as_array())[0].number(), -3.5);
  EXPECT_EQ(items[3].find("a")->number(), 4.5);
  EXPECT_EQ(items[4].number(), 100);
}

// The parser has read one byte more than the number: bytes that could belong to one are the hard case.
TEST(JsonTest, BytesBehindANumberAreNotPartOfIt) {
  for (const char* text : {"[1.5-2]", "[1.5.2]", "[1.5+]", "[1e5e5]", "[1e5.]", "[18446744073709551616-]"}) {
    EXPECT_THAT(message(text), StartsWith("a.json rejected: line 1, column ")) << text;
  }
}

// nlohmann::json takes a byte of 0 for the end of the text, wherever it is.
TEST(JsonTest, AByteOfZeroIsRejected) {
  using namespace std::string_literals;
  expect_rejected("{}\0"s, "line 1, column 3", "a byte of 0 (NUL)");
  expect_rejected("{\"a\": 1}\n\0{\"b\": 2}"s, "line 2, column 1", "a byte of 0 (NUL)");
  expect_rejected("{\"a\": \0"s, "line 1, column 7", "a byte of 0 (NUL)");
  expect_rejected("[\"a\0b\"]"s, "line 1, column 4", "a byte of 0 (NUL)");
  expect_rejected("\0"s, "line 1, column 1", "a byte of 0 (NUL)");
  EXPECT_EQ(*parse(R"("a\u0000b")", "x").as_string(), "a\0b"s) << "escaped, it is a character like others";
}

TEST(JsonTest, DoublesPastTheirRangeAreRejected) {
  EXPECT_EQ(parse("1.7976931348623157e308", "x").number(), std::numeric_limits<double>::max());
  EXPECT_EQ(parse("5e-324", "x").number(), 0x1p-1074);
  EXPECT_EQ(parse("1e-400", "x").number(), 0) << "nearest double";
  EXPECT_EQ(parse("2.4e-324", "x").number(), 0) << "below half of the smallest double";
  EXPECT_EQ(parse("2.5e-324", "x").number(), 0x1p-1074);
  EXPECT_TRUE(std::signbit(parse("-1e-400", "x").number()));
  const std::string zeros(400, '0');
  EXPECT_EQ(parse("0." + zeros + "1", "x").number(), 0);
  EXPECT_EQ(parse("0." + zeros + "1e401", "x").number(), 1);
  EXPECT_EQ(parse("1" + zeros + "e-400", "x").number(), 1);
  EXPECT_EQ(parse("0.0e99999999999999999999", "x").number(), 0);
  EXPECT_EQ(parse("1e-99999999999999999999", "x").number(), 0);
  EXPECT_THAT(message("1" + zeros + ".0"), HasSubstr("number is outside the range of a double"));
  EXPECT_THAT(message("{\"a\": 1" + zeros + "e-10}"), HasSubstr("number is outside the range of a double"));
  EXPECT_THAT(message("[1e99999999999999999999]"), HasSubstr("number is outside the range of a double"));
  EXPECT_THAT(message("[1e309]"), HasSubstr("number is outside the range of a double"));
  EXPECT_THAT(message("[1e+400]"), HasSubstr("number is outside the range of a double"));
  EXPECT_EQ(parse("1e+2", "x").number(), 100);
  EXPECT_THAT(message("[-1e999]"), StartsWith("a.json rejected: line 1, column "));
  EXPECT_FALSE(parse("1.0", "x").is_integer()) << "a point makes it a double";
  EXPECT_FALSE(parse("1e2", "x").is_integer());
}

// Two values under one key: most parsers silently keep the last one, and human readers see the first.
TEST(JsonTest, DuplicateKeysAreRejectedWhereTheSecondStands) {
  expect_rejected("{\"a\": 1,\n  \"b\": 2,\n  \"a\": 3}", "line 3, column 3",
                  "duplicate key \"a\": keep one of the two");
  expect_rejected(R"({"x": {"k": 1, "k": 1}})", "line 1, column 16", "duplicate key \"k\"");
  expect_rejected(R"({"a\"b": 1, "a\"b": 2})", "line 1, column 13", "duplicate key");
  expect_rejected(R"({"a": 1, "\u0061": 2})", "line 1, column 10", "duplicate key \"a\"");
  EXPECT_EQ(message(R"([{"a": 1}, {"a": 2}, {"b": {"a": {"a": 3}}}])"), "accepted") << "other objects' keys are free";
}

// Names in files are printed as ASCII, and shortened.
TEST(JsonTest, ADuplicateKeyIsPrintedWithoutOtherCharacters) {
  expect_rejected("{\"\xc3\xa9\\n\": 1, \"\xc3\xa9\\n\": 2}", "line 1, column 12", "duplicate key \"???\"");
  const std::string name(121, 'k');
  EXPECT_THAT(message("{\"" + name + "\": 1, \"" + name + "\": 2}"),
              HasSubstr("duplicate key \"" + std::string(120, 'k') + "...\""));
  expect_rejected(R"({"\\": 1, "\\": 2})", "line 1, column 11", "duplicate key \"\\\"");
  expect_rejected("{\"a\x7f\": 1, \"a\x7f\": 2}", "line 1, column 11", "duplicate key \"a?\"");
}

// The number of each kind, and of what is none.
TEST(JsonTest, NumberIsTheValueOfEveryKindOfNumber) {
  EXPECT_EQ(Value(std::int64_t{-3}).number(), -3);
  EXPECT_EQ(Value(std::uint64_t{1} << 63).number(), 0x1p63);
  EXPECT_EQ(Value(0.5).number(), 0.5);
  EXPECT_EQ(Value("7").number(), 0);
  EXPECT_TRUE(Value(std::uint64_t{1} << 63).is_integer());
  EXPECT_TRUE(Value(-3).is_integer());
  EXPECT_FALSE(Value(0.5).is_integer());
  EXPECT_EQ(dump(Value(std::uint64_t{1} << 63)), "9223372036854775808");
  EXPECT_EQ(dump(parse("[[1, 2], [], [[3]], {}]", "x")), "[\n  [1, 2],\n  [],\n  [\n    [3]\n  ],\n  {}\n]");
}

// Short objects are scanned, long ones use a table: both sides of the change, and a duplicate of each key.
TEST(JsonTest, DuplicateKeysAreFoundInObjectsOfEveryLength) {
  for (const int count : {1, 2, 15, 16, 17, 18, 40}) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += "\"k" + std::to_string(i) + "\": 0, ";
    EXPECT_EQ(message(text + "\"z\": 0}"), "accepted") << count;
    for (int twice = 0; twice < count; ++twice) {
      EXPECT_THAT(message(text + "\"k" + std::to_string(twice) + "\": 1}"), HasSubstr("duplicate key")) << count;
    }
  }
}

TEST(JsonTest, NestingStopsAtSixtyFourLevels) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(message(nested(63)), "accepted");
  EXPECT_EQ(message(nested(64)), "accepted");
  expect_rejected(nested(65), "line 1, column 65", "nested deeper than 64 levels");
  expect_rejected(std::string(1000000, '['), "line 1, column 65", "nested deeper than 64 levels");
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += "{\"a\":";
  expect_rejected(objects, "line 1, column 321", "nested deeper than 64 levels");
}

TEST(JsonTest, ADocumentHasAtMostAsManyValuesAsTheCallerAllows) {
  const auto accepted = [](std::string_view text, std::size_t most) {
    try {
      (void)parse(text, "a.json", most);
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(accepted(R"({"a": [1, "b"]})", 4), "accepted");
  EXPECT_EQ(accepted(R"({"a": [1, "b"]})", 3),
            "a.json rejected: line 1, column 13: more than 3 values in one document: split it");
  if (test::size_for_sanitizers(0, 1) == 0) return;  // ten million values take 12 s there
  std::string many = "[";
  for (std::size_t i = 0; i < kMaxValues; ++i) many += "0,";
  EXPECT_THAT(message(many + "0]"), HasSubstr("more than 10000000 values in one document"));
}

// serde_json, which the reference reader of safetensors uses, and JavaScript read the double too.
TEST(JsonTest, MinusZeroIsADouble) {
  const Value zero = parse("-0", "x");
  EXPECT_EQ(zero.as_i64(), nullptr);
  EXPECT_TRUE(std::signbit(zero.number()));
  EXPECT_NE(parse("0", "x").as_i64(), nullptr);
}

TEST(JsonTest, SyntaxErrorsSayLineColumnAndWhatWasExpected) {
  for (const char* empty : {"", " ", "\n\t\r\n"}) {
    expect_rejected(empty, "line 1, column 1", "is empty: a JSON value is expected");
  }
  expect_rejected("{\n  \"a\": 1,\n}", "line 3, column 1", "syntax error while parsing object key - unexpected '}'");
  expect_rejected("[1, 2] x", "line 1, column 8", "syntax error");
  expect_rejected("{} {}", "line 1, column 4",
                  "syntax error while parsing value - unexpected '{'; expected end of input");
  expect_rejected("[1, 2", "line 1, column 6", "syntax error");
  expect_rejected("[01]", "line 1, column 3");
  expect_rejected("[+1]", "line 1, column 2");
  expect_rejected("[.5]", "line 1, column 2");
  expect_rejected("[NaN]", "line 1, column 2");
  expect_rejected("'a'", "line 1, column 1");
  expect_rejected("[1] // note", "line 1, column 5");
  expect_rejected("\"a\nb\"", "line 1, column 3");
  EXPECT_THAT(message("tru"), StartsWith("a.json rejected: line 1, column "));
}

// Columns are counted as in an editor: two letters of two bytes each precede the fault.
TEST(JsonTest, ColumnsCountCharactersNotBytes) {
  expect_rejected("[\"\xc3\xa9\xc3\xa8\", x]", "line 1, column 8");
  expect_rejected("\n\n[\"\xe2\x82\xac\", x]", "line 3, column 7");
}

TEST(JsonTest, BytesThatAreNoUtf8AreRejectedAndNotEchoed) {
  for (const std::string bad : {"\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xc3\""}) {
    const std::string text = message(bad);
    EXPECT_THAT(text, HasSubstr("ill-formed UTF-8")) << text;
    for (const char c : text) EXPECT_TRUE((c >= ' ' && c <= '~') || c == '\n');
  }
  EXPECT_THAT(message(R"("\ud800")"), StartsWith("a.json rejected: line 1, column "));
  EXPECT_LT(message("\"" + std::string(100000, 'x')).size(), 300u) << "the message does not carry the whole text";
}

TEST(JsonTest, SetAppendsReplacesAndMakesAnObjectOfNull) {
  Value v;
  v.set("b", 1);
  v.set("a", "x");
  v.set("b", 2.5);
  EXPECT_EQ(dump(v, -1), R"({"b":2.5,"a":"x"})");
  v.set("inner", nullptr).set("deep", true);
  EXPECT_EQ(dump(v, -1), R"({"b":2.5,"a":"x","inner":{"deep":true}})");
}

TEST(JsonDeathTest, SettingAMemberOfAnArrayIsABugOfTheCaller) {
  Value v(Array{});
  EXPECT_DEATH(v.set("a", 1), "members != nullptr");
}

TEST(JsonTest, DumpIndentsObjectsAndKeepsListsOfScalarsOnOneLine) {
  const Value v =
      parse(R"({"table": [7, 3, 0], "empty": [], "none": {}, "rows": [[1, 2], [3]], "o": {"k": null}})", "x");
  EXPECT_EQ(dump(v), R"({
  "table": [7, 3, 0],
  "empty": [],
  "none": {},
  "rows": [
    [1, 2],
    [3]
  ],
  "o": {
    "k": null
  }
})");
  EXPECT_EQ(dump(v, -1), R"({"table":[7,3,0],"empty":[],"none":{},"rows":[[1,2],[3]],"o":{"k":null}})");
  EXPECT_EQ(dump(parse(R"([1, {"k": 2}])", "x")), "[\n  1,\n  {\n    \"k\": 2\n  }\n]") << "an object is no scalar";
}

TEST(JsonTest, DoublesPrintTheFewestDigitsThatReadBack) {
  EXPECT_EQ(dump(0.1), "0.1");
  EXPECT_EQ(dump(1.0), "1.0") << "without the point it would come back as an integer";
  EXPECT_EQ(dump(-0.0), "-0.0");
  EXPECT_EQ(dump(1e22), "1e+22");
  EXPECT_EQ(dump(0x1p-1074), "5e-324");
  EXPECT_EQ(dump(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
  EXPECT_EQ(dump(std::nan("")), "\"nan\"");
  EXPECT_EQ(dump(std::numeric_limits<double>::infinity()), "\"inf\"");
  EXPECT_EQ(dump(-std::numeric_limits<double>::infinity()), "\"-inf\"");
}

TEST(JsonTest, StringsAreEscapedAndAlwaysValid) {
  EXPECT_EQ(dump(std::string("a\"b\\c\n\r\t\x01\x1f\x7f\0z", 13)),
            "\"a\\\"b\\\\c\\n\\r\\t\\u0001\\u001f\x7f\\u0000z\"");
  EXPECT_EQ(dump("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
  const std::string replaced = "\xef\xbf\xbd";
  EXPECT_EQ(dump("a\xff"
                 "b"),
            "\"a" + replaced + "b\"");
  EXPECT_EQ(dump("\xc3"), "\"" + replaced + "\"") << "cut off at the end";
  EXPECT_EQ(dump("\xed\xa0\x80"), "\"" + replaced + replaced + replaced + "\"") << "a surrogate half";
}

Value random_value(int depth) {
  switch (prop::in_range(0, depth > 0 ? 8 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return prop::any<bool>();
    case 2:
      return prop::any<std::int64_t>();
    case 3:
      return prop::any<std::uint64_t>();
    case 4: {
      const auto d = std::bit_cast<double>(prop::any<std::uint64_t>());
      return std::isfinite(d) ? d : 0.5;
    }
    case 5: {
      std::string text;
      for (const int c : prop::vector_of(0, 127)) text += static_cast<char>(c);
      return text;
    }
    case 6: {
      Array items;
      const int count = prop::in_range(0, 5);
      for (int i = 0; i < count; ++i) items.push_back(random_value(depth - 1));
      return items;
    }
    default: {
      Value object(Object{});
      const int count = prop::in_range(0, 20);
      for (int i = 0; i < count; ++i) object.set("key" + std::to_string(i), random_value(depth - 1));
      return object;
    }
  }
}

TEST(JsonTest, WhatIsDumpedIsReadBackEqual) {
  EXPECT_TRUE(prop::check([] {
    const Value v = random_value(3);
    RC_ASSERT(parse(dump(v), "x") == v);
    RC_ASSERT(parse(dump(v, -1), "x") == v);
    RC_ASSERT(parse(dump(v, 0), "x") == v);
  }));
}

TEST(JsonTest, AnyBytesAreReadOrRejectedWithAPlace) {
  EXPECT_TRUE(prop::check([] {
    const auto text = prop::text_of(std::string("{}[]\",:0123.eE+-\\u/ \n\tnulltrue\xc3\xa9\xff") + '\0');
    try {
      (void)parse(text, "x");
    } catch (const InputError& e) {
      RC_ASSERT(e.faults().size() == 1u);
      RC_ASSERT(e.faults()[0].where.starts_with("line "));
    }
  }));
}

}  // namespace
}  // namespace kvscope::json::json_test
