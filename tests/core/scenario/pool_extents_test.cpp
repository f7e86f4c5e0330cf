#include "core/scenario/pool_extents.h"

#include <gtest/gtest.h>

namespace kvscope::pool_extents_test {
namespace {

Scenario scenario_of(CacheKind kind, bool is_mla) {
  Scenario scenario;
  scenario.model.kv_heads = 3;
  scenario.model.is_mla = is_mla;
  scenario.cache.kind = kind;
  scenario.cache.blocks = 32;
  scenario.cache.page_size = 16;
  scenario.cache.max_tokens = 50;
  return scenario;
}

// Extents that are all different: a swapped axis shows.
TEST(PoolExtents, APagedPoolHasTheNullPageAndAContinuousOneABlockASequence) {
  EXPECT_EQ(pool_extents(scenario_of(CacheKind::paged, false), 7, 8), (Shape<6>{33, 2, 7, 16, 3, 8}));
  EXPECT_EQ(pool_extents(scenario_of(CacheKind::continuous, false), 7, 8), (Shape<6>{32, 2, 7, 50, 3, 8}));
}

TEST(PoolExtents, AnMlaPoolKeepsOneOfKAndV) {
  EXPECT_EQ(pool_extents(scenario_of(CacheKind::paged, true), 7, 9), (Shape<6>{33, 1, 7, 16, 3, 9}));
}

}  // namespace
}  // namespace kvscope::pool_extents_test
