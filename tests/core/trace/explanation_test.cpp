#include "core/trace/explanation.h"

#include <gtest/gtest.h>

namespace kvscope::trace::explanation_test {
namespace {

const Explanation kExplanation{
    "K of sequence 3",
    {{"page", "token / page_size", "37 / 16", "2", ""}, {"block", "table[page]", "", "7", "shared by 2 sequences"}}};

// Numbers and remarks that a link does not have take no line. The column is as wide as the longest name.
TEST(ExplanationText, HasALineForEachPartThatALinkHas) {
  EXPECT_EQ(to_text(kExplanation),
            "K of sequence 3\n"
            "\npage   token / page_size\n       = 37 / 16\n       = 2\n"
            "\nblock  table[page]\n       = 7\n         shared by 2 sequences\n");
  EXPECT_EQ(to_text({"nothing", {}}), "nothing\n");
}

TEST(ExplanationJson, HasEveryPartOfEveryLink) {
  EXPECT_EQ(json::dump(to_json(kExplanation), -1),
            R"({"subject":"K of sequence 3","links":[)"
            R"({"name":"page","formula":"token / page_size","numbers":"37 / 16","result":"2","remark":""},)"
            R"({"name":"block","formula":"table[page]","numbers":"","result":"7","remark":"shared by 2 sequences"}]})");
}

}  // namespace
}  // namespace kvscope::trace::explanation_test
