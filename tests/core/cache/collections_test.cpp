#include "core/cache/collections.h"

#include <gtest/gtest.h>

#include "tests/core/cache/fixtures.h"

namespace kvscope::collections_test {
namespace {

using test::fix_a;
using test::fix_aq;
using test::fix_m;
using test::message_of;

// Head sizes that are, and are not, multiples of the granularity.
TEST(HeadDimGranularity, IsTheNumberOfScalesThatCoverAHead) {
  const auto G = [](std::int64_t D, std::int64_t granularity) {
    return PagedCacheParams{.kv_params = {1, D}, .page_size = 4, .quantization_granularity = granularity}
        .head_dim_granularity();
  };
  EXPECT_EQ(G(128, 64), 2);
  EXPECT_EQ(G(576, 128), 5);  // the last scale covers 64 elements
  EXPECT_EQ(G(640, 640), 1);
  EXPECT_EQ(G(24, 1), 24);
}

TEST(PagedCollection, CarriesEveryFieldAndConstantOfThePool) {
  auto a = fix_aq();
  const PagedKVCacheCollection c = a.collection();
  EXPECT_EQ(PagedKVCacheCollection::name_str, "paged");
  EXPECT_EQ(c.kv(), 2);
  EXPECT_EQ(c.layers(), 3);
  EXPECT_EQ(c.page_size(), 4);
  EXPECT_EQ(c.dtype(), DType::f32);
  EXPECT_EQ(c.scale_dtype(), DType::f32);
  EXPECT_EQ(c.kv_params(), (KVCacheStaticParams{2, 8, false}));
  EXPECT_EQ(c.blocks_shape(), (Shape<6>{-1, 2, -1, 4, 2, 8}));
  EXPECT_EQ(c.blocks_layout(), (Shape<6>{-1, -1, 64, 16, 8, 1}));
  EXPECT_EQ(c.scales_shape(), (Shape<6>{-1, 2, -1, 4, 2, 2}));
  EXPECT_EQ(c.scales_layout(), (Shape<6>{-1, -1, 16, 4, 2, 1}));
  EXPECT_EQ(c.kv_cache_dynamic_shape(), (Shape<4>{5, 4, 2, 8}));
  EXPECT_EQ(c.kv_cache_dynamic_strides(), (Shape<4>{384, 16, 8, 1}));
  EXPECT_EQ(c.cache_length(SeqIdx{1}), 2);
  EXPECT_EQ(c.max_seq_length(), 2U);
  EXPECT_EQ(c.max_cache_length(), 10U);
  EXPECT_EQ(c.blocks().extents, a.extents);
  EXPECT_EQ(c.cache_lengths().dim(0), 2);
  EXPECT_EQ(c.lookup_table().dim(1), 24);
  EXPECT_EQ(c.scales_lookup_table().data, c.lookup_table().data);  // copied when not given
}

// Block 1 of K layer 0 is 96 scales further; a dense view would step by 16, which is K layer 1 of block
// 0.
TEST(PagedCollection, ViewsItsScalesWithTheirOwnRunTimeBlockStride) {
  auto a = fix_aq();
  const PagedKVCacheCollection c = a.collection();
  EXPECT_EQ(c.scales()->strides, (Shape<6>{96, 48, 16, 4, 2, 1}));
  EXPECT_EQ(c.kv_cache_scales_dynamic_shape(), (Shape<4>{5, 4, 2, 2}));
  EXPECT_EQ(c.kv_cache_scales_dynamic_strides(), (Shape<4>{96, 4, 2, 1}));
  EXPECT_EQ(a.flat_scale(a.k(1).scales()->data), 16);
  EXPECT_EQ(a.flat_scale(a.v(2).scales()->data), 48 + 32);
  EXPECT_EQ(a.k(0).scales()->stride(0), 96);
}

TEST(PagedCollection, HasNoScalesViewWithoutScales) {
  auto a = fix_a();
  EXPECT_EQ(a.collection().kv_cache_scales_dynamic_shape(), (Shape<4>{0, 0, 0, 0}));
  EXPECT_EQ(a.collection().kv_cache_scales_dynamic_strides(), (Shape<4>{0, 0, 0, 0}));
  EXPECT_EQ(a.collection().scale_dtype(), std::nullopt);
  EXPECT_FALSE(a.k(0).scales());
}

// A kernel would read past layer 2 of K into layer 0 of V.
TEST(PagedCollection, RejectsTheValuesOfAnMlaPoolAndLayersItDoesNotHave) {
  auto m = fix_m();
  EXPECT_EQ(m.collection().kv(), 1);
  EXPECT_EQ(
      message_of<UnsupportedError>([&] { (void)m.v(0); }),
      "PagedKVCacheCollection.get_value_cache: an MLA pool has one slot, and values are the first elements of the key "
      "rows: use get_key_cache");
  EXPECT_EQ(message_of<IndexError>([&] { (void)m.k(3); }),
            "PagedKVCacheCollection: layer 3 is outside [0, 3): the pool has that many layers");
  EXPECT_EQ(message_of<IndexError>([&] { (void)m.k(-1); }),
            "PagedKVCacheCollection: layer -1 is outside [0, 3): the pool has that many layers");
  EXPECT_EQ(message_of<IndexError>([&] { (void)m.collection().cache_length(SeqIdx{2}); }),
            "PagedKVCacheCollection: sequence 2 is outside [0, 2): the batch has that many rows");
}

TEST(PagedCollection, RejectsAPoolThatIsNotTheParameters) {
  auto a = fix_a();
  a.params.page_size = 8;
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)a.collection(); }),
      "PagedKVCacheCollection rejected: blocks: extents are [5, 2, 3, 4, 2, 8], not [any, 2, any, 8, 2, 8]: build the "
      "pool with the collection's parameters");

  a = fix_a();
  a.params.kv_params.is_mla = true;  // two slots where MLA has one
  EXPECT_THROW((void)a.collection(), GeometryError);

  a = fix_a();
  PagedTensors tensors = a.tensors();
  tensors.blocks.dtype = DType::i32;
  tensors.blocks.strides[0] = 400;
  EXPECT_EQ(message_of<GeometryError>([&] { PagedKVCacheCollection(a.params, tensors); }),
            "PagedKVCacheCollection rejected, 2 faults:\n"
            "  blocks: dtype is i32, and the collection was made for f32\n"
            "  blocks: strides are [400, 192, 64, 16, 8, 1], not the row-major [384, 192, 64, 16, 8, 1]: give padding "
            "between "
            "blocks as a page stride");
}

TEST(PagedCollection, RejectsScalesThatAreNotTheParameters) {
  auto a = fix_aq();
  a.params.scale_dtype = DType::bf16;
  EXPECT_EQ(message_of<GeometryError>([&] { (void)a.collection(); }),
            "PagedKVCacheCollection rejected: scales: dtype is f32, and the collection was made for bf16");
  a.params.scale_dtype.reset();
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)a.collection(); }),
      "PagedKVCacheCollection rejected: scales: given to a collection without a scale dtype: say which, or leave the "
      "scales out");
  a = fix_aq();
  a.params.quantization_granularity = 8;
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)a.collection(); }),
      "PagedKVCacheCollection rejected: scales: extents are [5, 2, 3, 4, 2, 2], not [any, 2, 3, 4, 2, 1]: build the "
      "pool with the collection's parameters");
  a = fix_aq();
  PagedTensors tensors = a.tensors();
  tensors.scales_page_stride = 98;
  EXPECT_EQ(message_of<GeometryError>([&] { PagedKVCacheCollection(a.params, tensors); }),
            "PagedKVCacheCollection scales: a page stride of 98 elements is not a whole number of rows of 4: use 100");
}

// The scales may be padded separately: 100 scales per block, with the values packed.
TEST(PagedCollection, TakesAPageStrideOfTheScalesApartFromTheValues) {
  auto a = fix_aq();
  a.scale_pool = test::counting(5 * 100);
  PagedTensors tensors = a.tensors();
  tensors.scales_page_stride = 100;
  const PagedKVCache k1 = PagedKVCacheCollection(a.params, tensors).get_key_cache(LayerIdx{1});
  EXPECT_EQ(k1.scale_stride(), 25);
  EXPECT_EQ(k1.stride(), 24);
  EXPECT_EQ(k1.scale_row_idx(SeqIdx{0}, TokIdx{2}), RowIdx{77});
  EXPECT_EQ(k1.num_scale_rows(), 4 * 25 + 4);
}

TEST(PagedCollection, NamesEveryImpossibleParameterAtOnce) {
  auto a = fix_a();
  a.params = {.dtype = DType::f32,
              .kv_params = {0, -1},
              .page_size = 0,
              .scale_dtype = DType::i32,
              .quantization_granularity = 0};
  EXPECT_EQ(message_of<GeometryError>([&] { (void)a.collection(); }),
            "PagedKVCacheCollection rejected, 5 faults:\n"
            "  num_heads: 0 is not positive: give 1 or more\n"
            "  head_size: -1 is not positive: give 1 or more\n"
            "  page_size: 0 is not positive: give 1 or more\n"
            "  quantization_granularity: 0 is not positive: give 1 or more\n"
            "  scale_dtype: i32 is an integer: scales multiply, use a float");
  a = fix_a();
  a.params.dtype = DType::e2m1;
  EXPECT_EQ(message_of<UnsupportedError>([&] { (void)a.collection(); }),
            "PagedKVCacheCollection: e2m1 elements have no address: use a type of 8 bits or more");
}

// Both are reported when the collection is made, not when the first kernel runs.
TEST(PagedCollection, RejectsTablesThatDoNotFitTheBatch) {
  auto a = fix_a();
  PagedTensors tensors = a.tensors();
  tensors.cache_lengths.extents[0] = 1;
  EXPECT_EQ(message_of<GeometryError>([&] { PagedKVCacheCollection(a.params, tensors); }),
            "PagedKVCache rejected: lookup_table: 2 rows for 1 sequences: give one row a sequence");
  tensors = a.tensors();
  tensors.lookup_table.strides = {23, 1};
  EXPECT_EQ(message_of<GeometryError>([&] { PagedKVCacheCollection(a.params, tensors); }),
            "PagedKVCache rejected: lookup_table: strides are [23, 1], not [24 or more, 1]: a kernel reads several "
            "columns at "
            "once");
}

TEST(ContinuousCollection, GivesKeysAndValuesOfALayer) {
  test::ContinuousFixture f;
  const ContinuousBatchingKVCacheCollection c = f.collection();
  EXPECT_EQ(ContinuousBatchingKVCacheCollection::name_str, "continuous_batching");
  EXPECT_EQ(c.kv_cache_dynamic_shape(), (Shape<4>{3, 5, 2, 4}));
  EXPECT_EQ(c.kv_cache_dynamic_strides(), (Shape<4>{160, 8, 4, 1}));
  EXPECT_EQ(c.blocks_shape(), (Shape<6>{-1, -1, -1, -1, 2, 4}));
  EXPECT_EQ(c.dtype(), DType::f32);
  EXPECT_EQ(c.kv_params(), (KVCacheStaticParams{2, 4}));
  EXPECT_EQ(c.max_seq_length(), 2U);
  EXPECT_EQ(c.max_cache_length(), 5U);
  EXPECT_EQ(c.cache_length(SeqIdx{0}), 3);
  EXPECT_EQ(f.flat(c.get_key_cache(LayerIdx{1}).blocks().data), 40);
  EXPECT_EQ(f.flat(c.get_value_cache(LayerIdx{0}).blocks().data), 80);
}

TEST(ContinuousCollection, RejectsLayersAndSlotsItDoesNotHave) {
  test::ContinuousFixture f;
  EXPECT_EQ(message_of<IndexError>([&] { (void)f.k(2); }),
            "ContinuousBatchingKVCacheCollection: layer 2 is outside [0, 2): the pool has that many layers");
  EXPECT_EQ(message_of<IndexError>([&] { (void)f.collection().cache_length(SeqIdx{-1}); }),
            "ContinuousBatchingKVCacheCollection: sequence -1 is outside [0, 2): the batch has that many rows");
  f.extents = {6, 1, 2, 5, 2, 4};
  EXPECT_EQ(message_of<UnsupportedError>([&] { (void)f.v(0); }),
            "ContinuousBatchingKVCacheCollection.get_value_cache: the pool has one slot: use get_key_cache");
  f.extents = {2, 3, 2, 5, 2, 4};
  EXPECT_EQ(message_of<GeometryError>([&] { (void)f.collection(); }),
            "ContinuousBatchingKVCacheCollection rejected: blocks: 3 slots: a pool has K and V, or K alone");
  f.extents = {3, 2, 2, 5, 4, 2};
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)f.collection(); }),
      "ContinuousBatchingKVCacheCollection rejected: blocks: extents are [3, 2, 2, 5, 4, 2], not [any, any, any, any, "
      "2, 4]: build the pool with the collection's parameters");
}

}  // namespace
}  // namespace kvscope::collections_test
