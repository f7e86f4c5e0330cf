#include "core/pipeline/layer_data.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/base/convert.h"
#include "core/pipeline/run_scenario.h"
#include "tests/core/pipeline/fixtures.h"

namespace kvscope::layer_data_test {
namespace {

using testing_support::continuous_scenario;
using testing_support::mla_scenario;
using testing_support::quantized_scenario;
using testing_support::small_scenario;

double element(const golden::Tensor& tensor, std::int64_t flat) {
  return load_as_double(tensor.dtype, tensor.bytes.data() + flat * size_of(tensor.dtype));
}

FocusState focus_of(const Scenario& scenario, std::int64_t step) {
  return state_at(scenario, scenario.requests.list, StepIdx{step});
}

// Slots that hold tokens, found with separate loops over the table.
std::set<std::pair<std::int64_t, std::int64_t>> owned_slots(const FocusState& focus, std::int64_t page) {
  std::set<std::pair<std::int64_t, std::int64_t>> owned;
  for (std::size_t b = 0; b < focus.token_ids.size(); ++b) {
    std::int64_t column = 0, slot = 0;
    for (std::size_t t = 0; t < focus.token_ids[b].size(); ++t) {
      owned.insert({focus.cache.lookup_table[b * static_cast<std::size_t>(focus.cache.table_columns) +
                                             static_cast<std::size_t>(column)],
                    slot});
      if (++slot == page) ++column, slot = 0;
    }
  }
  return owned;
}

// Every owned slot holds numbers; every other slot, including the null page, holds NaN in every element.
void expect_poison_exactly_where_no_token_is(const Scenario& scenario, std::int64_t step) {
  const FocusState focus = focus_of(scenario, step);
  const LayerData data = layer_data(scenario, focus);
  const std::vector<std::int64_t>& shape = data.blocks.shape;
  const auto owned = owned_slots(focus, shape[3]);
  ASSERT_FALSE(owned.empty());
  std::int64_t flat = 0;
  for (std::int64_t block = 0; block < shape[0]; ++block) {
    for (std::int64_t kv = 0; kv < shape[1]; ++kv) {
      for (std::int64_t slot = 0; slot < shape[3]; ++slot) {
        for (std::int64_t i = 0; i < shape[4] * shape[5]; ++i, ++flat) {
          ASSERT_EQ(std::isnan(element(data.blocks, flat)), !owned.contains({block, slot}))
              << "block " << block << " slot " << slot << " element " << i;
        }
      }
    }
  }
  EXPECT_EQ(static_cast<std::size_t>(flat * size_of(data.blocks.dtype)), data.blocks.bytes.size());
}

TEST(LayerData, PoisonsEverySlotThatNoTokenOwns) {
  expect_poison_exactly_where_no_token_is(small_scenario(), 4);
  expect_poison_exactly_where_no_token_is(quantized_scenario(), 4);
  expect_poison_exactly_where_no_token_is(mla_scenario(), 4);
  expect_poison_exactly_where_no_token_is(continuous_scenario(), 2);
}

// Values depend on the token, not on its place: with pages of 7 every token must have the same K and V.
TEST(LayerData, GivesATokenTheSameValuesWhereverItStands) {
  Scenario elsewhere = small_scenario();
  elsewhere.cache.page_size = 7;
  elsewhere.tile.BN = 7;
  const auto by_token = [](const Scenario& scenario) {
    const FocusState focus = focus_of(scenario, 1);  // request 0 alone: nothing depends on the page size yet
    const LayerData data = layer_data(scenario, focus);
    const auto& s = data.blocks.shape;
    std::map<std::pair<std::uint64_t, std::int64_t>, double> values;
    for (std::size_t t = 0; t < focus.token_ids[0].size(); ++t) {
      const std::int64_t block = focus.cache.lookup_table[t / static_cast<std::size_t>(s[3])];
      for (std::int64_t kv = 0; kv < 2; ++kv) {
        for (std::int64_t i = 0; i < s[4] * s[5]; ++i) {
          const std::int64_t flat = ((block * 2 + kv) * s[3] + static_cast<std::int64_t>(t) % s[3]) * s[4] * s[5] + i;
          values[{focus.token_ids[0][t], kv * 1000 + i}] = element(data.blocks, flat);
        }
      }
    }
    return values;
  };
  const auto here = by_token(small_scenario());
  EXPECT_EQ(here, by_token(elsewhere));
  EXPECT_GT(here.size(), 100u);
}

TEST(LayerData, LayersSlotsAndSeedsHaveValuesOfTheirOwn) {
  const Scenario base = small_scenario();
  const FocusState focus = focus_of(base, 4);
  const LayerData data = layer_data(base, focus);
  Scenario other = base;
  other.focus.layer = 1;
  EXPECT_NE(layer_data(other, focus).blocks.bytes, data.blocks.bytes);
  EXPECT_EQ(layer_data(other, focus).q.bytes, data.q.bytes) << "the queries belong to the step, not to the layer";
  other = base;
  other.seed = 6;
  EXPECT_NE(layer_data(other, focus).blocks.bytes, data.blocks.bytes);
  EXPECT_EQ(layer_data(base, focus).blocks.bytes, data.blocks.bytes) << "two runs";
  const std::int64_t half = data.blocks.shape[3] * data.blocks.shape[4] * data.blocks.shape[5];
  const std::int64_t block = focus.cache.lookup_table[0];
  EXPECT_NE(element(data.blocks, block * 2 * half), element(data.blocks, (block * 2 + 1) * half)) << "K and V";
}

// amax / 448 in f32, one division and one rounding per element; recomputed here from `exact` with float arithmetic.
TEST(LayerData, QuantizesEachGranuleByItsLargestElement) {
  const Scenario scenario = quantized_scenario();
  const FocusState focus = focus_of(scenario, 4);
  const LayerData data = layer_data(scenario, focus);
  ASSERT_EQ(data.scales.shape, (std::vector<std::int64_t>{20, 2, 1, 4, 2, 2}));
  const std::int64_t rows = 20 * 2 * 4 * 2;
  int checked = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t granule = 0; granule < 2; ++granule) {
      const std::int64_t first = granule * 4, last = granule == 0 ? 4 : 6;  // the second granule has 2 elements
      double amax = 0;
      for (std::int64_t d = first; d < last; ++d) amax = std::max(amax, std::abs(element(data.exact, row * 6 + d)));
      const double scale = element(data.scales, row * 2 + granule);
      if (std::isnan(scale)) continue;
      EXPECT_EQ(static_cast<float>(scale), static_cast<float>(amax / 448.0)) << row;
      for (std::int64_t d = first; d < last; ++d) {
        const double stored = element(data.blocks, row * 6 + d) * scale;
        const double exact = element(data.exact, row * 6 + d);
        // e4m3 has 3 bits after the point: half a step is 1/16 of a normal value, 2^-10 of a subnormal one.
        EXPECT_LE(std::abs(stored - exact), std::max(std::abs(exact) / 16, scale * std::ldexp(1.0, -10)) * 1.000001);
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 200);
}

// Around every power of two and around largest * 2^k, where a rounded quotient, or a log2 with an error in the last
// place, selects the next power; the oracle doubles exactly, starting far below.
TEST(ScaleOf, IsTheSmallestPowerOfTwoThatFitsTheLargestElement) {
  for (const auto& [dtype, largest] : {std::pair{DType::e4m3, 448.0}, std::pair{DType::e5m2, 57344.0}}) {
    for (int k = -140; k <= 110; ++k) {
      for (const double center : {std::ldexp(largest, k), std::ldexp(1.0, k), std::ldexp(1.5, k)}) {
        for (const double amax : {std::nextafter(center, 0.0), center, std::nextafter(center, 1e300)}) {
          double want = 0x1p-200;
          while (want * largest < amax) want *= 2;
          ASSERT_EQ(scale_of(Quantizer::power_of_two, amax, dtype), want) << name(dtype) << " " << amax;
          ASSERT_EQ(scale_of(Quantizer::amax, amax, dtype), amax / largest) << name(dtype) << " " << amax;
        }
      }
    }
    for (const Quantizer q : {Quantizer::amax, Quantizer::power_of_two}) EXPECT_EQ(scale_of(q, 0.0, dtype), 1.0);
  }
  EXPECT_EQ(scale_of(Quantizer::power_of_two, 448.0, DType::e4m3), 1.0);
  EXPECT_EQ(scale_of(Quantizer::power_of_two, std::nextafter(448.0, 449.0), DType::e4m3), 2.0);
}

// In every type a scale may have: a power of two, from amax / largest finite up to less than twice that; no element
// saturates, and each is the rounding of an exact quotient.
TEST(LayerData, ScalesByPowersOfTwoWhenTheScenarioSaysSo) {
  for (const DType dtype : {DType::e4m3, DType::e5m2}) {
    const double largest = dtype == DType::e4m3 ? 448.0 : 57344.0;
    for (const DType scale_dtype : {DType::f32, DType::f16, DType::bf16, DType::e8m0}) {
      Scenario scenario = quantized_scenario();
      scenario.cache.dtype = dtype;
      scenario.cache.quantization->scale_dtype = scale_dtype;
      scenario.cache.quantization->quantizer = Quantizer::power_of_two;
      const LayerData data = layer_data(scenario, focus_of(scenario, 4));
      int checked = 0;
      for (std::int64_t row = 0; row < 20 * 2 * 4 * 2; ++row) {
        for (std::int64_t granule = 0; granule < 2; ++granule) {
          const std::int64_t first = granule * 4, last = granule == 0 ? 4 : 6;
          double amax = 0;
          for (std::int64_t d = first; d < last; ++d) amax = std::max(amax, std::abs(element(data.exact, row * 6 + d)));
          const double scale = element(data.scales, row * 2 + granule);
          if (std::isnan(scale)) continue;
          int exponent = 0;
          ASSERT_EQ(std::frexp(scale, &exponent), 0.5) << scale << " is not a power of two";
          ASSERT_GE(scale, amax / largest);
          ASSERT_LT(scale, 2 * (amax / largest));
          for (std::int64_t d = first; d < last; ++d) {
            std::byte want{};
            store_from_double(dtype, element(data.exact, row * 6 + d) / scale, &want, Overflow::non_saturating);
            ASSERT_EQ(data.blocks.bytes[static_cast<std::size_t>(row * 6 + d)], want);
            ++checked;
          }
        }
      }
      EXPECT_GT(checked, 200);
    }
  }
}

// The golden reads stored values and scales of either quantizer; the two quantizers must give different values.
TEST(LayerData, GoldenAgreesWithBothSecondPathsUnderEitherQuantizer) {
  std::vector<double> errors;
  for (const Quantizer quantizer : {Quantizer::amax, Quantizer::power_of_two}) {
    Scenario scenario = quantized_scenario();
    scenario.cache.quantization->quantizer = quantizer;
    trace::Recorder off;
    const RunOutcome outcome = run_scenario(scenario, scenario.requests.list, off);
    ASSERT_TRUE(outcome.golden) << outcome.golden_skipped;
    EXPECT_TRUE(outcome.golden->second_path.passed()) << outcome.golden->second_path.worst_ratio;
    EXPECT_TRUE(outcome.golden->kernel_flow.passed()) << outcome.golden->kernel_flow.worst_ratio;
    errors.push_back(outcome.golden->quantization_error);
  }
  EXPECT_GT(errors[0], 0);
  EXPECT_GT(errors[1], 0);
  EXPECT_NE(errors[0], errors[1]);
}

// One element a granule in e5m2 and scales in f16: amax / 57344 of a small element is less than f16's smallest number.
// A scale of 0 would make 0 / 0 of the elements that are 0, or lose the others.
TEST(LayerData, NoScaleIsZeroEvenWhereTheScalesTypeIsTooNarrowForIt) {
  int smallest = 0;
  for (const Quantizer quantizer : {Quantizer::amax, Quantizer::power_of_two}) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Scenario scenario = quantized_scenario();
      scenario.seed = seed;
      scenario.cache.dtype = DType::e5m2;
      scenario.cache.quantization = Quantization{DType::f16, 1, quantizer};
      const LayerData data = layer_data(scenario, focus_of(scenario, 4));
      for (std::int64_t i = 0; i < 20 * 2 * 4 * 2 * 6; ++i) {
        const double scale = element(data.scales, i);
        if (std::isnan(scale)) continue;
        ASSERT_GE(scale, 0x1p-24);
        smallest += scale == 0x1p-24 ? 1 : 0;
        ASSERT_TRUE(std::isfinite(element(data.blocks, i)));
      }
    }
  }
  EXPECT_GT(smallest, 0) << "no element was small enough to show it";
}

TEST(LayerData, QueriesAreTheStepsNewTokensSequenceBySequence) {
  const Scenario scenario = quantized_scenario();
  for (const std::int64_t step : {0, 2, 3, 5}) {
    const FocusState focus = focus_of(scenario, step);
    const LayerData data = layer_data(scenario, focus);
    std::int64_t queries = 0;
    for (std::size_t b = 0; b < focus.cache.batch.size(); ++b) {
      EXPECT_EQ(data.query_offsets[b], queries);
      queries += focus.cache.new_tokens[b];
      EXPECT_EQ(data.key_lengths[b], focus.cache.cache_lengths[b] + focus.cache.new_tokens[b]);
    }
    EXPECT_EQ(data.query_offsets.back(), queries);
    EXPECT_EQ(data.q.shape, (std::vector<std::int64_t>{queries, 4, 6}));
    EXPECT_EQ(data.q.dtype, DType::bf16) << "an 8-bit cache is asked in bf16";
  }
}

TEST(LayerBytes, CountsThePoolWithItsNullPageAndTheExactCopyOfAQuantizedOne) {
  EXPECT_EQ(layer_bytes(small_scenario()), 20 * 2 * 4 * 2 * 6 * 4);
  EXPECT_EQ(layer_bytes(quantized_scenario()), 20 * 2 * 4 * 2 * (6 * (1 + 4) + 2 * 4)) << "elements, exact, 2 scales";
  EXPECT_EQ(layer_bytes(mla_scenario()), 20 * 1 * 4 * 1 * 12 * 4);
  EXPECT_EQ(layer_bytes(continuous_scenario()), 2 * 2 * 21 * 2 * 6 * 4) << "no null page";
}

}  // namespace
}  // namespace kvscope::layer_data_test
