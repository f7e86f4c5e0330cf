#include "core/base/report.h"

#include <gtest/gtest.h>

namespace kvscope::report_test {
namespace {

TEST(JUnit, CountsFailuresAndLeavesOutTheTimesAndOutputItWasNotGiven) {
  const JUnitSuite suite{.name = "a < b",
                         .cases = {{.class_name = "kvscope.x", .name = "fits", .seconds = {}, .failure = {}},
                                   {.class_name = "kvscope.\"y\"", .name = "n", .seconds = 1.25, .failure = "1 & 2\n3"},
                                   // A failure with an empty message is still a failure.
                                   {.class_name = "kvscope.z", .name = "m", .seconds = {}, .failure = ""}},
                         .output = ""};
  EXPECT_EQ(to_junit(suite), R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="a &lt; b" tests="3" failures="2" errors="0">
  <testcase classname="kvscope.x" name="fits"/>
  <testcase classname="kvscope.&quot;y&quot;" name="n" time="1.250">
    <failure message="1 &amp; 2&#10;3"/>
  </testcase>
  <testcase classname="kvscope.z" name="m">
    <failure message=""/>
  </testcase>
</testsuite>
)");
}

TEST(JUnit, OutputIsEscapedBehindTheCases) {
  EXPECT_EQ(to_junit({.name = "s", .cases = {}, .output = "<all>"}), R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="s" tests="0" failures="0" errors="0">
  <system-out>&lt;all&gt;</system-out>
</testsuite>
)");
}

// The schema has them before the cases.
TEST(JUnit, PropertiesAreEscapedBeforeTheCases) {
  EXPECT_EQ(to_junit({.name = "s",
                      .cases = {{.class_name = "c", .name = "n", .seconds = {}, .failure = {}}},
                      .output = "",
                      .properties = {{"a<b", "\"1\" & 2"}, {"c", ""}}}),
            R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="s" tests="1" failures="0" errors="0">
  <properties>
    <property name="a&lt;b" value="&quot;1&quot; &amp; 2"/>
    <property name="c" value=""/>
  </properties>
  <testcase classname="c" name="n"/>
</testsuite>
)");
}

TEST(Markdown, AHeadHasARuleOfAsManyColumns) {
  EXPECT_EQ(markdown_head({"kernel", "cases", "failed"}), "| kernel | cases | failed |\n|---|---|---|\n");
}

TEST(Markdown, ABarOrALineEndDoesNotEndACell) {
  EXPECT_EQ(markdown_cell("a|b\nc"), "a\\|b c");
}

TEST(ReportText, AColumnIsAsWideAsItsLongestText) {
  const std::vector<std::string> names = {"kernel", "of", "sectors"};
  EXPECT_EQ(widest(names, [](const std::string& name) -> std::string_view { return name; }), 7u);
  EXPECT_EQ(widest(std::vector<std::string>{}, [](const std::string& name) { return name; }), 0u);
}

TEST(ReportText, CountsWithTheNounInTheRightNumber) {
  EXPECT_EQ(counted(0, "key"), "0 keys");
  EXPECT_EQ(counted(1, "key"), "1 key");
  EXPECT_EQ(counted(2, "key"), "2 keys");
  EXPECT_EQ(counted(1, "query", "queries"), "1 query");
  EXPECT_EQ(counted(14, "query", "queries"), "14 queries");
}

}  // namespace
}  // namespace kvscope::report_test
