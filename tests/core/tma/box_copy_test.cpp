// Box copies checked in three ways: known first bytes, checksums of whole windows, and a walk back from every byte of
// shared memory (gold.h).
#include "core/tma/box_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/core/tma/any_box.h"
#include "tests/core/tma/gold.h"
#include "tests/property.h"

namespace kvscope::box_copy_test {
namespace {

using test::coord_of;
using test::fnv1a;
using test::hex;
using test::inverse_walk;
using test::map_of;
using test::message_of;
using test::Tensor;
using test::type_of;

struct FirstBytes {
  std::int64_t offset;
  const char* bytes;
};
struct Gold {
  const char* id;
  const char* what;
  TmaSwizzle swizzle;
  int size;
  std::vector<std::uint64_t> dims, strides;
  std::vector<std::uint32_t> box, element_strides;
  std::vector<std::int64_t> at;
  std::int64_t window, tx;
  std::uint64_t checksum;
  std::vector<FirstBytes> first;
};

constexpr auto kNone = TmaSwizzle::none, k32 = TmaSwizzle::b32, k64 = TmaSwizzle::b64, k128 = TmaSwizzle::b128;

std::vector<Gold> gold_cases() {
  using V = std::vector<std::uint64_t>;
  const V dims{64, 20}, rows{128};
  return {
      {"G1",
       "ragged right and bottom edge",
       kNone,
       2,
       {40, 6},
       {96},
       {16, 4},
       {1, 1},
       {32, 4},
       128,
       128,
       0xba7ca726732c4105,
       {{0, "7897b6d5"}, {32, "29486786"}}},
      {"G2",
       "bottom edge",
       k128,
       2,
       dims,
       rows,
       {64, 8},
       {1, 1},
       {0, 17},
       1024,
       1024,
       0x643bdab782933fa5,
       {{0, "a6c5e403"}, {192, "e7062544"}, {368, "7897b6d5"}}},
      {"G3",
       "negative row",
       k128,
       2,
       dims,
       rows,
       {64, 8},
       {1, 1},
       {0, -2},
       1024,
       1024,
       0x6a59e9623e462e25,
       {{0, "00000000"}, {256, "e5042342"}, {640, "6887a6c5"}, {1008, "daf91837"}}},
      {"G4",
       "64B",
       k64,
       2,
       dims,
       rows,
       {32, 8},
       {1, 1},
       {32, 5},
       512,
       512,
       0xc6bbf7643b53e325,
       {{0, "9ab9d8f7"}, {256, "beddfc1b"}, {496, "91b0cfee"}}},
      {"G5",
       "32B",
       k32,
       2,
       dims,
       rows,
       {16, 8},
       {1, 1},
       {16, 5},
       256,
       256,
       0xc0ef11f398731f65,
       {{0, "bad9f817"}, {128, "ee0d2c4b"}, {240, "b1d0ef0e"}}},
      {"G6",
       "columns 64.. of head 2 of a K page",
       k128,
       2,
       {128, 4, 48},
       {256, 1024},
       {64, 1, 16},
       {1, 1, 1},
       {64, 2, 40},
       2048,
       2048,
       0xd3ccf5e8b2dbda25,
       {{0, "1f3e5d7c"}, {512, "ff1e3d5c"}, {1008, "d7f61534"}}},
      {"G7",
       "five dimensions, one negative, two overhanging",
       kNone,
       1,
       {32, 3, 3, 3, 3},
       {32, 96, 288, 864},
       {16, 2, 2, 2, 2},
       {1, 1, 1, 1, 1},
       {16, 2, 1, -1, 2},
       256,
       256,
       0x5baac93da80f5225,
       {{0, "00000000"}, {64, "83a2c1e0"}, {96, "34537291"}}},
      {"G8",
       "every second row",
       k128,
       2,
       dims,
       rows,
       {64, 8},
       {1, 2},
       {0, 5},
       512,
       512,
       0x5a65f3580ac2c425,
       {{0, "daf91837"}, {256, "fe1d3c5b"}, {496, "001f3e5d"}}},
      {"G9",
       "64-byte rows in a 128-byte span",
       k128,
       1,
       dims,
       {64},
       {64, 8},
       {1, 1},
       {0, 4},
       1024,
       512,
       0x41b1fba254c2e825,
       {{0, "27466584"}, {576, "496887a6"}, {1008, "9ab9d8f7"}}},
      {"G10",
       "NaN fill",
       k128,
       4,
       dims,
       {256},
       {32, 4},
       {1, 1},
       {48, 2},
       512,
       512,
       0xe9bc3266b34b06a5,
       {{0, "9ab9d8f7"}, {256, "beddfc1b"}, {496, "f77ff77f"}}},
      {"G11",
       "ATOM_32B",
       TmaSwizzle::b128_atom32,
       2,
       dims,
       rows,
       {64, 8},
       {1, 1},
       {0, 3},
       1024,
       1024,
       0x6a111c2dded19b25,
       {{0, "b8d7f615"}, {512, "fc1b3a59"}, {1008, "9fbeddfc"}}},
      {"G12",
       "ATOM_64B",
       TmaSwizzle::b128_atom64,
       2,
       dims,
       rows,
       {64, 8},
       {1, 1},
       {0, 3},
       1024,
       1024,
       0xcd0c9f875161dc25,
       {{0, "b8d7f615"}, {512, "fc1b3a59"}, {1008, "7f9ebddc"}}},
      {"G13",
       "8-byte elements",
       kNone,
       8,
       {96, 7},
       {768},
       {64, 3},
       {1, 1},
       {32, 5},
       1536,
       1536,
       0x77b40cb0a819c825,
       {{0, "25446382"}, {512, "8baac9e8"}, {1008, "ceed0c2b"}}},
      {"G14",
       "wholly outside",
       kNone,
       2,
       dims,
       rows,
       {64, 2},
       {1, 1},
       {128, 0},
       256,
       256,
       0xd80ac658736bb725,
       {{0, "00000000"}}},
      {"G15",
       "32-byte rows in a 64-byte span",
       k64,
       1,
       {32, 20},
       {32},
       {32, 8},
       {1, 1},
       {0, 1},
       512,
       256,
       0x02a3441a4da47025,
       {{0, "e5042342"}, {288, "7695b4d3"}, {496, "27466584"}}},
      {"G16",
       "negative column",
       k128,
       2,
       dims,
       rows,
       {64, 8},
       {1, 1},
       {-8, 0},
       1024,
       1024,
       0xfd26c0caecc675a5,
       {{0, "00000000"}, {16, "05244362"}, {512, "19385776"}, {992, "fc1b3a59"}}},
      {"G17",
       "two dimensions overhanging",
       k128,
       2,
       {64, 4, 4},
       {128, 4096},
       {64, 2, 2},
       {1, 1, 1},
       {0, 3, 3},
       512,
       512,
       0x6718d6fff7be8f25,
       {{0, "18375675"}, {64, "d8f71635"}, {112, "a8c7e605"}}},
      {"G18",
       "16-byte rows in a 32-byte span",
       k32,
       2,
       dims,
       rows,
       {8, 8},
       {1, 1},
       {24, 0},
       256,
       128,
       0x4f524897662b81a5,
       {{0, "d5f41332"}, {144, "19385776"}, {240, "cceb0a29"}}},
      {"G19",
       "strides that do not grow",
       kNone,
       2,
       {64, 4, 5},
       {4096, 128},
       {64, 2, 3},
       {1, 1, 1},
       {0, 2, 1},
       768,
       768,
       0xd49d6cc160963025,
       {{0, "d6f51433"}, {384, "87a6c5e4"}, {752, "a8c7e605"}}},
      {"G20",
       "FLIP_8B",
       TmaSwizzle::b128_atom32_flip8,
       2,
       dims,
       rows,
       {64, 8},
       {1, 1},
       {0, 3},
       1024,
       1024,
       0x60a125928e7cac25,
       {{0, "b8d7f615"}, {160, "41607f9e"}, {512, "fc1b3a59"}, {1008, "97b6d5f4"}}},
  };
}

TEST(LoadBox, BringsThePublishedWindows) {
  for (const Gold& gold : gold_cases()) {
    SCOPED_TRACE(std::string(gold.id) + ": " + gold.what);
    TensorMap map = map_of(type_of(gold.size), gold.dims, gold.strides, gold.box, gold.swizzle, gold.element_strides);
    if (std::string(gold.id) == "G10") map.fill = OobFill::nan_request_zero_fma;
    const Tensor tensor(map);
    SharedImage image(gold.window);
    const BoxLoad load =
        load_box(map, coord_of(gold.at), tensor.memory, image, 0, CopyIdx{7}, {.target = TmaTarget::sm_100});
    EXPECT_EQ(load.window_bytes, gold.window);
    EXPECT_EQ(load.tx_bytes, gold.tx);
    EXPECT_EQ(fnv1a(image.bytes()), gold.checksum);
    for (const FirstBytes& first : gold.first) EXPECT_EQ(hex(image.bytes(), first.offset, 4), first.bytes);
    const auto expected = inverse_walk(map, gold.at, 0, gold.window);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), image.bytes().begin(), image.bytes().end()));
    EXPECT_EQ(std::ranges::count(image.writers(), 7), gold.tx);
  }
}

// A 4096-byte buffer at address 0 with the tile inside: the address decides the pattern, and no other byte changes.
TEST(LoadBox, BringsThePublishedPhases) {
  struct Phase {
    const char* id;
    TmaSwizzle swizzle;
    std::vector<std::uint32_t> box;
    std::vector<std::int64_t> at;
    std::int64_t dst;
    std::uint64_t checksum;
    std::array<const char*, 3> first;  // 2 bytes at dst, dst + 16, dst + 32
    std::vector<std::uint32_t> element_strides;
  };
  const std::vector<Phase> table = {
      {"P1", k128, {64, 4}, {0, 17}, 512, 0x42d90aa15124d3a5, {"6685", "5675", "4665"}, {1, 1}},
      {"P2", k128, {64, 4}, {0, 1}, 128, 0x7eaaa7caca4563a5, {"86a5", "96b5", "6685"}, {1, 1}},
      {"P3", k64, {32, 8}, {0, 1}, 128, 0xa3db016fafb1b825, {"86a5", "96b5", "6685"}, {1, 1}},
      {"P4", k32, {16, 8}, {0, 1}, 128, 0x74e4b61e9cb96065, {"86a5", "96b5", "1736"}, {1, 1}},
      {"P5", k128, {64, 8}, {0, 1}, 1024, 0x8ab765093f6b3c25, {"96b5", "86a5", "7695"}, {1, 1}},
      {"P6", kNone, {64, 4}, {0, 1}, 128, 0x402cb8a4572a68a5, {"96b5", "86a5", "7695"}, {1, 1}},
      {"P7", k128, {16, 10}, {32, 11}, 128, 0xdd9df55a5337a805, {"f00f", "001f", "cdcd"}, {1, 3}},
  };
  for (const Phase& phase : table) {
    SCOPED_TRACE(phase.id);
    const TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, phase.box, phase.swizzle, phase.element_strides);
    const Tensor tensor(map);
    SharedImage image(4096);
    (void)load_box(map, coord_of(phase.at), tensor.memory, image, phase.dst, CopyIdx{0});
    EXPECT_EQ(fnv1a(image.bytes()), phase.checksum);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(hex(image.bytes(), phase.dst + 16 * static_cast<std::int64_t>(i), 2), phase.first[i]) << i;
    }
  }
}

// The credited bytes: fill is counted, padding is not, and coordinates have no influence.
TEST(LoadBox, CreditsThePayloadWhateverTheCoordinates) {
  struct Case {
    TensorMap map;
    std::int64_t tx, window;
  };
  const std::vector<Case> table = {
      {map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, k128), 1024, 1024},
      {map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, k128, {1, 2}), 512, 512},
      {map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, k128, {1, 3}), 384, 384},
      {map_of(TmaDataType::u8, {64, 200}, {64}, {64, 128}, k128), 8192, 16384},
      {map_of(TmaDataType::bf16, {128, 4, 48}, {256, 1024}, {64, 1, 16}, k128), 2048, 2048},
  };
  for (const Case& c : table) {
    const Tensor tensor(c.map);
    SharedImage image(c.window);
    TmaCoord inside, outside;
    inside.rank = outside.rank = c.map.rank;
    outside.at[1] = -10'000;
    EXPECT_EQ(load_box(c.map, inside, tensor.memory, image, 0, CopyIdx{0}).tx_bytes, c.tx);
    const BoxLoad load = load_box(c.map, outside, tensor.memory, image, 0, CopyIdx{0});
    EXPECT_EQ(load.tx_bytes, c.tx);
    EXPECT_EQ(load.filled_bytes, c.tx);
    EXPECT_EQ(load.window_bytes, c.window);
  }
  const TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, k128);
  const Tensor tensor(map);
  SharedImage image(1024);
  EXPECT_EQ(load_box(map, {0, 17}, tensor.memory, image, 0, CopyIdx{3}), (BoxLoad{CopyIdx{3}, 0, 1024, 1024, 640}));
}

// A row that ends inside a 16-byte chunk: the chunk is data, then fill, element by element.
TEST(LoadBox, FillsBehindTheLastColumnElementByElement) {
  const TensorMap map = map_of(TmaDataType::u8, {470, 4}, {480}, {16, 4}, kNone);
  const Tensor tensor(map);
  SharedImage image(64);
  const BoxLoad load = load_box(map, {464, 0}, tensor.memory, image, 0, CopyIdx{0});
  EXPECT_EQ(load.filled_bytes, 4 * 10);
  for (std::int64_t r = 0; r < 4; ++r) {
    for (std::int64_t c = 0; c < 16; ++c) {
      const auto byte = std::to_integer<int>(image.bytes()[static_cast<std::size_t>(16 * r + c)]);
      EXPECT_EQ(byte, c < 6 ? test::source_byte(static_cast<std::uint64_t>(480 * r + 464 + c)) : 0) << r << " " << c;
    }
  }
}

TEST(LoadBox, FillsWithTheNaNThatMultiplicationTakesForZero) {
  const auto fill = [](TmaDataType type, const BoxSwitches& switches = {}) {
    TensorMap map;
    map.data_type = type;
    map.fill = OobFill::nan_request_zero_fma;
    const auto bytes = box_fill(map, switches);
    return hex(bytes, 0, 16);
  };
  for (const TmaDataType type : {TmaDataType::f16, TmaDataType::bf16, TmaDataType::f32, TmaDataType::f64}) {
    EXPECT_EQ(fill(type), "f77ff77ff77ff77ff77ff77ff77ff77f");
  }
  const BoxSwitches quiet{.nan = BoxSwitches::Nan::quiet};
  EXPECT_EQ(fill(TmaDataType::f16, quiet), "007e007e007e007e007e007e007e007e");
  EXPECT_EQ(fill(TmaDataType::bf16, quiet), "c07fc07fc07fc07fc07fc07fc07fc07f");
  EXPECT_EQ(fill(TmaDataType::f32, quiet), "0000c07f0000c07f0000c07f0000c07f");
  EXPECT_EQ(fill(TmaDataType::f64, quiet), "000000000000f87f000000000000f87f");
  EXPECT_EQ(hex(box_fill(TensorMap{}), 0, 16), std::string(32, '0'));
}

// Rows past the last 32-bit coordinate are outside and do not wrap to row 0.
TEST(LoadBox, FillsPastThe32BitCoordinates) {
  TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, k128);
  const Tensor tensor(map);
  SharedImage image(1024);
  EXPECT_EQ(load_box(map, {0, 2147483647}, tensor.memory, image, 0, CopyIdx{0}).filled_bytes, 1024);
  EXPECT_EQ(load_box(map, {0, -2147483647 - 1}, tensor.memory, image, 0, CopyIdx{0}).filled_bytes, 1024);
  EXPECT_EQ(load_box(map, {-64, 0}, tensor.memory, image, 0, CopyIdx{0}).filled_bytes, 1024);
}

TEST(LoadBox, TouchesNothingWhenItThrows) {
  TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, k128);
  const Tensor tensor(map);
  map.dims[1] = 21;  // the map has a row outside the allocation
  SharedImage image(2048);
  EXPECT_EQ(
      message_of<IllegalAddress>([&] {
        (void)load_box(map, {0, 13}, tensor.memory, image, 0, CopyIdx{0});
      }),
      "illegal address (error 700): 16 bytes at 0x20a00 are in no allocation; the nearest is 'tensor', 2560 bytes at "
      "0x20000: check the map's base, dims and strides");
  EXPECT_THAT(image.writers(), testing::Each(-1));
  EXPECT_NO_THROW((void)load_box(map, {0, 12}, tensor.memory, image, 0, CopyIdx{0}));  // other rows can be copied
  TensorMap past = map;
  past.base = ~std::uint64_t{0} - 15;
  EXPECT_EQ(message_of<IllegalAddress>([&] {
              (void)load_box(past, {0, 0}, tensor.memory, image, 0, CopyIdx{0});
            }),
            "illegal address (error 700): an element inside the map lies past 2^64: check the map's base and strides");
}

TEST(LoadBox, RejectsAStartTheInstructionCannotTake) {
  const TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, k128);
  const Tensor tensor(map);
  SharedImage image(2048);
  const auto rejected = [&](const TmaCoord& at, std::int64_t dst) {
    return message_of<GeometryError>([&] { (void)load_box(map, at, tensor.memory, image, dst, CopyIdx{0}); });
  };
  EXPECT_EQ(
      rejected({4, 0}, 0),
      "load of a box rejected: coordinate 0: 4 x bf16 = 8 B is not a multiple of 16 B (error 715 on Hopper): start "
      "at 0 or 8");
  EXPECT_EQ(rejected({-4, 0}, 64),
            "load of a box rejected, 2 faults:\n"
            "  coordinate 0: -4 x bf16 = -8 B is not a multiple of 16 B (error 715 on Hopper): start at -8 or 0\n"
            "  shared address: 64 is not a multiple of 128 B (error 716): use 128");
  EXPECT_EQ(rejected({0, 0, 0}, 0),
            "load of a box rejected: coordinates: 3 for a map of rank 2: give one a dimension, fastest first");
  EXPECT_EQ(rejected({0, 0}, 1152),
            "load of a box rejected: shared address: the window of 1024 bytes at 1152 leaves the 2048 bytes of shared "
            "memory");
  EXPECT_NO_THROW((void)load_box(map, {0, 0}, tensor.memory, image, 1024, CopyIdx{0}));
  EXPECT_THAT(rejected({0, 0}, -128), testing::HasSubstr("-128 is not a multiple of 128 B (error 716): use 0"));
  SharedImage small(1023);
  EXPECT_THROW((void)load_box(map, {0, 0}, tensor.memory, small, 0, CopyIdx{0}), GeometryError);
}

TEST(LoadBox, RejectsMapsThatAreNoPlainByteCopy) {
  TensorMap map = map_of(TmaDataType::bf16, {64, 20, 4}, {128, 2560}, {64, 8, 1}, k128);
  const Tensor tensor(map);
  SharedImage image(1024);
  const auto rejected = [&](const TensorMap& m, const BoxSwitches& switches = {}) {
    return message_of<UnsupportedError>([&] {
      (void)load_box(m, {0, 0, 0}, tensor.memory, image, 0, CopyIdx{0}, switches);
    });
  };
  TensorMap interleaved = map;
  interleaved.interleave = TmaInterleave::b16;
  EXPECT_EQ(rejected(interleaved),
            "load of a box: where the bytes of a map with 16B interleave land is not modeled: use no interleave");
  TensorMap tf32 = map;
  tf32.data_type = TmaDataType::tf32;
  EXPECT_EQ(rejected(tf32), "load of a box: tf32 is converted on its way, and only byte copies are modeled: use f32");
  TensorMap packed = map;
  packed.data_type = TmaDataType::u4x16_align8;
  EXPECT_EQ(rejected(packed, {.target = TmaTarget::sm_100}),
            "load of a box: u4x16_align8 is converted on its way, and only byte copies are modeled: use u8");
  TensorMap atom = map;
  atom.swizzle = TmaSwizzle::b128_atom32;
  EXPECT_EQ(
      rejected(atom),
      "tensor map of the box to load rejected: swizzle (target): 128B_ATOM_32B swizzle needs sm_100: use the 128B "
      "swizzle on sm_90");
  TensorMap wide = map;
  wide.box[0] = 72;
  EXPECT_THROW((void)load_box(wide, {0, 0, 0}, tensor.memory, image, 0, CopyIdx{0}), GeometryError);
}

// A map of rank 1 is one row and uses no further dimensions. 150 scales of 4 bytes, in boxes of 32, the last of which
// has 22.
TEST(LoadBox, BringsALineOfRankOneAndStoresItBack) {
  for (const TmaSwizzle swizzle : {kNone, k128}) {
    const TensorMap line = map_of(TmaDataType::f32, {150}, {}, {32}, swizzle);
    Tensor tensor(line);
    const auto before = tensor.bytes;
    EXPECT_EQ(tensor.bytes.size(), 600U);
    SharedImage image(256);
    EXPECT_EQ(load_box(line, {128}, tensor.memory, image, 128, CopyIdx{5}), (BoxLoad{CopyIdx{5}, 128, 128, 128, 40}));
    for (std::int64_t i = 0; i < 128; ++i) {
      // Address 128 is line 1: the 128B swizzle exchanges the chunks of each pair.
      const auto at = static_cast<std::size_t>(128 + (swizzle == k128 ? i ^ 16 : i));
      EXPECT_EQ(std::to_integer<int>(image.bytes()[at]),
                i < 88 ? test::source_byte(static_cast<std::uint64_t>(512 + i)) : 0);
    }
    EXPECT_EQ(load_box(line, {-32}, tensor.memory, image, 0, CopyIdx{6}).filled_bytes, 128);
    std::fill(tensor.bytes.begin() + 512, tensor.bytes.end(), std::byte{0xEE});
    EXPECT_EQ(store_box(line, {128}, tensor.memory, image, 128, {.store_edge = BoxSwitches::StoreEdge::element}),
              (BoxStore{88, 0, 0}));
    EXPECT_EQ(tensor.bytes, before);
  }
  const TensorMap line = map_of(TmaDataType::f32, {150}, {}, {32}, kNone);
  const Tensor tensor(line);
  SharedImage image(128);
  EXPECT_EQ(message_of<GeometryError>([&] {
              (void)load_box(line, {0, 0}, tensor.memory, image, 0, CopyIdx{0});
            }),
            "load of a box rejected: coordinates: 2 for a map of rank 1: give one a dimension, fastest first");
}

// A prefetch changes nothing and is rejected in the same cases as a load.
TEST(PrefetchBox, IsHeldToTheRulesOfALoad) {
  const TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, k128);
  EXPECT_NO_THROW(prefetch_box(map, {0, 17}));
  EXPECT_THROW(prefetch_box(map, {4, 17}), GeometryError);
  TensorMap atom = map;
  atom.swizzle = TmaSwizzle::b128_atom32;
  EXPECT_THROW(prefetch_box(atom, {0, 0}), UnsupportedError);
}

// Rows packed tightly although swizzled: the other possible behavior of short rows, which is not measured yet.
TEST(LoadBox, PacksShortRowsWhenToldTo) {
  const TensorMap map = map_of(TmaDataType::u8, {64, 20}, {64}, {64, 8}, k128);
  const Tensor tensor(map);
  SharedImage image(512);
  const BoxLoad load =
      load_box(map, {0, 4}, tensor.memory, image, 0, CopyIdx{0}, {.padding = BoxSwitches::Padding::dense});
  EXPECT_EQ(load.window_bytes, 512);
  for (std::uint64_t linear = 0; linear < 512; ++linear) {
    EXPECT_EQ(std::to_integer<int>(image.bytes()[test::cute_swizzle(k128, linear)]),
              test::source_byte((4 + linear / 64) * 64 + linear % 64));
  }
}

// Any legal map, start and phase: every byte of a buffer around the tile equals the result of the walk back.
TEST(LoadBox, AgreesWithTheWalkBackFromEveryByte) {
  EXPECT_TRUE(prop::check("load_box is inverse_walk", [] {
    const auto [map, at, dst] = test::any_box();
    const Tensor tensor(map);
    const BoxSwitches switches{.target = TmaTarget::sm_100};
    const std::int64_t window = box_shape(map, switches).window_bytes;
    SharedImage image(dst + window + 256);
    (void)load_box(map, coord_of(at), tensor.memory, image, dst, CopyIdx{0}, switches);
    const auto expected = inverse_walk(map, at, static_cast<std::uint64_t>(dst), (window + 127) / 128 * 128);
    const auto actual = image.bytes();
    RC_ASSERT(std::equal(expected.begin(), expected.end(), actual.begin() + dst));
    RC_ASSERT(std::all_of(actual.begin(), actual.begin() + dst, [](std::byte b) { return b == SharedImage::kPoison; }));
    RC_ASSERT(std::all_of(actual.begin() + dst + static_cast<std::ptrdiff_t>(expected.size()), actual.end(),
                          [](std::byte b) { return b == SharedImage::kPoison; }));
  }));
}

// --- stores ----------------------------------------------------------------------------------------------------------

TEST(StoreBox, PutsBackWhatALoadBroughtUnderEverySwizzle) {
  for (const TmaSwizzle swizzle : {kNone, k32, k64, k128, TmaSwizzle::b128_atom32, TmaSwizzle::b128_atom64}) {
    const auto columns = static_cast<std::uint32_t>(swizzle == k32 ? 16 : swizzle == k64 ? 32 : 64);
    const TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {columns, 8}, swizzle);
    Tensor tensor(map);
    const auto before = tensor.bytes;
    SharedImage image(2048);
    const BoxSwitches switches{.target = TmaTarget::sm_100};
    (void)load_box(map, {0, 17}, tensor.memory, image, 384, CopyIdx{0}, switches);
    std::fill(tensor.bytes.begin() + 17 * 128, tensor.bytes.end(), std::byte{0xEE});
    if (columns < 64) {  // what the box does not cover stays as it is
      std::copy(before.begin() + 17 * 128, before.end(), tensor.bytes.begin() + 17 * 128);
    }
    const BoxStore store = store_box(map, {0, 17}, tensor.memory, image, 384, switches);
    EXPECT_EQ(tensor.bytes, before) << name(swizzle);
    EXPECT_EQ(store, (BoxStore{3 * 2 * static_cast<std::int64_t>(columns), 0, 0}));  // rows 17, 18, 19
  }
}

// Loaded with the 128B swizzle, stored without: chunk c of row r appears at c ^ r. The same test works on hardware
// without reading shared memory.
TEST(StoreBox, ShowsTheSwizzleWhenStoredWithAnother) {
  const TensorMap swizzled = map_of(TmaDataType::bf16, {64, 8}, {128}, {64, 8}, k128);
  TensorMap plain = swizzled;
  plain.swizzle = kNone;
  Tensor tensor(swizzled);
  const auto before = tensor.bytes;
  SharedImage image(1024);
  (void)load_box(swizzled, {0, 0}, tensor.memory, image, 0, CopyIdx{0});
  (void)store_box(plain, {0, 0}, tensor.memory, image, 0);
  for (std::size_t r = 0; r < 8; ++r) {
    for (std::size_t c = 0; c < 8; ++c) {
      EXPECT_EQ(hex(tensor.bytes, static_cast<std::int64_t>(128 * r + 16 * (c ^ r)), 16),
                hex(before, static_cast<std::int64_t>(128 * r + 16 * c), 16));
    }
  }
}

// Reported for an H100: 466 columns of 1 byte are written up to column 479, 470 of 2 bytes up to 471, 466 of 4 up to
// 467.
TEST(StoreBox, OverrunsTheLastColumnUpToAWholeChunk) {
  struct Case {
    TmaDataType type;
    std::uint64_t columns, stride, written;  // [elements], but the stride
  };
  constexpr std::array<Case, 3> kTable = {
      {{TmaDataType::u8, 466, 496, 480}, {TmaDataType::u16, 470, 960, 472}, {TmaDataType::u32, 466, 1888, 468}}};
  for (const Case& c : kTable) {
    const auto size = static_cast<std::uint64_t>(size_of(c.type));
    const auto whole = static_cast<std::uint32_t>(16 / size);
    TensorMap map = map_of(c.type, {c.columns, 2}, {c.stride}, {2 * whole, 2}, kNone);
    TensorMap allocation = map;
    allocation.dims[0] = c.stride / size;  // the rows' padding exists
    Tensor tensor(allocation);
    const auto start = static_cast<std::int32_t>(c.columns / whole * whole - whole);
    SharedImage image(128);
    TensorMap ones = allocation;
    Tensor source(ones);
    std::fill(source.bytes.begin(), source.bytes.end(), std::byte{0xEE});
    (void)load_box(allocation, {start, 0}, source.memory, image, 0, CopyIdx{0});

    const auto touched = [&](BoxSwitches::StoreEdge edge) {
      for (std::uint64_t p = 0; p < tensor.bytes.size(); ++p) tensor.bytes[p] = std::byte{1};
      const BoxStore store = store_box(map, {start, 0}, tensor.memory, image, 0, {.store_edge = edge});
      for (std::uint64_t column = 0; column < c.stride / size; ++column) {
        const bool written = tensor.bytes[c.stride + column * size] == std::byte{0xEE};
        const std::uint64_t end = edge == BoxSwitches::StoreEdge::chunk ? c.written : c.columns;
        EXPECT_EQ(written, column >= static_cast<std::uint64_t>(start) && column < end) << column;
      }
      return store;
    };
    const auto row = static_cast<std::int64_t>((c.written - static_cast<std::uint64_t>(start)) * size);
    const auto over = static_cast<std::int64_t>((c.written - c.columns) * size);
    EXPECT_EQ(touched(BoxSwitches::StoreEdge::chunk), (BoxStore{2 * row, 2 * over, 0}));
    EXPECT_EQ(touched(BoxSwitches::StoreEdge::element), (BoxStore{2 * (row - over), 0, 0}));
  }
}

// The overrun of the last row leaves the allocation: nothing is written.
TEST(StoreBox, WritesNothingWhenTheOverrunLeavesTheAllocation) {
  const TensorMap map = map_of(TmaDataType::u8, {470, 2}, {480}, {16, 2}, kNone);
  Tensor tensor(map);
  const auto before = tensor.bytes;
  SharedImage image(128);
  EXPECT_THROW((void)store_box(map, {464, 0}, tensor.memory, image, 0), IllegalAddress);
  EXPECT_EQ(tensor.bytes, before);
  const BoxStore store =
      store_box(map, {464, 0}, tensor.memory, image, 0, {.store_edge = BoxSwitches::StoreEdge::element});
  EXPECT_EQ(store, (BoxStore{12, 0, 12}));  // and all of it was poison
}

TEST(StoreBox, RejectsNegativeStartsAndModesForLoads) {
  TensorMap map = map_of(TmaDataType::bf16, {64, 20}, {128}, {64, 8}, k128);
  Tensor tensor(map);
  const SharedImage image(1024);
  EXPECT_EQ(message_of<GeometryError>([&] {
              (void)store_box(map, {-8, -1}, tensor.memory, image, 0);
            }),
            "store of a box rejected, 2 faults:\n"
            "  coordinate 0: -8 is below 0, where a store must not start (error 715 on Hopper): clip the tile first\n"
            "  coordinate 1: -1 is below 0, where a store must not start (error 715 on Hopper): clip the tile first");
  EXPECT_NO_THROW((void)store_box(map, {0, 19}, tensor.memory, image, 0));
  map.swizzle = TmaSwizzle::b128_atom32_flip8;
  EXPECT_EQ(message_of<UnsupportedError>([&] {
              (void)store_box(map, {0, 0}, tensor.memory, image, 0, {.target = TmaTarget::sm_100});
            }),
            "store of a box: 128B_ATOM_32B_FLIP_8B swizzle is for loads only: store with the ATOM_32B swizzle");
}

}  // namespace
}  // namespace kvscope::box_copy_test
