#include "core/base/nearest_name.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace kvscope::nearest_name_test {
namespace {

constexpr std::array<std::string_view, 3> kNames{"page_size", "blocks", "dtype"};

TEST(NearestName, FindsOneSlipAndNotAnotherWord) {
  EXPECT_EQ(nearest_name("pagesize", kNames), "page_size");    // left out
  EXPECT_EQ(nearest_name("page_sizes", kNames), "page_size");  // one too many
  EXPECT_EQ(nearest_name("pgae_size", kNames), "page_size");   // swapped
  EXPECT_EQ(nearest_name("block", kNames), "blocks");
  EXPECT_EQ(nearest_name("type", kNames), "dtype");
  EXPECT_EQ(nearest_name("granularity", kNames), "");
  EXPECT_EQ(nearest_name("", kNames), "");
}

// A third of the typed length, and at least one: the ladder around both bounds.
TEST(NearestName, AllowsAThirdOfWhatWasTyped) {
  constexpr std::array<std::string_view, 1> kSix{"abcdef"};
  EXPECT_EQ(nearest_name("abcdxx", kSix), "abcdef");  // 2 of 6
  EXPECT_EQ(nearest_name("abcxxx", kSix), "");        // 3 of 6
  constexpr std::array<std::string_view, 1> kTwo{"ab"};
  EXPECT_EQ(nearest_name("ax", kTwo), "ab");
  EXPECT_EQ(nearest_name("xx", kTwo), "");
  constexpr std::array<std::string_view, 2> kOne{"k", "v"};
  EXPECT_EQ(nearest_name("q", kOne), "");  // one edit, but nothing of the typed word is kept
}

// Swapping two letters is the most common typing error and counts as one edit, so that short names are found.
TEST(NearestName, SwappedNeighborsAreOneEdit) {
  constexpr std::array<std::string_view, 2> kCommands{"show", "diff"};
  EXPECT_EQ(nearest_name("shwo", kCommands), "show");
  EXPECT_EQ(nearest_name("hsow", kCommands), "show");
  EXPECT_EQ(nearest_name("idff", kCommands), "diff");
  EXPECT_EQ(nearest_name("shaow", kCommands), "show");
  EXPECT_EQ(nearest_name("hswo", kCommands), "");  // twice, in a word of four
  EXPECT_EQ(nearest_name("wsho", kCommands), "");  // not adjacent
}

// NHD is far from nhd by edits, and as near to another word of three letters.
TEST(NearestName, UpperAndLowerCaseAreTheSame) {
  constexpr std::array<std::string_view, 3> kLayouts{"hnd", "nhd", "NH"};
  EXPECT_EQ(nearest_name("NHD", kLayouts), "nhd");
  EXPECT_EQ(nearest_name("Hnd", kLayouts), "hnd");
  EXPECT_EQ(nearest_name("XYZ", kLayouts), "");
}

// The cost is the product of the lengths: a hostile key of a megabyte must not take a second.
TEST(NearestName, DoesNotTryWhatIsLongerThanAnyName) {
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'a'), kNames), "");
}

TEST(NearestName, ListsTheLegalNamesWhenNoneIsClose) {
  EXPECT_EQ(suggest_name("blcks", kNames), ": did you mean \"blocks\"?");
  EXPECT_EQ(suggest_name("granularity", kNames), ": choose one of page_size, blocks, dtype");
}

}  // namespace
}  // namespace kvscope::nearest_name_test
