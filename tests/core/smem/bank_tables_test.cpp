// Bank totals of K and V tiles in shared memory, computed with address code of this file only: rows and columns follow
// the instructions' documents, and no map of the library is used.
#include <gmock/gmock.h>

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/smem/banks.h"

namespace kvscope::bank_tables_test {
namespace {

using testing::ElementsAre;

// (bits, base, shift) on 16-byte vectors, as KVBuffer counts; bits 0: none.
struct VectorSwizzle {
  int bits, base, shift;
  [[nodiscard]] std::int64_t vector(std::int64_t v) const {
    const std::int64_t read = v / (std::int64_t{1} << (base + shift)) % (std::int64_t{1} << bits);
    return v ^ (read << base);
  }
  [[nodiscard]] std::int64_t byte(std::int64_t b) const { return vector(b / 16) * 16 + b % 16; }
};
constexpr VectorSwizzle kNone{0, 0, 0}, k304{3, 0, 4}, k303{3, 0, 3}, k203{2, 0, 3}, k202{2, 0, 2};

SharedAccess access_of(int lanes, int width, const std::function<std::int64_t(int)>& address) {
  SharedAccess access{width, {}};
  for (int lane = 0; lane < lanes; ++lane) access.addresses.emplace_back(address(lane));
  return access;
}

// The total of every access of `each`; -1 when they differ.
class Total {
 public:
  void add(const BankReport& report) { totals_.insert(report.cycles()); }
  [[nodiscard]] int value() const { return totals_.size() == 1 ? *totals_.begin() : -1; }

 private:
  std::set<int> totals_;
};

constexpr int kKeys = 64;  // of the block that is read

// K as an MFMA operand: lane l reads the 16-byte vector l / M of key l % M.
int k_fragment_total(SharedTarget target, int row_bytes, int M, VectorSwizzle swizzle) {
  const BankProfile profile = bank_profile(target, SharedOp::read, 16);
  const int vectors = row_bytes / 16, groups = 64 / M;
  Total total;
  for (int key = 0; key < kKeys; key += M) {
    for (int column = 0; column < vectors; column += groups) {
      total.add(bank_report(profile, access_of(64, 16, [&](int l) {
                              return swizzle.vector((key + l % M) * vectors + column + l / M) * 16;
                            })));
    }
  }
  return total.value();
}

// K as the B operand of mma.sync: 16 keys x 32 bytes.
int ldmatrix_total(int row_bytes, VectorSwizzle swizzle) {
  const BankProfile profile = bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16, 4);
  const int vectors = row_bytes / 16;
  Total total;
  for (int key = 0; key < kKeys; key += 16) {
    for (int column = 0; column < vectors; column += 2) {
      total.add(bank_report(profile, access_of(32, 16, [&](int l) {
                              const int row = key + l % 8 + (l >= 16 ? 8 : 0);
                              return swizzle.vector(row * vectors + column + (l / 8) % 2) * 16;
                            })));
    }
  }
  return total.value();
}

TEST(BankTables, TotalsOfKFragmentReads) {
  using Row = std::tuple<int, int, VectorSwizzle, int, int, int>;  // row bytes, M, swizzle, gfx942, gfx950, ldmatrix.x4
  const std::vector<Row> rows = {
      {64, 32, kNone, 32, 16, 16},  {64, 32, k304, 16, 4, 8},     {64, 32, k303, 8, 8, 4},   {64, 32, k203, 8, 8, 4},
      {64, 32, k202, 16, 16, 8},    {128, 32, kNone, 64, 32, 32}, {128, 32, k304, 16, 4, 8}, {128, 32, k303, 8, 8, 4},
      {128, 32, k203, 16, 16, 8},   {64, 16, kNone, 16, 8, 16},   {64, 16, k303, 8, 4, 4},   {64, 16, k202, 8, 8, 8},
      {128, 16, kNone, 32, 16, 32}, {128, 16, k304, 16, 4, 8},    {128, 16, k303, 8, 4, 4},
  };
  for (const auto& [row_bytes, M, swizzle, gfx942, gfx950, ldmatrix] : rows) {
    const auto where = testing::Message() << row_bytes << " B rows, M " << M << ", (" << swizzle.bits << ","
                                          << swizzle.base << "," << swizzle.shift << ")";
    EXPECT_EQ(k_fragment_total(SharedTarget::gfx942, row_bytes, M, swizzle), gfx942) << where;
    EXPECT_EQ(k_fragment_total(SharedTarget::gfx950, row_bytes, M, swizzle), gfx950) << where;
    EXPECT_EQ(ldmatrix_total(row_bytes, swizzle), ldmatrix) << where;
  }
}

// Phase 0 of the gfx950 read of 32 keys of 64-byte rows: where each lane's four banks begin.
TEST(BankTables, StartBanksOfTheWorkedExample) {
  const std::vector<int> lanes = {0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27};
  const std::vector<int> swizzled = {0, 16, 32, 48, 12, 28, 44, 60, 20, 4, 52, 36, 24, 8, 56, 40};
  const std::vector<int> plain = {0, 16, 32, 48, 0, 16, 32, 48, 0, 16, 32, 48, 0, 16, 32, 48};
  const BankProfile profile = bank_profile(SharedTarget::gfx950, SharedOp::read, 16);
  EXPECT_EQ(profile.phases[0], lanes);
  const auto address = [](VectorSwizzle s, int l) { return s.vector(l % 32 * 4 + l / 32) * 16; };
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    EXPECT_EQ(address(k304, lanes[i]) / 4 % 64, swizzled[i]) << "lane " << lanes[i];
    EXPECT_EQ(address(kNone, lanes[i]) / 4 % 64, plain[i]) << "lane " << lanes[i];
  }
  const auto report = [&](const BankProfile& p, VectorSwizzle s) {
    return bank_report(p, access_of(64, 16, [&](int l) { return address(s, l); }));
  };
  EXPECT_THAT(report(profile, k304).degrees, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(report(profile, kNone).degrees, ElementsAre(4, 4, 4, 4));
  const BankProfile older = bank_profile(SharedTarget::gfx942, SharedOp::read, 16);
  const std::vector<int> start = {0, 16, 0, 16, 20, 4, 20, 4};
  for (std::size_t i = 0; i < start.size(); ++i) EXPECT_EQ(address(k304, older.phases[0][i]) / 4 % 32, start[i]);
  EXPECT_THAT(report(older, k304).degrees, ElementsAre(2, 2, 2, 2, 2, 2, 2, 2));
}

// V through the transposing reads of gfx950: 8 bytes a lane of a block of 128 keys.
int v_bf16_total(int width, int M, VectorSwizzle swizzle) {
  const BankProfile profile = bank_profile(SharedTarget::gfx950, SharedOp::read, 8);
  Total total;
  const int mma_k = M == 32 ? 16 : 32;
  for (int key = 0; key < 128; key += mma_k) {
    for (int column = 0; column < width; column += M) {
      for (int half = 0; half < 2; ++half) {
        total.add(bank_report(profile, access_of(64, 8, [&](int l) {
                                const int row = M == 32 ? 8 * half + 4 * (l / 32) + l % 16 / 4
                                                        : 16 * half + 4 * (l / 16) + l % 16 / 4;
                                const int depth = (M == 32 ? 16 * (l / 16 % 2) : 0) + 4 * (l % 4);
                                return swizzle.byte(((key + row) * width + column + depth) * 2);
                              })));
      }
    }
  }
  return total.value();
}

int v_fp8_total(int width, int M, VectorSwizzle swizzle) {
  const BankProfile profile = bank_profile(SharedTarget::gfx950, SharedOp::read, 8);
  Total total;
  for (int key = 0; key < 128; key += M == 32 ? 64 : 128) {
    for (int column = 0; column < width; column += M) {
      for (int q = 0; q < 4; ++q) {
        total.add(bank_report(profile, access_of(64, 8, [&](int l) {
                                const int pair = l % 16 / 2, odd = l % 2;
                                const int row = M == 32 ? 16 * q + pair % 4 + 8 * (pair / 4) + 4 * (l / 32)
                                                        : 32 * (l / 16) + 8 * q + pair;
                                const int depth = (M == 32 ? 16 * (l / 16 % 2) : 0) + 8 * odd;
                                return swizzle.byte((key + row) * width + column + depth);
                              })));
      }
    }
  }
  return total.value();
}

TEST(BankTables, TotalsOfVTransposingReads) {
  using Row = std::tuple<bool, int, int, std::array<int, 4>>;  // fp8, block width, M; none, (3,0,4), (3,0,3), (2,0,3)
  const std::vector<Row> rows = {
      {false, 32, 32, {2, 2, 2, 2}}, {false, 64, 32, {4, 4, 4, 4}}, {false, 32, 16, {4, 4, 2, 2}},
      {false, 64, 16, {8, 4, 2, 4}}, {true, 64, 32, {4, 2, 4, 4}},  {true, 128, 16, {16, 4, 4, 8}},
      {true, 64, 16, {8, 4, 4, 4}},
  };
  const std::array<VectorSwizzle, 4> swizzles = {kNone, k304, k303, k203};
  for (const auto& [fp8, width, M, totals] : rows) {
    for (std::size_t i = 0; i < 4; ++i) {
      const int total = fp8 ? v_fp8_total(width, M, swizzles[i]) : v_bf16_total(width, M, swizzles[i]);
      EXPECT_EQ(total, totals[i]) << (fp8 ? "fp8 " : "bf16 ") << width << " wide, M " << M << ", swizzle " << i;
    }
  }
}

// Copies into shared memory write 16 consecutive bytes per lane from any start: free of conflicts on every profile.
TEST(BankTables, LinearCopiesAreFree) {
  for (const auto target : {SharedTarget::gfx942, SharedTarget::gfx950, SharedTarget::nvidia}) {
    const BankProfile profile = bank_profile(target, SharedOp::write, 16);
    for (const std::int64_t base : {0, 16, 1040, 16368}) {
      EXPECT_EQ(bank_report(profile, access_of(profile.lanes, 16, [&](int l) { return base + 16 * l; })).extra(), 0);
    }
  }
}

// Eight rows read at one chunk, as in a phase of ldmatrix, in the layouts that TMA writes: how many of the eight
// 16-byte bank groups the rows use.
TEST(BankTables, BankGroupsOfEightRowsUnderTmasModes) {
  struct Case {
    std::string what;
    std::int64_t pitch, span, atom;  // atom 0: no swizzle
    int groups;
  };
  const std::vector<Case> cases = {
      {"none, 16", 16, 16, 0, 8},
      {"none, 32", 32, 16, 0, 4},
      {"none, 64", 64, 16, 0, 2},
      {"none, 128", 128, 16, 0, 1},
      {"none, 256", 256, 16, 0, 1},
      {"32B", 32, 32, 16, 8},
      {"64B", 64, 64, 16, 8},
      {"128B", 128, 128, 16, 8},
      {"128B, atom 32B", 128, 128, 32, 4},
      {"128B, atom 64B", 128, 128, 64, 2},
  };
  const BankProfile profile = bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16, 1);
  for (const Case& c : cases) {
    for (std::int64_t chunk = 0; chunk < c.pitch / 16; ++chunk) {
      std::set<std::int64_t> groups;
      const auto physical = [&](int row) {
        const std::int64_t a = row * c.pitch + chunk * 16;
        if (c.atom == 0) return a;
        const std::int64_t off = a % c.span, n = c.span / c.atom;
        return a - off + ((off / c.atom) ^ (a / 128 % n)) * c.atom + off % c.atom;
      };
      for (int row = 0; row < 8; ++row) groups.insert(physical(row) / 16 % 8);
      EXPECT_EQ(static_cast<int>(groups.size()), c.groups) << c.what << ", chunk " << chunk;
      // Eight rows share the groups evenly, so the one phase takes 8 / groups cycles.
      const SharedAccess access = access_of(32, 16, [&](int l) { return physical(l % 8); });
      EXPECT_EQ(bank_report(profile, access).cycles(), 8 / c.groups) << c.what << ", chunk " << chunk;
    }
  }
}

// ldmatrix.x4 of 16 rows, two chunks each, at common pitches: padding by 16 bytes removes the conflicts of powers of
// two.
TEST(BankTables, LdmatrixOverRowPitches) {
  const BankProfile profile = bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16, 4);
  const auto cycles = [&](std::int64_t pitch) {
    return bank_report(profile, access_of(32, 16, [&](int l) { return l % 16 * pitch + l / 16 * 16; })).cycles();
  };
  EXPECT_EQ(cycles(64), 16);
  EXPECT_EQ(cycles(128), 32);
  EXPECT_EQ(cycles(256), 32);
  EXPECT_EQ(cycles(80), 4);
  EXPECT_EQ(cycles(144), 4);
  EXPECT_EQ(cycles(272), 4);
}

}  // namespace
}  // namespace kvscope::bank_tables_test
