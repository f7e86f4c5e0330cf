#include "core/fragment/ldmatrix.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/fragment/fp8_v.h"
#include "core/fragment/mma_sync.h"
#include "core/smem/banks.h"
#include "tests/property.h"

namespace kvscope::ldmatrix_test {
namespace {

using testing::ElementsAre;

template <class Error, class F>
std::string message_of(F f) {
  try {
    (void)f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no such error";
}

SharedImage counting_image(std::int64_t size, int modulus, CopyIdx copy = CopyIdx{0}) {
  SharedImage image(size);
  std::vector<std::byte> bytes;
  for (std::int64_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(i % modulus));
  image.write(0, bytes, copy);
  return image;
}

std::vector<std::int64_t> rows_at(const std::function<std::int64_t(int)>& address) {
  std::vector<std::int64_t> rows;
  for (int lane = 0; lane < 32; ++lane) rows.push_back(address(lane));
  return rows;
}

// Words as a GPU returns them: bytes i mod 251, rows 16 bytes apart.
TEST(Ldmatrix, LoadsTheKnownWords) {
  const SharedImage image = counting_image(512, 251);
  const auto rows = rows_at([](int lane) { return 16 * lane; });
  const auto plain = ldmatrix(image, rows, {4, false}), trans = ldmatrix(image, rows, {4, true});
  EXPECT_EQ(plain[5][1], 0x97969594u);
  EXPECT_EQ(trans[5][1], 0xb3b2a3a2u);
  EXPECT_EQ(plain[31][3], 0x09080706u);
  EXPECT_EQ(trans[31][3], 0x0908f4f3u);
}

// .x1 and .x2 ignore the addresses of other lanes, even invalid ones, and write no registers for them.
TEST(Ldmatrix, IgnoresAddressesPastItsMatrices) {
  const SharedImage image = counting_image(256, 251);
  for (const int matrices : {1, 2}) {
    const auto rows = rows_at([&](int lane) { return lane < 8 * matrices ? 16 * lane : -3; });
    const auto registers = ldmatrix(image, rows, {matrices, false});
    EXPECT_EQ(registers[31][static_cast<std::size_t>(matrices - 1)],
              matrices == 1 ? 0x7f7e7d7cu : 0x04030201u);  // bytes 252..255, counted modulo 251
    for (std::size_t reg = static_cast<std::size_t>(matrices); reg < 4; ++reg) EXPECT_EQ(registers[31][reg], 0u);
  }
}

// Rows at any addresses, in any order: each byte of each register is the byte that ldmatrix_source names, read from the
// matrices as matrices of halfwords.
TEST(Ldmatrix, BringsEveryByteFromWhereItSays) {
  EXPECT_TRUE(prop::check("register bytes are matrix bytes", [] {
    SharedImage image(4096);
    std::vector<std::byte> bytes;
    std::uint32_t x = prop::any<unsigned>();
    for (int i = 0; i < 4096; ++i) bytes.push_back(static_cast<std::byte>((x = x * 1664525U + 1013904223U) >> 24));
    image.write(0, bytes, CopyIdx{0});
    const LdmatrixShape shape{1 << prop::in_range(0, 3), prop::any<bool>()};
    const auto rows = rows_at([](int) { return 16 * prop::uniform<std::int64_t>(0, 256); });
    const auto registers = ldmatrix(image, rows, shape);
    for (int m = 0; m < shape.matrices; ++m) {
      std::uint16_t matrix[8][8];
      for (int r = 0; r < 8; ++r) {
        for (int c = 0; c < 8; ++c) {
          const auto at = static_cast<std::size_t>(rows[static_cast<std::size_t>(8 * m + r)] + 2 * c);
          matrix[r][c] =
              static_cast<std::uint16_t>(static_cast<unsigned>(bytes[at]) | static_cast<unsigned>(bytes[at + 1]) << 8);
        }
      }
      for (int lane = 0; lane < 32; ++lane) {
        const int g = lane / 4, t = lane % 4;
        const std::uint32_t low = shape.trans ? matrix[2 * t][g] : matrix[g][2 * t];
        const std::uint32_t high = shape.trans ? matrix[2 * t + 1][g] : matrix[g][2 * t + 1];
        const std::uint32_t value = registers[static_cast<std::size_t>(lane)][static_cast<std::size_t>(m)];
        RC_ASSERT(value == (low | high << 16));
        for (int byte = 0; byte < 4; ++byte) {
          const LdmatrixSource from = ldmatrix_source(shape, lane, m, byte);
          RC_ASSERT(from.matrix == m);
          const auto at = static_cast<std::size_t>(rows[static_cast<std::size_t>(8 * m + from.row)] + from.byte);
          RC_ASSERT(static_cast<std::uint32_t>(bytes[at]) == (value >> (8 * byte) & 0xFF));
        }
      }
    }
  }));
}

TEST(Ldmatrix, NamesEveryLaneThatPointsWrong) {
  const SharedImage image(512);
  auto rows = rows_at([](int lane) { return 16 * lane; });
  rows[3] = 24;
  rows[7] = 512;
  rows[9] = -16;
  EXPECT_EQ(message_of<GeometryError>([&] {
              return ldmatrix(image, rows, {4, true});
            }),
            "ldmatrix.x4.trans rejected, 3 faults:\n"
            "  lane 3: address 24 is not a multiple of 16: a row is 16 bytes and is read in one piece\n"
            "  lane 7: row [512, +16) leaves the shared memory of 512 B\n"
            "  lane 9: row [-16, +16) leaves the shared memory of 512 B");
  EXPECT_EQ(message_of<GeometryError>([&] {
              return ldmatrix(image, rows, {3, false});
            }),
            "ldmatrix rejected: matrices: 3 is not one of 1, 2, 4");
  EXPECT_EQ(message_of<GeometryError>([&] {
              return ldmatrix(image, std::vector<std::int64_t>(16), {1, false});
            }),
            "ldmatrix.x1 rejected: row addresses: 16, but a warp has 32 lanes");
  EXPECT_EQ(message_of<IndexError>([] {
              return ldmatrix_source({2, false}, 0, 2, 0);
            }),
            "register of ldmatrix 2 is outside [0, 2)");
  EXPECT_EQ(message_of<GeometryError>([] { return ldmatrix_row(LdmatrixUse::v_as_b, 1, 0); }),
            "ldmatrix, V as B rejected: element: 1 B: use 2 (fp8 V has a separate use)");
  EXPECT_EQ(message_of<GeometryError>([] { return ldmatrix_map(LdmatrixUse::v_fp8, 2); }),
            "ldmatrix, V fp8 rejected: element: 2 B: use 1");
  EXPECT_EQ(message_of<GeometryError>([] { return ldmatrix_row(LdmatrixUse::k_as_a, 4, 0); }),
            "ldmatrix, K as A rejected: element: 4 B: use 1 or 2");
}

MmaSync mma_of(int element_bytes) {
  return element_bytes == 2 ? MmaSync::m16n8k16 : MmaSync::m16n8k32;
}

// Registers 0, 1 are B of the first 8 keys, 2, 3 of the next 8: B's k is the depth, its n the key.
TEST(LdmatrixUses, GiveKAsTheBOperand) {
  for (const int bytes : {1, 2}) {
    const FragmentMap map = ldmatrix_map(LdmatrixUse::k_as_b, bytes), b = mma_sync_map(mma_of(bytes), MmaOperand::b);
    for (int lane = 0; lane < 32; ++lane) {
      for (int e = 0; e < map.info().elements; ++e) {
        const int half = e / b.info().elements;
        const TilePlace place = b.tile_of({lane, e % b.info().elements});
        EXPECT_EQ(map.tile_of({lane, e}), (TilePlace{8 * half + place.column, place.row}));
      }
    }
  }
}

TEST(LdmatrixUses, GiveKAsTheAOperand) {
  for (const int bytes : {1, 2}) {
    const FragmentMap map = ldmatrix_map(LdmatrixUse::k_as_a, bytes), a = mma_sync_map(mma_of(bytes), MmaOperand::a);
    ASSERT_EQ(map.info().elements, a.info().elements);
    for (int lane = 0; lane < 32; ++lane) {
      for (int e = 0; e < map.info().elements; ++e) EXPECT_EQ(map.tile_of({lane, e}), a.tile_of({lane, e}));
    }
  }
}

// V as B: its k is the key, its n the depth. Without .trans they would be exchanged, and the product wrong.
TEST(LdmatrixUses, GiveVAsTheBOperandTransposed) {
  const FragmentMap map = ldmatrix_map(LdmatrixUse::v_as_b, 2), b = mma_sync_map(MmaSync::m16n8k16, MmaOperand::b);
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < 8; ++e) {
      const TilePlace place = b.tile_of({lane, e % 4});
      EXPECT_EQ(map.tile_of({lane, e}), (TilePlace{place.row, 8 * (e / 4) + place.column}));
    }
  }
}

TEST(LdmatrixUses, GiveVAsTheAOperandTransposed) {
  const FragmentMap map = ldmatrix_map(LdmatrixUse::v_as_a, 2), a = mma_sync_map(MmaSync::m16n8k16, MmaOperand::a);
  for (int lane = 0; lane < 32; ++lane) {
    for (int e = 0; e < 8; ++e) {
      const TilePlace place = a.tile_of({lane, e});  // row: depth, k: key
      EXPECT_EQ(map.tile_of({lane, e}), (TilePlace{place.column, place.row}));
    }
  }
}

TEST(LdmatrixUses, LeaveFp8VInPairsOfKeysAndDepths) {
  const FragmentMap map = ldmatrix_map(LdmatrixUse::v_fp8, 1);
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int m = 0; m < 4; ++m) {
      EXPECT_EQ(map.tile_of({lane, 4 * m}), (TilePlace{8 * m + 2 * t, 2 * g}));
      EXPECT_EQ(map.tile_of({lane, 4 * m + 1}), (TilePlace{8 * m + 2 * t, 2 * g + 1}));
      EXPECT_EQ(map.tile_of({lane, 4 * m + 2}), (TilePlace{8 * m + 2 * t + 1, 2 * g}));
      EXPECT_EQ(map.tile_of({lane, 4 * m + 3}), (TilePlace{8 * m + 2 * t + 1, 2 * g + 1}));
    }
  }
}

// The staged image of K or V: blocks of 64 keys x `row_bytes`, vectors permuted by (bits, 0, shift).
struct Image {
  int element_bytes, row_bytes, bits, shift;
  [[nodiscard]] std::int64_t byte(int key, int depth) const {
    const int columns = row_bytes / element_bytes;
    const std::int64_t in_row = static_cast<std::int64_t>(depth % columns) * element_bytes;
    const std::int64_t linear = depth / columns * 64 * row_bytes + static_cast<std::int64_t>(key) * row_bytes + in_row;
    const std::int64_t v = linear / 16;
    return (v ^ ((v >> shift) % (1 << bits))) * 16 + linear % 16;
  }
};
constexpr int kDepth = 128;

// Addresses and conflicts of the row patterns, as a kernel would compute them.
TEST(LdmatrixUses, PointAtTheKnownAddresses) {
  struct Case {
    std::string what;
    LdmatrixUse use;
    Image image;
    int key, depth;
    std::vector<std::int64_t> addresses;  // of lanes 0 1 4 7 8 15 16 23 24 31
    std::vector<int> degrees;
  };
  const std::vector<Case> cases = {
      {"K bf16 BK32 (3,0,4)",
       LdmatrixUse::k_as_b,
       {2, 64, 3, 4},
       0,
       0,
       {0, 64, 272, 464, 16, 448, 544, 1008, 560, 992},
       {2, 2, 2, 2}},
      {"same, further in",
       LdmatrixUse::k_as_b,
       {2, 64, 3, 4},
       16,
       48,
       {5216, 5152, 5488, 5552, 5232, 5536, 5696, 6032, 5712, 6016},
       {2, 2, 2, 2}},
      {"K bf16 BK32 (2,0,3)",
       LdmatrixUse::k_as_b,
       {2, 64, 2, 3},
       0,
       0,
       {0, 64, 288, 496, 16, 480, 512, 1008, 528, 992},
       {1, 1, 1, 1}},
      {"K bf16 BK64 (3,0,3)",
       LdmatrixUse::k_as_b,
       {2, 128, 3, 3},
       0,
       0,
       {0, 144, 576, 1008, 16, 992, 1024, 2032, 1040, 2016},
       {1, 1, 1, 1}},
      {"K fp8 BK64 (3,0,4)",
       LdmatrixUse::k_as_b,
       {1, 64, 3, 4},
       0,
       0,
       {0, 64, 272, 464, 16, 448, 544, 1008, 560, 992},
       {2, 2, 2, 2}},
      {"V bf16 BK32",
       LdmatrixUse::v_as_b,
       {2, 64, 0, 0},
       0,
       0,
       {0, 64, 256, 448, 512, 960, 16, 464, 528, 976},
       {4, 4, 4, 4}},
      {"V bf16 BK32, further in",
       LdmatrixUse::v_as_b,
       {2, 64, 0, 0},
       32,
       112,
       {14368, 14432, 14624, 14816, 14880, 15328, 14384, 14832, 14896, 15344},
       {4, 4, 4, 4}},
      {"V fp8 BK64",
       LdmatrixUse::v_fp8,
       {1, 64, 0, 0},
       0,
       0,
       {0, 64, 256, 448, 512, 960, 1024, 1472, 1536, 1984},
       {4, 4, 4, 4}},
  };
  const std::vector<int> lanes = {0, 1, 4, 7, 8, 15, 16, 23, 24, 31};
  for (const Case& c : cases) {
    SharedAccess access{16, {}};
    for (int lane = 0; lane < 32; ++lane) {
      const TilePlace row = ldmatrix_row(c.use, c.image.element_bytes, lane);
      access.addresses.emplace_back(c.image.byte(c.key + row.row, c.depth + row.column));
    }
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      EXPECT_EQ(*access.addresses[static_cast<std::size_t>(lanes[i])], c.addresses[i])
          << c.what << ", lane " << lanes[i];
    }
    EXPECT_EQ(bank_report(bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16), access).degrees, c.degrees)
        << c.what;
  }
}

// The swizzles of TMA's modes make every read conflict-free at every place, for K and V, plain and transposed.
TEST(LdmatrixUses, AreFreeOfConflictsUnderTmasSwizzles) {
  const BankProfile profile = bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16);
  for (const auto& [use, bytes] : std::vector<std::pair<LdmatrixUse, int>>{{LdmatrixUse::k_as_b, 1},
                                                                           {LdmatrixUse::k_as_b, 2},
                                                                           {LdmatrixUse::k_as_a, 1},
                                                                           {LdmatrixUse::k_as_a, 2},
                                                                           {LdmatrixUse::v_as_b, 2},
                                                                           {LdmatrixUse::v_as_a, 2},
                                                                           {LdmatrixUse::v_fp8, 1}}) {
    const FragmentInfo piece = ldmatrix_map(use, bytes).info();
    for (const Image& image : {Image{bytes, 64, 2, 3}, Image{bytes, 128, 3, 3}}) {
      for (int key = 0; key < 64; key += piece.rows) {
        for (int depth = 0; depth < kDepth; depth += piece.columns) {
          SharedAccess access{16, {}};
          for (int lane = 0; lane < 32; ++lane) {
            const TilePlace row = ldmatrix_row(use, bytes, lane);
            access.addresses.emplace_back(image.byte(key + row.row, depth + row.column));
          }
          EXPECT_EQ(bank_report(profile, access).extra(), 0) << piece.name << ", key " << key << ", depth " << depth;
        }
      }
    }
  }
}

// All five uses over swizzled images of values that identify their place: the registers match the map for each
// swizzle, so only the addresses depend on the swizzle, not the map.
TEST(LdmatrixUses, ReadTheirPiecesFromSwizzledImages) {
  for (const auto& [use, bytes] : std::vector<std::pair<LdmatrixUse, int>>{{LdmatrixUse::k_as_b, 1},
                                                                           {LdmatrixUse::k_as_b, 2},
                                                                           {LdmatrixUse::k_as_a, 1},
                                                                           {LdmatrixUse::k_as_a, 2},
                                                                           {LdmatrixUse::v_as_b, 2},
                                                                           {LdmatrixUse::v_as_a, 2},
                                                                           {LdmatrixUse::v_fp8, 1}}) {
    const FragmentMap map = ldmatrix_map(use, bytes);
    for (const auto& [bits, shift] : std::vector<std::pair<int, int>>{{0, 0}, {3, 4}, {2, 3}, {3, 3}}) {
      const Image image{bytes, 64, bits, shift};
      // An element of two bytes is (key, depth); an element of one byte is one of two hashes of them, in two images.
      for (int which = 0; which < (bytes == 1 ? 2 : 1); ++which) {
        SharedImage shared(64 * kDepth * bytes);
        const auto value = [&, b = bytes](int key, int depth) {
          return b == 2 ? key * 256 + depth : which == 0 ? key : depth;
        };
        for (int key = 0; key < 64; ++key) {
          for (int depth = 0; depth < kDepth; ++depth) {
            std::vector<std::byte> element;
            for (int i = 0; i < bytes; ++i) element.push_back(static_cast<std::byte>(value(key, depth) >> (8 * i)));
            shared.write(image.byte(key, depth), element, CopyIdx{0});
          }
        }
        for (int key = 0; key < 64; key += map.info().rows) {
          for (int depth = 0; depth < kDepth; depth += map.info().columns) {
            std::vector<std::int64_t> rows;
            for (int lane = 0; lane < 32; ++lane) {
              const TilePlace row = ldmatrix_row(use, bytes, lane);
              rows.push_back(image.byte(key + row.row, depth + row.column));
            }
            const auto registers = ldmatrix(shared, rows, ldmatrix_shape(use));
            for (int lane = 0; lane < 32; ++lane) {
              for (int e = 0; e < map.info().elements; ++e) {
                const TilePlace at = map.tile_of({lane, e});
                const std::uint32_t word =
                    registers[static_cast<std::size_t>(lane)][static_cast<std::size_t>(map.register_of(e))];
                const int per_register = 4 / bytes;
                const auto got =
                    static_cast<int>(word >> (8 * bytes * (e % per_register)) & (bytes == 2 ? 0xFFFFU : 0xFFU));
                ASSERT_EQ(got, value(key + at.row, depth + at.column)) << map.info().name;
              }
            }
          }
        }
      }
    }
  }
}

TEST(Prmt, PicksBytesAndCopiesSigns) {
  EXPECT_EQ(prmt(0x33221100, 0x77665544, 0x6420), 0x66442200u);
  EXPECT_EQ(prmt(0x33221100, 0x77665544, 0x7531), 0x77553311u);
  EXPECT_EQ(prmt(0x33221100, 0x77665544, 0x0123), 0x00112233u);
  EXPECT_EQ(prmt(0x80FF7F01, 0, 0xBA98), 0xFFFF0000u);
  EXPECT_EQ(prmt(1, 2, 0xFFFF4000), 0x02010101u);  // selector bits past 16 are ignored
}

// Every (key, depth) of 32 x 16 occurs once in the two operands that the permutations make of the loaded registers;
// checked by performing the loads and permutations, with key and then depth as the value.
TEST(Fp8V, BecomesTwoOperandsThatHoldEveryElementOnce) {
  const FragmentMap map = fp8_v_map(), b = mma_sync_map(MmaSync::m16n8k32, MmaOperand::b);
  std::vector<std::vector<int>> seen(32, std::vector<int>(16));
  std::vector<Fp8VOperands> by_value[2];
  for (int which = 0; which < 2; ++which) {
    SharedImage image(32 * 16);
    for (int key = 0; key < 32; ++key) {
      for (int depth = 0; depth < 16; ++depth) {
        const std::byte value[] = {static_cast<std::byte>(which == 0 ? key : depth)};
        image.write(16 * key + depth, value, CopyIdx{0});
      }
    }
    for (const auto& loaded :
         ldmatrix(image, rows_at([](int lane) { return 16 * lane; }), ldmatrix_shape(LdmatrixUse::v_fp8))) {
      by_value[which].push_back(fp8_v_operands(loaded));
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int e = 0; e < 16; ++e) {
      const auto element = [&](int which) {
        const Fp8VOperands& operands = by_value[which][static_cast<std::size_t>(lane)];
        const auto& half = e < 8 ? operands.even : operands.odd;
        return static_cast<int>(half[static_cast<std::size_t>(e % 8 / 4)] >> (8 * (e % 4)) & 0xFF);
      };
      const int key = element(0), depth = element(1);
      EXPECT_EQ(map.tile_of({lane, e}), (TilePlace{key, depth}));
      EXPECT_EQ(key, fp8_v_key(b.tile_of({lane, e % 8}).row));
      const int j = e % 4;  // slot 4t + j, + 16 in the second register
      EXPECT_EQ(key, 8 * (j / 2) + 2 * t + j % 2 + (e % 8 >= 4 ? 16 : 0));
      EXPECT_EQ(depth, 2 * g + (e >= 8 ? 1 : 0));
      ++seen[static_cast<std::size_t>(key)][static_cast<std::size_t>(depth)];
    }
  }
  for (const auto& row : seen) EXPECT_THAT(row, testing::Each(1));
  EXPECT_EQ(fp8_v_key(6), 10);
  EXPECT_THROW((void)fp8_v_key(32), IndexError);
}

// The output columns of a lane: depths 4t and 4t + 2 from the even product, 4t + 1 and 4t + 3 from the odd one.
TEST(Fp8V, LeavesFourDepthsInARowToEachLane) {
  const FragmentMap c = mma_sync_map(MmaSync::m16n8k32, MmaOperand::c);
  for (int lane = 0; lane < 32; ++lane) {
    const int t = lane % 4;
    std::vector<int> depths;
    for (int component = 0; component < 2; ++component) {
      for (int odd = 0; odd < 2; ++odd) depths.push_back(2 * c.tile_of({lane, component}).column + odd);
    }
    EXPECT_THAT(depths, ElementsAre(4 * t, 4 * t + 1, 4 * t + 2, 4 * t + 3));
  }
}

}  // namespace
}  // namespace kvscope::ldmatrix_test
