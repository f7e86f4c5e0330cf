#include "core/fragment/mfma.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "tests/property.h"

namespace kvscope::mfma_test {
namespace {

using Rule = std::function<TilePlace(int lane, int element)>;

void expect_rule(const FragmentMap& map, int rows, int columns, int elements, const Rule& rule) {
  const FragmentInfo& info = map.info();
  EXPECT_EQ(info.lanes, 64) << info.name;
  EXPECT_EQ(info.rows, rows) << info.name;
  EXPECT_EQ(info.columns, columns) << info.name;
  ASSERT_EQ(info.elements, elements) << info.name;
  for (int l = 0; l < 64; ++l) {
    for (int e = 0; e < elements; ++e) {
      ASSERT_EQ(map.tile_of({l, e}), rule(l, e)) << info.name << ": lane " << l << ", element " << e;
    }
  }
}

// Each shape's rule with its numbers written out, as in the kernels' loaders.
TEST(MfmaMaps, HoldKAsItsSixteenByteReadsLeaveIt) {
  expect_rule(mfma_k_map(Mfma::bf16_32x32x16), 32, 16, 8, [](int l, int e) {
    return TilePlace{l % 32, 8 * (l / 32) + e};
  });
  expect_rule(mfma_k_map(Mfma::bf16_16x16x32), 16, 32, 8, [](int l, int e) {
    return TilePlace{l % 16, 8 * (l / 16) + e};
  });
  expect_rule(mfma_k_map(Mfma::fp8_32x32x64), 32, 64, 32, [](int l, int e) {
    return TilePlace{l % 32, 32 * (e / 16) + 16 * (l / 32) + e % 16};
  });
  expect_rule(mfma_k_map(Mfma::fp8_16x16x128), 16, 128, 32, [](int l, int e) {
    return TilePlace{l % 16, 64 * (e / 16) + 16 * (l / 16) + e % 16};
  });
  // Two instructions of depth 8: e counts within one, the other four elements are the second's.
  expect_rule(mfma_k_map(Mfma::bf16_32x32x8), 32, 16, 8, [](int l, int element) {
    const int which = element / 4, e = element % 4;
    return TilePlace{l % 32, 8 * (l / 32) + 4 * which + e};
  });
  EXPECT_EQ(mfma_shape(Mfma::bf16_32x32x8).instructions, 2);
  EXPECT_EQ(mfma_k_map(Mfma::fp8_32x32x64).tile_of({33, 16}), (TilePlace{1, 48}));
}

TEST(MfmaMaps, HoldVInTheOrderOfTheSum) {
  expect_rule(mfma_v_map(Mfma::bf16_32x32x16), 16, 32, 8, [](int l, int e) {
    return TilePlace{8 * (e / 4) + 4 * (l / 32) + e % 4, l % 32};
  });
  expect_rule(mfma_v_map(Mfma::bf16_16x16x32), 32, 16, 8, [](int l, int e) {
    return TilePlace{16 * (e / 4) + 4 * (l / 16) + e % 4, l % 16};
  });
  expect_rule(mfma_v_map(Mfma::fp8_32x32x64), 64, 32, 32, [](int l, int e) {
    return TilePlace{8 * (e / 4) + 4 * (l / 32) + e % 4, l % 32};
  });
  expect_rule(mfma_v_map(Mfma::fp8_16x16x128), 128, 16, 32, [](int l, int e) {
    return TilePlace{32 * (l / 16) + e, l % 16};
  });
  expect_rule(mfma_v_map(Mfma::bf16_32x32x8), 16, 32, 8, [](int l, int element) {
    const int half = element / 4, e = element % 4;
    return TilePlace{8 * half + 4 * (l / 32) + e, l % 32};
  });
}

TEST(MfmaMaps, HoldTheSumAsTheInstructionLeavesIt) {
  for (const auto mfma : {Mfma::bf16_32x32x8, Mfma::bf16_32x32x16, Mfma::fp8_32x32x64}) {
    expect_rule(mfma_sum_map(mfma), 32, 32, 16, [](int l, int p) {
      return TilePlace{8 * (p / 4) + 4 * (l / 32) + p % 4, l % 32};
    });
  }
  for (const auto mfma : {Mfma::bf16_16x16x32, Mfma::fp8_16x16x128}) {
    expect_rule(mfma_sum_map(mfma), 16, 16, 4, [](int l, int p) { return TilePlace{4 * (l / 16) + p, l % 16}; });
  }
}

// (lane, element) of one fragment and its (row, depth) or (key, depth), from samples of whole kernels with strip, step
// and MMA index removed.
TEST(MfmaMaps, HoldTheSamplesOfTheKernels) {
  const auto k = [](Mfma mfma, int lane, int element) { return mfma_k_map(mfma).tile_of({lane, element}); };
  EXPECT_EQ(k(Mfma::bf16_32x32x16, 63, 7), (TilePlace{31, 15}));
  EXPECT_EQ(k(Mfma::bf16_32x32x16, 37, 0), (TilePlace{5, 8}));
  EXPECT_EQ(k(Mfma::fp8_32x32x64, 63, 16), (TilePlace{31, 48}));
  EXPECT_EQ(k(Mfma::bf16_16x16x32, 63, 0), (TilePlace{15, 24}));
  EXPECT_EQ(k(Mfma::fp8_16x16x128, 17, 0), (TilePlace{1, 16}));
  EXPECT_EQ(k(Mfma::fp8_16x16x128, 63, 31), (TilePlace{15, 127}));
  const auto v = [](Mfma mfma, int lane, int element) { return mfma_v_map(mfma).tile_of({lane, element}); };
  EXPECT_EQ(v(Mfma::bf16_32x32x16, 0, 4), (TilePlace{8, 0}));
  EXPECT_EQ(v(Mfma::bf16_32x32x16, 17, 5), (TilePlace{9, 17}));
  EXPECT_EQ(v(Mfma::bf16_16x16x32, 17, 5), (TilePlace{21, 1}));
  EXPECT_EQ(v(Mfma::fp8_32x32x64, 47, 13), (TilePlace{29, 15}));
  EXPECT_EQ(v(Mfma::fp8_32x32x64, 63, 31), (TilePlace{63, 31}));
  EXPECT_EQ(v(Mfma::fp8_16x16x128, 8, 9), (TilePlace{9, 8}));
  EXPECT_EQ(v(Mfma::fp8_16x16x128, 17, 31), (TilePlace{63, 1}));
}

std::vector<double> values(int count, std::uint32_t seed) {
  std::vector<double> result;
  for (int i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    result.push_back(static_cast<double>(static_cast<int>(seed >> 24) - 128));  // small integers: sums are exact
  }
  return result;
}

std::vector<double> transposed(const std::vector<double>& matrix, int rows, int columns) {
  std::vector<double> result(matrix.size());
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      result[static_cast<std::size_t>(c * rows + r)] = matrix[static_cast<std::size_t>(r * columns + c)];
    }
  }
  return result;
}

// a [rows, depth] times b [columns, depth] transposed.
std::vector<double> plain_product(const std::vector<double>& a, const std::vector<double>& b, int rows, int columns,
                                  int depth) {
  std::vector<double> result(static_cast<std::size_t>(rows * columns));
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      for (int d = 0; d < depth; ++d) {
        result[static_cast<std::size_t>(r * columns + c)] +=
            a[static_cast<std::size_t>(r * depth + d)] * b[static_cast<std::size_t>(c * depth + d)];
      }
    }
  }
  return result;
}

// K first, Q second, through fragments: keys x queries, added to the previous sum.
TEST(MfmaPairing, MultipliesKByQ) {
  for (const MfmaShape& shape : all_mfma_shapes()) {
    const auto k = values(shape.M * shape.K, 1), q = values(shape.M * shape.K, 2),
               before = values(shape.M * shape.M, 3);
    const FragmentMap sum = mfma_sum_map(shape.id);
    const auto result = registers_to_tile(
        sum, mfma_multiply_add(shape.id, tile_to_registers(mfma_k_map(shape.id), k),
                               tile_to_registers(mfma_k_map(shape.id), q), tile_to_registers(sum, before)));
    auto expected = plain_product(k, q, shape.M, shape.M, shape.K);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
    EXPECT_EQ(result, expected) << shape.name;
  }
}

// V first, P second: depths x queries. P is arranged with the same map as V.
TEST(MfmaPairing, MultipliesVByP) {
  for (const MfmaShape& shape : all_mfma_shapes()) {
    const auto v = values(shape.K * shape.M, 4), p = values(shape.K * shape.M, 5);  // [key, depth], [key, query]
    const FragmentMap map = mfma_v_map(shape.id), sum = mfma_sum_map(shape.id);
    const std::vector<double> zeros(static_cast<std::size_t>(shape.M * shape.M));
    const auto result = registers_to_tile(
        sum, mfma_multiply_add(shape.id, tile_to_registers(map, v), tile_to_registers(map, p), zeros));
    EXPECT_EQ(result, plain_product(transposed(v, shape.K, shape.M), transposed(p, shape.K, shape.M), shape.M, shape.M,
                                    shape.K))
        << shape.name;
  }
}

// Permuting the elements of both operands in the same way does not change the product, so K's order need not be the
// hardware's. Permuting only one of them changes it.
TEST(MfmaPairing, DependsOnlyOnBothOperandsAgreeing) {
  EXPECT_TRUE(prop::check("relabeling the slots does not change the sum", [] {
    const MfmaShape& shape = all_mfma_shapes()[prop::uniform<std::size_t>(0, all_mfma_shapes().size())];
    const auto a = values(64 * shape.elements, prop::any<unsigned>()),
               b = values(64 * shape.elements, prop::any<unsigned>());
    const int slots = shape.groups() * shape.elements;
    std::vector<int> order(static_cast<std::size_t>(slots));
    for (int i = 0; i < slots; ++i) order[static_cast<std::size_t>(i)] = i;
    for (int i = slots - 1; i > 0; --i) {
      std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(prop::uniform(0, i + 1))]);
    }
    const auto shuffled = [&](const std::vector<double>& from) {
      std::vector<double> to(from.size());
      for (int x = 0; x < shape.M; ++x) {
        for (int slot = 0; slot < slots; ++slot) {
          const auto at = [&](int s) {
            return static_cast<std::size_t>((s / shape.elements * shape.M + x) * shape.elements + s % shape.elements);
          };
          to[at(order[static_cast<std::size_t>(slot)])] = from[at(slot)];
        }
      }
      return to;
    };
    const std::vector<double> zeros(static_cast<std::size_t>(shape.M * shape.M));
    RC_ASSERT(mfma_multiply_add(shape.id, shuffled(a), shuffled(b), zeros) == mfma_multiply_add(shape.id, a, b, zeros));
  }));
  const auto a = values(512, 7), b = values(512, 8);
  auto moved = a;
  std::swap(moved[0], moved[1]);
  const std::vector<double> zeros(1024);
  EXPECT_NE(mfma_multiply_add(Mfma::bf16_32x32x16, moved, b, zeros),
            mfma_multiply_add(Mfma::bf16_32x32x16, a, b, zeros));
}

// One head, 32 queries: the sum of Q K^T is P's fragment, register by register, without an exchange between lanes. Only
// for 32-row shapes: the others move P through shared memory.
TEST(MfmaPairing, TakesPFromTheSumRegisterByRegister) {
  for (const auto mfma : {Mfma::bf16_32x32x8, Mfma::bf16_32x32x16, Mfma::fp8_32x32x64}) {
    const MfmaShape& shape = mfma_shape(mfma);
    const int tiles = shape.K > 32 ? 2 : 1;  // key tiles of 32 that one strip of P covers
    const int steps = 32 * tiles / shape.K;  // products that consume it
    const int keys = 32 * tiles;
    const auto k = values(keys * shape.K, 11), q = values(32 * shape.K, 12), v = values(keys * 32, 13);
    const std::vector<double> zeros(1024);

    // S = K Q^T, [key, query], a tile of 32 keys at a time; each lane's registers one after the other.
    std::vector<std::vector<double>> p_of_lane(64);
    for (int tile = 0; tile < tiles; ++tile) {
      const std::vector<double> k_tile(k.begin() + tile * 32 * shape.K, k.begin() + (tile + 1) * 32 * shape.K);
      const auto s = mfma_multiply_add(mfma, tile_to_registers(mfma_k_map(mfma), k_tile),
                                       tile_to_registers(mfma_k_map(mfma), q), zeros);
      for (int lane = 0; lane < 64; ++lane) {
        auto& p = p_of_lane[static_cast<std::size_t>(lane)];
        p.insert(p.end(), s.begin() + lane * 16, s.begin() + (lane + 1) * 16);
      }
    }
    // O^T = V^T P, step by step, with P's registers unchanged.
    std::vector<double> o = zeros;
    for (int step = 0; step < steps; ++step) {
      std::vector<double> p;
      for (const auto& lane : p_of_lane) {
        p.insert(p.end(), lane.begin() + step * shape.elements, lane.begin() + (step + 1) * shape.elements);
      }
      const std::vector<double> v_step(v.begin() + step * shape.K * 32, v.begin() + (step + 1) * shape.K * 32);
      o = mfma_multiply_add(mfma, tile_to_registers(mfma_v_map(mfma), v_step), p, o);
    }
    const auto s = plain_product(k, q, keys, 32, shape.K);
    EXPECT_EQ(registers_to_tile(mfma_sum_map(mfma), o),
              plain_product(transposed(v, keys, 32), transposed(s, keys, 32), 32, 32, keys))
        << shape.name;
  }
}

// A fragment of 32x32x8 feeds two instructions, with four elements of each lane each. Each computes a product over 8
// depths, and their sum is the whole product.
TEST(MfmaPairing, FeedsTwoInstructionsOfDepthEightFromOneRead) {
  const auto k = values(32 * 16, 21), q = values(32 * 16, 22);
  const FragmentMap map = mfma_k_map(Mfma::bf16_32x32x8);
  const auto a = tile_to_registers(map, k), b = tile_to_registers(map, q);
  std::vector<double> sum(1024);
  for (int which = 0; which < 2; ++which) {
    for (int m = 0; m < 32; ++m) {
      for (int n = 0; n < 32; ++n) {
        for (int g = 0; g < 2; ++g) {
          for (int e = 0; e < 4; ++e) {
            sum[static_cast<std::size_t>(m * 32 + n)] += a[static_cast<std::size_t>((g * 32 + m) * 8 + 4 * which + e)] *
                                                         b[static_cast<std::size_t>((g * 32 + n) * 8 + 4 * which + e)];
          }
        }
      }
    }
  }
  EXPECT_EQ(sum, plain_product(k, q, 32, 32, 16));
}

TEST(MfmaPairing, RejectsHalfARegisterTile) {
  const std::vector<double> whole(512), sum(1024);
  const auto message = [&](const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& c) {
    try {
      (void)mfma_multiply_add(Mfma::bf16_32x32x16, a, b, c);
    } catch (const GeometryError& e) {
      return std::string(e.what());
    }
    return std::string("no GeometryError");
  };
  EXPECT_EQ(message(std::vector<double>(256), whole, sum),
            "mfma 32x32x16 bf16, a: 256 values, but 64 lanes of 8 elements are 512");
  EXPECT_EQ(message(whole, std::vector<double>(513), sum),
            "mfma 32x32x16 bf16, b: 513 values, but 64 lanes of 8 elements are 512");
  EXPECT_EQ(message(whole, whole, whole), "mfma 32x32x16 bf16, sum: 512 values, but 64 lanes of 16 elements are 1024");
}

}  // namespace
}  // namespace kvscope::mfma_test
