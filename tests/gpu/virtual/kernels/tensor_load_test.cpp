// K07: the reference cases of the copy engine, executed by the instruction.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::tensor_load_test {
namespace {

struct Case {
  const char* id;
  TmaSwizzle swizzle;
  std::int64_t element;  // [bytes]
  std::vector<std::uint64_t> dims, strides;
  std::vector<std::uint32_t> box, element_strides;
  std::vector<std::int32_t> at;
  // [bytes] the tile's offset, the bytes compared, the bytes that the barrier expects.
  std::uint64_t offset, window, tx;
  std::uint64_t fnv;
};

constexpr auto kNone = TmaSwizzle::none, k32 = TmaSwizzle::b32, k64 = TmaSwizzle::b64, k128 = TmaSwizzle::b128;

// Computed by programs that share no formula with this one: ragged edges, negative starts, five dimensions, element
// strides, rows narrower than the swizzle, fill, and (P) tiles that begin inside a swizzle's period.
std::vector<Case> cases() {
  const std::vector<std::uint64_t> d{64, 20}, s{128};
  return {
      {"G1", kNone, 2, {40, 6}, {96}, {16, 4}, {}, {32, 4}, 0, 128, 128, 0xba7ca726732c4105U},
      {"G2", k128, 2, d, s, {64, 8}, {}, {0, 17}, 0, 1024, 1024, 0x643bdab782933fa5U},
      {"G3", k128, 2, d, s, {64, 8}, {}, {0, -2}, 0, 1024, 1024, 0x6a59e9623e462e25U},
      {"G4", k64, 2, d, s, {32, 8}, {}, {32, 5}, 0, 512, 512, 0xc6bbf7643b53e325U},
      {"G5", k32, 2, d, s, {16, 8}, {}, {16, 5}, 0, 256, 256, 0xc0ef11f398731f65U},
      {"G6", k128, 2, {128, 4, 48}, {256, 1024}, {64, 1, 16}, {}, {64, 2, 40}, 0, 2048, 2048, 0xd3ccf5e8b2dbda25U},
      {"G7",
       kNone,
       1,
       {32, 3, 3, 3, 3},
       {32, 96, 288, 864},
       {16, 2, 2, 2, 2},
       {},
       {16, 2, 1, -1, 2},
       0,
       256,
       256,
       0x5baac93da80f5225U},
      {"G8", k128, 2, d, s, {64, 8}, {1, 2}, {0, 5}, 0, 512, 512, 0x5a65f3580ac2c425U},
      {"G9", k128, 1, d, {64}, {64, 8}, {}, {0, 4}, 0, 1024, 512, 0x41b1fba254c2e825U},
      {"G10", k128, 4, d, {256}, {32, 4}, {}, {48, 2}, 0, 512, 512, 0xe9bc3266b34b06a5U},
      {"G13", kNone, 8, {96, 7}, {768}, {64, 3}, {}, {32, 5}, 0, 1536, 1536, 0x77b40cb0a819c825U},
      {"G14", kNone, 2, d, s, {64, 2}, {}, {128, 0}, 0, 256, 256, 0xd80ac658736bb725U},
      {"G15", k64, 1, {32, 20}, {32}, {32, 8}, {}, {0, 1}, 0, 512, 256, 0x02a3441a4da47025U},
      {"G16", k128, 2, d, s, {64, 8}, {}, {-8, 0}, 0, 1024, 1024, 0xfd26c0caecc675a5U},
      {"G17", k128, 2, {64, 4, 4}, {128, 4096}, {64, 2, 2}, {}, {0, 3, 3}, 0, 512, 512, 0x6718d6fff7be8f25U},
      {"G18", k32, 2, d, s, {8, 8}, {}, {24, 0}, 0, 256, 128, 0x4f524897662b81a5U},
      {"G19", kNone, 2, {64, 4, 5}, {4096, 128}, {64, 2, 3}, {}, {0, 2, 1}, 0, 768, 768, 0xd49d6cc160963025U},
      {"P1", k128, 2, d, s, {64, 4}, {}, {0, 17}, 512, 4096, 512, 0x42d90aa15124d3a5U},
      {"P2", k128, 2, d, s, {64, 4}, {}, {0, 1}, 128, 4096, 512, 0x7eaaa7caca4563a5U},
      {"P3", k64, 2, d, s, {32, 8}, {}, {0, 1}, 128, 4096, 512, 0xa3db016fafb1b825U},
      {"P4", k32, 2, d, s, {16, 8}, {}, {0, 1}, 128, 4096, 256, 0x74e4b61e9cb96065U},
      {"P5", k128, 2, d, s, {64, 8}, {}, {0, 1}, 1024, 4096, 1024, 0x8ab765093f6b3c25U},
      {"P6", kNone, 2, d, s, {64, 4}, {}, {0, 1}, 128, 4096, 512, 0x402cb8a4572a68a5U},
      {"P7", k128, 2, d, s, {16, 10}, {1, 3}, {32, 11}, 128, 4096, 128, 0xdd9df55a5337a805U},
  };
}

TmaDataType type_of(std::int64_t element) {
  switch (element) {
    case 1:
      return TmaDataType::u8;
    case 2:
      return TmaDataType::bf16;
    case 4:
      return TmaDataType::f32;
    default:
      return TmaDataType::u64;
  }
}

// Exactly the tensor's bytes: a copy that reads one more is reported.
std::vector<std::uint8_t> source(const Case& c) {
  std::uint64_t end = c.dims[0] * static_cast<std::uint64_t>(c.element);
  for (std::size_t i = 1; i < c.dims.size(); ++i) end += (c.dims[i] - 1) * c.strides[i - 1];
  std::vector<std::uint8_t> bytes(end);
  for (std::uint64_t p = 0; p < end; ++p)
    bytes[p] = static_cast<std::uint8_t>((31 * p + 17 * (p >> 7) + 5 * (p >> 15) + 5) % 256);
  return bytes;
}

TEST(K07, DeliversTheGoldBytesOfEveryTensorCopy) {
  for (const Case& c : cases())
    for (const Schedule& schedule : kSchedules) {
      SCOPED_TRACE(std::string(c.id) + ' ' + schedule.name);
      Gpu gpu("tensor_load.ptx", schedule);
      const std::uint64_t base = gpu.upload("tensor", source(c)), out = gpu.zeros("out", c.window);
      TensorMap map = tensor_map(type_of(c.element), base, c.dims, c.strides, c.box, c.swizzle);
      for (std::size_t i = 0; i < c.element_strides.size(); ++i) map.element_strides.at(i) = c.element_strides[i];
      if (c.element == 4) map.fill = OobFill::nan_request_zero_fma;
      std::array<std::int32_t, 5> at{};
      for (std::size_t i = 0; i < c.at.size(); ++i) at.at(i) = c.at[i];
      gpu.run_clean({.kernel = "load_" + std::to_string(c.dims.size()) + "d",
                     .block = {64, 1, 1},
                     .values = {map_bytes(map), block(at), out, c.offset, c.window, c.tx},
                     .dynamic_shared = 4096});
      EXPECT_EQ(fnv_of(gpu.download<std::uint8_t>(out, c.window)), c.fnv);
    }
}

// One byte per element, no swizzle: rows are consecutive, and positions outside the tensor in any dimension are zero.
TEST(K07, CopiesBoxesOfEveryRank) {
  constexpr std::array<std::int64_t, 5> kDims = {32, 3, 3, 3, 3}, kStrides = {1, 32, 96, 288, 864},
                                        kBox = {16, 2, 2, 2, 2}, kAt = {16, 2, 1, -1, 2};
  for (std::size_t rank = 1; rank <= 5; ++rank) {
    SCOPED_TRACE(rank);
    Case c{"", kNone, 1, {}, {}, {}, {}, {}, 0, 0, 0, 0};
    std::int64_t bytes = 1;
    for (std::size_t i = 0; i < rank; ++i) {
      c.dims.push_back(static_cast<std::uint64_t>(kDims.at(i)));
      if (i > 0) c.strides.push_back(static_cast<std::uint64_t>(kStrides.at(i)));
      c.box.push_back(static_cast<std::uint32_t>(kBox.at(i)));
      bytes *= kBox.at(i);
    }
    const std::vector<std::uint8_t> tensor = source(c);
    std::vector<std::uint8_t> expected;
    for (std::int64_t b = 0; b < bytes; ++b) {
      std::int64_t rest = b, from = 0;
      bool inside = true;
      for (std::size_t i = 0; i < rank; ++i) {
        const std::int64_t x = kAt.at(i) + rest % kBox.at(i);
        rest /= kBox.at(i);
        inside = inside && x >= 0 && x < kDims.at(i);
        from += x * kStrides.at(i);
      }
      expected.push_back(inside ? tensor[static_cast<std::size_t>(from)] : 0);
    }
    std::array<std::int32_t, 5> at{};
    for (std::size_t i = 0; i < rank; ++i) at.at(i) = static_cast<std::int32_t>(kAt.at(i));
    for (const Schedule& schedule : kSchedules) {
      SCOPED_TRACE(schedule.name);
      Gpu gpu("tensor_load.ptx", schedule);
      const std::uint64_t base = gpu.upload("tensor", tensor), out = gpu.zeros("out", expected.size());
      const TensorMap map = tensor_map(TmaDataType::u8, base, c.dims, c.strides, c.box, kNone);
      gpu.run_clean({.kernel = "load_" + std::to_string(rank) + "d",
                     .block = {64, 1, 1},
                     .values = {map_bytes(map), block(at), out, value(0), value(bytes), value(bytes)},
                     .dynamic_shared = 4096});
      EXPECT_EQ(gpu.download<std::uint8_t>(out, expected.size()), expected);
    }
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::tensor_load_test
