// wmma as compiled by nvcc: every shape and type compared with a plain loop, and a product staged in shared memory.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::wmma_test {
namespace {

// A matrix in memory: elements of `bits`, lines of `distance` elements, by rows or by columns.
struct Matrix {
  Type type = Type::f32;
  int rows = 0, columns = 0;
  bool by_columns = false;
  int gap = 0;  // [elements] between lines
  std::vector<std::byte> bytes;

  Matrix(Type of, int r, int c, bool columns_first, int between)
      : type(of), rows(r), columns(c), by_columns(columns_first), gap(between) {
    bytes.assign(static_cast<std::size_t>((by_columns ? columns : rows) * distance() * bits(type) / 8),
                 std::byte{0x5a});
  }
  [[nodiscard]] int distance() const { return (by_columns ? rows : columns) + gap; }
  [[nodiscard]] int at(int row, int column) const {
    return by_columns ? column * distance() + row : row * distance() + column;
  }
  void put(int row, int column, int x) {
    const int i = at(row, column), width = bits(type);
    if (width < 8) {
      std::byte& b = bytes[static_cast<std::size_t>(i * width / 8)];
      const int shift = i * width % 8;
      const auto mask = static_cast<std::byte>(((1 << width) - 1) << shift);
      b = (b & ~mask) | (static_cast<std::byte>(static_cast<unsigned>(x) << shift) & mask);
      return;
    }
    std::uint64_t word = static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
    if (type == Type::f64) word = std::bit_cast<std::uint64_t>(static_cast<double>(x));
    if (type == Type::f32 || type == Type::tf32 || type == Type::bf16) {
      word = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    }
    if (type == Type::bf16) word >>= 16;
    if (type == Type::f16) word = half(x);
    std::memcpy(bytes.data() + i * width / 8, &word, static_cast<std::size_t>(width / 8));
  }
  // The f16 bits of an integer up to 2048.
  static std::uint64_t half(int x) {
    if (x == 0) return 0;
    const auto magnitude = static_cast<unsigned>(std::abs(x));
    const int exponent = std::bit_width(magnitude) - 1;
    return (x < 0 ? 0x8000u : 0u) | static_cast<unsigned>(exponent + 15) << 10 |
           ((magnitude << (10 - exponent)) & 0x3ffu);
  }
};

struct Shape {
  int m, n, k;
};
struct Tile {
  std::string name;
  Shape shape;
  Type in, c, d;
};

std::vector<Tile> every_tile() {
  const std::vector<std::pair<std::string, Shape>> shapes{
      {"m16n16k16", {16, 16, 16}}, {"m32n8k16", {32, 8, 16}}, {"m8n32k16", {8, 32, 16}}};
  std::vector<Tile> all;
  for (const auto& [name, shape] : shapes) {
    all.push_back({"f16_f32_f32_" + name, shape, Type::f16, Type::f32, Type::f32});
    all.push_back({"f16_f16_f16_" + name, shape, Type::f16, Type::f16, Type::f16});
    all.push_back({"bf16_" + name, shape, Type::bf16, Type::f32, Type::f32});
    all.push_back({"s8_" + name, shape, Type::s8, Type::s32, Type::s32});
    all.push_back({"u8_" + name, shape, Type::u8, Type::s32, Type::s32});
  }
  all.push_back({"f16_f16_f32_m16n16k16", {16, 16, 16}, Type::f16, Type::f16, Type::f32});
  all.push_back({"f16_f32_f16_m16n16k16", {16, 16, 16}, Type::f16, Type::f32, Type::f16});
  all.push_back({"tf32_m16n16k8", {16, 16, 8}, Type::tf32, Type::f32, Type::f32});
  all.push_back({"f64_m8n8k4", {8, 8, 4}, Type::f64, Type::f64, Type::f64});
  all.push_back({"s4_m8n8k32", {8, 8, 32}, Type::s4, Type::s32, Type::s32});
  all.push_back({"u4_m8n8k32", {8, 8, 32}, Type::u4, Type::s32, Type::s32});
  all.push_back({"b1_m8n8k128", {8, 8, 128}, Type::b1, Type::s32, Type::s32});
  return all;
}

int a_of(Type type, int i, int k) {
  if (type == Type::b1) return (i * 7 + k * k) % 3 == 0 ? 1 : 0;
  return (i + 2 * k) % 5 - (type == Type::u8 || type == Type::u4 ? 0 : 2);
}
int b_of(Type type, int k, int n) {
  if (type == Type::b1) return (n * 5 + k * 11) % 4 < 2 ? 1 : 0;
  return (3 * k + n) % 7 - (type == Type::u8 || type == Type::u4 ? 0 : 3);
}

// Elements of a tile are distinct somewhere, each matrix is tested in both layouts, and lines are longer than the tile:
// an exchanged register, lane, half or layout is detected, and so is a byte written between two lines.
TEST(Wmma, EveryShapeTypeAndLayoutIsTheProductOfAPlainLoop) {
  for (const Tile& tile : every_tile()) {
    const auto [m, n, k] = tile.shape;
    const bool small = bits(tile.in) < 8;
    Gpu gpu("wmma.ptx");
    for (int how = 0; how < 8; ++how) {
      if (small && (how & 3) != 2) continue;
      SCOPED_TRACE(tile.name + " layout " + std::to_string(how));
      const auto gap = [](Type type) { return 128 / bits(type); };  // of 16 bytes
      Matrix a(tile.in, m, k, (how & 1) != 0, gap(tile.in)), b(tile.in, k, n, (how & 2) != 0, gap(tile.in));
      const int between = std::max(gap(tile.c), gap(tile.d));  // C and D have one distance
      Matrix c(tile.c, m, n, (how & 4) != 0, between), d(tile.d, m, n, (how & 4) != 0, between);
      for (int i = 0; i < m; ++i)
        for (int x = 0; x < k; ++x) a.put(i, x, a_of(tile.in, i, x));
      for (int x = 0; x < k; ++x)
        for (int j = 0; j < n; ++j) b.put(x, j, b_of(tile.in, x, j));
      Matrix expected = d;
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
          c.put(i, j, i - 3 * j);
          int sum = 2 * (i - 3 * j);
          for (int x = 0; x < k; ++x) sum += a_of(tile.in, i, x) * b_of(tile.in, x, j);
          expected.put(i, j, sum);
        }
      const std::uint64_t at_a = gpu.upload("a", a.bytes), at_b = gpu.upload("b", b.bytes);
      const std::uint64_t at_c = gpu.upload("c", c.bytes), at_d = gpu.upload("d", d.bytes);
      gpu.run_clean({.kernel = "wmma_" + tile.name,
                     .values = {at_d, at_a, at_b, at_c, value(a.distance()), value(b.distance()), value(d.distance()),
                                value(how)}});
      EXPECT_EQ(gpu.download<std::byte>(at_d, d.bytes.size()), expected.bytes);
    }
  }
}

// --- staged in shared memory -----------------------------------------------------------------------------------------

struct Staged {
  static constexpr int kSide = 32, kLong = 80;  // five steps of 16
  std::vector<std::uint16_t> a, b;              // [32][80] and [80][32] of f16
  std::vector<float> expected;                  // [32][32]

  Staged() {
    for (int i = 0; i < kSide; ++i)
      for (int k = 0; k < kLong; ++k) a.push_back(static_cast<std::uint16_t>(Matrix::half(a_of(Type::f16, i, k))));
    for (int k = 0; k < kLong; ++k)
      for (int n = 0; n < kSide; ++n) b.push_back(static_cast<std::uint16_t>(Matrix::half(b_of(Type::f16, k, n))));
    for (int i = 0; i < kSide; ++i)
      for (int n = 0; n < kSide; ++n) {
        int sum = 0;
        for (int k = 0; k < kLong; ++k) sum += a_of(Type::f16, i, k) * b_of(Type::f16, k, n);
        expected.push_back(static_cast<float>(sum));
      }
  }
  Run run(Gpu& gpu, std::uint64_t& out, int bug) const {
    out = gpu.zeros("c", sizeof(float) * expected.size());
    return {.kernel = "wmma_staged",
            .block = {128, 1, 1},
            .values = {out, gpu.upload("a", a), gpu.upload("b", b), value(kLong), value(bug)}};
  }
};

TEST(Wmma, AProductStagedInSharedMemoryIsCleanUnderEverySchedule) {
  const Staged data;
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("wmma.ptx", schedule);
    std::uint64_t out = 0;
    gpu.run_clean(data.run(gpu, out, 0));
    EXPECT_EQ(gpu.download<float>(out, data.expected.size()), data.expected);
  }
}

// Kinds of the reports, and the opcodes of their parties.
std::vector<std::string> said(int bug) {
  const Staged data;
  Gpu gpu("wmma.ptx");
  std::uint64_t out = 0;
  std::vector<std::string> all;
  for (const Report& report : gpu.run_checked(data.run(gpu, out, bug)).reports) {
    std::string line(name(report.kind));
    for (const ReportParty& party : report.parties) line += " " + party.opcode.substr(0, party.opcode.find(".sync"));
    all.push_back(line + (report.address.symbol.empty() ? "" : " " + report.address.symbol));
  }
  return all;
}

TEST(Wmma, ALoadIsARaceWithStoresThatNoBarrierOrders) {
  EXPECT_THAT(said(1), ::testing::Contains(::testing::AllOf(::testing::StartsWith("RACE_WR st.shared"),
                                                            ::testing::HasSubstr("wmma.load.a"))));
}
TEST(Wmma, AStorePastAnArrayIsOutOfBounds) {
  EXPECT_THAT(said(2), ::testing::ElementsAre("OUT_OF_BOUNDS wmma.store.d c"));
}
TEST(Wmma, ALoadOfARowThatNobodyHasWrittenIsUninitialised) {
  EXPECT_THAT(said(3), ::testing::Contains(::testing::StartsWith("UNINITIALIZED wmma.load.b")));
}

}  // namespace
}  // namespace kvscope::ptx::test::wmma_test
