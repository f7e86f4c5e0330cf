#include "apps/labs/unknown_names.h"

#include <gtest/gtest.h>

#include <array>

namespace kvscope::labs::unknown_names_test {
namespace {

constexpr std::array<std::string_view, 3> kNames{"row", "rows_per_block", "element"};

std::string said(const char* answers, std::string_view missing) {
  return unknown_names(json::parse(answers, "answers.json"), missing, kNames);
}

// A student who writes "Row" was told that there is no answer, and not why.
TEST(UnknownNames, AreNamedAtTheAnswerThatIsProbablyMeant) {
  EXPECT_EQ(said(R"({"Row": 5, "row": null})", "row"), R"(; "Row" is unknown: did you mean "row"?)");
  EXPECT_EQ(said(R"({"Row": 5, "row": null})", "element"), "");
  EXPECT_EQ(said(R"({"rows_per_blok": 5})", "rows_per_block"),
            R"(; "rows_per_blok" is unknown: did you mean "rows_per_block"?)");
}

TEST(UnknownNames, ThatResembleNoneAreNamedAtEachMissingAnswer) {
  EXPECT_EQ(said(R"({"bytes": 5})", "row"), R"(; "bytes" is unknown)");
  EXPECT_EQ(said(R"({"bytes": 5})", "element"), said(R"({"bytes": 5})", "row"));
}

// A file may have any number of names, of any length.
TEST(UnknownNames, AreAtMostThreeWithTheirBeginnings) {
  EXPECT_EQ(said(R"({"bytes": 1, "aaaa": 2, "bbbb": 3, "cccc": 4})", "row"),
            R"(; "bytes" is unknown; "aaaa" is unknown; "bbbb" is unknown; and 1 more unknown name)");
  EXPECT_EQ(said((R"({")" + std::string(90, 'x') + R"(": 1})").c_str(), "row"),
            "; \"" + std::string(40, 'x') + "\" is unknown");
}

TEST(UnknownNames, AreNoneInAFileThatIsNoObjectOrHasTheNamesAlone) {
  EXPECT_EQ(said("[1, 2]", "row"), "");
  EXPECT_EQ(said(R"({"row": 1, "element": null})", "row"), "");
}

}  // namespace
}  // namespace kvscope::labs::unknown_names_test
