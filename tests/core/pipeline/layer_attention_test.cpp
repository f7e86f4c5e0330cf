#include "core/pipeline/layer_attention.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/attention/reference.h"
#include "core/base/convert.h"
#include "tests/core/pipeline/fixtures.h"

namespace kvscope::layer_attention_test {
namespace {

using testing_support::continuous_scenario;
using testing_support::mla_scenario;
using testing_support::quantized_scenario;
using testing_support::small_scenario;

// An independent computation of the whole chain in long double, from the tensors' documented shapes: gather by the
// table, causal mask aligned bottom right, plain softmax.
long double expected_output(const Scenario& scenario, const FocusState& focus, const LayerData& data, std::size_t b,
                            std::int64_t query, std::int64_t head, std::int64_t dim) {
  const auto& s = data.blocks.shape;
  const std::int64_t kv_head = head / (scenario.model.query_heads / scenario.model.kv_heads);
  const auto stored = [&](std::int64_t t, std::int64_t slot, std::int64_t d) {
    const std::int64_t block =
        focus.cache
            .lookup_table[b * static_cast<std::size_t>(focus.cache.table_columns) + static_cast<std::size_t>(t / s[3])];
    const std::int64_t row = ((block * s[1] + slot) * s[3] + t % s[3]) * s[4] + kv_head;
    long double value =
        load_as_double(data.blocks.dtype, data.blocks.bytes.data() + (row * s[5] + d) * size_of(data.blocks.dtype));
    if (scenario.cache.quantization) {
      const std::int64_t granules = data.scales.shape[5];
      value *=
          load_as_double(data.scales.dtype, data.scales.bytes.data() +
                                                (row * granules + d / scenario.cache.quantization->granularity) * 4);
    }
    return value;
  };
  const std::int64_t row = data.query_offsets[b] + query;
  const std::int64_t visible = focus.cache.cache_lengths[b] + query + 1;
  const long double scale = scenario.attention.scale ? static_cast<long double>(*scenario.attention.scale)
                                                     : 1 / std::sqrt(static_cast<long double>(s[5]));
  long double sum = 0, out = 0;
  for (std::int64_t t = visible - 1; t >= 0; --t) {
    long double score = 0;
    for (std::int64_t d = s[5] - 1; d >= 0; --d) {
      const std::int64_t at = (row * scenario.model.query_heads + head) * s[5] + d;
      score += stored(t, 0, d) * load_as_double(data.q.dtype, data.q.bytes.data() + at * size_of(data.q.dtype));
    }
    const long double weight = std::exp(score * scale);
    sum += weight;
    out += weight * stored(t, scenario.model.is_mla ? 0 : 1, dim);
  }
  return out / sum;
}

void expect_chain_agrees(const Scenario& scenario, std::int64_t step) {
  const FocusState focus = state_at(scenario, scenario.requests.list, StepIdx{step});
  const LayerData data = layer_data(scenario, focus);
  const LayerAttention attention = layer_attention(scenario, focus, data);
  const attention::Result result = attention::reference(attention.problem);
  ASSERT_GT(result.o.size(), 0u);
  for (std::size_t b = 0; b < focus.cache.batch.size(); ++b) {
    for (std::int64_t query = 0; query < focus.cache.new_tokens[b]; ++query) {
      for (std::int64_t head = 0; head < scenario.model.query_heads; ++head) {
        for (std::int64_t dim = 0; dim < scenario.model.value_size; ++dim) {
          const double o = result.o(static_cast<std::size_t>(data.query_offsets[b] + query),
                                    static_cast<std::size_t>(head), static_cast<std::size_t>(dim));
          ASSERT_NEAR(o, static_cast<double>(expected_output(scenario, focus, data, b, query, head, dim)), 1e-12)
              << "row " << b << " query " << query << " head " << head << " dim " << dim;
        }
      }
    }
  }
}

// Detects an omitted V slot, a wrong layer stride, a scale of the wrong granule and a shared block read twice.
TEST(LayerAttention, AgreesWithAGatherThatKnowsOnlyTheTensorsShapes) {
  for (const std::int64_t step : {0, 2, 4}) {
    expect_chain_agrees(small_scenario(), step);
    expect_chain_agrees(quantized_scenario(), step);
    expect_chain_agrees(mla_scenario(), step);
  }
  expect_chain_agrees(continuous_scenario(), 2);
}

TEST(LayerAttention, TheExactProblemReadsTheValuesBeforeQuantization) {
  const Scenario scenario = quantized_scenario();
  const FocusState focus = state_at(scenario, scenario.requests.list, StepIdx{4});
  const LayerData data = layer_data(scenario, focus);
  const attention::Result stored = attention::reference(layer_attention(scenario, focus, data).problem);
  const attention::Result exact = attention::reference(exact_attention(scenario, focus, data).problem);
  double largest = 0;
  for (std::size_t i = 0; i < stored.o.size(); ++i) {
    largest = std::max(largest, std::abs(stored.o.data()[i] - exact.o.data()[i]));
  }
  EXPECT_GT(largest, 1e-4) << "quantization must show";
  EXPECT_LT(largest, 0.5) << "but stay small against values of about 1";
}

TEST(AttentionOptions, AWindowOfWKeysIncludingTheOwnLeavesWMinusOneToTheLeft) {
  Scenario scenario = small_scenario();
  scenario.attention.mask = MaskKind::sliding_window;
  scenario.attention.window = 5;
  const attention::Options options = attention_options(scenario);
  EXPECT_EQ(options.window_left, 4);
  EXPECT_EQ(options.window_right, 0);
  scenario.attention.mask = MaskKind::chunked;
  EXPECT_EQ(attention_options(scenario).chunk, 5);
}

TEST(AttentionOptions, TheScaleIsTheScenariosOrOneOverTheRootOfTheHeadSize) {
  EXPECT_EQ(attention_options(mla_scenario()).scale, 0.25);
  EXPECT_DOUBLE_EQ(attention_options(small_scenario()).scale, 1 / std::sqrt(6.0));
}

// The paper's slopes: 2^-1 ... 2^-8 for 8 heads; for 4 heads every second of them.
TEST(LayerAttention, AlibiSlopesAreTheGeometricSequenceOfThePaper) {
  Scenario scenario = small_scenario();
  scenario.attention.alibi = true;
  const FocusState focus = state_at(scenario, scenario.requests.list, StepIdx{1});
  const LayerData data = layer_data(scenario, focus);
  EXPECT_THAT(layer_attention(scenario, focus, data).alibi_slopes,
              testing::ElementsAre(0.25, 0.0625, 0.015625, 0.00390625));
  scenario.model.query_heads = 6;  // 2^(-8/6), ...: not a power of two
  const LayerData more = layer_data(scenario, focus);
  const std::vector<double> slopes = layer_attention(scenario, focus, more).alibi_slopes;
  for (std::size_t h = 0; h < 6; ++h)
    EXPECT_NEAR(slopes[h], std::pow(2.0, -8.0 * static_cast<double>(h + 1) / 6), 1e-15);
}

TEST(LayerAttention, SinksAreOneLogitAHeadFromTheSeed) {
  Scenario scenario = small_scenario();
  scenario.attention.sinks = true;
  const FocusState focus = state_at(scenario, scenario.requests.list, StepIdx{1});
  const LayerData data = layer_data(scenario, focus);
  const LayerAttention with = layer_attention(scenario, focus, data);
  EXPECT_EQ(with.sinks.size(), 4u);
  EXPECT_EQ(with.problem.options.sinks.data(), with.sinks.data());
  scenario.seed += 1;
  EXPECT_NE(layer_attention(scenario, focus, data).sinks, with.sinks);
}

TEST(MultiplyAdds, CountsQueriesTimesKeysTimesHeadsTimesWhatIsWalked) {
  FocusState focus;
  focus.cache.batch = {SeqIdx{0}, SeqIdx{1}};
  focus.cache.cache_lengths = {10, 0};
  focus.cache.new_tokens = {1, 3};
  EXPECT_EQ(multiply_adds(mla_scenario(), focus), (1 * 11 + 3 * 3) * 5 * (12 + 3 * 8));
}

}  // namespace
}  // namespace kvscope::layer_attention_test
