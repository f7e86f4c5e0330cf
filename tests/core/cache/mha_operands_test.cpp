#include "core/cache/mha_operands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <type_traits>
#include <vector>

#include "core/cache/kv_cache_concepts.h"
#include "tests/core/cache/fixtures.h"

namespace kvscope::mha_operands_test {
namespace {

using test::dim;
using test::fix_a;
using test::fix_aq;
using test::head;
using test::message_of;
using test::seq;
using test::tok;

// An operand's load_scale takes (token, head), a cache's (head, token): the types make the wrong order a compile error.
template <class Thing, class... Args>
concept CanLoadScale = requires(const Thing thing, Args... args) {
  thing.template load_scale<1>(args...);
};
static_assert(CanLoadScale<PagedKVCache, SeqIdx, HeadIdx, TokIdx, DimIdx>);
static_assert(!CanLoadScale<PagedKVCache, SeqIdx, TokIdx, HeadIdx, DimIdx>);
static_assert(CanLoadScale<KVCacheMHAOperand<PagedKVCache>, SeqIdx, TokIdx, HeadIdx, DimIdx>);
static_assert(!CanLoadScale<KVCacheMHAOperand<PagedKVCache>, SeqIdx, HeadIdx, TokIdx, DimIdx>);

// Every call of the operand equals the call of the cache.
TEST(CacheOperand, ForwardsToTheCacheWithTokenAndHeadInItsOwnOrder) {
  auto a = fix_aq();
  const KVCacheMHAOperand operand(a.k(1));
  EXPECT_EQ(operand.load_scale<1>(seq(0), tok(5), head(1), dim(4))[0], 23.0F);
  EXPECT_EQ(message_of<IndexError>([&] { (void)operand.load_scale<1>(seq(0), tok(1), head(5), dim(4)); }),
            "PagedKVCache: head 5 is outside [0, 2): num_heads of the cache");
  EXPECT_EQ(operand.row_idx(seq(0), tok(2)), RowIdx{74});
  EXPECT_EQ(operand.num_kv_rows(), 100);
  EXPECT_EQ(operand.get_type_name(), "KVCacheMHAOperand");
  EXPECT_EQ(operand.page_size(), 4);
  EXPECT_EQ(operand.dtype(), DType::f32);
  EXPECT_EQ(operand.scale_dtype(), DType::f32);
  EXPECT_TRUE(operand.quantization_enabled());
  EXPECT_EQ(operand.quantization_granularity(), 4);
  EXPECT_EQ(operand.cache_length(seq(0)), 9);
  EXPECT_EQ(operand.max_context_length(), 10);
  EXPECT_EQ(operand.get_tma_row(14), 74);
  EXPECT_EQ(a.flat(operand.block_paged_ptr<4>(seq(0), tok(4), head(1))), 72);
  EXPECT_EQ(a.flat_scale(operand.scales_block_paged_ptr(seq(0), tok(5), head(1), dim(3))), 22);
  EXPECT_EQ(a.flat_scale(reinterpret_cast<std::byte*>(operand.scales_raw_ptr())), 16);
  EXPECT_EQ(operand.populate({.BN = 8}, seq(0), tok(0)).get_row(5), RowIdx{1});
}

// A tile of tokens in the caller's layout: shape [4 tokens, 8 elements] with the row stride of the cache.
TEST(CacheOperand, ShowsATileThroughACallersLayout) {
  auto a = fix_a();
  const KVCacheMHAOperand operand(a.k(1));
  const auto view = operand.block_paged_tile<4>(seq(0), tok(4), head(1), {{4, 8}, {16, 1}}).as<float>();
  EXPECT_EQ(view(1, 3), 91.0F);
  EXPECT_THROW((void)view(4, 0), IndexError);
}

TEST(CacheOperand, MakesTheCachesTilesWithItsOwnDepth) {
  auto a = fix_a();
  const KVCacheMHAOperand operand(a.k(1));
  const TmaTile tile = operand.create_tma_tile(3, {.mode = SwizzleMode::none, .BN = 4});
  EXPECT_EQ(tile.columns, 4);  // depth 3 padded to a chunk of 4: the default BK
  EXPECT_EQ(tile.dims, (TmaShape{100, 2, 8}));
  EXPECT_EQ(operand.create_tma_tile(3, {.BN = 8, .BK = 8}).columns, 8);
  EXPECT_EQ(operand.create_ragged_tma_tile(8, {.BN = 4}).kind, TmaKind::ragged);
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)operand.create_ragged_tma_tile(4, {.BN = 4}); }),
      "KVCacheMHAOperand.create_ragged_tma_tile: depth 4 is not the 8 elements of a head: a ragged map spans whole "
      "heads");
  EXPECT_EQ(operand.create_gather4_tma_tile({.tile_width = 16}).kind, TmaKind::gather4);
  EXPECT_THROW((void)operand.create_rope_tma_tile({.BN = 4, .padded_depth = 0}), GeometryError);  // f32 rows
  EXPECT_THROW((void)operand.create_rope_gather4_tma_tile({.tile_width = 8}), GeometryError);
  EXPECT_EQ(
      message_of<UnsupportedError>([&] { (void)operand.create_scale_tma_tile(8); }),
      "KVCacheMHAOperand.create_scale_tma_tile does not exist: scales are read through a KVCacheScalesMHAOperand");
  EXPECT_THROW((void)operand.create_index_scale_tma_tile(8), UnsupportedError);
}

TEST(CacheOperand, PassesAContinuousCacheThrough) {
  test::ContinuousFixture f;
  const KVCacheMHAOperand operand(f.v(1));
  EXPECT_EQ(operand.page_size(), 0);
  EXPECT_EQ(operand.row_idx(seq(0), tok(3)), RowIdx{43});
  EXPECT_EQ(operand.get_tma_row(-1), -1);
  EXPECT_EQ(operand.scales_raw_ptr(), nullptr);
  EXPECT_EQ(operand.load_scale<1>(seq(0), tok(0), head(0), dim(0))[0], 0.0F);
}

// Reading scales of another type through an f32 pointer would give meaningless numbers.
TEST(CacheOperand, GivesNoF32PointerToOtherScales) {
  auto a = fix_aq();
  a.params.scale_dtype = DType::i32;
  std::vector<std::uint16_t> scales(480);
  PagedTensors tensors = a.tensors();
  a.params.scale_dtype = DType::bf16;
  tensors.scales = AnyView<6>{reinterpret_cast<std::byte*>(scales.data()), DType::bf16, a.scales_extents};
  const KVCacheMHAOperand operand(PagedKVCacheCollection(a.params, tensors).get_key_cache(LayerIdx{0}));
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)operand.scales_raw_ptr(); }),
      "KVCacheMHAOperand.scales_raw_ptr: scales are bf16, not the f32 of the pointer: use the cache's scales_raw_ptr");
}

// The scales as values with their own rows.
TEST(ScalesOperand, PresentsScalesAsIfTheyWereValues) {
  auto a = fix_aq();
  const KVCacheScalesMHAOperand operand(a.k(1));
  EXPECT_EQ(a.flat_scale(operand.block_paged_ptr<1>(seq(0), tok(5), head(1), dim(3))), 22);
  EXPECT_EQ(a.flat_scale(operand.block_paged_ptr<1>(seq(0), tok(5), head(1), dim(4))), 23);
  EXPECT_EQ(a.flat_scale(operand.block_paged_ptr<3>(seq(0), tok(5), head(1), dim(3))),
            22);  // the tile size is ignored
  EXPECT_EQ(operand.row_idx(seq(0), tok(2)), RowIdx{74});
  EXPECT_EQ(operand.load_scale<2>(seq(0), tok(2), head(0), dim(0)), (std::array<float, 2>{0, 0}));
  EXPECT_EQ(operand.scales_block_paged_ptr(seq(0), tok(2), head(0)), nullptr);
  EXPECT_EQ(operand.scales_raw_ptr(), nullptr);
  EXPECT_EQ(operand.dtype(), DType::f32);
  EXPECT_EQ(operand.scale_dtype(), std::nullopt);
  EXPECT_EQ(operand.page_size(), 4);
  EXPECT_TRUE(operand.quantization_enabled());
  EXPECT_EQ(operand.quantization_granularity(), 4);
  EXPECT_EQ(operand.cache_length(seq(1)), 2);
  EXPECT_EQ(operand.max_context_length(), 10);
  EXPECT_EQ(operand.num_kv_rows(), 100);
  EXPECT_EQ(operand.get_tma_row(14), 74);
  EXPECT_EQ(operand.get_type_name(), "KVCacheScalesMHAOperand");
  EXPECT_EQ(operand.block_paged_tile<1>(seq(0), tok(5), head(1), {{1, 2}, {4, 1}}).as<float>()(0, 1), 23.0F);
}

// The rows are those of the scales, through the scales' table; no alignment is required.
TEST(ScalesOperand, PopulatesThroughTheScalesTable) {
  auto a = fix_aq();
  a.scales_table = test::table_of({{1, 2, 0}, {3}}, 24, 4);
  const KVCacheScalesMHAOperand operand(a.k(1));
  const PagedRowIndices rows = operand.populate({.BN = 8, .base_alignment = 1}, seq(0), tok(4));
  EXPECT_THAT(std::vector<std::uint32_t>(rows.rows().begin(), rows.rows().end()), testing::ElementsAre(48, 0));
  EXPECT_EQ(a.k(1).row_idx(seq(0), tok(4)), RowIdx{0});
}

TEST(ScalesOperand, NamesTheCallsItDoesNotHave) {
  auto a = fix_aq();
  const KVCacheScalesMHAOperand operand(a.k(1));
  EXPECT_EQ(message_of<UnsupportedError>([&] { (void)operand.create_tma_tile(8, {}); }),
            "KVCacheScalesMHAOperand.create_tma_tile does not exist: scales are read by pointer, or through "
            "create_index_scale_tma_tile");
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)operand.create_ragged_tma_tile(8, {}); }),
              testing::HasSubstr("create_ragged_tma_tile"));
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)operand.create_scale_tma_tile(8); }),
              testing::HasSubstr("create_scale_tma_tile"));
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)operand.create_rope_tma_tile({}); }),
              testing::HasSubstr("create_rope_tma_tile"));
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)operand.create_gather4_tma_tile({}); }),
              testing::HasSubstr("create_gather4_tma_tile"));
  EXPECT_THAT(message_of<UnsupportedError>([&] { (void)operand.create_rope_gather4_tma_tile({}); }),
              testing::HasSubstr("create_rope_gather4_tma_tile"));
  EXPECT_THROW((void)operand.create_index_scale_tma_tile(4), GeometryError);  // the cache's rules: 4 scales per row
  auto plain = fix_a();
  EXPECT_THROW((void)KVCacheScalesMHAOperand(plain.k(0)).row_idx(seq(0), tok(0)), UnsupportedError);
  EXPECT_THROW((void)KVCacheScalesMHAOperand(plain.k(0)).block_paged_ptr<1>(seq(0), tok(0), head(0)), UnsupportedError);
}

// A tensor [2,5,2,4].
TEST(TensorOperand, AddressesAPlainTensor) {
  std::vector<float> data = test::counting(80);
  const LayoutTensorMHAOperand operand(AnyView<4>(test::bytes_of(data), DType::f32, {2, 5, 2, 4}));
  EXPECT_EQ((operand.block_paged_ptr<1>(seq(1), tok(3), head(1), dim(2)) - test::bytes_of(data)) / 4, 70);
  EXPECT_EQ(operand.row_idx(seq(1), tok(3)), RowIdx{8});
  EXPECT_EQ(operand.num_kv_rows(), 10);
  EXPECT_EQ(operand.cache_length(seq(1)), 5);
  EXPECT_EQ(operand.max_context_length(), 5);
  EXPECT_EQ(operand.col_idx(head(1)), 4);
  EXPECT_EQ(operand.get_tma_row(-3), -3);
  EXPECT_EQ(operand.page_size(), 0);
  EXPECT_EQ(operand.get_type_name(), "LayoutTensorMHAOperand");
  EXPECT_FALSE(operand.quantization_enabled());
  EXPECT_EQ(operand.scale_dtype(), DType::f32);
  EXPECT_EQ(operand.quantization_granularity(), 4);  // one scale would cover the head
  EXPECT_EQ(operand.scales_block_paged_ptr(seq(0), tok(0), head(0)), nullptr);
  EXPECT_EQ(operand.populate({.BN = 4}, seq(1), tok(1)).get_row(2), RowIdx{8});
  EXPECT_EQ(operand.block_paged_tile<2>(seq(1), tok(3), head(1), {{2, 4}, {8, 1}}).as<float>()(1, 2), 78.0F);
}

// Strides are the caller's: a tensor stored [B, H, S, D] seen as [B, S, H, D].
TEST(TensorOperand, FollowsAnyStrides) {
  std::vector<float> data = test::counting(80);
  const LayoutTensorMHAOperand operand(AnyView<4>(test::bytes_of(data), DType::f32, {2, 5, 2, 4}, {40, 4, 20, 1}));
  EXPECT_EQ((operand.block_paged_ptr<1>(seq(1), tok(3), head(1), dim(2)) - test::bytes_of(data)) / 4, 40 + 12 + 20 + 2);
}

// Two scales for 128 elements; the last element of the head belongs to the second.
TEST(TensorOperand, FindsTheScaleOfAnElement) {
  std::vector<float> data(2 * 3 * 128);
  std::vector<float> scales = test::counting(12);
  const LayoutTensorMHAOperand operand(AnyView<4>(test::bytes_of(data), DType::f32, {1, 2, 3, 128}),
                                       AnyView<4>(test::bytes_of(scales), DType::f32, {1, 2, 3, 2}));
  EXPECT_TRUE(operand.quantization_enabled());
  EXPECT_EQ(operand.quantization_granularity(), 64);
  EXPECT_EQ(operand.load_scale<1>(seq(0), tok(1), head(2), dim(127))[0], 11.0F);
  EXPECT_EQ(operand.load_scale<2>(seq(0), tok(1), head(2), dim(63)), (std::array<float, 2>{10, 11}));
  EXPECT_EQ((operand.scales_block_paged_ptr(seq(0), tok(1), head(2), dim(64)) - test::bytes_of(scales)) / 4, 11);
  EXPECT_EQ(operand.scales_raw_ptr(), nullptr);
  EXPECT_EQ(message_of<IndexError>([&] { (void)operand.load_scale<2>(seq(0), tok(1), head(2), dim(64)); }),
            "LayoutTensorMHAOperand: scale 2 is outside [0, 2): last extent of the scales");
  const TmaTile tile = operand.create_scale_tma_tile(8);
  EXPECT_EQ(tile.dims, (TmaShape{1, 12}));
  EXPECT_EQ(tile.box, (TmaShape{1, 8}));
}

TEST(TensorOperand, NamesWhatIsOutsideOrMissing) {
  std::vector<float> data(80), scales(10);
  const AnyView<4> buffer(test::bytes_of(data), DType::f32, {2, 5, 2, 4});
  const LayoutTensorMHAOperand operand(buffer);
  EXPECT_EQ(message_of<IndexError>([&] { (void)operand.row_idx(seq(1), tok(5)); }),
            "LayoutTensorMHAOperand: token 5 is outside [0, 5): second extent of the buffer");
  EXPECT_THROW((void)operand.row_idx(seq(2), tok(0)), IndexError);
  EXPECT_THROW((void)operand.col_idx(head(2)), IndexError);
  EXPECT_THROW((void)operand.block_paged_ptr<1>(seq(0), tok(0), head(2)), IndexError);
  EXPECT_THROW((void)operand.block_paged_ptr<1>(seq(0), tok(0), head(0), dim(4)), IndexError);
  EXPECT_THROW((void)operand.cache_length(seq(2)), IndexError);
  EXPECT_EQ(message_of<UnsupportedError>([&] { (void)operand.load_scale<1>(seq(0), tok(0), head(0), dim(0)); }),
            "LayoutTensorMHAOperand.load_scale does not exist: the operand was made without scales");
  EXPECT_THROW((void)operand.create_scale_tma_tile(4), UnsupportedError);
  EXPECT_EQ(
      message_of<UnsupportedError>([&] { (void)operand.create_rope_tma_tile({}); }),
      "LayoutTensorMHAOperand.create_rope_tma_tile does not exist: there are no rope-aware rows outside a paged cache");
  EXPECT_THROW((void)operand.create_rope_gather4_tma_tile({}), UnsupportedError);
  EXPECT_THROW((void)operand.create_index_scale_tma_tile(4), UnsupportedError);
  EXPECT_EQ(
      message_of<GeometryError>([&] {
        LayoutTensorMHAOperand(buffer, AnyView<4>(test::bytes_of(scales), DType::f32, {1, 5, 2, 1}));
      }),
      "LayoutTensorMHAOperand rejected: scales: extent 0 is 1, and the buffer's is 2: both cover the same tokens and "
      "heads");
}

TEST(TensorOperand, MakesTilesOfPackedRows) {
  std::vector<float> data(80);
  const LayoutTensorMHAOperand operand(AnyView<4>(test::bytes_of(data), DType::f32, {2, 5, 2, 4}));
  EXPECT_EQ(operand.create_tma_tile(4, {.BN = 8}).dims, (TmaShape{10, 2, 4}));
  EXPECT_EQ(operand.create_ragged_tma_tile(4, {.BN = 8}).dims, (TmaShape{22, 8, 4}));
  EXPECT_THROW((void)operand.create_ragged_tma_tile(3, {.BN = 8}), GeometryError);
  EXPECT_EQ(operand.create_gather4_tma_tile({.tile_width = 8}).dims, (TmaShape{10, 8}));
}

// A total of 10 scales is not a multiple of 4.
TEST(TensorOperand, RejectsScalesThatFillNoWholeChunk) {
  std::vector<float> data(80), scales(10);
  const LayoutTensorMHAOperand operand(AnyView<4>(test::bytes_of(data), DType::f32, {1, 5, 2, 8}),
                                       AnyView<4>(test::bytes_of(scales), DType::f32, {1, 5, 2, 1}));
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)operand.create_scale_tma_tile(4); }),
      "tensor map of LayoutTensorMHAOperand.create_scale_tma_tile rejected: scales: 10 scales are not a multiple of 4: "
      "pad them to 12");
}

struct RaggedFixture {
  std::vector<float> data = test::counting(56);
  std::vector<std::uint32_t> offsets{0, 3, 7};
  [[nodiscard]] AnyView<3> buffer() { return {test::bytes_of(data), DType::f32, {7, 2, 4}}; }
  [[nodiscard]] StridedView<const std::uint32_t, 1> table() const {
    return {offsets.data(), {static_cast<std::int64_t>(offsets.size())}};
  }
};

// Rows, pointers and lengths of two sequences.
TEST(RaggedOperand, CountsRowsFromItsSequencesOffset) {
  RaggedFixture f;
  const RaggedMHAOperand operand(f.buffer(), f.table());
  EXPECT_EQ(operand.row_idx(seq(1), tok(2)), RowIdx{5});
  EXPECT_EQ((operand.block_paged_ptr<1>(seq(1), tok(2), head(1), dim(3)) - test::bytes_of(f.data)) / 4, 47);
  EXPECT_EQ(operand.cache_length(seq(1)), 4);
  EXPECT_EQ(operand.num_kv_rows(), 7);
  EXPECT_EQ(operand.get_tma_row(-1), -1);
  EXPECT_EQ(operand.page_size(), 0);
  EXPECT_EQ(operand.quantization_granularity(), 0);
  EXPECT_FALSE(operand.quantization_enabled());
  EXPECT_EQ(operand.get_type_name(), "RaggedMHAOperand");
  EXPECT_EQ(operand.load_scale<1>(seq(0), tok(0), head(0), dim(0))[0], 0.0F);
  EXPECT_EQ(operand.scales_block_paged_ptr(seq(0), tok(0), head(0)), nullptr);
  EXPECT_EQ(operand.scales_raw_ptr(), nullptr);
  EXPECT_EQ(operand.populate({.BN = 2}, seq(1), tok(1)).get_row(1), RowIdx{5});
  EXPECT_EQ(operand.block_paged_tile<2>(seq(1), tok(2), head(1), {{2, 4}, {8, 1}}).as<float>()(1, 3), 55.0F);
  EXPECT_EQ(operand.create_tma_tile(4, {.BN = 8}).dims, (TmaShape{7, 2, 4}));
  EXPECT_EQ(operand.create_ragged_tma_tile(4, {.BN = 8}).dims, (TmaShape{16, 8, 4}));
  EXPECT_EQ(operand.create_gather4_tma_tile({.tile_width = 8}).dims, (TmaShape{7, 8}));
}

// Token 3 of the first sequence would be a row of the second sequence.
TEST(RaggedOperand, NamesWhatIsOutsideOrMissing) {
  RaggedFixture f;
  const RaggedMHAOperand operand(f.buffer(), f.table());
  EXPECT_EQ(message_of<IndexError>([&] { (void)operand.row_idx(seq(0), tok(3)); }),
            "RaggedMHAOperand: token 3 is outside [0, 3): rows of the sequence");
  EXPECT_EQ(message_of<IndexError>([&] { (void)operand.cache_length(seq(2)); }),
            "RaggedMHAOperand: sequence 2 is outside [0, 2): one less than the offsets");
  EXPECT_THROW((void)operand.block_paged_ptr<1>(seq(0), tok(0), head(2)), IndexError);
  EXPECT_THROW((void)operand.block_paged_ptr<1>(seq(0), tok(0), head(0), dim(4)), IndexError);
  EXPECT_EQ(message_of<UnsupportedError>([&] { (void)operand.max_context_length(); }),
            "RaggedMHAOperand.max_context_length does not exist: take the largest cache_length");
  EXPECT_THROW((void)operand.create_rope_tma_tile({}), UnsupportedError);
  EXPECT_THROW((void)operand.create_rope_gather4_tma_tile({}), UnsupportedError);
  EXPECT_THROW((void)operand.create_scale_tma_tile(4), UnsupportedError);
  EXPECT_EQ(
      message_of<GeometryError>([&] { (void)operand.create_index_scale_tma_tile(4); }),
      "RaggedMHAOperand.create_index_scale_tma_tile: 2 x 4 elements a token: the window is over one scale a token");
  f.offsets = {0, 5, 3, 8};
  EXPECT_EQ(message_of<GeometryError>([&] { RaggedMHAOperand(f.buffer(), f.table()); }),
            "RaggedMHAOperand rejected, 2 faults:\n"
            "  cache_row_offsets: entry 2 is 3, less than the 5 before it: offsets never fall\n"
            "  cache_row_offsets: the last is 8, past the buffer's 7 rows");
  f.offsets = {};
  EXPECT_THROW(RaggedMHAOperand(f.buffer(), f.table()), GeometryError);
}

// Rank 2 is one line; rank 3 uses the extents of the scales, not of the buffer.
TEST(RaggedOperand, MapsScalesByTheirRank) {
  RaggedFixture f;
  std::vector<float> scales(64);
  const auto tile = [&](std::vector<std::int64_t> extents) {
    return RaggedMHAOperand(f.buffer(), {test::bytes_of(scales), DType::f32, extents}, f.table())
        .create_scale_tma_tile(4);
  };
  EXPECT_EQ(tile({7, 4}).dims, (TmaShape{1, 28}));
  EXPECT_EQ(tile({3, 8, 1}).dims, (TmaShape{3, 8}));
  EXPECT_EQ(tile({3, 8, 1}).strides, (TmaShape{8, 1}));
  EXPECT_EQ(
      message_of<GeometryError>([&] {
        (void)tile({7, 3});
      }),
      "tensor map of RaggedMHAOperand.create_scale_tma_tile rejected: scales: 21 scales are not a multiple of 4: pad "
      "them to 24");
  EXPECT_EQ(message_of<GeometryError>([&] {
              (void)tile({3, 8, 2});
            }),
            "RaggedMHAOperand.create_scale_tma_tile: the third extent of the scales is 2, and a row must be contiguous: "
            "make it 1");
  EXPECT_EQ(message_of<UnsupportedError>([&] { (void)tile({28}); }),
            "RaggedMHAOperand.create_scale_tma_tile does not exist: scales of rank 1 have no map: use rank 2 or 3");
  EXPECT_THROW((void)tile({1, 1, 4, 7}), UnsupportedError);
}

// One f32 a token: the window's flat form over the buffer.
TEST(RaggedOperand, MakesAnIndexScaleWindowOverOneScaleAToken) {
  std::vector<float> data(40);
  const std::vector<std::uint32_t> offsets{0, 40};
  const RaggedMHAOperand operand(AnyView<3>(test::bytes_of(data), DType::f32, {40, 1, 1}), {offsets.data(), {2}});
  const TmaTile tile = operand.create_index_scale_tma_tile(16);
  EXPECT_EQ(tile.dims, (TmaShape{1, 40}));
  EXPECT_EQ(tile.box, (TmaShape{1, 20}));
}

}  // namespace
}  // namespace kvscope::mha_operands_test
