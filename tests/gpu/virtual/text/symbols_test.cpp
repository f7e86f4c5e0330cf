// Scopes and ranges of names.
#include "gpu/virtual/text/detail/symbols.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/property.h"

namespace kvscope::ptx::symbols_test {
namespace {

std::int32_t index_of(const SymbolTable& table, std::string_view name) {
  return table.find(name).index;
}

TEST(Symbols, ARangeIsFoundByNumber) {
  SymbolTable table;
  table.declare_range("%r", 7, 5, 1, {});
  EXPECT_EQ(index_of(table, "%r0"), 7);
  EXPECT_EQ(index_of(table, "%r4"), 11);
  EXPECT_EQ(index_of(table, "%r04"), 11);  // as in ptxas
  for (const char* no : {"%r5", "%r", "%rd1", "%r99999999999", "r1", "%r1x", "12"}) EXPECT_FALSE(table.find(no)) << no;
}

// Would catch a lookup that returns the range although a separate name is in a deeper scope, or vice versa.
TEST(Symbols, TheInnermostOfRangeAndNameWins) {
  SymbolTable table;
  table.declare("%r1", SymbolKind::reg, 100, {});
  EXPECT_EQ(index_of(table, "%r1"), 100);
  table.open_scope();
  table.declare_range("%r", 0, 3, 1, {});
  EXPECT_EQ(index_of(table, "%r1"), 1);
  table.open_scope();
  table.declare("%r1", SymbolKind::reg, 50, {});
  EXPECT_EQ(index_of(table, "%r1"), 50);
  EXPECT_EQ(index_of(table, "%r2"), 2);
  table.open_scope();
  table.declare_range("%r", 60, 2, 1, {});
  EXPECT_EQ(index_of(table, "%r1"), 61);
  EXPECT_EQ(index_of(table, "%r2"), 2);  // past the inner range: the outer range
  table.close_scope();
  EXPECT_EQ(index_of(table, "%r1"), 50);
  table.close_scope();
  EXPECT_EQ(index_of(table, "%r1"), 1);
  table.close_scope();
  EXPECT_EQ(index_of(table, "%r1"), 100);
}

TEST(Symbols, FindHereSeesOneScopeOnly) {
  SymbolTable table;
  table.declare("x", SymbolKind::reg, 1, {});
  EXPECT_TRUE(table.find_here("x"));
  table.open_scope();
  EXPECT_FALSE(table.find_here("x"));
  EXPECT_TRUE(table.find("x"));
}

// ptxas declares %q10..%q12 for "%q1<3>", which no name finds.
TEST(Symbols, ARangeOfAPrefixWithDigitsIsNotFound) {
  SymbolTable table;
  table.declare_range("%q1", 0, 3, 1, {});
  EXPECT_FALSE(table.find("%q12"));
  table.declare_range("%q", 10, 20, 1, {});
  EXPECT_EQ(index_of(table, "%q12"), 22);
}

// Two names of nine letters with one hash, 3818615a. Would catch a lookup that compares hashes alone.
TEST(Symbols, NamesOfOneHashAreToldApart) {
  const std::string one = "%zolpdtsht", other = "%veagccbzu";
  SymbolTable table;
  table.declare(one, SymbolKind::reg, 1, {});
  EXPECT_FALSE(table.find(other));
  table.declare(other, SymbolKind::reg, 2, {});
  EXPECT_EQ(index_of(table, one), 1);
  EXPECT_EQ(index_of(table, other), 2);
  // As the prefixes of names with digits, and of ranges.
  const std::string one_7 = one + "7", other_7 = other + "7";
  table.declare(one_7, SymbolKind::reg, 3, {});
  EXPECT_FALSE(table.find(other_7));
  table.declare(other_7, SymbolKind::reg, 4, {});
  EXPECT_EQ(index_of(table, one_7), 3);
  EXPECT_EQ(index_of(table, other_7), 4);
  table.declare_range(one, 20, 9, 1, {});
  EXPECT_EQ(index_of(table, one_7), 27);
  EXPECT_EQ(index_of(table, other_7), 4);
}

// Compared with a stack of maps, with enough names to rebuild the chains.
TEST(Symbols, BehaveAsMapsOnAStack) {
  EXPECT_TRUE(prop::check("find is the innermost declaration", [] {
    SymbolTable table;
    std::deque<std::string> names;
    std::vector<std::map<std::string, std::int32_t>> scopes(1);
    const int steps = prop::in_range(0, 600);
    for (int i = 0; i < steps; ++i) {
      const int what = prop::uniform(0, 20);
      if (what == 0) {
        table.open_scope();
        scopes.emplace_back();
      } else if (what == 1 && scopes.size() > 1) {
        table.close_scope();
        scopes.pop_back();
      } else {
        const std::string name = (what % 2 == 0 ? "n" : "n_x") + std::to_string(prop::uniform(0, 400));
        if (scopes.back().emplace(name, i).second) table.declare(names.emplace_back(name), SymbolKind::reg, i, {});
      }
    }
    for (int n = 0; n < 400; ++n) {
      const std::string name = "n" + std::to_string(n);
      std::int32_t expected = -1;
      for (const auto& scope : scopes) {
        if (const auto found = scope.find(name); found != scope.end()) expected = found->second;
      }
      RC_ASSERT(index_of(table, name) == expected);
    }
  }));
}

}  // namespace
}  // namespace kvscope::ptx::symbols_test
