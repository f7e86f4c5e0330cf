#include "core/layout/layout_expr.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "tests/property.h"

namespace kvscope::layout::layout_expr_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string message(std::string_view expression) {
  try {
    (void)parse_layout(expression);
  } catch (const InputError& e) {
    return e.what();
  }
  return "accepted";
}

std::string index_message(const Layout& layout, const IntTuple& coordinate) {
  try {
    (void)offset_of(layout, coordinate);
  } catch (const IndexError& e) {
    return e.what();
  }
  return "no IndexError";
}

IntTuple leaf(std::int64_t value) {
  IntTuple t;
  t.value = value;
  return t;
}
IntTuple tuple(std::vector<IntTuple> items) {
  IntTuple t;
  t.leaf = false;
  t.items = std::move(items);
  return t;
}

TEST(LayoutExprTest, WorkedOffsetsOfTheHeader) {
  const Layout l = parse_layout("(8,4):(4,1)");
  EXPECT_EQ(offset_of(l, tuple({leaf(2), leaf(3)})), 11);
  EXPECT_EQ(offset_of(l, 9), 5);
  EXPECT_EQ(text(parse_layout("(8,4)")), "(8,4):(1,8)") << "column-major without strides";
  EXPECT_EQ(text(parse_layout("((2,4),3)")), "((2,4),3):((1,2),8)");
  EXPECT_EQ(text(parse_layout("7")), "7:1");
  EXPECT_EQ(text(parse_layout("(7)")), "(7):(1)") << "a tuple of one stays a tuple";
}

TEST(LayoutExprTest, SpacesAndCutesUnderscoresAreTheSameExpression) {
  const Layout l = parse_layout("((2,4),8):((1,16),2)");
  for (const char* same : {" ( ( 2 , 4 ) , 8 ) : ( ( 1 , 16 ) , 2 ) ", "((_2,_4),_8):((_1,_16),_2)",
                           "\t((2,4),8):((1,16),2)\t", "((02,4),8):((1,016),2)"}) {
    EXPECT_EQ(text(parse_layout(same)), text(l)) << same;
  }
  EXPECT_EQ(text(parse_layout("Sw<3,3,3> o (8,64):(64,1)")), "Sw<3,3,3> o (8,64):(64,1)");
  EXPECT_EQ(text(parse_layout("Sw<3,3,3>o _0 o (_8,_64):(_64,_1)")), "Sw<3,3,3> o (8,64):(64,1)");
  EXPECT_EQ(text(parse_layout("Sw<2,0,-3> o 64")), "Sw<2,0,-3> o 64:1");
}

TEST(LayoutExprTest, TheSwizzleActsOnTheOffsetLast) {
  const Layout l = parse_layout("Sw<3,3,3> o (8,64):(64,1)");
  EXPECT_EQ(offset_of(l, tuple({leaf(1), leaf(0)})), 72);
  EXPECT_EQ(offset_of(l, tuple({leaf(7), leaf(0)})), 504);
  EXPECT_EQ(offset_of(l, tuple({leaf(1), leaf(8)})), 64);
  EXPECT_EQ(cosize(l), 512);
}

TEST(LayoutExprTest, TheCaretStandsUnderTheFault) {
  EXPECT_EQ(message("(8,4):(4"),
            "layout \"(8,4):(4\" rejected: column 9: expected ',' or ')'\n"
            "  (8,4):(4\n"
            "          ^");
  EXPECT_EQ(message(""),
            "layout \"\" rejected: column 1: expected a number or '('\n"
            "  \n"
            "  ^");
  EXPECT_EQ(message("(8,x):(4,1)"),
            "layout \"(8,x):(4,1)\" rejected: column 4: expected a number or '('\n"
            "  (8,x):(4,1)\n"
            "     ^");
  EXPECT_EQ(message("(8,4):(4,1) 7"),
            "layout \"(8,4):(4,1) 7\" rejected: column 13: expected the end\n"
            "  (8,4):(4,1) 7\n"
            "              ^");
}

TEST(LayoutExprTest, EveryFaultSaysWhatWasExpected) {
  const auto expect = [](const char* expression, const std::string& place_and_words) {
    EXPECT_THAT(message(expression),
                StartsWith(std::string("layout \"") + expression + "\" rejected: " + place_and_words + "\n"));
  };
  expect("()", "column 2: expected a number or '('");
  expect("(8,)", "column 4: expected a number or '('");
  expect("(8 4)", "column 4: expected ',' or ')'");
  expect("(8,4)(4,1)", "column 6: expected ':' or the end");
  expect("(8,4):", "column 7: expected a number or '('");
  expect("(8,0)", "column 4: a shape is 1 or more");
  expect("(8,4):(-4,1)", "column 8: expected a number or '('");
  expect("(8,4):4", "column 7: stride 4 is a number where shape (8,4) is a tuple of 2");
  expect("(8,4):(4,1,1)", "column 7: stride (4,1,1) is a tuple of 3 where shape (8,4) is a tuple of 2");
  expect("((2,4),8):((1,16),(2))", "column 19: stride (2) is a tuple of 1 where shape 8 is a number");
  expect("8:(1)", "column 3: stride (1) is a tuple of 1 where shape 8 is a number");
  expect("99999999999999999999", "column 1: the number does not fit in 64 bits");
  expect("(4294967296,4294967296)", "column 1: the size does not fit in 64 bits: use a smaller shape");
  expect("(3,2):(1,9223372036854775807)", "column 7: the largest offset does not fit in 64 bits: use smaller strides");
  expect("2:9223372036854775807", "column 3: the largest offset does not fit in 64 bits: use smaller strides");
  expect("Sw(3,3,3)", "column 3: expected '<'");
  expect("Sw<3,3>", "column 7: expected ','");
  expect("Sw<3,3,3> (8,4)", "column 11: expected 'o' and the layout that the swizzle follows");
  expect("Sw<3,3,2> o (8,4)", "column 1: shift 2 moves 3 bits onto themselves: use at least 3 or at most -3");
  expect("Sw<3,99,3> o 8", "column 1: bits + base + |shift| = 105 is outside [0, 63)");
  expect("Sw<3,3,3> o _5 o (8,4)", "column 13: an offset between swizzle and layout must be 0");
}

// Expressions may be hostile: the cost of each must be at most proportional to its length.
TEST(LayoutExprTest, HostileExpressionsAreRejectedCheaply) {
  const auto nested = [](std::size_t n) { return std::string(n, '(') + "2" + std::string(n, ')'); };
  EXPECT_EQ(message(nested(16)), "accepted");
  EXPECT_THAT(message(nested(17)), HasSubstr("column 17: nested deeper than 16 levels"));
  EXPECT_THAT(message(std::string(4096, '(')), HasSubstr("nested deeper"));
  EXPECT_THAT(message(std::string(10000000, '(')), HasSubstr("10000000 characters, but at most 4096 are read"));
  std::string ones = "(1";
  while (ones.size() < 4090) ones += ",1";
  EXPECT_EQ(message(ones + ")"), "accepted");
  EXPECT_LT(message(ones + "x").size(), 400u) << "only the part of a long expression around the fault is shown";
  EXPECT_THAT(message("(8,\x1b[31m\xff)"), HasSubstr("(8,?[31m?)")) << "no control bytes reach the terminal";
}

TEST(LayoutExprTest, ShapesAreMeasured) {
  const Layout l = parse_layout("((2,4),8):((1,16),2)");
  EXPECT_EQ(rank(l.shape), 2);
  EXPECT_EQ(depth(l.shape), 2);
  EXPECT_EQ(size(l), 64);
  EXPECT_EQ(cosize(l), 1 + 48 + 14 + 1);
  EXPECT_EQ(rank(leaf(5)), 1);
  EXPECT_EQ(depth(leaf(5)), 0);
  EXPECT_EQ(depth(tuple({leaf(5)})), 1);
  EXPECT_EQ(cosize(parse_layout("(4,3):(0,0)")), 1);
}

// Every shape of up to three modes in three nestings, every small stride: coordinates counted by three plain loops.
TEST(LayoutExprTest, EverySmallLayoutCountsItsCoordinatesLeftmostFastest) {
  int layouts = 0;
  for (int code = 0; code < 4 * 4 * 4 * 27; ++code) {
    const std::int64_t s[3] = {1 + code % 4, 1 + code / 4 % 4, 1 + code / 16 % 4};
    const std::int64_t strides[3] = {0, 1, 5};
    const std::int64_t d[3] = {strides[code / 64 % 3], strides[code / 192 % 3] * 2, strides[code / 576 % 3] * 7};
    const auto nest = [](int form, const std::int64_t v[3]) {
      if (form == 0) return tuple({leaf(v[0]), leaf(v[1]), leaf(v[2])});
      if (form == 1) return tuple({tuple({leaf(v[0]), leaf(v[1])}), leaf(v[2])});
      return tuple({leaf(v[0]), tuple({leaf(v[1]), leaf(v[2])})});
    };
    for (int form = 0; form < 3; ++form) {
      const Layout l{nest(form, s), nest(form, d), std::nullopt};
      std::int64_t integer = 0;
      std::int64_t largest = 0;
      for (std::int64_t k = 0; k < s[2]; ++k) {
        for (std::int64_t j = 0; j < s[1]; ++j) {
          for (std::int64_t i = 0; i < s[0]; ++i) {
            const std::int64_t want = i * d[0] + j * d[1] + k * d[2];
            const std::int64_t c[3] = {i, j, k};
            ASSERT_EQ(offset_of(l, integer), want) << text(l);
            ASSERT_EQ(offset_of(l, nest(form, c)), want) << text(l);
            // A coarser coordinate: an integer for the nested mode.
            if (form == 1) {
              ASSERT_EQ(offset_of(l, tuple({leaf(i + j * s[0]), leaf(k)})), want) << text(l);
            }
            if (form == 2) {
              ASSERT_EQ(offset_of(l, tuple({leaf(i), leaf(j + k * s[1])})), want) << text(l);
            }
            largest = std::max(largest, want);
            ++integer;
          }
        }
      }
      ASSERT_EQ(size(l), integer) << text(l);
      ASSERT_EQ(cosize(l), largest + 1) << text(l);
      ASSERT_THROW((void)offset_of(l, integer), IndexError) << text(l);
      ++layouts;
    }
  }
  EXPECT_EQ(layouts, 5184);
}

TEST(LayoutExprTest, CoordinatesOutsideTheShapeAreRejected) {
  const Layout l = parse_layout("((2,4),8):((1,16),2)");
  EXPECT_EQ(index_message(l, leaf(64)), "coordinate 64 is outside [0, 64): the mode's shape is ((2,4),8)");
  EXPECT_EQ(index_message(l, leaf(-1)), "coordinate -1 is outside [0, 64): the mode's shape is ((2,4),8)");
  EXPECT_EQ(index_message(l, tuple({leaf(8), leaf(0)})), "coordinate 8 is outside [0, 8): the mode's shape is (2,4)");
  EXPECT_EQ(index_message(l, tuple({tuple({leaf(2), leaf(0)}), leaf(0)})),
            "coordinate 2 is outside [0, 2): the mode's shape is 2");
  EXPECT_EQ(index_message(l, tuple({leaf(0), leaf(0), leaf(0)})),
            "coordinate (0,0,0) has 3 modes where shape ((2,4),8) has 2");
  EXPECT_EQ(index_message(l, tuple({leaf(0), tuple({leaf(0), leaf(0)})})),
            "coordinate (0,0) has 2 modes where shape 8 has none");
}

TEST(LayoutExprTest, LayoutsBuiltByHandAreCheckedWhereTheyAreUsed) {
  const Layout uneven{tuple({leaf(2), leaf(3)}), tuple({leaf(1)}), std::nullopt};
  EXPECT_THROW((void)offset_of(uneven, 0), GeometryError);
  EXPECT_THROW((void)cosize(uneven), GeometryError);
  const Layout huge{leaf(3), leaf(std::int64_t{1} << 62), std::nullopt};
  EXPECT_EQ(offset_of(huge, 1), std::int64_t{1} << 62);
  EXPECT_THROW((void)offset_of(huge, 2), OverflowError);
  EXPECT_THROW((void)cosize(huge), OverflowError);
}

TEST(LayoutExprTest, WhatIsPrintedIsParsedBackEqual) {
  const std::function<std::pair<IntTuple, IntTuple>(int)> grow = [&](int levels) {
    if (levels == 0 || prop::in_range(0, 3) == 0) {
      return std::pair(leaf(prop::in_range(1, 9)), leaf(prop::in_range(0, 1000000)));
    }
    std::vector<IntTuple> shapes, strides;
    const int count = prop::in_range(1, 4);
    for (int i = 0; i < count; ++i) {
      auto [shape, stride] = grow(levels - 1);
      shapes.push_back(shape);
      strides.push_back(stride);
    }
    return std::pair(tuple(shapes), tuple(strides));
  };
  EXPECT_TRUE(prop::check([&] {
    auto [shape, stride] = grow(2);
    Layout l{shape, stride, std::nullopt};
    if (prop::any<bool>()) {
      const int bits = prop::in_range(0, 4);
      const int shift = prop::in_range(bits, 6);
      l.swizzle = Swizzle(bits, prop::in_range(0, 5), prop::any<bool>() ? shift : -shift);
    }
    const Layout back = parse_layout(text(l));
    RC_ASSERT(back.shape == l.shape);
    RC_ASSERT(back.stride == l.stride);
    RC_ASSERT(back.swizzle == l.swizzle);
  }));
}

TEST(LayoutExprTest, AnyTextIsParsedOrRejectedWithAColumn) {
  EXPECT_TRUE(prop::check([] {
    const auto expression = prop::text_of("(((()))),,,:12340 _-oSw<>");
    try {
      RC_ASSERT(size(parse_layout(expression)) >= 1);
    } catch (const InputError& e) {
      RC_ASSERT(e.faults().at(0).where.starts_with("column "));
    }
  }));
}

}  // namespace
}  // namespace kvscope::layout::layout_expr_test
