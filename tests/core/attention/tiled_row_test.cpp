// The state of the tiled flow after each tile, against plain loops in long double that compute each tile from all keys
// so far, without a running state.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/attention/tiled.h"
#include "core/base/errors.h"
#include "tests/core/attention/paged_case.h"

namespace kvscope::attention::tiled_row_test {
namespace {

using testing::PagedCase;
using testing::Spec;

Spec spec_of(MaskKind mask) {
  Spec spec;
  spec.lengths = {37, 70};
  spec.queries = {3, 5};
  spec.head_size = spec.value_size = 16;
  spec.page_size = 8;
  spec.options.scale = 0.25;
  spec.options.mask = mask;
  spec.options.window_left = 20;
  spec.options.chunk = 24;
  return spec;
}

long double score(const PagedCase& c, const TiledRow& row, std::int64_t key) {
  const std::int64_t group = c.spec.query_heads / c.spec.kv_heads;
  const std::int64_t at = c.query_offsets[static_cast<std::size_t>(row.sequence)] + row.query;
  long double sum = 0;
  for (std::int64_t d = 0; d < c.spec.head_size; ++d) {
    sum += static_cast<long double>(c.query(at, row.head, d)) * c.key(row.sequence, key, row.head / group, d);
  }
  return sum * c.spec.options.scale;
}

// A flow that skips a tile, rescales by the wrong factor, or starts tiles at the first visible key differs here.
TEST(TiledRow, EachTileIsTheSoftmaxOfTheKeysSoFar) {
  for (const MaskKind mask : {MaskKind::none, MaskKind::causal, MaskKind::sliding_window, MaskKind::chunked}) {
    const PagedCase c(spec_of(mask));
    for (std::int64_t sequence = 0; sequence < 2; ++sequence) {
      const std::int64_t queries = c.spec.queries[static_cast<std::size_t>(sequence)];
      const std::int64_t keys = c.spec.lengths[static_cast<std::size_t>(sequence)];
      for (std::int64_t query = 0; query < queries; ++query) {
        for (const std::int64_t head : {0, 3}) {
          const TiledRow row{sequence, query, head};
          const TiledRowTrace trace = tiled_row(c.problem, row, {.tile_keys = 16});
          std::vector<std::int64_t> seen;
          std::size_t step = 0;
          for (std::int64_t tile = 0; tile * 16 < keys; ++tile) {
            std::vector<std::int64_t> of_tile;
            for (std::int64_t key = tile * 16; key < std::min(keys, tile * 16 + 16); ++key) {
              if (testing::sees(c.spec.options, query, queries, keys, key)) of_tile.push_back(key);
            }
            if (of_tile.empty()) continue;
            long double before = -HUGE_VALL;
            for (const std::int64_t key : seen) before = std::max(before, score(c, row, key));
            seen.insert(seen.end(), of_tile.begin(), of_tile.end());
            long double largest = -HUGE_VALL, sum = 0, tile_sum = 0;
            for (const std::int64_t key : seen) largest = std::max(largest, score(c, row, key));
            std::vector<long double> o(16, 0);
            for (const std::int64_t key : seen) {
              const long double p = std::exp(score(c, row, key) - largest);
              sum += p;
              if (key >= of_tile.front()) tile_sum += p;
              for (std::size_t d = 0; d < 16; ++d) {
                o[d] += p * c.value(sequence, key, head / 2, static_cast<std::int64_t>(d));
              }
            }
            ASSERT_LT(step, trace.steps.size());
            const TiledStep& got = trace.steps[step++];
            EXPECT_EQ(got.first_key, of_tile.front());
            EXPECT_EQ(got.last_key, of_tile.back() + 1);
            EXPECT_NEAR(got.largest, static_cast<double>(largest), 1e-5);
            EXPECT_EQ(std::isinf(got.largest_before), seen.size() == of_tile.size());
            EXPECT_NEAR(got.rescale, static_cast<double>(std::exp(before - largest)), 1e-5);
            EXPECT_NEAR(got.tile_sum, static_cast<double>(tile_sum), 1e-4);
            EXPECT_NEAR(got.sum, static_cast<double>(sum), 1e-4);
            for (std::size_t d = 0; d < 16; ++d) EXPECT_NEAR(got.o[d], static_cast<double>(o[d]), 1e-3);
          }
          EXPECT_EQ(step, trace.steps.size());
        }
      }
    }
  }
}

TEST(TiledRow, ItsResultHasTheBitsOfTheWholeFlow) {
  for (const std::int64_t splits : {1, 3}) {
    for (const DType type : {DType::f32, DType::bf16}) {
      Spec spec = spec_of(MaskKind::causal);
      spec.sinks = {0.5, -1, 2, 0};
      const PagedCase c(spec);
      const TiledConfig config{.tile_keys = 16, .splits = splits, .probabilities = type, .output = type};
      const PartialState all = tiled(c.problem, config);
      for (std::int64_t query = 0; query < 5; ++query) {
        for (std::int64_t head = 0; head < 4; ++head) {
          const TiledRowTrace trace = tiled_row(c.problem, {1, query, head}, config);
          const auto at = static_cast<std::size_t>(c.query_offsets[1] + query), h = static_cast<std::size_t>(head);
          EXPECT_EQ(trace.lse, all.lse(at, h));
          for (std::size_t d = 0; d < trace.o.size(); ++d) EXPECT_EQ(trace.o[d], all.o(at, h, d));
          EXPECT_EQ(trace.steps.back().split, splits - 1);
        }
      }
    }
  }
}

TEST(TiledRow, NamesARowThatDoesNotExist) {
  const PagedCase c(spec_of(MaskKind::causal));
  const auto fault = [&](const TiledRow& row) -> std::string {
    try {
      static_cast<void>(tiled_row(c.problem, row));
    } catch (const IndexError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(fault({2, 0, 0}), "sequence 2 is outside [0, 2): sequences of the batch");
  EXPECT_EQ(fault({0, 3, 0}), "query 3 is outside [0, 3): queries of the sequence");
  EXPECT_EQ(fault({1, 0, 4}), "head 4 is outside [0, 4): query heads");
}

TEST(TiledRow, ARowThatSeesNoKeyHasNoTile) {
  Spec spec = spec_of(MaskKind::causal);
  spec.lengths = {1};
  spec.queries = {2};  // bottom right: the first query is before the first key
  const PagedCase c(spec);
  const TiledRowTrace trace = tiled_row(c.problem, {0, 0, 0});
  EXPECT_TRUE(trace.steps.empty());
  EXPECT_EQ(trace.o, std::vector<double>(16, 0.0));
  EXPECT_TRUE(std::isinf(trace.lse) && trace.lse < 0);
}

}  // namespace
}  // namespace kvscope::attention::tiled_row_test
