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

// A way that the tile does not take has no line, and details of a result are left out.
TEST(ExplanationPlaces, HasALineForTheCacheAndForEachWayOfTheTile) {
  EXPECT_EQ(places_text(kExplanation), "in the cache  page 2, block 7\n");
  EXPECT_EQ(places_text({"nothing", {}}), "");
  const Explanation whole{"V",
                          {{"page", "", "", "4", ""},
                           {"slot", "", "", "6", ""},
                           {"block", "", "", "9", ""},
                           {"byte", "", "", "161414 (0x27686)", ""},
                           {"row", "", "", "582 of 2064", ""},
                           {"TMA box", "", "", "(0, 1, 576)", ""},
                           {"swizzle", "", "", "chunk 6, shared byte 870", ""},
                           {"bank", "", "", "25", ""},
                           {"register", "", "", "lane 15, register 0, bits 0-15", ""},
                           {"LDS tile", "", "", "tile 0, key 3", ""},
                           {"LDS copy", "", "", "wave 0, instruction 0, lane 12", ""},
                           {"LDS byte", "", "", "208", ""},
                           {"LDS bank", "", "", "52", ""},
                           {"wave register", "", "", "none", ""}}};
  EXPECT_EQ(places_text(whole),
            "in the cache  page 4, slot 6, block 9, row 582, byte 161414\n"
            "by TMA        box at (0, 1, 576), shared byte 870, bank 25, held by lane 15, register 0\n"
            "through LDS   copied by wave 0, instruction 0, lane 12, byte 208, bank 52\n");
}

TEST(ExplanationJson, HasEveryPartOfEveryLink) {
  EXPECT_EQ(json::dump(to_json(kExplanation), -1),
            R"({"subject":"K of sequence 3","links":[)"
            R"({"name":"page","formula":"token / page_size","numbers":"37 / 16","result":"2","remark":""},)"
            R"({"name":"block","formula":"table[page]","numbers":"","result":"7","remark":"shared by 2 sequences"}]})");
}

}  // namespace
}  // namespace kvscope::trace::explanation_test
