#include "core/fragment/wgmma_descriptor.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "tests/property.h"

namespace kvscope::wgmma_descriptor_test {
namespace {

template <class Error, class F>
std::string message_of(F f) {
  try {
    (void)f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no such error";
}

// K and V of 64 keys at byte 1024, as kernels write them.
TEST(WgmmaDescriptors, EncodeToTheKnownWords) {
  struct Case {
    WgmmaDescriptor descriptor;
    std::uint64_t bits;
  };
  const std::vector<Case> cases = {
      {{1024, 16, 1024, 0, SwizzleMode::b128}, 0x4000004000010040},    // K, 128-byte rows
      {{1056, 16, 1024, 0, SwizzleMode::b128}, 0x4000004000010042},    // its second step
      {{1024, 8192, 1024, 0, SwizzleMode::b128}, 0x4000004002000040},  // V, 64 depths further at 8192
      {{1024, 16, 512, 0, SwizzleMode::b64}, 0x8000002000010040},      // K, 64-byte rows
      {{1024, 16, 256, 0, SwizzleMode::b32}, 0xc000001000010040},
      {{1024, 128, 256, 0, SwizzleMode::none}, 0x0000001000080040},
      {{1024, 1024, 128, 0, SwizzleMode::none}, 0x0000000800400040},
      {{262128, 262128, 262128, 7, SwizzleMode::b32}, 0xc00e3fff3fff3fff},  // every field full
      {{0, 0, 0, 0, SwizzleMode::none}, 0},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(encode(c.descriptor), c.bits) << to_text(c.descriptor);
    EXPECT_EQ(decode_wgmma(c.bits), c.descriptor) << to_text(c.descriptor);
  }
  EXPECT_EQ(to_text(cases[2].descriptor), "start 1024, leading 8192, stride 1024, phase 0, 128B swizzle");
}

TEST(WgmmaDescriptors, ComeBackFromTheirBits) {
  EXPECT_TRUE(prop::check("decode undoes encode", [] {
    const auto offset = [] { return 16 * prop::uniform<std::int64_t>(0, 1 << 14); };
    const WgmmaDescriptor d{offset(), offset(), offset(), prop::in_range(0, 8),
                            static_cast<SwizzleMode>(prop::in_range(0, 4))};
    RC_ASSERT(decode_wgmma(encode(d)) == d);
  }));
}

TEST(WgmmaDescriptors, RejectWhatTheirFieldsCannotHold) {
  EXPECT_EQ(message_of<GeometryError>([] {
              return encode({1032, -16, 262144, 8, static_cast<SwizzleMode>(4)});
            }),
            "wgmma descriptor rejected, 5 faults:\n"
            "  start: 1032 B is not a multiple of 16: use 1024\n"
            "  leading: -16 B is outside [0, 262144): the field has 14 bits of 16 bytes\n"
            "  stride: 262144 B is outside [0, 262144): the field has 14 bits of 16 bytes\n"
            "  phase: 8 is outside [0, 8)\n"
            "  mode: 4 is outside [0, 4)");
  EXPECT_EQ(message_of<GeometryError>([] { return decode_wgmma(0x4000404000018040); }),
            "wgmma descriptor 0x4000404000018040 rejected, 2 faults:\n"
            "  reserved bits: 0x0000000000008000 must be 0: is an offset 2^18 B or more?\n"
            "  version: 1 in bits 46-47, but it is 0 for wgmma and 1 for tcgen05");
  // Exactly the bits that belong to no field are rejected.
  for (int bit = 0; bit < 64; ++bit) {
    const bool offset = bit < 14 || (bit >= 16 && bit < 30) || (bit >= 32 && bit < 46) || (bit >= 49 && bit < 52);
    const std::uint64_t one = std::uint64_t{1} << bit;
    if (offset || bit >= 62) {
      EXPECT_NO_THROW((void)decode_wgmma(one)) << bit;
    } else {
      EXPECT_THROW((void)decode_wgmma(one), GeometryError) << bit;
    }
    const std::uint64_t with_version = one | std::uint64_t{1} << 46;
    if (offset || bit == 46 || bit >= 62) {
      EXPECT_NO_THROW((void)decode_tcgen05(with_version)) << bit;
    } else if (bit == 61) {
      EXPECT_THROW((void)decode_tcgen05(with_version), UnsupportedError);
    } else {
      EXPECT_THROW((void)decode_tcgen05(with_version), GeometryError) << bit;
    }
  }
}

// Blackwell numbers the modes anew: the same operand, other bits.
TEST(WgmmaDescriptors, HaveOtherNumbersForTcgen05) {
  const auto with = [](SwizzleMode mode) { return WgmmaDescriptor{1024, 16, 1024, 0, mode}; };
  EXPECT_EQ(encode_tcgen05(with(SwizzleMode::none)), 0x0000404000010040u);
  EXPECT_EQ(encode_tcgen05(with(SwizzleMode::b128)), 0x4000404000010040u);
  EXPECT_EQ(encode_tcgen05(with(SwizzleMode::b64)), 0x8000404000010040u);
  EXPECT_EQ(encode_tcgen05(with(SwizzleMode::b32)), 0xc000404000010040u);
  for (const auto mode : {SwizzleMode::none, SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128}) {
    const WgmmaDescriptor d{32, 262128, 512, 5, mode};
    EXPECT_EQ(decode_tcgen05(encode_tcgen05(d)), d);
  }
  EXPECT_EQ(message_of<UnsupportedError>([] { return decode_tcgen05(0x2000404000010040); }),
            "tcgen05 descriptor 0x2000404000010040: mode 1 is not modeled: use 0, 2, 4 or 6");
  EXPECT_EQ(message_of<GeometryError>([] { return decode_tcgen05(0x4000004000010040); }),
            "tcgen05 descriptor 0x4000004000010040 rejected: version: 0 in bits 46-47, but it is 0 for wgmma and 1 for "
            "tcgen05");
  EXPECT_EQ(message_of<GeometryError>([] {
              return encode_tcgen05({8, 0, 0, 0, SwizzleMode::none});
            }),
            "tcgen05 descriptor rejected: start: 8 B is not a multiple of 16: use 0");
}

// Elements of bf16 operands and the bytes they are read from.
TEST(WgmmaAddresses, AreTheKnownPoints) {
  struct Point {
    std::uint64_t descriptor;
    WgmmaMajor major;
    std::int64_t mn, k, byte;
  };
  for (const Point& p :
       {Point{0x4000004000010040, WgmmaMajor::k, 9, 5, 2202}, Point{0x4000004000010040, WgmmaMajor::k, 63, 15, 9198},
        Point{0x4000004000010042, WgmmaMajor::k, 9, 5, 2234}, Point{0x4000004002000040, WgmmaMajor::mn, 70, 9, 10396},
        Point{0x4000004002000040, WgmmaMajor::mn, 5, 15, 3066}, Point{0x4000004002000040, WgmmaMajor::mn, 64, 0, 9216},
        Point{0x8000002000010040, WgmmaMajor::k, 9, 5, 1610}, Point{0x8000002000010040, WgmmaMajor::k, 13, 15, 1918},
        Point{0xc000001000010040, WgmmaMajor::k, 9, 5, 1322}, Point{0xc000001000010040, WgmmaMajor::k, 15, 15, 1518},
        Point{0x0000001000080040, WgmmaMajor::k, 9, 5, 1306}, Point{0x0000001000080040, WgmmaMajor::k, 15, 15, 1534},
        Point{0x0000000800400040, WgmmaMajor::mn, 9, 5, 1234},
        Point{0x0000000800400040, WgmmaMajor::mn, 15, 15, 2302}}) {
    const WgmmaDescriptor d = decode_wgmma(p.descriptor);
    EXPECT_EQ(wgmma_address(d, p.major, 2, p.mn, p.k), p.byte) << to_text(d) << ", (" << p.mn << ", " << p.k << ")";
  }
}

// Byte of (row, byte of the row) in a block of rows as wide as the mode, at `base`, computed by division into lines of
// 128 bytes.
std::int64_t in_block(std::int64_t base, std::int64_t width, std::int64_t row, std::int64_t byte) {
  const std::int64_t a = base + row * width + byte;
  const std::int64_t chunk = a % width / 16, line = a / 128;
  return a - a % width + ((chunk ^ (line % (width / 16))) * 16) + a % 16;
}

// wgmma reads the bytes that a TMA box (or a staged copy with the same swizzle) writes: K with keys as n, V with depths
// as n, step by step, block by block, for each mode.
TEST(WgmmaAddresses, ReadTheImageThatStagingWrites) {
  const std::int64_t base = 3072, keys = 64;
  for (const auto mode : {SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128}) {
    const std::int64_t width = bytes(mode), block = keys * width;
    for (const int es : {1, 2}) {
      const std::int64_t columns = width / es, depths = 2 * columns, step = 32 / es;
      for (std::int64_t depth = 0; depth < depths; ++depth) {
        const std::int64_t first = depth / step * step;  // of the step that holds it
        const WgmmaDescriptor d{base + first / columns * block + first % columns * es, 16, 8 * width, 0, mode};
        EXPECT_EQ(decode_wgmma(encode(d)), d);
        for (std::int64_t key = 0; key < keys; ++key) {
          ASSERT_EQ(wgmma_address(d, WgmmaMajor::k, es, key, depth - first),
                    in_block(base + depth / columns * block, width, key, depth % columns * es))
              << to_text(d) << ", key " << key << ", depth " << depth;
        }
      }
    }
    // V: 16 keys a step, `leading` from block to block of depths, `stride` from 8 keys to the next 8.
    const std::int64_t columns = width / 2;
    for (std::int64_t key = 0; key < keys; ++key) {
      const WgmmaDescriptor d{base + key / 16 * 16 * width, block, 8 * width, 0, mode};
      for (std::int64_t depth = 0; depth < 3 * columns; ++depth) {
        ASSERT_EQ(wgmma_address(d, WgmmaMajor::mn, 2, depth, key % 16),
                  in_block(base + depth / columns * block, width, key, depth % columns * 2))
            << to_text(d) << ", key " << key << ", depth " << depth;
      }
    }
  }
}

// Unswizzled operands are core matrices: 8 dense rows of 16 bytes, with separate offsets for the two directions.
TEST(WgmmaAddresses, FindCoreMatricesWhereTheDescriptorPutsThem) {
  const WgmmaDescriptor d{512, 2048, 256, 0, SwizzleMode::none};
  for (const int es : {1, 2, 4}) {
    for (std::int64_t mn = 0; mn < 32; ++mn) {
      for (std::int64_t byte = 0; byte < 48; byte += es) {
        EXPECT_EQ(wgmma_address(d, WgmmaMajor::k, es, mn, byte / es),
                  512 + 256 * (mn / 8) + 2048 * (byte / 16) + 16 * (mn % 8) + byte % 16);
      }
    }
  }
  std::set<std::int64_t> seen;
  for (std::int64_t mn = 0; mn < 32; ++mn) {
    for (std::int64_t k = 0; k < 16; ++k) {
      const std::int64_t byte = wgmma_address(d, WgmmaMajor::mn, 2, mn, k);
      EXPECT_EQ(byte, 512 + 256 * (mn / 8) + 2048 * (k / 8) + 16 * (k % 8) + 2 * (mn % 8));
      seen.insert(byte);
    }
  }
  EXPECT_EQ(seen.size(), 32u * 16);
}

TEST(WgmmaAddresses, RejectWhatTheModelOrTheInstructionDoesNotDo) {
  const WgmmaDescriptor d{1024, 16, 1024, 0, SwizzleMode::b128};
  EXPECT_EQ(
      message_of<UnsupportedError>([&] { return wgmma_address(d, WgmmaMajor::mn, 1, 0, 0); }),
      "wgmma takes MN-major operands of 16 bits only, not of 1 B elements: transpose on the way into shared memory");
  WgmmaDescriptor out_of_phase = d;
  out_of_phase.phase = 1;
  EXPECT_EQ(message_of<UnsupportedError>([&] { return wgmma_address(out_of_phase, WgmmaMajor::k, 2, 0, 0); }),
            "wgmma descriptor (start 1024, leading 16, stride 1024, phase 1, 128B swizzle): a pattern out of phase is "
            "not modeled: align the tile to 1024 B");
  EXPECT_EQ(message_of<GeometryError>([&] { return wgmma_address(d, WgmmaMajor::k, 3, 0, 0); }),
            "wgmma operand rejected: element: 3 B is not one of 1, 2, 4");
  EXPECT_EQ(message_of<IndexError>([&] { return wgmma_address(d, WgmmaMajor::k, 2, 0, -1); }),
            "wgmma element (0, -1) is below 0");
}

}  // namespace
}  // namespace kvscope::wgmma_descriptor_test
