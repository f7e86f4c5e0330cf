#include "core/staging/addressed_cache.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <variant>
#include <vector>

#include "core/base/errors.h"
#include "tests/core/staging/staging_fixture.h"

namespace kvscope::addressed_cache_test {
namespace {

using testing_support::StagingCase;
using testing_support::StagingStep;

// The example of the header.
struct Example {
  Scenario scenario;
  CacheState state;
  Example() {
    scenario.model = {"tiny", 2, 4, 2, 8, false, 8};
    scenario.cache.page_size = 4;
    scenario.cache.blocks = 8;
    state.page_size = 4;
    state.blocks = 8;
    state.batch = {SeqIdx{0}};
    state.cache_lengths = {5};
    state.new_tokens = {1};
    state.max_seq_length = 1;
    state.max_cache_length = 6;
    state.table_columns = 24;
    state.lookup_table.assign(24, 8);
    state.lookup_table[0] = 7;
    state.lookup_table[1] = 3;
  }
};

// Block 3 of 1024 B, layer 1 of 256 B, slot 1 of 64 B, head 1 of 32 B, dim 3 of 4 B.
TEST(AddressedCache, TheHeadersExampleHolds) {
  const Example example;
  const AddressedCache cache(example.scenario, example.state, KOrV::k, LayerIdx{1});
  EXPECT_EQ(cache.byte(SeqIdx{0}, TokIdx{5}, HeadIdx{1}, DimIdx{3}), 3 * 1024 + 256 + 64 + 32 + 12);
  EXPECT_EQ(cache.byte(SeqIdx{0}, TokIdx{5}, HeadIdx{1}, DimIdx{3}), 3436);
}

// Against the axes of the pool, counted without any cache type: swapped axes, V for K, an omitted layer or null page
// each give another byte. 3 layers, so that no product is a power of two.
TEST(AddressedCache, EveryElementIsAtTheByteOfThePoolsAxes) {
  for (const std::int64_t page : {0, 1, 16, 64}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::e4m3}) {
      StagingStep step({.dtype = dtype, .page = page, .tokens = 70, .head_size = 24});
      step.scenario.model.layers = 3;
      const std::int64_t slots = step.slots(), heads = 2, size = 24;
      for (const KOrV kv : {KOrV::k, KOrV::v}) {
        for (const std::int64_t layer : {0, 1, 2}) {
          const AddressedCache cache(step.scenario, step.state, kv, LayerIdx{layer});
          for (const std::int64_t token : {0, 1, 15, 16, 63, 64, 69}) {
            for (const std::int64_t dim : {0, 1, 23}) {
              const std::int64_t block =
                  step.state.lookup_table[static_cast<std::size_t>(step.state.table_columns + token / slots)];
              std::int64_t element = block * 2 + (kv == KOrV::v ? 1 : 0);
              element = (element * 3 + layer) * slots + token % slots;
              element = (element * heads + 1) * size + dim;
              ASSERT_EQ(cache.byte(SeqIdx{1}, TokIdx{token}, HeadIdx{1}, DimIdx{dim}), element * size_of(dtype))
                  << page << ' ' << layer << ' ' << token << ' ' << dim;
            }
          }
        }
      }
    }
  }
}

TEST(AddressedCache, RowsAreThoseOfTheCacheType) {
  StagingStep step({.page = 16, .tokens = 150});
  const AddressedCache cache(step.scenario, step.state, KOrV::k, LayerIdx{0});
  ASSERT_NE(cache.paged(), nullptr);
  EXPECT_EQ(cache.num_kv_rows(), 21 * 32 + 16);                          // to the end of the last block's K
  EXPECT_EQ(cache.row_idx(SeqIdx{1}, TokIdx{100}), RowIdx{7 * 32 + 4});  // page 6 is in block 7
  StagingStep whole({.page = 0, .tokens = 150});
  const AddressedCache continuous(whole.scenario, whole.state, KOrV::k, LayerIdx{0});
  EXPECT_EQ(continuous.paged(), nullptr);
  EXPECT_TRUE(std::holds_alternative<ContinuousBatchingKVCache>(continuous.cache()));
  EXPECT_EQ(continuous.row_idx(SeqIdx{1}, TokIdx{100}), RowIdx{1 * 2 * 320 + 100});
}

// Bytes are counted from the pool's first byte, whose address is 0 in both ways to compute it.
TEST(AddressedCache, AddressesCountFromThePoolsFirstByte) {
  const Example example;
  const AddressedCache cache(example.scenario, example.state, KOrV::k, LayerIdx{0});
  const std::byte* const first = cache.paged()->blocks().data;
  EXPECT_EQ(AddressedCache::byte_of(first), 0);
  EXPECT_EQ(AddressedCache::byte_of(first + 3436), 3436);
  EXPECT_EQ(AddressedCache::byte_of(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(first)) + 17), 17);
  EXPECT_EQ(AddressedCache::byte_of(first - 1), -1);
}

// A pool of 80 GiB is explained without allocating it: 2 x 80 layers x 16 x 8 x 128 x 2 B = 5 MiB a block, 16384
// blocks.
TEST(AddressedCache, APoolThatFitsNoMachineIsNeverAllocated) {
  StagingStep step({.page = 16, .tokens = 150});
  step.scenario.model = {"large", 80, 64, 8, 128, false, 128};
  step.scenario.cache.blocks = step.state.blocks = 16384;
  step.state.lookup_table[static_cast<std::size_t>(step.state.table_columns)] = 16383;
  const AddressedCache cache(step.scenario, step.state, KOrV::v, LayerIdx{79});
  EXPECT_EQ(cache.byte(SeqIdx{1}, TokIdx{15}, HeadIdx{7}, DimIdx{127}), (std::int64_t{16384} * 5 << 20) - 2);
}

TEST(AddressedCache, ScalesAreAPoolOfTheirOwn) {
  StagingStep step({.dtype = DType::e4m3, .page = 16, .tokens = 70});
  step.scenario.cache.quantization = Quantization{DType::f32, 32};
  const AddressedCache cache(step.scenario, step.state, KOrV::k, LayerIdx{0});
  // pages of 70 + 10 tokens: 5; page 1 of row 1 is block 2 * 3 + 1; [.., 2, 1, 16, 2, 4] of f32, 512 B a slot of 2
  const std::int64_t byte =
      AddressedCache::byte_of(cache.paged()->scales_block_paged_ptr(SeqIdx{1}, TokIdx{17}, HeadIdx{1}, DimIdx{64}));
  EXPECT_EQ(byte, ((((7 * 2 + 0) * 16 + 1) * 2 + 1) * 4 + 2) * 4);
}

TEST(AddressedCache, VOfAnMlaCacheIsNone) {
  StagingStep step({.page = 64, .tokens = 150});
  step.scenario.model = {"mla", 2, 16, 1, 576, true, 512};
  EXPECT_THROW(AddressedCache(step.scenario, step.state, KOrV::v, LayerIdx{1}), UnsupportedError);
  const AddressedCache k(step.scenario, step.state, KOrV::k, LayerIdx{1});
  // token 100 is slot 36 of block 3; MLA has one of K and V where others have two
  EXPECT_EQ(k.byte(SeqIdx{1}, TokIdx{100}, HeadIdx{0}, DimIdx{5}), (((3 * 1 + 0) * 2 + 1) * 64 + 36) * 576 * 2 + 10);
}

}  // namespace
}  // namespace kvscope::addressed_cache_test
