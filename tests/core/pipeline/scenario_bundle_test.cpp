#include "core/pipeline/scenario_bundle.h"

#include <gmock/gmock.h>

#include "core/attention/reference.h"
#include "core/attention/tiled.h"
#include "core/golden/bundle/bundle.h"
#include "core/golden/layouts/layouts.h"
#include "core/golden/verdict/compare.h"
#include "tests/core/pipeline/fixtures.h"

namespace kvscope::scenario_bundle_test {
namespace {

using testing_support::continuous_scenario;
using testing_support::mla_scenario;
using testing_support::quantized_scenario;
using testing_support::small_scenario;

GoldenRun golden_of(const Scenario& scenario, std::int64_t step) {
  return run_golden(scenario, state_at(scenario, scenario.requests.list, StepIdx{step}));
}

// The bundle is complete if the same output can be computed from it alone: its inputs go through the
// adapter for users' tensors, which shares no code with layer_attention.
TEST(ScenarioBundle, ItsInputsAloneGiveItsOutputsToTheBit) {
  Scenario with_vectors = small_scenario();
  with_vectors.attention.sinks = with_vectors.attention.alibi = true;
  for (const Scenario& scenario :
       {small_scenario(), quantized_scenario(), mla_scenario(), continuous_scenario(), with_vectors}) {
    const golden::Bundle bundle = scenario_bundle(scenario, golden_of(scenario, 2), "test");
    EXPECT_EQ(bundle.tensors.contains("sinks"), scenario.attention.sinks);
    EXPECT_EQ(bundle.tensors.contains("alibi_slopes"), scenario.attention.alibi);
    golden::LayoutOptions options;
    options.layout = "max";
    options.scale = attention_options(scenario).scale;
    options.attention.mask = scenario.attention.mask;
    if (scenario.model.is_mla) options.value_size = scenario.model.value_size;
    if (scenario.cache.quantization) options.granularity = scenario.cache.quantization->granularity;
    const golden::PreparedProblem prepared = golden::prepare_problem(bundle, options, "bundle");
    const attention::Result again = attention::reference(prepared.problem);
    const auto o = golden::values<double>(bundle.tensors.at("o"));
    ASSERT_EQ(o.size(), again.o.size());
    EXPECT_TRUE(std::equal(o.begin(), o.end(), again.o.begin())) << scenario.name;
  }
}

TEST(ScenarioBundle, ACandidateFromTheTiledFlowPassesAndOneWithAWrongPageDoesNot) {
  const Scenario scenario = small_scenario();
  const GoldenRun run = golden_of(scenario, 4);
  const golden::Bundle bundle = scenario_bundle(scenario, run, "test");
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    attention::TiledConfig config;
    config.probabilities = dtype;
    config.output = dtype;
    golden::Bundle candidate =
        candidate_bundle(attention::tiled(run.attention.problem, config), dtype, run.attention.problem.options);
    EXPECT_EQ(candidate.tensors.at("o").dtype, dtype);
    EXPECT_TRUE(golden::compare(bundle, candidate).passed);

    std::vector<std::uint32_t> table = run.focus.cache.lookup_table;
    std::swap(table[0], table[1]);  // two pages of the first sequence change places
    attention::Problem wrong = run.attention.problem;
    wrong.v.table = table.data();
    EXPECT_FALSE(
        golden::compare(bundle, candidate_bundle(attention::tiled(wrong, config), dtype, wrong.options)).passed);
  }
}

TEST(ScenarioBundle, NamesStepLayerSeedAndQuantizer) {
  Scenario scenario = quantized_scenario();
  scenario.focus.layer = 2;
  const json::Value manifest = scenario_bundle(scenario, golden_of(scenario, 3), "test 1").manifest;
  EXPECT_EQ(*manifest.find("step")->as_i64(), 3);
  EXPECT_EQ(*manifest.find("layer")->as_i64(), 2);
  EXPECT_EQ(*manifest.find("seed")->as_i64(), 5);
  EXPECT_EQ(*manifest.find("producer")->as_string(), "test 1");
  EXPECT_EQ(*manifest.find("quantizer")->as_string(),
            "scale = amax / largest finite, one for each granule; elements saturate");
}

}  // namespace
}  // namespace kvscope::scenario_bundle_test
