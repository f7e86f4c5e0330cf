#include "core/fragment/mma_sync.h"

#include <gmock/gmock.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/fragment/fp8_v.h"
#include "core/fragment/wgmma.h"

namespace kvscope::mma_sync_test {
namespace {

void expect_rule(const FragmentMap& map, int rows, int columns, int elements,
                 const std::function<TilePlace(int g, int t, int v)>& rule) {
  EXPECT_EQ(map.info().lanes, 32);
  EXPECT_EQ(map.info().rows, rows);
  EXPECT_EQ(map.info().columns, columns);
  ASSERT_EQ(map.info().elements, elements);
  for (int lane = 0; lane < 32; ++lane) {
    for (int v = 0; v < elements; ++v) {
      ASSERT_EQ(map.tile_of({lane, v}), rule(lane / 4, lane % 4, v)) << map.info().name << ": " << lane << ", " << v;
    }
  }
}

TEST(MmaSyncMaps, AreThoseOfThePtxIsa) {
  // Each case as the manual states it, by conditions on the element rather than by one formula.
  expect_rule(mma_sync_map(MmaSync::m16n8k16, MmaOperand::a), 16, 16, 8, [](int g, int t, int v) {
    const bool upper = v == 2 || v == 3 || v == 6 || v == 7;
    return TilePlace{upper ? g + 8 : g, t * 2 + (v & 1) + (v >= 4 ? 8 : 0)};
  });
  expect_rule(mma_sync_map(MmaSync::m16n8k16, MmaOperand::b), 16, 8, 4, [](int g, int t, int v) {
    return TilePlace{t * 2 + (v & 1) + (v >= 2 ? 8 : 0), g};
  });
  expect_rule(mma_sync_map(MmaSync::m16n8k32, MmaOperand::a), 16, 32, 16, [](int g, int t, int v) {
    const bool lower = v < 4 || (v >= 8 && v < 12);
    return TilePlace{lower ? g : g + 8, t * 4 + (v & 3) + (v < 8 ? 0 : 16)};
  });
  expect_rule(mma_sync_map(MmaSync::m16n8k32, MmaOperand::b), 32, 8, 8, [](int g, int t, int v) {
    return TilePlace{t * 4 + (v & 3) + (v < 4 ? 0 : 16), g};
  });
  for (const auto mma : {MmaSync::m16n8k16, MmaSync::m16n8k32}) {
    expect_rule(mma_sync_map(mma, MmaOperand::c), 16, 8, 4, [](int g, int t, int v) {
      return TilePlace{v < 2 ? g : g + 8, t * 2 + (v & 1)};
    });
  }
  EXPECT_EQ(mma_sync_map(MmaSync::m16n8k16, MmaOperand::a).tile_of({31, 7}), (TilePlace{15, 15}));
}

// General form for any width: E elements a register; register r, element e of it.
TEST(MmaSyncMaps, AgreeWithTheRuleByRegisters) {
  for (const auto mma : {MmaSync::m16n8k16, MmaSync::m16n8k32}) {
    const int E = mma == MmaSync::m16n8k16 ? 2 : 4;
    const FragmentMap a = mma_sync_map(mma, MmaOperand::a), b = mma_sync_map(mma, MmaOperand::b);
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane / 4, t = lane % 4;
      for (int r = 0; r < 4; ++r) {
        for (int e = 0; e < E; ++e) {
          EXPECT_EQ(a.tile_of({lane, r * E + e}), (TilePlace{g + 8 * (r % 2), t * E + e + 4 * E * (r / 2)}));
          EXPECT_EQ(a.register_of(r * E + e), r);
          if (r < 2) {
            EXPECT_EQ(b.tile_of({lane, r * E + e}), (TilePlace{t * E + e + 4 * E * r, g}));
          }
        }
      }
    }
  }
}

// The integer vector of the machine's documents: A(i, k) = (i + 2k) mod 5 - 2, B(k, n) = (3k + n) mod 7 - 3, C = i - n.
double a_value(int i, int k) {
  return (i + 2 * k) % 5 - 2;
}
double b_value(int k, int n) {
  return (3 * k + n) % 7 - 3;
}

std::vector<double> filled(const FragmentMap& map, const std::function<double(int, int)>& value) {
  std::vector<double> tile;
  for (int r = 0; r < map.info().rows; ++r) {
    for (int c = 0; c < map.info().columns; ++c) tile.push_back(value(r, c));
  }
  return tile_to_registers(map, tile);
}

std::uint64_t fnv(const std::vector<double>& tile, bool as_float) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const double value : tile) {
    const std::uint32_t bits = as_float ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                                        : static_cast<std::uint32_t>(static_cast<std::int32_t>(value));
    for (int byte = 0; byte < 4; ++byte) hash = (hash ^ (bits >> (8 * byte) & 0xFF)) * 1099511628211ULL;
  }
  return hash;
}

TEST(MmaSyncProducts, GiveTheKnownSums) {
  struct Case {
    MmaSync mma;
    std::vector<double> first;
    double last, sum;
    std::uint64_t as_f32, as_s32;
  };
  for (const Case& c : {Case{MmaSync::m16n8k16, {10, -14, -24, -20}, 18, 522, 0x2b7627f38ea962f1, 0x95854b635767e211},
                        Case{MmaSync::m16n8k32, {-7, -10, 1, 5}, 1, 505, 0x5f985cebdfd22145, 0xc106079bb15e07cd}}) {
    const FragmentMap a = mma_sync_map(c.mma, MmaOperand::a), b = mma_sync_map(c.mma, MmaOperand::b),
                      sum = mma_sync_map(c.mma, MmaOperand::c);
    const auto d = registers_to_tile(sum, mma_sync(c.mma, filled(a, a_value), filled(b, b_value),
                                                   filled(sum, [](int i, int n) { return double(i - n); })));
    EXPECT_EQ(std::vector<double>(d.begin(), d.begin() + 4), c.first);
    EXPECT_EQ(d.back(), c.last);
    double total = 0;
    for (const double value : d) total += value;
    EXPECT_EQ(total, c.sum);
    EXPECT_EQ(fnv(d, true), c.as_f32);
    EXPECT_EQ(fnv(d, false), c.as_s32);
  }
}

// Two lanes' registers of that vector in bf16, as a debugger shows them.
TEST(MmaSyncProducts, PackPairsIntoRegistersLowHalfFirst) {
  const FragmentMap a = mma_sync_map(MmaSync::m16n8k16, MmaOperand::a),
                    b = mma_sync_map(MmaSync::m16n8k16, MmaOperand::b);
  const auto a_registers = filled(a, a_value), b_registers = filled(b, b_value);
  const auto packed = [](const std::vector<double>& registers, int lane, int elements) {
    std::vector<std::uint32_t> words;
    for (int i = 0; i < elements; i += 2) {
      const auto half = [&](int e) {
        const auto value = static_cast<float>(registers[static_cast<std::size_t>(lane * elements + e)]);
        return std::bit_cast<std::uint32_t>(value) >> 16;
      };
      words.push_back(half(i) | half(i + 1) << 16);
    }
    return words;
  };
  using Words = std::vector<std::uint32_t>;
  EXPECT_EQ(packed(a_registers, 0, 8), (Words{0x0000c000, 0xc0003f80, 0x3f80bf80, 0xbf804000}));
  EXPECT_EQ(packed(b_registers, 0, 4), (Words{0x0000c040, 0x40400000}));
  EXPECT_EQ(packed(a_registers, 31, 8), (Words{0xbf804000, 0x40000000, 0x0000c000, 0xc0003f80}));
  EXPECT_EQ(packed(b_registers, 31, 4), (Words{0xc0403f80, 0x0000c040}));
}

TEST(MmaSyncProducts, RejectHalfAFragment) {
  const auto message = [](std::size_t a, std::size_t b, std::size_t c) {
    try {
      (void)mma_sync(MmaSync::m16n8k32, std::vector<double>(a), std::vector<double>(b), std::vector<double>(c));
    } catch (const GeometryError& e) {
      return std::string(e.what());
    }
    return std::string("no GeometryError");
  };
  EXPECT_EQ(message(511, 256, 128), "mma.m16n8k32, A: 511 values, but 32 lanes of 16 elements are 512");
  EXPECT_EQ(message(512, 128, 128), "mma.m16n8k32, B: 128 values, but 32 lanes of 8 elements are 256");
  EXPECT_EQ(message(512, 256, 256), "mma.m16n8k32, C: 256 values, but 32 lanes of 4 elements are 128");
}

// Every element of P as the A operand, for each lane: it is one of the sums of the same lane, in the required row and
// for the key that V's operand has in the same slot.
TEST(SumSources, FindPInTheLanesOwnSums) {
  for (const auto mma : {MmaSync::m16n8k16, MmaSync::m16n8k32}) {
    const FragmentMap a = mma_sync_map(mma, MmaOperand::a), c = mma_sync_map(mma, MmaOperand::c);
    for (int lane = 0; lane < 32; ++lane) {
      for (int v = 0; v < a.info().elements; ++v) {
        const SumSource from = sum_source_of_p(mma, v);
        const TilePlace place = c.tile_of({lane, from.component}), wanted = a.tile_of({lane, v});
        EXPECT_EQ(place.row, wanted.row);
        const int key = 8 * from.tile + place.column;
        EXPECT_EQ(key, mma == MmaSync::m16n8k16 ? wanted.column : fp8_v_key(wanted.column));
      }
    }
  }
  EXPECT_EQ(sum_source_of_p(MmaSync::m16n8k16, 6), (SumSource{1, 2}));
  EXPECT_EQ(sum_source_of_p(MmaSync::m16n8k32, 13), (SumSource{2, 3}));
  EXPECT_THROW((void)sum_source_of_p(MmaSync::m16n8k16, 8), IndexError);
}

// Attention's two products in one warp without an exchange between lanes: 16 queries, one step of keys, 8 depths of the
// output (fp8: 16, even and odd).
TEST(SumSources, ChainTheTwoProductsOfAttention) {
  const auto q = [](int i, int d) { return double((7 * i + 3 * d) % 11 - 5); };
  const auto k = [](int key, int d) { return double((5 * key + d) % 13 - 6); };
  const auto v = [](int key, int d) { return double((3 * key + 5 * d) % 17 - 8); };
  for (const auto mma : {MmaSync::m16n8k16, MmaSync::m16n8k32}) {
    const int depth = depth_of(mma);
    const FragmentMap a = mma_sync_map(mma, MmaOperand::a), b = mma_sync_map(mma, MmaOperand::b),
                      c = mma_sync_map(mma, MmaOperand::c);
    std::vector<std::vector<double>> s;  // of each 8 keys
    for (int tile = 0; tile < depth / 8; ++tile) {
      s.push_back(mma_sync(mma, filled(a, q), filled(b, [&](int d, int n) { return k(8 * tile + n, d); }),
                           std::vector<double>(128)));
    }
    std::vector<double> p(static_cast<std::size_t>(32 * a.info().elements));
    for (int lane = 0; lane < 32; ++lane) {
      for (int e = 0; e < a.info().elements; ++e) {
        const SumSource from = sum_source_of_p(mma, e);
        p[static_cast<std::size_t>(lane * a.info().elements + e)] =
            s[static_cast<std::size_t>(from.tile)][static_cast<std::size_t>(4 * lane + from.component)];
      }
    }
    const bool fp8 = mma == MmaSync::m16n8k32;
    for (int odd = 0; odd < (fp8 ? 2 : 1); ++odd) {
      const auto v_operand =
          filled(b, [&](int slot, int n) { return fp8 ? v(fp8_v_key(slot), 2 * n + odd) : v(slot, n); });
      const auto o = registers_to_tile(c, mma_sync(mma, p, v_operand, std::vector<double>(128)));
      for (int i = 0; i < 16; ++i) {
        for (int n = 0; n < 8; ++n) {
          double expected = 0;
          for (int key = 0; key < depth; ++key) {
            double score = 0;
            for (int d = 0; d < depth; ++d) score += q(i, d) * k(key, d);
            expected += score * v(key, fp8 ? 2 * n + odd : n);
          }
          EXPECT_EQ(o[static_cast<std::size_t>(8 * i + n)], expected) << i << " " << n;
        }
      }
    }
  }
}

TEST(WgmmaMaps, AreThoseOfThePtxIsa) {
  for (int N = 8; N <= 256; N += 8) {
    const FragmentMap d = wgmma_sum_map(N);
    ASSERT_EQ(d.info().elements, N / 2);
    for (int thread = 0; thread < 128; ++thread) {
      for (int i = 0; i < N / 2; ++i) {
        const int warp = thread >> 5, lane = thread & 31;
        const bool upper = (i & 2) != 0;
        ASSERT_EQ(d.tile_of({thread, i}),
                  (TilePlace{16 * warp + (lane >> 2) + (upper ? 8 : 0), (i >> 2) * 8 + (lane & 3) * 2 + (i & 1)}));
      }
    }
  }
  EXPECT_EQ(wgmma_sum_map(16).tile_of({37, 6}), (TilePlace{25, 10}));
  const FragmentMap a = wgmma_a_map(MmaSync::m16n8k16), warp = mma_sync_map(MmaSync::m16n8k16, MmaOperand::a);
  EXPECT_EQ(a.tile_of({127, 7}), (TilePlace{63, 15}));
  EXPECT_EQ(a.tile_of({32, 2}), (TilePlace{24, 0}));
  for (int lane = 0; lane < 32; ++lane) {
    for (int v = 0; v < 8; ++v) EXPECT_EQ(a.tile_of({lane, v}), warp.tile_of({lane, v}));
  }
  for (const int N : {0, 4, 12, 264, -8}) {
    try {
      (void)wgmma_sum_map(N);
      ADD_FAILURE() << N;
    } catch (const GeometryError& e) {
      EXPECT_EQ(std::string(e.what()),
                "wgmma rejected: N: " + std::to_string(N) + " is not a multiple of 8 in [8, 256]");
    }
  }
}

// Eight registers of the sum are A of the next product's step in every warp; FlashAttention 3 relies on it.
TEST(WgmmaMaps, TheSumIsTheNextProductsAStepByStep) {
  const FragmentMap d = wgmma_sum_map(64), a = wgmma_a_map(MmaSync::m16n8k16);
  for (int thread = 0; thread < 128; ++thread) {
    for (int step = 0; step < 4; ++step) {
      for (int v = 0; v < 8; ++v) {
        const TilePlace from = d.tile_of({thread, 8 * step + v}), to = a.tile_of({thread, v});
        EXPECT_EQ(from, (TilePlace{to.row, 16 * step + to.column}));
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::mma_sync_test
