// Every map that a cache creates is encoded and executed: shared memory must hold the elements that direct addressing
// of the cache finds. Elements that must not be read are poison.
#include "core/tma/tile_map.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "core/smem/shared_image.h"
#include "core/tma/box_copy.h"
#include "core/tma/gather4.h"
#include "core/tma/tensor_map_rules.h"
#include "core/tma/tile_sizes.h"
#include "tests/core/cache/fixtures.h"
#include "tests/core/tma/gold.h"

namespace kvscope::tile_map_test {
namespace {

using test::cute_swizzle;
using test::dim;
using test::fix_a;
using test::head;
using test::seq;
using test::tok;

// One box at address 0, read back in linear order with CuTe's swizzle undone byte by byte.
template <class T>
std::vector<T> linear_elements(const SharedImage& image, TmaSwizzle swizzle, std::int64_t dst = 0) {
  std::vector<T> elements(static_cast<std::size_t>(image.size() - dst) / sizeof(T));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::uint64_t from = cute_swizzle(swizzle, static_cast<std::uint64_t>(dst) + i * sizeof(T));
    std::memcpy(&elements[i], image.bytes().data() + from, sizeof(T));
  }
  return elements;
}

template <class T>
std::vector<T> load(const TmaTile& tile, const GlobalMemory& memory, const TmaCoord& at) {
  const TensorMap map = tensor_map_of("tile", tile);
  SharedImage image(box_shape(map).window_bytes);
  const BoxLoad done = load_box(map, at, memory, image, 0, CopyIdx{0});
  EXPECT_EQ(done.tx_bytes, tile.box_bytes());
  return linear_elements<T>(image, map.swizzle);
}

struct Pool {
  GlobalMemory memory;
  explicit Pool(std::vector<float>& values) {
    memory.add("pool", {test::bytes_of(values), values.size() * sizeof(float)});
  }
};

TEST(MapOfATile, ReversesAxesAndCountsStridesInBytes) {
  auto a = fix_a();
  const TmaTile tile = a.k(1).create_tma_tile({.mode = SwizzleMode::b128, .BN = 4});
  const TensorMap map = tensor_map_of("K", tile, 0x1000);
  EXPECT_EQ(map.data_type, TmaDataType::f32);
  EXPECT_EQ(map.rank, 3);
  EXPECT_EQ(map.base, 0x1000U);
  EXPECT_EQ(map.dims, (std::array<std::uint64_t, 5>{8, 2, 100}));
  EXPECT_EQ(map.strides, (std::array<std::uint64_t, 4>{32, 64}));
  EXPECT_EQ(map.box, (std::array<std::uint32_t, 5>{32, 1, 4}));
  EXPECT_EQ(map.element_strides, (std::array<std::uint32_t, 5>{1, 1, 1, 1, 1}));
  EXPECT_EQ(map.swizzle, TmaSwizzle::b128);
  EXPECT_EQ(tensor_map_of("K", tile).base, reinterpret_cast<std::uintptr_t>(tile.base));
}

TEST(MapOfATile, NamesTheTypeAnElementTravelsAs) {
  EXPECT_EQ(tma_data_type(DType::e4m3), TmaDataType::u8);
  EXPECT_EQ(tma_data_type(DType::e8m0), TmaDataType::u8);
  EXPECT_EQ(tma_data_type(DType::u8), TmaDataType::u8);
  EXPECT_EQ(tma_data_type(DType::bf16), TmaDataType::bf16);
  EXPECT_EQ(tma_data_type(DType::f16), TmaDataType::f16);
  EXPECT_EQ(tma_data_type(DType::u16), TmaDataType::u16);
  EXPECT_EQ(tma_data_type(DType::i32), TmaDataType::i32);
  EXPECT_EQ(tma_data_type(DType::u32), TmaDataType::u32);
  EXPECT_EQ(tma_data_type(DType::i64), TmaDataType::i64);
  EXPECT_EQ(tma_data_type(DType::u64), TmaDataType::u64);
  for (const DType none : {DType::e5m2, DType::e2m1, DType::i8, DType::i16, DType::f64}) {
    EXPECT_THROW((void)tma_data_type(none), GeometryError);
  }
  for (int mode = 0; mode <= 3; ++mode) {
    EXPECT_EQ(static_cast<int>(tma_swizzle(static_cast<SwizzleMode>(mode))), mode);
  }
}

TEST(MapOfATile, RejectsWhatTheEncoderWould) {
  auto a = fix_a();
  TmaTile tile = a.k(1).create_tma_tile({.mode = SwizzleMode::b128, .BN = 4});
  tile.box.extents[0] = 300;
  EXPECT_EQ(test::message_of<GeometryError>([&] { (void)tensor_map_of("K, layer 1", tile, 0x1008); }),
            "tensor map of K, layer 1 rejected, 2 faults:\n"
            "  base (V05): 0x1008 is 8 B past a multiple of 16: move the tensor\n"
            "  box[2] (V13): 300 is outside 1 to 256: copy the tile in several boxes");
}

// Box row 3 is K of layer 2: a box that overruns its page reads another layer, without an error on hardware.
TEST(PlainTile, CarriedOutReadsRowsOfOneHeadAndZeroesBeyondIt) {
  auto a = fix_a();
  const Pool pool(a.pool);
  const PagedKVCache k = a.k(1);
  const TmaTile tile = k.create_tma_tile({.mode = SwizzleMode::b128, .BN = 4});
  const auto smem = load<float>(tile, pool.memory, tile_coords(tile, 1, head(1), dim(0)));
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 32; ++c) {
      EXPECT_EQ(smem[r * 32 + c], c < 8 ? static_cast<float>(64 + (1 + r) * 16 + 8 + c) : 0.0F) << r << " " << c;
    }
  }
  EXPECT_EQ(smem[0], 88);
  EXPECT_EQ(smem[3 * 32], 136);
  const auto above = load<float>(tile, pool.memory, tile_coords(tile, -1, head(1), dim(0)));
  EXPECT_EQ(above[0], 0);
  EXPECT_EQ(above[32], 72);
  const auto below = load<float>(tile, pool.memory, tile_coords(tile, 98, head(0), dim(0)));
  EXPECT_NE(below[32], 0);
  EXPECT_EQ(below[64], 0);
  EXPECT_EQ(load<float>(tile, pool.memory, tile_coords(tile, 0, head(2), dim(0)))[0], 0);
}

// Folded maps copy all column chunks at once, in the orders of the table in tma_tile.h.
TEST(FoldedTile, CarriedOutHoldsAllChunksInItsOrder) {
  std::vector<float> values = test::counting(64 * 2 * 24);
  for (float& value : values) value += 1;  // so that no element looks like fill
  const Pool pool(values);
  const TmaRows rows{"rows", test::bytes_of(values), DType::f32, 64, 2, 24};
  const std::size_t BN = 16, gran = 8, n = 3;
  TileOptions options{.mode = SwizzleMode::b32, .BN = 16, .BK = 24, .fold_chunks = 3};
  const TmaTile outer = make_tma_tile(rows, options);
  options.row_major = true;
  const TmaTile inner = make_tma_tile(rows, options);
  EXPECT_EQ(tensor_map_of("outer", outer).box, (std::array<std::uint32_t, 5>{8, 16, 3, 1}));
  EXPECT_EQ(tensor_map_of("inner", inner).box, (std::array<std::uint32_t, 5>{8, 8, 3, 2, 1}));
  for (int h = 0; h < 2; ++h) {
    const auto from_outer = load<float>(outer, pool.memory, tile_coords(outer, 24, head(h), dim(0)));
    const auto from_inner = load<float>(inner, pool.memory, tile_coords(inner, 24, head(h), dim(0)));
    for (std::size_t r = 0; r < BN; ++r) {
      for (std::size_t d = 0; d < gran * n; ++d) {
        const float element = values[((24 + r) * 2 + static_cast<std::size_t>(h)) * 24 + d];
        EXPECT_EQ(from_outer[d / gran * BN * gran + r * gran + d % gran], element);
        EXPECT_EQ(from_inner[r / 8 * n * 8 * gran + d / gran * 8 * gran + r % 8 * gran + d % gran], element);
      }
    }
  }
}

// The split map of a page: every token of every sequence, head and half, against the element reads of the cache. The
// rest of the pool is poison, which a row too many would copy.
TEST(PageTile, CarriedOutIsTheCachesElementsAndZeroPastThePage) {
  auto a = fix_a();
  for (const KOrV k_or_v : {KOrV::k, KOrV::v}) {
    const auto cache = [&] { return k_or_v == KOrV::k ? a.k(1) : a.v(1); };
    const std::vector<float> original = a.pool;
    std::set<std::size_t> readable;
    for (std::int64_t t = 0; t < 12; ++t) {
      for (int h = 0; h < 2; ++h) {
        const std::int64_t at = a.flat(cache().block_paged_ptr<1>(seq(0), tok(t), head(h), dim(0)));
        for (std::int64_t i = 0; i < 8; ++i) readable.insert(static_cast<std::size_t>(at + i));
      }
    }
    for (std::size_t i = 0; i < a.pool.size(); ++i) {
      if (!readable.contains(i)) a.pool[i] = -1e30F;
    }
    const Pool pool(a.pool);
    const TmaTile tile = cache().create_paged_tma_tile({.mode = SwizzleMode::b32, .BN = 4, .BK = 8});
    for (std::int64_t t = 0; t < 12; ++t) {
      for (int h = 0; h < 2; ++h) {
        const auto smem =
            load<float>(tile, pool.memory, page_coords(tile, cache().kv_tma_coords(seq(0), tok(t)), head(h), dim(0)));
        for (std::int64_t r = 0; r < 4; ++r) {
          for (std::int64_t c = 0; c < 8; ++c) {
            const float expected =
                t % 4 + r < 4 ? cache().load<1, float>(seq(0), head(h), tok(t + r), dim(c))[0] : 0.0F;
            EXPECT_EQ(smem[static_cast<std::size_t>(r * 8 + c)], expected) << t << " " << h << " " << r << " " << c;
          }
        }
      }
    }
    a.pool = original;
  }
}

// Exactly n rows; the rows before and after them are poison and must not be copied. A store leaves rows past n
// unchanged.
TEST(RaggedTile, CarriedOutBringsExactlyItsRowsBothWays) {
  std::vector<float> before(64 * 128), values = test::counting(100 * 2 * 64);
  const Pool pool(values);
  const TmaTile tile = make_ragged_tma_tile({"rows", test::bytes_of(values), DType::f32, 100, 2, 64},
                                            {.mode = SwizzleMode::b128, .BN = 64, .BK = 64});
  for (const auto& [row0, n] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{10, 20}, {10, 0}, {80, 20}, {0, 64}}) {
    for (int chunk = 0; chunk < 2; ++chunk) {
      std::vector<float> poisoned(values.size(), -1e30F);
      std::copy(values.begin() + row0 * 128, values.begin() + (row0 + n) * 128, poisoned.begin() + row0 * 128);
      std::swap(poisoned, values);
      const auto smem = load<float>(tile, pool.memory, ragged_coords(tile, row0, n, head(1), DimIdx{32LL * chunk}));
      std::swap(poisoned, values);
      for (std::int64_t r = 0; r < 64; ++r) {
        for (std::int64_t c = 0; c < 32; ++c) {
          const float expected = r < n ? static_cast<float>((row0 + r) * 128 + 64 + 32 * chunk + c) : 0.0F;
          ASSERT_EQ(smem[static_cast<std::size_t>(r * 32 + c)], expected) << row0 << " " << n << " " << r << " " << c;
        }
      }
    }
  }
  EXPECT_EQ(load<float>(tile, pool.memory, ragged_coords(tile, 10, 20, head(1), dim(0)))[0], 1344);
}

TEST(RaggedTile, NeedsAddressesBeforeTheCache) {
  std::vector<float> values(100 * 128);
  const TmaTile tile = make_ragged_tma_tile({"rows", test::bytes_of(values), DType::f32, 100, 2, 64},
                                            {.mode = SwizzleMode::b128, .BN = 64, .BK = 64});
  EXPECT_EQ(
      test::message_of<GeometryError>([&] { (void)tensor_map_of("K", tile, 0x7000); }),
      "tensor map of K rejected: base: a ragged tile begins 32768 B before the cache, which is at 0x7000: there must "
      "be as many addresses before it");
  EXPECT_EQ(tensor_map_of("K", tile, 0x8000).base, 0U);
}

// A whole tile of 64 selected rows by 576 columns, 144 gathers; row -1 is zero and counted.
TEST(Gather4Tile, CarriedOutIsTheChosenRows) {
  constexpr std::int64_t kRows = 10, kWidth = 576;
  std::vector<std::uint16_t> values(kRows * kWidth);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(7 * i + 1);
  GlobalMemory memory;
  auto* base = reinterpret_cast<std::byte*>(values.data());
  memory.add("pool", {base, values.size() * 2});
  const TmaTile tile = make_gather4_tma_tile({"rows", base, DType::bf16, kRows, 1, kWidth},
                                             {.tile_height = 64, .tile_width = kWidth, .mode = SwizzleMode::b128});
  const TensorMap map = tensor_map_of("rows", tile);
  SharedImage image(64 * kWidth * 2);
  std::int64_t bytes = 0, gathers = 0;
  const auto chosen = [](std::int64_t i) { return static_cast<std::int32_t>(i * 7 % 11 - 1); };  // -1 .. 9
  for (std::int64_t group = 0; group < tile.column_chunks(); ++group) {
    for (std::int64_t quad = 0; quad < 16; ++quad) {
      const TmaCoord at = gather4_coords(
          tile, {chosen(4 * quad), chosen(4 * quad + 1), chosen(4 * quad + 2), chosen(4 * quad + 3)}, group);
      const std::int64_t dst = 2 * gather4_smem_offset(tile, group, quad);
      bytes += gather4(map, at, memory, image, dst, CopyIdx{gathers++}).tx_bytes;
    }
  }
  EXPECT_EQ(gathers, 144);
  EXPECT_EQ(bytes, 73728);
  EXPECT_EQ(image.writer(2 * 8960), CopyIdx{2 * 16 + 3});
  const auto smem = linear_elements<std::uint16_t>(image, map.swizzle);
  for (std::int64_t i = 0; i < 64; ++i) {
    for (std::int64_t d = 0; d < kWidth; ++d) {
      const std::int64_t row = chosen(i);
      const int expected = row < 0 ? 0 : values[static_cast<std::size_t>(row * kWidth + d)];
      ASSERT_EQ(smem[static_cast<std::size_t>(d / 64 * 64 * 64 + i * 64 + d % 64)], expected) << i << " " << d;
    }
  }
}

// Rows of 512 fp8 and 64 bf16. The content is copied as i64, the rope values as bf16 from byte 512 on; with the stride
// of the rope alone, row 1 would begin inside row 0's content.
TEST(RopeTiles, CarriedOutReadTheRopeOfTheirRowsOnly) {
  constexpr std::size_t kRow = 640;
  std::vector<std::byte> values(12 * kRow);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t in_row = i % kRow;
    const auto rope = static_cast<std::uint16_t>(0x4000 + i / kRow * 64 + (in_row - 512) / 2);
    values[i] = in_row < 512 ? std::byte{0xEE} : static_cast<std::byte>(in_row % 2 == 0 ? rope & 0xFF : rope >> 8);
  }
  GlobalMemory memory;
  memory.add("pool", values);
  const TmaRows rows{"rows", values.data(), DType::e4m3, 12, 1, kRow};
  const auto rope = [](std::int64_t row, std::int64_t i) { return static_cast<std::uint16_t>(0x4000 + row * 64 + i); };

  const TmaTile plain = make_rope_tma_tile(rows, {.mode = SwizzleMode::b128, .BN = 4, .padded_depth = 512});
  const auto box = load<std::uint16_t>(plain, memory, tile_coords(plain, 3, head(0), dim(0)));
  const auto last = load<std::uint16_t>(plain, memory, tile_coords(plain, 10, head(0), dim(0)));
  const TmaTile gather =
      make_rope_gather4_tma_tile(rows, {.tile_width = 320, .padded_depth = 512, .mode = SwizzleMode::b128});
  SharedImage image(512);
  (void)gather4(tensor_map_of("rope", gather), gather4_coords(gather, {11, 0, -1, 5}, 0), memory, image, 0, CopyIdx{0});
  const auto gathered = linear_elements<std::uint16_t>(image, TmaSwizzle::b128);
  constexpr std::array<std::int64_t, 4> kChosen = {11, 0, -1, 5};
  for (std::int64_t r = 0; r < 4; ++r) {
    for (std::int64_t i = 0; i < 64; ++i) {
      const auto at = static_cast<std::size_t>(r * 64 + i);
      EXPECT_EQ(box[at], rope(3 + r, i));
      EXPECT_EQ(last[at], r < 2 ? rope(10 + r, i) : 0);  // rows 12 and 13 do not exist
      EXPECT_EQ(gathered[at],
                kChosen[static_cast<std::size_t>(r)] < 0 ? 0 : rope(kChosen[static_cast<std::size_t>(r)], i));
    }
  }

  const TmaTile content = make_gather4_tma_tile(rows, {.tile_width = 64, .tile_stride = 80, .tma_dtype = DType::i64});
  SharedImage wide(4 * 512);
  (void)gather4(tensor_map_of("content", content), gather4_coords(content, {2, 3, 4, 5}, 0), memory, wide, 0,
                CopyIdx{0});
  for (const std::byte byte : wide.bytes()) EXPECT_EQ(byte, std::byte{0xEE});  // no rope value among them
}

// A window begins at a chunk boundary: the token's scale is at index `skew` of it.
TEST(IndexScaleTile, CarriedOutHoldsThePagesScalesFromAnyToken) {
  auto f = test::paged_fixture({1, 4, true}, {3, 1, 2, 16, 1, 4}, {2}, test::table_of({{1, 0}}, 24, 2), 24, 1, 2);
  f.params.scale_dtype = DType::f32;
  f.params.quantization_granularity = 4;
  f.scales_extents = {3, 1, 2, 16, 1, 1};
  f.scale_pool = test::counting(96);
  const Pool pool(f.scale_pool);
  const PagedKVCache k = f.k(1);
  const TmaTile tile = k.create_index_scale_tma_tile(8);
  for (std::int64_t t = 0; t < 24; ++t) {
    const PageCoords at = k.scale_tma_coords(seq(0), tok(t));
    const auto smem = load<float>(tile, pool.memory, {at.row, at.block});
    for (std::int64_t i = 0; i < 8 && t % 16 + i < 16; ++i) {
      const auto scale = f.flat_scale(k.scales_block_paged_ptr(seq(0), tok(t + i), head(0)));
      EXPECT_EQ(smem[static_cast<std::size_t>(t % 16 - at.row + i)], static_cast<float>(scale)) << t << " " << i;
    }
  }
  std::vector<float> flat = test::counting(1002);
  const Pool flat_pool(flat);
  const TmaTile window = make_index_scale_tma_tile("scales", test::bytes_of(flat), DType::f32, 1002, 128);
  const auto end = load<float>(window, flat_pool.memory, {900, 0});
  ASSERT_EQ(end.size(), 132U);
  EXPECT_EQ(end[101], 1001);
  EXPECT_EQ(end[102], 0);  // past the last scale, inside the last chunk
}

// Maps of a cache obey the encoder's rules for all legal sizes.
TEST(TilesOfCaches, ObeyTheEncodersRules) {
  int made = 0;
  for (const DType dtype : {DType::f32, DType::bf16, DType::e4m3}) {
    for (const std::int64_t depth : {16, 64, 80, 128, 576}) {
      for (const std::int64_t heads : {1, 2, 3}) {
        std::vector<std::uint64_t> pool(static_cast<std::size_t>(64 * heads * depth * size_of(dtype) / 8));
        const TmaRows rows{"rows", reinterpret_cast<std::byte*>(pool.data()), dtype, 64, heads, depth};
        for (int mode = 0; mode <= 3; ++mode) {
          for (const std::int64_t BN : {8, 16, 64}) {
            for (const std::int64_t fold : {0, 1, 2}) {
              TileOptions options{.mode = static_cast<SwizzleMode>(mode), .BN = BN};
              const std::int64_t chunks =
                  padded_depth(dtype, options.mode, depth) / swizzle_granularity(dtype, options.mode);
              if (fold > 0) options.fold_chunks = chunks, options.row_major = fold == 2;
              TmaTile tile;
              try {
                tile = make_tma_tile(rows, options);
              } catch (const GeometryError&) {
                continue;
              }
              ++made;
              EXPECT_NO_THROW((void)tensor_map_of("rows", tile));
            }
          }
        }
      }
    }
  }
  EXPECT_GT(made, 500);
}

}  // namespace
}  // namespace kvscope::tile_map_test
