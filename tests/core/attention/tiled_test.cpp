// The tiled algorithm as a candidate: it must be within the bounds for each tile size, split and type.
#include "core/attention/tiled.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/attention/bounds.h"
#include "core/attention/reference.h"
#include "core/base/convert.h"
#include "core/base/errors.h"
#include "tests/core/attention/paged_case.h"
#include "tests/property.h"

namespace kvscope::attention::tiled_test {
namespace {

using testing::PagedCase;
using testing::Spec;

// Largest |error| / bound over all elements; infinity when a mask differs.
double worst_ratio(const Result& golden, const PartialState& candidate, DType out) {
  double worst = 0;
  const Rounding rounding = rounding_of(out);
  for (std::size_t row = 0; row < golden.o.shape(0); ++row) {
    for (std::size_t h = 0; h < golden.o.shape(1); ++h) {
      const RowTerms terms = row_terms(golden, row, h, static_cast<double>(golden.o.shape(2)));
      if (!lse_within(rounding, terms, candidate.lse(row, h))) return HUGE_VAL;
      for (std::size_t d = 0; d < golden.o.shape(2); ++d) {
        const double bound = output_budget(rounding, terms, element_terms(golden, row, h, d)).total();
        worst = std::max(worst, std::fabs(candidate.o(row, h, d) - golden.o(row, h, d)) / bound);
      }
    }
  }
  return worst;
}

Spec shaped(std::vector<std::int64_t> lengths, std::vector<std::int64_t> queries, std::int64_t head_size = 16) {
  Spec spec;
  spec.lengths = std::move(lengths);
  spec.queries = std::move(queries);
  spec.head_size = spec.value_size = head_size;
  spec.page_size = 16;
  spec.options.scale = 1 / std::sqrt(static_cast<double>(head_size));
  return spec;
}

TEST(Tiled, EveryTypeIsWithinItsBound) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType stored : {DType::f32, DType::bf16}) {
      Spec spec = shaped({1, 15, 16, 17, 300, 700}, {1, 1, 2, 17, 5, 1}, 64);
      spec.dtype = spec.q_dtype = stored;
      const PagedCase c(spec);
      const double worst =
          worst_ratio(reference(c.problem), tiled(c.problem, {.probabilities = type, .output = type}), type);
      EXPECT_LE(worst, 1.0) << name(type);
      EXPECT_GT(worst, 0.05) << "the bound is too loose: " << name(type);
    }
  }
}

TEST(Tiled, TileSizeAndSplitsStayWithinTheBound) {
  EXPECT_TRUE(prop::check("any tiling", [] {
    Spec spec = shaped({prop::in_range<std::int64_t>(0, 90), 33}, {prop::in_range<std::int64_t>(0, 5), 2});
    spec.page_size = prop::one_of<std::int64_t>(1, 3, 16, 64);
    spec.seed = prop::in_range<std::uint64_t>(0, 1000);
    spec.options.mask = prop::one_of(MaskKind::none, MaskKind::causal, MaskKind::sliding_window, MaskKind::chunked);
    spec.options.window_left = 12;
    spec.options.chunk = 10;
    spec.options.lse_base = prop::one_of(LseBase::natural, LseBase::two);
    if (prop::any<bool>()) spec.sinks = {0.5, 1.0, -3.0, 2.0};
    if (prop::any<bool>()) spec.options.soft_cap = 2.0;
    if (prop::any<bool>()) spec.slopes = {0.5, 0.25, 0.125, 0.0625};
    const PagedCase c(spec);
    const TiledConfig config{.tile_keys = prop::one_of<std::int64_t>(1, 7, 16, 64, 128),
                             .splits = prop::in_range<std::int64_t>(1, 6)};
    RC_ASSERT(worst_ratio(reference(c.problem), tiled(c.problem, config), DType::f32) <= 1.0);
    RC_ASSERT(worst_ratio(reference(c.problem), tiled_double(c.problem, config.tile_keys, config.splits), DType::f64) <=
              1.0);
  }));
}

// The largest score comes last: without rescaling the previous sums, their contribution
// is lost or far too large.
TEST(Tiled, LaterLargerScoresRescaleWhatWasSummed) {
  Spec spec = shaped({64}, {1});
  spec.slopes = {1, 1, 1, 1};
  const PagedCase c(spec);
  EXPECT_LE(worst_ratio(reference(c.problem), tiled(c.problem, {.tile_keys = 8}), DType::f32), 1.0);
}

TEST(Tiled, OutputsAreValuesOfTheOutputType) {
  const PagedCase c(shaped({40, 9}, {1, 2}));
  for (const double x : tiled(c.problem, {.output = DType::bf16}).o) {
    EXPECT_EQ(x, to_double(from_double<bf16>(x, Overflow::non_saturating)));
  }
  for (const double x : tiled(c.problem).o) EXPECT_EQ(x, static_cast<double>(static_cast<float>(x)));
}

TEST(Tiled, MlaDecodeOfRealProportions) {
  Spec spec = shaped({130}, {1}, 576);
  spec.mla = true;
  spec.value_size = 512;
  spec.query_heads = 16;
  spec.kv_heads = 1;
  spec.page_size = 64;
  spec.dtype = spec.q_dtype = DType::bf16;
  const PagedCase c(spec);
  EXPECT_LE(worst_ratio(reference(c.problem), tiled(c.problem, {.probabilities = DType::bf16, .output = DType::bf16}),
                        DType::bf16),
            1.0);
  EXPECT_LE(worst_ratio(reference(c.problem), tiled(c.problem, {.splits = 3}), DType::f32), 1.0);
}

TEST(Tiled, RejectsConfigurationsThatMeanNothing) {
  const PagedCase c((Spec()));
  EXPECT_THROW(static_cast<void>(tiled(c.problem, {.tile_keys = 0})), GeometryError);
  EXPECT_THROW(static_cast<void>(tiled(c.problem, {.splits = 0})), GeometryError);
  EXPECT_THROW(static_cast<void>(tiled(c.problem, {.probabilities = DType::e4m3})), UnsupportedError);
  EXPECT_THROW(static_cast<void>(tiled(c.problem, {.output = DType::f64})), UnsupportedError);
  EXPECT_THROW(static_cast<void>(tiled_double(c.problem, 4, -1)), GeometryError);
}

}  // namespace
}  // namespace kvscope::attention::tiled_test
