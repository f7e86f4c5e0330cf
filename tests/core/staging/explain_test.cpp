#include "core/staging/explain.h"

#include <gmock/gmock.h>

#include "core/base/errors.h"
#include "tests/core/pipeline/fixtures.h"

namespace kvscope::explain_test {
namespace {

using trace::Explanation;
using trace::Link;
using trace::Question;

using testing::HasSubstr;
using testing_support::continuous_scenario;
using testing_support::mla_scenario;
using testing_support::quantized_scenario;
using testing_support::small_scenario;
using testing_support::TableFromEvents;

const Link& link(const Explanation& explanation, std::string_view name) {
  for (const Link& candidate : explanation.links) {
    if (candidate.name == name) return candidate;
  }
  throw std::runtime_error("no link " + std::string(name));
}

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

Question ask(std::int64_t seq, std::int64_t token, std::int64_t layer, std::int64_t head, std::int64_t dim, KOrV kv,
             std::int64_t step) {
  return {SeqIdx{seq}, TokIdx{token}, LayerIdx{layer}, HeadIdx{head}, DimIdx{dim}, kv, StepIdx{step}};
}

// Blocks come from the events, elements are counted one by one in the order of the pool: neither the lookup table nor
// any stride is used. Swapped axes, an omitted layer and a table row off by one each give another byte.
TEST(Explain, EveryByteIsWhereCountingThroughThePoolPutsIt) {
  for (const Scenario& scenario : {small_scenario(), quantized_scenario(), mla_scenario()}) {
    TableFromEvents events;
    PagingEngine engine(scenario, scenario.requests.list, events);
    std::int64_t questions = 0;
    for (std::int64_t step = 0; engine.step(); ++step) {
      const CacheState state = engine.state();
      for (std::size_t row = 0; row < state.batch.size(); ++row) {
        const std::int64_t seq = state.batch[row].value;
        const std::int64_t tokens = std::int64_t{state.cache_lengths[row]} + state.new_tokens[row];
        for (std::int64_t token = step % 3; token < tokens; token += 3) {
          const std::int64_t layer = token % scenario.model.layers, head = token % scenario.model.kv_heads;
          const std::int64_t dim = (token * 5) % scenario.model.head_size;
          const KOrV kv = !scenario.model.is_mla && token % 2 == 1 ? KOrV::v : KOrV::k;
          const std::int64_t block = events.at(step).at({seq, token / 4});
          // Count: whole blocks, then whole slots of K or V, layers, page rows, heads.
          std::int64_t element = 0;
          const std::int64_t head_elements = scenario.model.head_size;
          const std::int64_t row_elements = head_elements * scenario.model.kv_heads;
          const std::int64_t layer_elements = row_elements * 4;
          const std::int64_t kv_elements = layer_elements * scenario.model.layers;
          for (std::int64_t i = 0; i < block; ++i) element += scenario.model.is_mla ? kv_elements : 2 * kv_elements;
          if (kv == KOrV::v) element += kv_elements;
          for (std::int64_t i = 0; i < layer; ++i) element += layer_elements;
          for (std::int64_t i = 0; i < token % 4; ++i) element += row_elements;
          for (std::int64_t i = 0; i < head; ++i) element += head_elements;
          element += dim;
          const Explanation explanation =
              explain(scenario, scenario.requests.list, ask(seq, token, layer, head, dim, kv, step));
          EXPECT_EQ(link(explanation, "block").result, std::to_string(block));
          EXPECT_EQ(link(explanation, "element").result, std::to_string(element));
          const std::int64_t byte = element * (scenario.cache.quantization ? 1 : 4);
          EXPECT_THAT(link(explanation, "byte").result, testing::StartsWith(std::to_string(byte) + " (0x"));
          ++questions;
        }
      }
    }
    EXPECT_GT(questions, 30);
  }
}

TEST(Explain, TheWholeTextForOneTokenOfASharedPage) {
  const Explanation explanation =
      explain(small_scenario(), small_scenario().requests.list, ask(1, 6, 2, 1, 3, KOrV::v, 4));
  EXPECT_EQ(explanation.subject, "V of sequence 1, token 6, layer 2, KV head 1, dim 3, at step 4 of scenario 'small'");
  EXPECT_EQ(link(explanation, "page").numbers, "6 / 4");
  EXPECT_EQ(link(explanation, "page").result, "1");
  EXPECT_EQ(link(explanation, "slot").result, "2");
  EXPECT_EQ(link(explanation, "pool").numbers, "[20, 2, 3, 4, 2, 6]");
  EXPECT_EQ(link(explanation, "pool").result, "strides [288, 144, 48, 12, 6, 1]");
  EXPECT_EQ(link(explanation, "rows per block").result, "24");
  EXPECT_THAT(link(explanation, "table row").numbers,
              testing::MatchesRegex("[0-9]+ [0-9]+ [0-9]+ [0-9]+, then 20 x 19"));
  EXPECT_EQ(link(explanation, "table row").result, "24 columns");
  EXPECT_THAT(link(explanation, "block").remark, HasSubstr("shared with sequence 0: equal prefixes, one copy"));
}

TEST(Explain, AQuantizedElementNamesItsGranuleAndItsScale) {
  const Explanation explanation =
      explain(quantized_scenario(), quantized_scenario().requests.list, ask(0, 2, 0, 1, 5, KOrV::k, 1));
  EXPECT_EQ(link(explanation, "granule").numbers, "5 / 4");
  EXPECT_EQ(link(explanation, "granule").result, "1 of 2");
  const std::int64_t block = std::stoll(link(explanation, "block").result);
  // scales [20, 2, 3, 4, 2, 2]: 96 a block, 4 a page row, 2 a head
  EXPECT_EQ(link(explanation, "scale").result.substr(0, link(explanation, "scale").result.find(',')),
            "scale " + std::to_string(block * 96 + 2 * 4 + 1 * 2 + 1));
}

TEST(Explain, AContinuousCacheHasOneBlockForTheWholeSequence) {
  const Explanation explanation =
      explain(continuous_scenario(), continuous_scenario().requests.list, ask(0, 13, 1, 1, 2, KOrV::v, 2));
  const std::int64_t block = std::stoll(link(explanation, "block").result);
  // [2, 2, 3, 21, 2, 6]: 12 a token, 252 a layer, 756 a slot, 1512 a block
  EXPECT_EQ(link(explanation, "element").result, std::to_string(block * 1512 + 756 + 252 + 13 * 12 + 6 + 2));
  EXPECT_THAT(link(explanation, "row").result, testing::StartsWith(std::to_string(block * 126 + 13) + " of "));
  EXPECT_EQ(link(explanation, "tile").result, "tile 1, row 5 of it");
  EXPECT_THAT(link(explanation, "TMA box").remark, HasSubstr("24 B is not a multiple of 16 B"));

  Scenario wider = continuous_scenario();  // heads of 8 elements: 32 bytes, which TMA takes
  wider.model.head_size = wider.model.value_size = 8;
  // Token 13 with boxes of 8 rows: row 5 of the box that begins at token 8. 126 rows a block, as before.
  const Explanation boxed = explain(wider, wider.requests.list, ask(0, 13, 1, 1, 2, KOrV::v, 2));
  EXPECT_EQ(link(boxed, "TMA box").result, "(0, 1, " + std::to_string(block * 126 + 8) + ")");
}

// Rows past 2^31 fit in 32 unsigned bits but not in 32 signed ones: the chain must neither stop nor print a wrapped
// number. A request of one token takes a page of 65536, so request 32769 is in the block of that number.
TEST(Explain, AnEncodedIndexThatDoesNotFitIsSaidAndNotWrapped) {
  Scenario scenario = mla_scenario();
  scenario.model.layers = 1;
  scenario.cache.page_size = 65536;
  scenario.cache.blocks = 40000;
  scenario.tile.BN = 64;
  scenario.scheduler.max_step_tokens = 40000;
  scenario.scheduler.max_batch = 40000;
  scenario.requests.list.assign(32770, Request{0, 1, 1, {}});
  const Explanation explanation = explain(scenario, scenario.requests.list, ask(32769, 0, 0, 0, 0, KOrV::k, 0));
  EXPECT_EQ(link(explanation, "block").result, "32769");
  EXPECT_EQ(link(explanation, "sparse index").result, "2147549184");
  EXPECT_EQ(link(explanation, "sparse index").remark,
            "it does not fit in 32 signed bits: sparse attention cannot name this token");
}

TEST(Explain, RejectsWhatIsNotThereAndSaysWhatIs) {
  const Scenario scenario = small_scenario();
  const auto rejection = [&](const Scenario& s, const Question& question) {
    return message_of([&] { static_cast<void>(explain(s, s.requests.list, question)); });
  };
  EXPECT_EQ(rejection(scenario, ask(3, 0, 0, 0, 0, KOrV::k, 0)),
            "sequence 3 is outside [0, 3): sequences are numbered by arrival");
  EXPECT_EQ(rejection(scenario, ask(0, 0, 3, 0, 0, KOrV::k, 0)),
            "layer 3 is outside [0, 3): layers of the scenario's model");
  EXPECT_EQ(rejection(scenario, ask(0, 0, 0, 2, 0, KOrV::k, 0)),
            "KV head 2 is outside [0, 2): each serves 2 query heads");
  EXPECT_EQ(rejection(scenario, ask(0, 0, 0, 0, 6, KOrV::k, 0)), "dim 6 is outside [0, 6): elements of a head");
  EXPECT_EQ(rejection(scenario, ask(0, -1, 0, 0, 0, KOrV::k, 0)),
            "sequence 0: token -1 is outside [0, 19): it has 14 prompt and 5 generated tokens");
  EXPECT_EQ(
      rejection(scenario, ask(0, 18, 0, 0, 0, KOrV::k, -1)),
      "sequence 0: token 18 is never stored: the last token that is generated has no successor that would read it, "
      "and a rejected request stores none");
  EXPECT_EQ(rejection(scenario, ask(0, 13, 0, 0, 0, KOrV::k, 0)),
            "sequence 0: token 13 is outside [0, 9): step 0 has 0 cached and 9 new tokens of it");
  EXPECT_EQ(rejection(scenario, ask(2, 0, 0, 0, 0, KOrV::k, 0)),
            "sequence 2 is not in the batch of step 0, which holds 0: choose one of these, or another step");
  EXPECT_EQ(rejection(mla_scenario(), ask(0, 0, 0, 0, 0, KOrV::v, 0)),
            "an MLA cache stores K only, and V is the first elements of K: use --kv k");
}

TEST(ExplainText, AlignsNamesAndPutsNumbersAndRemarksBelow) {
  const Explanation explanation{
      "K of something",
      {{"page", "token / page_size", "37 / 16", "2", "the third"}, {"sparse index", "block", "", "7", ""}}};
  EXPECT_EQ(to_text(explanation),
            "K of something\n"
            "\n"
            "page          token / page_size\n"
            "              = 37 / 16\n"
            "              = 2\n"
            "                the third\n"
            "\n"
            "sparse index  block\n"
            "              = 7\n");
  EXPECT_EQ(
      json::dump(to_json(explanation), -1),
      R"({"subject":"K of something","links":[{"name":"page","formula":"token / page_size","numbers":"37 / 16","result":"2","remark":"the third"},{"name":"sparse index","formula":"block","numbers":"","result":"7","remark":""}]})");
}

}  // namespace
}  // namespace kvscope::explain_test
