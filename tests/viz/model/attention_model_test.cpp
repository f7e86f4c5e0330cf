// The attention view of a document: what it asks for, and how tiles and selection follow each other.
#include "viz/model/attention_model.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/viz/model/support.h"

namespace kvscope::viz::attention_model_test {
namespace {

using testing_support::preemption_run;

std::shared_ptr<const AttentionFlow> flow_of(const FlowRequest& request, std::int64_t tiles) {
  auto flow = std::make_shared<AttentionFlow>();
  flow->request = request;
  flow->page_size = 4;
  flow->queries = 1;
  flow->keys = 8 * tiles;
  flow->first_query = TokIdx{flow->keys - 1};
  flow->request.query = flow->first_query;
  for (std::int64_t n = 0; n < tiles; ++n) {
    flow->tiles.push_back(
        {8 * n, 8 * n + 8, n == 0 ? -INFINITY : 0.0, 0, n == 0 ? 0.0 : 1.0, 1, static_cast<double>(n) + 1, {1}});
  }
  flow->o = flow->golden = {1.0};
  flow->bound = {1e-6};
  return flow;
}

struct Asked {
  Document document{preemption_run(), QStringLiteral("preemption.json")};
  AttentionModel& attention = document.attention();
  std::vector<FlowRequest> flows;
  std::vector<ErrorsRequest> errors;
  Asked() {
    QObject::connect(&attention, &AttentionModel::flow_wanted, [this](const FlowRequest& r) { flows.push_back(r); });
    QObject::connect(&attention, &AttentionModel::errors_wanted,
                     [this](const ErrorsRequest& r) { errors.push_back(r); });
  }
};

TEST(AttentionModel, AsksOnlyWhileItsViewIsShownAndNothingTwice) {
  Asked a;
  a.document.step();
  EXPECT_TRUE(a.flows.empty());
  a.attention.follow(true);
  ASSERT_EQ(a.flows.size(), 1u);
  ASSERT_EQ(a.errors.size(), 1u);
  EXPECT_EQ(a.flows[0].step, a.document.cursor().state().step);
  EXPECT_EQ(a.flows[0].query, TokIdx{-1});
  a.attention.follow(false);
  a.attention.follow(true);
  EXPECT_EQ(a.flows.size(), 1u);
  a.document.step();
  EXPECT_EQ(a.flows.size(), 2u);
  EXPECT_EQ(a.errors.size(), 2u);
  a.attention.follow(false);
  a.document.step();
  EXPECT_EQ(a.flows.size(), 2u);
}

TEST(AttentionModel, ASelectedSequenceOrErrorIsTheOneThatIsAskedFor) {
  Asked a;
  a.document.seek_step(StepIdx{2});
  a.attention.follow(true);
  const SeqIdx other{a.flows.back().seq == SeqIdx{0} ? 1 : 0};
  a.document.pin(of_page(other, PageIdx{0}));
  EXPECT_EQ(a.flows.back().seq, other);
  a.document.pin(of_error_cell(SeqIdx{2}, HeadIdx{3}, TokIdx{9}, DimIdx{1}, PageIdx{0}));
  EXPECT_EQ(a.flows.back().seq, SeqIdx{2});
  EXPECT_EQ(a.flows.back().head, HeadIdx{3});
  EXPECT_EQ(a.flows.back().query, TokIdx{9});
}

TEST(AttentionModel, BeforeTheFirstStepItSaysWhy) {
  Asked a;
  a.document.seek(Position{0});
  a.attention.follow(true);
  EXPECT_TRUE(a.flows.empty());
  EXPECT_TRUE(a.attention.flow_instead().contains(QStringLiteral("go to step 0")));
  a.document.step();
  EXPECT_EQ(a.flows.size(), 1u);
}

TEST(AttentionModel, SteppingPinsTheTileAndPinningATileSteps) {
  Asked a;
  a.document.seek_step(StepIdx{2});
  a.attention.follow(true);
  a.attention.show_flow(flow_of(a.flows.back(), 3));
  EXPECT_EQ(a.attention.tiles_done(), 3) << "a new flow is shown with all its tiles";
  a.attention.step_back();
  EXPECT_EQ(a.attention.tiles_done(), 2);
  const Selection pinned = a.document.pinned();
  EXPECT_EQ(pinned.kind, Selection::Kind::flow_tile);
  EXPECT_EQ(pinned.event, 1);
  EXPECT_EQ(pinned.token, TokIdx{8});
  EXPECT_EQ(pinned.page, PageIdx{2});
  EXPECT_EQ(pinned.end_page, PageIdx{4});
  EXPECT_EQ(a.flows.size(), 1u) << "moving through tiles asks for nothing";
  a.attention.to_start();
  EXPECT_EQ(a.attention.tiles_done(), 0);
  EXPECT_TRUE(a.document.pinned().none());
  a.attention.step_back();
  EXPECT_EQ(a.attention.tiles_done(), 0);
  a.attention.step();
  a.attention.step();
  EXPECT_EQ(a.attention.tiles_done(), 2);
  a.document.pin(of_flow_tile(a.flows.back().seq, 0, TokIdx{0}, TokIdx{8}, 4));
  EXPECT_EQ(a.attention.tiles_done(), 1);
  a.attention.to_end();
  a.attention.step();
  EXPECT_EQ(a.attention.tiles_done(), 3);
}

// A tile lights the pages and blocks that hold its keys, as the sequence and pool panels draw them.
TEST(AttentionModel, ATileLightsItsPagesAndBlocks) {
  Asked a;
  a.document.seek_step(StepIdx{2});
  const State& state = a.document.cursor().state();
  const SeqIdx seq = state.live.front();
  ASSERT_GE(state.sequences[seq.value].pages.size(), 3);
  a.document.pin(of_flow_tile(seq, 0, TokIdx{4}, TokIdx{12}, 4));
  const Lit& lit = a.document.pinned_lit();
  ASSERT_EQ(lit.places.size(), 2u);
  EXPECT_EQ(lit.places[0].page, PageIdx{1});
  EXPECT_EQ(lit.places[1].page, PageIdx{2});
  EXPECT_EQ(lit.blocks.size(), 2u);
  for (const TablePlace& place : lit.places) {
    const BlockIdx block{state.sequences[seq.value].pages[place.page.value]};
    EXPECT_THAT(lit.blocks, ::testing::Contains(block));
  }
  a.document.pin(of_flow_tile(seq, 0, TokIdx{4}, TokIdx{8}, 4));
  EXPECT_EQ(a.document.pinned_lit().page, PageIdx{1});
}

TEST(AttentionModel, AnotherCandidateIsAskedForAtOnce) {
  Asked a;
  a.attention.follow(true);
  a.attention.set_candidate(QStringLiteral("mine.npz"));
  ASSERT_EQ(a.errors.size(), 2u);
  EXPECT_EQ(a.errors.back().candidate, "mine.npz");
  a.attention.set_candidate(QStringLiteral("mine.npz"));
  EXPECT_EQ(a.errors.size(), 2u);
  a.attention.show_no_errors(QStringLiteral("why"));
  EXPECT_EQ(a.attention.errors_instead(), QStringLiteral("why"));
  EXPECT_EQ(a.attention.errors(), nullptr);
}

// Two sequences of one query each, two heads, one dim; the largest error is of sequence 2, head 1.
std::shared_ptr<const AttentionErrors> errors_of(float worst) {
  auto errors = std::make_shared<AttentionErrors>();
  errors->heads = 2, errors->dims = 1;
  errors->rows = {{SeqIdx{1}, 0, 4, 0, 0}, {SeqIdx{2}, 0, 7, 0, 0}};
  errors->ratio = {0.1F, 0.2F, 0.3F, worst};
  index_errors(*errors);
  return errors;
}

TEST(AttentionModel, ACandidateThatFailsLeadsToItsLargestError) {
  Asked a;
  a.document.seek_step(StepIdx{2});
  a.attention.follow(true);
  const FlowRequest before = a.flows.back();
  a.attention.show_errors(errors_of(9));  // of the tiled flow, which is no candidate
  EXPECT_EQ(a.flows.back(), before);
  a.attention.set_candidate(QStringLiteral("right.npz"));
  a.attention.show_errors(errors_of(0.9F));
  EXPECT_EQ(a.flows.back(), before);
  a.attention.set_candidate(QStringLiteral("wrong.npz"));
  a.attention.show_errors(errors_of(9));
  FlowRequest worst = before;
  worst.seq = SeqIdx{2}, worst.head = HeadIdx{1}, worst.query = TokIdx{7};
  EXPECT_EQ(a.flows.back(), worst);
  a.document.step();  // the errors of a later step move nothing
  const FlowRequest later = a.flows.back();
  a.attention.show_errors(errors_of(9));
  EXPECT_EQ(a.flows.back(), later);
}

TEST(AttentionModel, ACandidateThatFailsLeavesTheFlowThatAPersonChose) {
  for (const bool by_pin : {false, true}) {
    Asked a;
    a.document.seek_step(StepIdx{2});
    a.attention.follow(true);
    FlowRequest chosen = a.flows.back();
    chosen.seq = SeqIdx{0}, chosen.head = HeadIdx{0};
    if (by_pin) {
      a.document.pin(of_page(SeqIdx{0}, PageIdx{0}));
    } else {
      a.attention.choose(chosen);
    }
    const FlowRequest before = a.flows.back();
    a.attention.set_candidate(QStringLiteral("wrong.npz"));
    a.attention.show_errors(errors_of(9));
    EXPECT_EQ(a.flows.back(), before);
  }
}

}  // namespace
}  // namespace kvscope::viz::attention_model_test
