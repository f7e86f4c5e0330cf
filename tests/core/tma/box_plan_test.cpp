// Source and destination addresses of chunks and bytes, without moving any.
#include "core/tma/box_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "tests/core/tma/gold.h"
#include "tests/property.h"

namespace kvscope::box_plan_test {
namespace {

using test::kBase;
using test::map_of;
using test::message_of;

constexpr auto k128 = TmaSwizzle::b128;
const TensorMap kMap = map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, k128);

TEST(BoxShape, CountsRowsByTheirStepAndPadsThemToTheSpan) {
  const TensorMap every_third = map_of(TmaDataType::bf16, {64, 20}, {128}, {16, 8}, k128, {1, 3});
  EXPECT_EQ(box_shape(every_third), (BoxShape{{16, 3, 1, 1, 1}, 3, 32, 128, 96, 384}));
  EXPECT_EQ(box_shape(every_third, {.padding = BoxSwitches::Padding::dense}).pitch, 32);
  const TensorMap plain = map_of(TmaDataType::u8, {64, 20}, {64}, {48, 8}, TmaSwizzle::none);
  EXPECT_EQ(box_shape(plain), (BoxShape{{48, 8, 1, 1, 1}, 8, 48, 48, 384, 384}));
}

TEST(BoxSwitches, AreWrittenDownForAResultFile) {
  EXPECT_EQ(to_text({}), "target sm_90, short rows padded to the span, NaN fill 7ff7, store edge 16 B");
  EXPECT_EQ(to_text({TmaTarget::sm_100, BoxSwitches::Padding::dense, BoxSwitches::Nan::quiet,
                     BoxSwitches::StoreEdge::element}),
            "target sm_100, short rows dense, NaN fill quiet, store edge element");
}

// The data that a viewer draws at the edge: which chunk is memory, which is fill, where each lands.
TEST(BoxChunks, TellWhatIsMemoryAndWhatIsFill) {
  const auto chunks = box_chunks(kMap, {0, 17}, 1024);
  ASSERT_EQ(chunks.size(), 64U);
  EXPECT_EQ(chunks[8],
            (BoxChunk{.row = 1, .column = 0, .global = kBase + 18 * 128, .shared = 1024 + 144, .data_bytes = 16}));
  EXPECT_EQ(chunks[9],
            (BoxChunk{.row = 1, .column = 8, .global = kBase + 18 * 128 + 16, .shared = 1024 + 128, .data_bytes = 16}));
  EXPECT_FALSE(chunks[23].filled());  // row 19, the last
  EXPECT_TRUE(chunks[24].filled());
  EXPECT_EQ(chunks[24].shared, 1024 + 432);

  const TensorMap narrow = map_of(TmaDataType::u8, {470, 4}, {480}, {32, 1}, TmaSwizzle::none);
  const auto edge = box_chunks(narrow, {464, 3}, 0);
  EXPECT_EQ(edge[0].data_bytes, 6);
  EXPECT_EQ(edge[1].data_bytes, 0);

  // In odd lines FLIP_8B exchanges the halves of a chunk; the chunk stays in one piece.
  TensorMap flip = kMap;
  flip.swizzle = TmaSwizzle::b128_atom32_flip8;
  const auto flipped = box_chunks(flip, {0, 0}, 0, {.target = TmaTarget::sm_100});
  EXPECT_FALSE(flipped[0].halves_swapped);
  EXPECT_TRUE(flipped[8].halves_swapped);
  EXPECT_EQ(flipped[8].shared, 160);
}

TEST(BoxChunks, RejectAStartThatIsNoChunk) {
  EXPECT_EQ(message_of<GeometryError>([] {
              (void)box_chunks(kMap, {2, 0}, 8);
            }),
            "chunks of a box rejected, 2 faults:\n"
            "  coordinate 0: 2 x bf16 = 4 B is not a multiple of 16 B (error 715 on Hopper): start at 0 or 8\n"
            "  shared address: 8 is not a multiple of 16 B from 0 on");
  EXPECT_THROW((void)box_chunks(kMap, {0, 0}, -16), GeometryError);
}

TEST(BoxElementAt, FindsTheElementOfAByteAndNothingInPadding) {
  const auto element = box_element_at(kMap, {0, 17}, 0, 147);
  ASSERT_TRUE(element);
  EXPECT_EQ(element->tile, (std::array<std::int64_t, 5>{1, 1, 0, 0, 0}));
  EXPECT_EQ(element->position, (std::array<std::int64_t, 5>{1, 18, 0, 0, 0}));
  EXPECT_EQ(element->row, 1);
  EXPECT_EQ(element->byte, 1);
  EXPECT_EQ(element->global, kBase + 18 * 128 + 2);
  EXPECT_FALSE(box_element_at(kMap, {0, 17}, 0, 3 * 128)->global);  // row 20 does not exist
  EXPECT_EQ(box_element_at(kMap, {0, 17}, 0, 3 * 128)->position[1], 20);
  EXPECT_FALSE(box_element_at(kMap, {0, 17}, 1024, 1023));
  EXPECT_FALSE(box_element_at(kMap, {0, 17}, 1024, 2048));
  EXPECT_FALSE(box_element_at(kMap, {0, 17}, 0, -1));
  const TensorMap narrow = map_of(TmaDataType::u8, {64, 20}, {64}, {64, 8}, k128);
  EXPECT_TRUE(box_element_at(narrow, {0, 0}, 0, 63));
  EXPECT_FALSE(box_element_at(narrow, {0, 0}, 0, 64));
  EXPECT_TRUE(box_element_at(narrow, {0, 0}, 0, 4 * 128 + 64));  // row 4: the XOR has moved its padding to the front
  EXPECT_FALSE(box_element_at(narrow, {0, 0}, 0, 4 * 128));
}

// Both directions: every byte of every chunk gives the chunk's row and column again, and each byte of the window
// belongs to one chunk or is padding.
TEST(BoxElementAt, IsTheInverseOfTheChunks) {
  EXPECT_TRUE(prop::check("box_element_at after box_chunks", [] {
    const int size = prop::one_of(1, 2, 4, 8);
    const auto swizzle = static_cast<TmaSwizzle>(prop::uniform(0, 7));
    const auto type = size == 1   ? TmaDataType::u8
                      : size == 2 ? TmaDataType::f16
                      : size == 4 ? TmaDataType::u32
                                  : TmaDataType::i64;
    const std::int64_t span =
        swizzle == TmaSwizzle::none ? 80 : std::min<std::int64_t>(128, 16LL << static_cast<int>(swizzle));
    const auto inner = static_cast<std::uint32_t>(16 * prop::uniform<std::int64_t>(1, span / 16 + 1) / size);
    const TensorMap map = map_of(type, {40, 3, 4}, {320, 960}, {inner, prop::uniform(1U, 6U), prop::uniform(1U, 4U)},
                                 swizzle, {1, prop::uniform(1U, 3U), prop::uniform(1U, 3U)});
    const auto start = static_cast<std::int32_t>(prop::uniform(-2, 4) * 16 / size);
    const TmaCoord at{start, prop::uniform(-2, 3), prop::uniform(-2, 4)};
    const std::int64_t dst = 128 * prop::uniform<std::int64_t>(0, 9);
    const BoxSwitches switches{.target = TmaTarget::sm_100};
    std::set<std::int64_t> seen;
    for (const BoxChunk& chunk : box_chunks(map, at, dst, switches)) {
      for (std::int64_t i = 0; i < 16; ++i) {
        RC_ASSERT(seen.insert(chunk.shared + i).second);
        const auto element = box_element_at(map, at, dst, chunk.shared + i, switches);
        RC_ASSERT(element.has_value());
        const std::int64_t byte = chunk.halves_swapped ? i ^ 8 : i;  // of the row, from the chunk's first
        RC_ASSERT(element->row == chunk.row);
        RC_ASSERT(element->tile[0] * size + element->byte == chunk.column * size + byte);
        RC_ASSERT(element->global.has_value() == (byte < chunk.data_bytes));
        if (byte < chunk.data_bytes) {
          RC_ASSERT(*element->global + static_cast<std::uint64_t>(element->byte) ==
                    chunk.global + static_cast<std::uint64_t>(byte));
        }
      }
    }
    const BoxShape shape = box_shape(map, switches);
    RC_ASSERT(static_cast<std::int64_t>(seen.size()) == shape.tx_bytes);
    for (std::int64_t a = dst - 128; a < dst + shape.window_bytes + 128; ++a) {
      RC_ASSERT(box_element_at(map, at, dst, a, switches).has_value() == seen.contains(a));
    }
  }));
}

}  // namespace
}  // namespace kvscope::box_plan_test
