// The question about an object, and that the panel's text equals the command line's byte for byte.
#include "viz/model/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/base/errors.h"
#include "core/staging/explain.h"
#include "tests/viz/geometry/staged_tile.h"
#include "tests/viz/model/support.h"
#include "viz/playback/tile_fold.h"

namespace kvscope::viz::why_test {
namespace {

using testing_support::simulate;
using testing_support::Simulated;

const Simulated& first_light() {
  static const Simulated kSimulated = simulate("first_light");
  return kSimulated;
}

std::string instead(const Document& document) {
  const WhyQuestion wanted = why_question(document, {});
  EXPECT_FALSE(wanted.question.has_value());
  return wanted.instead.toStdString();
}

TEST(WhyQuestion, OfATokenIsAskedAtTheDocumentsStep) {
  Document document(first_light().run, {});
  document.seek_step(StepIdx{6});
  document.pin(of_token(SeqIdx{1}, TokIdx{70}));
  const WhyQuestion wanted = why_question(document, {LayerIdx{1}, HeadIdx{1}, DimIdx{5}, KOrV::v});
  ASSERT_TRUE(wanted.question.has_value());
  EXPECT_EQ(wanted.question->seq, SeqIdx{1});
  EXPECT_EQ(wanted.question->token, TokIdx{70});
  EXPECT_EQ(wanted.question->layer, LayerIdx{1});
  EXPECT_EQ(wanted.question->head, HeadIdx{1});
  EXPECT_EQ(wanted.question->dim, DimIdx{5});
  EXPECT_EQ(wanted.question->kv, KOrV::v);
  EXPECT_EQ(wanted.question->step, StepIdx{6});
}

// The pinned object takes precedence over the hovered one; a pinned step is ignored.
TEST(WhyQuestion, IsAboutThePinnedElseTheHoveredObject) {
  Document document(first_light().run, {});
  document.hover(of_token(SeqIdx{0}, TokIdx{3}));
  EXPECT_EQ(why_question(document, {}).question->token, TokIdx{3});
  document.pin(of_token(SeqIdx{0}, TokIdx{9}));
  EXPECT_EQ(why_question(document, {}).question->token, TokIdx{9});
  document.pin(of_step(StepIdx{2}));
  EXPECT_EQ(why_question(document, {}).question->token, TokIdx{3});
}

TEST(WhyQuestion, OfAPageOrABlockIsAboutItsFirstToken) {
  Document document(first_light().run, {});
  document.seek_step(StepIdx{6});
  document.pin(of_page(SeqIdx{2}, PageIdx{4}));
  EXPECT_EQ(why_question(document, {}).question->token, TokIdx{64});
  const std::int32_t block = document.cursor().state().sequences[2].pages[4];
  document.pin(of_block(BlockIdx(block)));
  EXPECT_EQ(why_question(document, {}).question->seq, SeqIdx{2});
  EXPECT_EQ(why_question(document, {}).question->token, TokIdx{64});
}

TEST(WhyQuestion, IsCutToTheScenariosLimits) {
  Document document(first_light().run, {});
  document.pin(of_token(SeqIdx{0}, TokIdx{0}));
  const WhyQuestion wanted = why_question(document, {LayerIdx{99}, HeadIdx{99}, DimIdx{99}, KOrV::k});
  EXPECT_EQ(wanted.question->layer, LayerIdx{1});
  EXPECT_EQ(wanted.question->head, HeadIdx{1});
  EXPECT_EQ(wanted.question->dim, DimIdx{63});
}

// An MLA cache has no V: a question about V would only give a fault.
TEST(WhyQuestion, OfAnMlaCacheIsAboutKAlone) {
  const Simulated mla = simulate("mla");
  EXPECT_FALSE(why_limits(mla.run->facts()).has_v);
  Document document(mla.run, {});
  document.pin(of_token(SeqIdx{0}, TokIdx{0}));
  EXPECT_EQ(why_question(document, {LayerIdx{0}, HeadIdx{0}, DimIdx{0}, KOrV::v}).question->kv, KOrV::k);
}

// A register, a chunk, a lane and a row of the tile lead to the token and the element that they hold.
TEST(WhyQuestion, OfAnObjectOfTheTileIsAboutTheElementThatItHolds) {
  Document document(first_light().run, {});
  document.seek_step(StepIdx{6});
  document.show_tile(
      std::make_shared<const Tile>(*testing_support::staged_tile({})));  // tokens 64 to 127 of sequence 1
  const auto asked = [&](const Selection& selection) {
    document.pin(selection);
    return why_question(document, why_part(document).value_or(WhyPart{})).question.value_or(trace::Question{});
  };
  const trace::Question of_register = asked(of_tile_register({0, 26, 1, 0}));
  EXPECT_EQ(of_register.seq, SeqIdx{1});
  EXPECT_EQ(of_register.token, TokIdx{70});
  EXPECT_EQ(why_part(document), (WhyPart{LayerIdx{1}, HeadIdx{1}, DimIdx{12}, KOrV::k}));
  EXPECT_EQ(asked(of_tile_chunk({6, 24})).dim, DimIdx{24});
  EXPECT_EQ(asked(of_tile_lane(0, 26)).token, TokIdx{70});
  EXPECT_EQ(asked(of_tile_row(7)).token, TokIdx{71});
  EXPECT_EQ(why_part(document)->dim, DimIdx{0});
}

TEST(WhyQuestion, OfARowOfTheTileWithoutATokenIsAText) {
  Document document(first_light().run, {});
  document.seek_step(StepIdx{6});
  std::vector<trace::Event> events = testing_support::staged_events({});
  std::get<trace::TileOpened>(events.front()).tokens = 2;
  document.show_tile(std::make_shared<const Tile>(fold_tile(events)));
  document.pin(of_tile_row(6));
  EXPECT_EQ(instead(document),
            "Row 6 of the tile: no token. It holds no token, so there is no address to explain: choose another row, "
            "chunk or register.");
  EXPECT_FALSE(why_part(document));
  document.pin(of_tile_register({0, 26, 0, 0}));
  EXPECT_THAT(instead(document), testing::StartsWith("Lane 26, register 0: row 6, no token, dims 4 and 5. "));
  document.pin({});
  document.hover(of_tile_event(3));
  EXPECT_EQ(instead(document), "This object has no address: choose a token, a page or a block.");
}

TEST(WhyQuestion, HasATextIfThereIsNoQuestion) {
  Document document(first_light().run, {});
  EXPECT_THAT(instead(document), testing::StartsWith("Hover over a token, a page or a block: "));
  document.pin(of_sequence(SeqIdx{3}));
  EXPECT_EQ(instead(document), "Sequence 3: choose one of its tokens or pages.");
  document.pin(of_block(BlockIdx{32}));
  EXPECT_EQ(instead(document), "The null page holds no token: the lookup table points at it past a sequence's end.");
  document.pin(of_block(BlockIdx{31}));
  EXPECT_EQ(instead(document), "Block 31 holds no token of a running sequence at step 0.");
  document.pin(of_token(SeqIdx{0}, TokIdx{0}));
  document.to_start();
  EXPECT_EQ(instead(document), "No step has begun here: go to step 0 or later.");
}

TEST(WhyQuestion, OfATraceWithoutScenarioNamesTheMissingScenario) {
  Document document(testing_support::run_of_steps(3), {});
  document.pin(of_block(BlockIdx{0}));
  EXPECT_EQ(instead(document),
            "This file has no scenario: without the model's sizes and the requests no address can be explained.");
}

// --- the text --------------------------------------------------------------------------------------------------------

trace::Explanation explain_at(const Simulated& s, const trace::Question& question) {
  return explain(s.scenario, s.requests, question);
}

trace::Question question_of(std::int64_t seq, std::int64_t token, std::int64_t step) {
  trace::Question question;
  question.seq = SeqIdx(seq);
  question.token = TokIdx(token);
  question.step = StepIdx(step);
  return question;
}

std::string plain_text(const std::vector<WhySpan>& spans) {
  std::string text;
  for (const WhySpan& span : spans) text += span.text;
  return text;
}

// The pieces together equal the output of `kvscope explain`.
TEST(WhySpans, PutTogetherAreTheCommandLinesTextForEveryScenarioOfTheGallery) {
  for (const char* name : {"first_light", "preemption", "mla", "quantized_e4m3", "sliding_window", "continuous"}) {
    const Simulated s = simulate(name);
    const trace::Question question = question_of(0, 3, 2);
    const trace::Explanation explanation = explain_at(s, question);
    EXPECT_EQ(plain_text(why_spans(explanation, question)), to_text(explanation)) << name;
  }
}

// Links without numbers or remarks, and no links at all, cover the branches of the text's layout.
RC_GTEST_PROP(WhySpansProperty, PutTogetherAreTheTextOfAnyExplanation, ()) {
  const auto words = rc::gen::container<std::string>(rc::gen::inRange('a', 'z'));
  trace::Explanation explanation;
  explanation.subject = *words;
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i)
    explanation.links.push_back({*words, *words, *words, *words, *words});
  RC_ASSERT(plain_text(why_spans(explanation, {})) == to_text(explanation));
}

TEST(WhySpans, LinksLeadToWhatTheyName) {
  const trace::Question question = question_of(0, 37, 6);
  Selection page, block, batch, byte;
  for (const WhySpan& span : why_spans(explain_at(first_light(), question), question)) {
    if (span.style != WhySpan::Style::name) continue;
    if (span.text == "page") page = span.leads_to;
    if (span.text == "block") block = span.leads_to;
    if (span.text == "batch row") batch = span.leads_to;
    if (span.text == "byte") byte = span.leads_to;
  }
  EXPECT_EQ(page, of_page(SeqIdx{0}, PageIdx{2}));
  EXPECT_EQ(block, of_block(BlockIdx{2}));
  EXPECT_EQ(batch, of_sequence(SeqIdx{0}));
  EXPECT_EQ(byte, of_token(SeqIdx{0}, TokIdx{37}));
}

TEST(WhyIndent, IsTwoPastTheEqualsSign) {
  trace::Explanation explanation{"s", {{"page", "f", "n", "r", ""}, {"rows per block", "f", "n", "r", ""}}};
  EXPECT_EQ(why_indent(explanation), 18);  // "rows per block" is 14 wide
}

}  // namespace
}  // namespace kvscope::viz::why_test
