#include "core/cache/layer_view.h"

#include <gtest/gtest.h>

#include "tests/core/cache/fixtures.h"

namespace kvscope::layer_view_test {
namespace {

using test::fix_a;
using test::fix_m;
using test::message_of;
using test::seq;
using test::tok;

// The strides of the pools, all six axes. The view's strides below are four of these six.
TEST(LayerView, IsCutFromAPoolOfSixRowMajorAxes) {
  auto a = fix_a();
  EXPECT_EQ(a.collection().blocks().strides, (Shape<6>{384, 192, 64, 16, 8, 1}));
  EXPECT_EQ(count_of(a.collection().blocks().extents), 1920);
  EXPECT_EQ(a.pool.size(), 1920U);
  auto m = fix_m();
  EXPECT_EQ(m.collection().blocks().strides, (Shape<6>{96, 96, 32, 8, 8, 1}));
  test::ContinuousFixture c;
  EXPECT_EQ(c.collection().blocks().strides, (Shape<6>{160, 80, 40, 8, 4, 1}));
}

// The dropped axes are still part of the block stride: without them a block would be P rows, not kv * L * P.
TEST(LayerView, KeepsFourAxesAndTheBlockStrideOfAllSix) {
  EXPECT_EQ(compute_kv_cache_dynamic_shape_strides({5, 2, 3, 4, 2, 8}),
            (LayerViewLayout{{5, 4, 2, 8}, {384, 16, 8, 1}}));
  EXPECT_EQ(compute_kv_cache_dynamic_shape_strides({5, 1, 3, 4, 1, 8}), (LayerViewLayout{{5, 4, 1, 8}, {96, 8, 8, 1}}));
  EXPECT_EQ(compute_kv_cache_dynamic_shape_strides({3, 2, 2, 5, 2, 4}),
            (LayerViewLayout{{3, 5, 2, 4}, {160, 8, 4, 1}}));
}

TEST(LayerView, OffsetsCountLayersInsideKAndV) {
  EXPECT_EQ(layer_view_offset({5, 2, 3, 4, 2, 8}, KOrV::k, LayerIdx{1}), 64);
  EXPECT_EQ(layer_view_offset({5, 2, 3, 4, 2, 8}, KOrV::v, LayerIdx{0}), 192);
  EXPECT_EQ(layer_view_offset({5, 2, 3, 4, 2, 8}, KOrV::v, LayerIdx{2}), 320);
}

// Bases, rows per block, total rows.
TEST(LayerView, BeginsAtItsSlotAndLayerAndSpansAllBlocks) {
  auto a = fix_a();
  EXPECT_EQ(a.flat(a.k(1).blocks().data), 64);
  EXPECT_EQ(a.flat(a.v(2).blocks().data), 320);
  EXPECT_EQ(a.k(1).stride(), 24);
  EXPECT_EQ(a.k(1).num_kv_rows(), 100);
  auto m = fix_m();
  EXPECT_EQ(m.k(2).stride(), 12);
  EXPECT_EQ(m.k(2).num_kv_rows(), 52);
  test::ContinuousFixture c;
  EXPECT_EQ(c.flat(c.v(1).blocks().data), 120);
  EXPECT_EQ(c.v(1).stride(), 20);
  EXPECT_EQ(c.v(1).num_kv_rows(), 45);
}

// Every element of K and V and of every layer against six explicit loops over the pool: an index that skips an axis, or
// has two axes in the wrong order, reads the number of another element.
TEST(LayerView, ReadsTheElementThatSixLoopsFind) {
  const Shape<6> extents{3, 2, 4, 5, 2, 7};
  std::vector<float> pool = test::counting(count_of(extents));
  const AnyView<6> view6(test::bytes_of(pool), DType::f32, extents);
  const LayerViewLayout layout = compute_kv_cache_dynamic_shape_strides(extents);
  float expected = 0;
  for (int block = 0; block < 3; ++block) {
    for (int k_or_v = 0; k_or_v < 2; ++k_or_v) {
      for (int l = 0; l < 4; ++l) {
        const auto view = layer_view(view6, layout, static_cast<KOrV>(k_or_v), LayerIdx{l}).as<float>();
        for (int row = 0; row < 5; ++row) {
          for (int h = 0; h < 2; ++h) {
            for (int d = 0; d < 7; ++d) ASSERT_EQ(view(block, row, h, d), expected++);
          }
        }
      }
    }
  }
}

// Page strides of 25 rows, of half a row, and below the packed stride.
TEST(LayerView, TakesAPageStrideOfWholeRowsThatKeepsPagesApart) {
  auto a = fix_a();
  a.pool.resize(5 * 400);
  PagedTensors tensors = a.tensors();
  tensors.page_stride = 400;
  const PagedKVCacheCollection collection(a.params, tensors);
  EXPECT_EQ(collection.get_key_cache(LayerIdx{0}).stride(), 25);
  EXPECT_EQ(collection.get_key_cache(LayerIdx{0}).row_idx(seq(0), tok(2)), RowIdx{77});
  EXPECT_EQ(collection.kv_cache_dynamic_strides(), (Shape<4>{400, 16, 8, 1}));

  tensors.page_stride = 384;  // exactly packed
  EXPECT_EQ(PagedKVCacheCollection(a.params, tensors).get_key_cache(LayerIdx{0}).stride(), 24);
  tensors.page_stride = 392;
  EXPECT_EQ(
      message_of<GeometryError>([&] { PagedKVCacheCollection(a.params, tensors); }),
      "PagedKVCacheCollection blocks: a page stride of 392 elements is not a whole number of rows of 16: use 400");
  tensors.page_stride = 368;
  EXPECT_EQ(
      message_of<GeometryError>([&] { PagedKVCacheCollection(a.params, tensors); }),
      "PagedKVCacheCollection blocks: a page stride of 368 elements is less than the 384 of a packed block, so pages "
      "would overlap: give 384 or more, or -1 for packed");
}

TEST(StaticRowMajor, IsUnknownFromTheFirstUnknownExtentOutwards) {
  EXPECT_EQ(static_row_major<6>({kUnknownValue, 2, kUnknownValue, 4, 2, 8}),
            (Shape<6>{kUnknownValue, kUnknownValue, 64, 16, 8, 1}));
}

}  // namespace
}  // namespace kvscope::layer_view_test
