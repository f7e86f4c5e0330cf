// Links in a scenario's description: which text is one, which is plain, and the message for each fault.
#include "core/scenario/notes.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "core/scenario/checks.h"
#include "core/scenario/presets.h"

namespace kvscope::notes_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> faults_of(std::string_view text) {
  std::vector<std::string> faults;
  static_cast<void>(parse_notes(text, faults));
  return faults;
}

TEST(Notes, AreWordsAndLinksInOrder) {
  const std::vector<NotePart> parts = parse_notes(
      "See [block 2](step=1, select=block 2), then [box 1 in flight]( view = tile,tile=seq 3 token 70 k tma, event=200 "
      ").");
  ASSERT_EQ(parts.size(), 5U);
  EXPECT_EQ(parts[0], (NotePart{"See ", std::nullopt}));
  EXPECT_EQ(parts[1], (NotePart{"block 2", NoteLink{1, std::nullopt, "", "block 2", ""}}));
  EXPECT_EQ(parts[2].text, ", then ");
  EXPECT_EQ(parts[3], (NotePart{"box 1 in flight", NoteLink{std::nullopt, 200, "tile", "", "seq 3 token 70 k tma"}}));
  EXPECT_EQ(parts[4].text, ".");
}

// A shape, an address and an unfinished bracket are text: descriptions had them before there were links.
TEST(Notes, LeaveOtherBracketsAlone) {
  for (const char* text : {"", "The shape is [17, 1, 2] (six sizes).", "[a](b)", "[docs](https://a.b/c?d=e)", "[open",
                           "[a](step=3", "[a [b] c]", "a] (step=3)", "[]"}) {
    EXPECT_EQ(plain_notes(text), text);
    EXPECT_THAT(faults_of(text), IsEmpty()) << text;
    for (const NotePart& part : parse_notes(text)) EXPECT_FALSE(part.link) << text;
  }
  const std::vector<NotePart> parts = parse_notes("[x [6](step=6) y]");
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[1].link->step, 6);
}

TEST(Notes, PlainTextHasTheWordsOfLinksOnly) {
  EXPECT_EQ(plain_notes("[Block 2](step=1, select=block 2) has [three](step=2) holders."),
            "Block 2 has three holders.");
}

TEST(Notes, EveryFaultOfALinkIsReported) {
  EXPECT_THAT(faults_of("[a](stp=3) and [b](step=-1, event=x, step=4, view=)"),
              ElementsAre("link [a]: unknown key \"stp\": did you mean \"step\"?",
                          "link [b]: step=\"-1\" is not a number: write a whole number from 0, such as step=8",
                          "link [b]: event=\"x\" is not a number: write a whole number from 0, such as event=8",
                          "link [b]: step is given twice: keep one", "link [b]: view has no value: write view=..."));
}

// A key without a value is reported whether or not an equals sign follows.
TEST(Notes, AKeyWithoutAnEqualsSignHasNoValue) {
  EXPECT_THAT(faults_of("[a](step=1, view)"), ElementsAre("link [a]: view has no value: write view=..."));
}

// A broken link is a fault of the scenario, at its description.
TEST(Notes, AFaultIsOneOfTheScenario) {
  Scenario scenario;
  scenario.requests.list = {Request{}};
  scenario.requests.list[0].prompt_tokens = 5;
  scenario.description = "Look at [block 2](blok=2).";
  const std::vector<Fault> faults = check_scenario(scenario);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].where, "$.description");
  EXPECT_EQ(faults[0].message.substr(0, 36), "link [block 2]: unknown key \"blok\": ");
}

}  // namespace
}  // namespace kvscope::notes_test
