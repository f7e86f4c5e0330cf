// The attention view's data: requests as text, shares and outputs of a flow, errors by head, and what objects of the
// view light.
#include "viz/playback/attention.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/base/errors.h"
#include "tests/viz/playback/support.h"

namespace kvscope::viz::attention_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Scores {0, ln 2} in tiles of one key, values {0, 3}: weights 1/3 and 2/3, o = 2.
AttentionFlow two_tiles() {
  AttentionFlow flow;
  flow.request.seq = SeqIdx{3};
  flow.page_size = 16;
  const double ln2 = std::log(2.0);
  flow.tiles = {{0, 1, -INFINITY, 0, 0, 1, 1, {0}}, {1, 2, 0, ln2, 0.5, 1, 1.5, {3}}};
  flow.o = {2};
  return flow;
}

TEST(FlowRequest, TextGivesTheRequestBack) {
  FlowRequest request;
  request.seq = SeqIdx{3};
  EXPECT_EQ(to_text(request), "seq 3");
  EXPECT_EQ(parse_flow_request("seq 3"), request);
  request = {SeqIdx{3}, TokIdx{70}, HeadIdx{1}, LayerIdx{2}, 16, StepIdx{0}};
  EXPECT_EQ(to_text(request), "seq 3 query 70 head 1 layer 2 tile 16");
  EXPECT_EQ(parse_flow_request(" Tile 16 HEAD 1 layer 2 query 70 seq 3"), request);
}

TEST(FlowRequest, NamesTheWordThatIsWrong) {
  const auto fault = [](const char* text) -> std::string {
    try {
      static_cast<void>(parse_flow_request(text));
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(fault("head 1"), HasSubstr("names no sequence"));
  EXPECT_THAT(fault("seq 1 seq 2"), HasSubstr("'seq': is given twice"));
  EXPECT_THAT(fault("seq 1 heads 2"), HasSubstr("'heads': is no word of a flow"));
  EXPECT_THAT(fault("seq -1"), HasSubstr("needs a number, not '-1'"));
  EXPECT_THAT(fault("seq 1 tile 0"), HasSubstr("at least 1 is needed"));
}

TEST(AttentionFlow, SharesAddUpToOneWithTheSink) {
  AttentionFlow flow = two_tiles();
  EXPECT_NEAR(share(flow, 0), 1.0 / 3, 1e-12);
  EXPECT_NEAR(share(flow, 1), 2.0 / 3, 1e-12);
  flow.sink = std::log(5.0);  // the sum of exponentials is 1 + 2 + 5
  EXPECT_NEAR(share(flow, 0), 1.0 / 8, 1e-12);
  EXPECT_NEAR(share(flow, 1), 2.0 / 8, 1e-12);
}

TEST(AttentionFlow, TheOutputAfterSomeTilesIsDividedByTheirSum) {
  const AttentionFlow flow = two_tiles();
  EXPECT_THAT(output_after(flow, 0), ElementsAre(0.0));
  EXPECT_THAT(output_after(flow, 1), ElementsAre(0.0));
  EXPECT_THAT(output_after(flow, 2), ElementsAre(2.0));
}

TEST(AttentionFlow, TilesOfTokensAreThoseThatOverlap) {
  AttentionFlow flow;
  flow.tiles.resize(3);
  flow.tiles[0].first_key = 5, flow.tiles[0].last_key = 16;  // a window begins at key 5
  flow.tiles[1].first_key = 16, flow.tiles[1].last_key = 32;
  flow.tiles[2].first_key = 32, flow.tiles[2].last_key = 40;
  using Range = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(tiles_of_tokens(flow, 0, 5), (Range{0, 0}));
  EXPECT_EQ(tiles_of_tokens(flow, 0, 6), (Range{0, 1}));
  EXPECT_EQ(tiles_of_tokens(flow, 15, 17), (Range{0, 2}));
  EXPECT_EQ(tiles_of_tokens(flow, 32, 48), (Range{2, 3}));
  EXPECT_EQ(tiles_of_tokens(flow, 40, 48), (Range{0, 0}));
}

AttentionErrors three_rows() {
  AttentionErrors errors;
  errors.heads = 2;
  errors.dims = 2;
  errors.rows = {{SeqIdx{4}, 0, 20, 1, 7}, {SeqIdx{9}, 0, 30, 1, 8}, {SeqIdx{9}, 1, 31, 1, 8}};
  errors.ratio = {0.1F, 0.2F, 0.3F, 0.4F, /**/ 0.5F, 0.6F, 2.5F, 0.8F, /**/ 0.9F, 1.0F, 0.1F, 1.5F};
  return errors;
}

TEST(AttentionErrors, TheWorstOfEachHeadAndOfAll) {
  AttentionErrors errors = three_rows();
  index_errors(errors);
  EXPECT_THAT(errors.sequences, ElementsAre(SeqIdx{4}, SeqIdx{9}));
  EXPECT_THAT(errors.first_row, ElementsAre(0, 1, 3));
  EXPECT_THAT(errors.head_worst, ElementsAre(0.2F, 0.4F, 1.0F, 2.5F));
  EXPECT_EQ(errors.failing, 2) << "1.0 is within the bound";
  EXPECT_EQ(worst_text(errors), "sequence 9, query 0 (token 30), head 1, dim 0: 2.5x the bound");
  EXPECT_EQ(worst_row_of(errors, 1, 0), 2);
  EXPECT_EQ(worst_row_of(errors, 1, 1), 1);
}

TEST(AttentionErrors, SizesThatDoNotFitAreNamed) {
  AttentionErrors errors = three_rows();
  errors.ratio.pop_back();
  EXPECT_THROW(index_errors(errors), InputError);
  errors = three_rows();
  std::swap(errors.rows[0], errors.rows[1]);  // the rows of sequence 9 are not adjacent
  EXPECT_THROW(index_errors(errors), InputError);
}

TEST(AttentionErrors, AClickLeadsToThePageOfTheDiagnosisElseToTheQuerysPage) {
  AttentionErrors errors = three_rows();
  index_errors(errors);
  EXPECT_EQ(page_behind(errors, 1), PageIdx{1});
  errors.cause_seq = SeqIdx{9};
  errors.cause_page = PageIdx{0};
  EXPECT_EQ(page_behind(errors, 1), PageIdx{0});
  EXPECT_EQ(page_behind(errors, 0), PageIdx{1}) << "of another sequence";
}

TEST(AttentionWords, NameTheNumbersOfTilesAndErrors) {
  const AttentionFlow flow = two_tiles();
  const Selection tile = of_flow_tile(SeqIdx{3}, 1, TokIdx{1}, TokIdx{2}, 16);
  EXPECT_EQ(describe_attention(tile, &flow, nullptr),
            "Tile 1 of the flow: key 1 of sequence 3, page 0; m = 0.6931, c = 0.5, l = 1.5, 66.7 % of the sum");
  AttentionErrors errors = three_rows();
  index_errors(errors);
  EXPECT_EQ(
      describe_attention(of_error_cell(SeqIdx{9}, HeadIdx{1}, TokIdx{-1}, DimIdx{-1}, PageIdx{1}), nullptr, &errors),
      "Error of sequence 9, head 1: page 1; 2.5x the bound, fails");
  EXPECT_EQ(
      describe_attention(of_error_cell(SeqIdx{9}, HeadIdx{0}, TokIdx{31}, DimIdx{1}, PageIdx{1}), nullptr, &errors),
      "Error of sequence 9, query token 31, head 0, dim 1: page 1; 1x the bound, passes");
  EXPECT_EQ(ratio_text(1234), "1.2e+03");
  EXPECT_EQ(ratio_text(INFINITY), "inf");
}

}  // namespace
}  // namespace kvscope::viz::attention_test
