// Boxes by whole rows against the same boxes chunk by chunk (box_plan.h): two computations that share only the map.
#include "core/tma/box_rows.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "core/tma/box_copy.h"
#include "core/tma/box_moves.h"
#include "tests/core/tma/any_box.h"

namespace kvscope::box_rows_test {
namespace {

using test::any_box;
using test::coord_of;
using test::map_of;
using test::Tensor;

constexpr auto kNone = TmaSwizzle::none, k128 = TmaSwizzle::b128;

// Shared memory in use: bytes that differ, adjacent copies of 16, 24 and 5 bytes, poison between them.
SharedImage used_image(std::int64_t size) {
  SharedImage image(size);
  std::vector<std::byte> bytes(24);
  std::int64_t at = 0, copy = 100;
  for (const std::int64_t count : {16, 24, 5, 3, 16}) {
    for (; at + count <= size; at += 64 + count) {
      for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(7 * copy + 3 * static_cast<std::int64_t>(i));
      image.write(at, std::span(bytes).first(static_cast<std::size_t>(count)), CopyIdx{copy++});
    }
    at = count + 7;
  }
  return image;
}

bool same(const SharedImage& a, const SharedImage& b) {
  return std::ranges::equal(a.bytes(), b.bytes()) && a.writers() == b.writers();
}

BoxSwitches any_switches() {
  BoxSwitches switches{.target = TmaTarget::sm_100};
  switches.padding = static_cast<BoxSwitches::Padding>(prop::uniform(0, 2));
  switches.nan = static_cast<BoxSwitches::Nan>(prop::uniform(0, 2));
  switches.store_edge = static_cast<BoxSwitches::StoreEdge>(prop::uniform(0, 2));
  return switches;
}

// The same bytes, writers and counts; padding, adjacent bytes and their writers are unchanged.
TEST(BoxRows, LoadWhatTheChunksLoad) {
  EXPECT_TRUE(prop::check("load_box is its chunks carried out", [] {
    const auto [map, at, dst] = any_box();
    const BoxSwitches switches = any_switches();
    const Tensor tensor(map);
    const BoxShape shape = box_shape(map, switches);
    const SharedImage before = used_image(dst + shape.window_bytes + 200);
    SharedImage by_rows = before, by_chunks = before;
    const BoxLoad load = load_box(map, coord_of(at), tensor.memory, by_rows, dst, CopyIdx{7}, switches);
    const auto chunks = box_chunks(map, coord_of(at), dst, switches);
    carry_out(moves_of(chunks, box_fill(map, switches), tensor.memory), by_chunks, CopyIdx{7});
    RC_ASSERT(same(by_rows, by_chunks));
    RC_ASSERT(load == (BoxLoad{CopyIdx{7}, dst, shape.window_bytes, shape.tx_bytes, filled_bytes(chunks)}));
  }));
}

// Byte by byte from the chunks' addresses.
TEST(BoxRows, StoreWhatTheChunksStore) {
  EXPECT_TRUE(prop::check("store_box is its chunks put back", [] {
    auto [map, at, src] = any_box();
    if (map.swizzle == TmaSwizzle::b128_atom32_flip8) map.swizzle = TmaSwizzle::b128_atom32;
    for (std::int64_t& start : at) start = std::max<std::int64_t>(start, 0);
    const BoxSwitches switches = any_switches();
    TensorMap padded = map;  // the last row's overrun exists
    padded.dims[0] += 16 / static_cast<std::uint64_t>(size_of(map.data_type));
    Tensor tensor(padded);
    const SharedImage image = used_image(src + box_shape(map, switches).window_bytes + 200);
    std::vector<std::byte> expected = tensor.bytes;
    BoxStore account;
    for (const BoxChunk& chunk : box_chunks(map, coord_of(at), src, switches)) {
      if (chunk.filled()) continue;
      const std::int64_t count = switches.store_edge == BoxSwitches::StoreEdge::chunk ? 16 : chunk.data_bytes;
      for (std::int64_t i = 0; i < count; ++i) {
        expected.at(chunk.global - test::kBase + static_cast<std::uint64_t>(i)) = image.read(chunk.shared + i, 1)[0];
        account.poison_bytes += image.writer(chunk.shared + i) == SharedImage::kNoCopy ? 1 : 0;
      }
      account.global_bytes += count;
      account.overrun_bytes += count - chunk.data_bytes;
    }
    RC_ASSERT(store_box(map, coord_of(at), tensor.memory, image, src, switches) == account);
    RC_ASSERT(tensor.bytes == expected);
  }));
}

// With a swizzle a row's last bytes are in the middle of its line: the bytes after them belong to another chunk.
TEST(BoxRows, StoreTheLastElementsOfARowAndNoMore) {
  const TensorMap map = map_of(TmaDataType::u8, {70, 2}, {80}, {128, 2}, k128);
  TensorMap allocation = map;
  allocation.dims[0] = 80;
  Tensor tensor(allocation);
  SharedImage image(256);
  std::vector<std::byte> bytes(256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  image.write(0, bytes, CopyIdx{0});
  const auto before = tensor.bytes;
  EXPECT_EQ(store_box(map, {0, 0}, tensor.memory, image, 0, {.store_edge = BoxSwitches::StoreEdge::element}),
            (BoxStore{140, 0, 0}));
  EXPECT_EQ(tensor.bytes[80 + 69], std::byte{128 + (64 ^ 16) + 5});
  EXPECT_EQ(tensor.bytes[80 + 70], before[80 + 70]);
  EXPECT_EQ(tensor.bytes[70], before[70]);
}

// Both properties above would also hold if no box were copied by rows.
TEST(BoxRows, TakeEveryBoxButTightRowsUnderASwizzleAndExchangedHalves) {
  EXPECT_TRUE(prop::check("box_rows takes it", [] {
    const auto [map, at, dst] = any_box();
    const BoxSwitches switches = any_switches();
    const Tensor tensor(map);
    const BoxShape shape = box_shape(map, switches);
    static constexpr std::array<std::int64_t, 7> kSpans = {0, 32, 64, 128, 128, 128, 128};
    const bool tight = map.swizzle != kNone && shape.pitch < kSpans.at(static_cast<std::size_t>(map.swizzle));
    const auto rows = box_rows(map, coord_of(at), dst, switches);
    RC_ASSERT(rows.has_value() == (!tight && map.swizzle != TmaSwizzle::b128_atom32_flip8));
    RC_ASSERT(!rows || rows->source(tensor.memory).has_value());
  }));
}

TEST(BoxRows, KnowWhatIsInside) {
  const TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, k128);
  const auto rows = box_rows(map, {0, 17}, 0, {});
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(rows->rows_inside(), 3);
  EXPECT_EQ(rows->data, 128);
  EXPECT_EQ(rows->base, test::kBase + 17 * 128);
  EXPECT_EQ(rows->hull_bytes, 384);
  EXPECT_EQ(rows->filled_bytes(), 640);

  const TensorMap edge = map_of(TmaDataType::u8, {470, 4}, {480}, {48, 4}, kNone, {1, 2});  // rows 1 and 3
  const auto part = box_rows(edge, {448, -1}, 0, {});
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->rows_inside(), 1);  // -1 and 1
  EXPECT_EQ(part->data, 22);
  EXPECT_EQ(part->base, test::kBase + 480 + 448);
}

// Row 1 is in another allocation, with a gap between the two: the hull is not in one allocation, but the copy is legal.
TEST(BoxRows, LeaveATileInTwoAllocationsToTheChunks) {
  for (const std::uint64_t stride : {128u, 256u}) {  // behind one another, and with a gap
    const TensorMap map = map_of(TmaDataType::bf16, {64, 4}, {stride}, {64, 4}, k128);
    std::vector<std::byte> first(128, std::byte{0x11}), others(3 * stride, std::byte{0x22});
    GlobalMemory memory;
    memory.add("first", test::kBase, first);
    memory.add("others", test::kBase + stride, others);
    EXPECT_FALSE(box_rows(map, {0, 0}, 0, {})->source(memory).has_value());
    EXPECT_TRUE(box_rows(map, {0, 1}, 0, {})->source(memory).has_value());
    SharedImage image(512);
    EXPECT_EQ(load_box(map, {0, 0}, memory, image, 0, CopyIdx{0}).filled_bytes, 0);
    EXPECT_THAT(image.read(0, 128), testing::Each(std::byte{0x11}));
    EXPECT_THAT(image.read(128, 384), testing::Each(std::byte{0x22}));
    const BoxStore store = store_box(map, {0, 0}, memory, image, 0);
    EXPECT_EQ(store, (BoxStore{512, 0, 0}));
  }
}

// A hull that ends past 2^64 cannot be copied by rows, nor can data that begins there.
TEST(BoxRows, LeaveMemoryPastTheLastAddressToTheChunks) {
  TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, k128);
  map.base = ~std::uint64_t{0} - 127;
  EXPECT_TRUE(box_rows(map, {0, -7}, 0, {}).has_value());  // row 0 alone
  EXPECT_FALSE(box_rows(map, {0, 1}, 0, {}).has_value());
  EXPECT_FALSE(box_rows(map, {0, 0}, 0, {})->source(GlobalMemory{}).has_value());
}

}  // namespace
}  // namespace kvscope::box_rows_test
