// The bank conflicts of the reads, computed from their addresses: the known totals, which explain why (3,0,4) is K's
// swizzle for 32 rows and (3,0,3) for 16.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/smem/banks.h"
#include "core/staging/lds/dram_to_lds.h"
#include "core/staging/lds/lds_layout.h"
#include "core/staging/lds/lds_swizzle.h"
#include "core/staging/lds/lds_to_registers.h"
#include "tests/core/staging/lds/support.h"

namespace kvscope::bank_totals_test {
namespace {

using test::named;

const std::optional<Swizzle> kNone{}, k304{Swizzle{3, 0, 4}}, k303{Swizzle{3, 0, 3}}, k203{Swizzle{2, 0, 3}},
    k202{Swizzle{2, 0, 2}};

int cycles(const BankProfile& profile, int width, const std::vector<std::int64_t>& addresses) {
  SharedAccess access{.width = width, .addresses = {}};
  for (const std::int64_t address : addresses) access.addresses.emplace_back(address);
  return bank_report(profile, access).cycles();
}

// Some of the tested swizzles are rejected by KVBuffer, so they are applied to the addresses of the unswizzled image.
std::vector<std::int64_t> under(const std::optional<Swizzle>& swizzle, const LdsReadInstruction& read) {
  std::vector<std::int64_t> addresses;
  for (const std::int64_t address : read.addresses) addresses.push_back(swizzled_byte(swizzle, address));
  return addresses;
}

KVBufferParams k_of(std::int64_t row_bytes, std::int64_t M) {
  KVBufferParams p = named(M == 32 ? "B K" : "F K");
  p.BK = row_bytes / 2;
  p.depth = 128;
  p.swizzle.reset();
  return p;
}

// K: totals by row bytes, M and swizzle.
TEST(BankTotals, OfKReadsAreThePublishedOnesForEveryStripStepAndMma) {
  struct Row {
    std::int64_t row_bytes, M;
    std::optional<Swizzle> swizzle;
    int gfx942, gfx950, ldmatrix;
  };
  const Row rows[] = {
      {64, 32, kNone, 32, 16, 16},  {64, 32, k304, 16, 4, 8},     {64, 32, k303, 8, 8, 4},   {64, 32, k203, 8, 8, 4},
      {64, 32, k202, 16, 16, 8},    {128, 32, kNone, 64, 32, 32}, {128, 32, k304, 16, 4, 8}, {128, 32, k303, 8, 8, 4},
      {128, 32, k203, 16, 16, 8},   {64, 16, kNone, 16, 8, 16},   {64, 16, k303, 8, 4, 4},   {64, 16, k202, 8, 8, 8},
      {128, 16, kNone, 32, 16, 32}, {128, 16, k304, 16, 4, 8},    {128, 16, k303, 8, 4, 4},
  };
  const BankProfile gfx942 = bank_profile(SharedTarget::gfx942, SharedOp::read, 16);
  const BankProfile gfx950 = bank_profile(SharedTarget::gfx950, SharedOp::read, 16);
  const BankProfile ldmatrix = bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16);
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message() << row.row_bytes << " B rows, M " << row.M << ", "
                                    << (row.swizzle ? row.swizzle->text() : "none"));
    const KVBufferConfig config(k_of(row.row_bytes, row.M));
    for (const LdsReadInstruction& read : all_reads(config, WaveIdx{1}, StageIdx{0})) {
      EXPECT_EQ(cycles(gfx942, 16, under(row.swizzle, read)), row.gfx942);
      EXPECT_EQ(cycles(gfx950, 16, under(row.swizzle, read)), row.gfx950);
    }
    // The same image through ldmatrix.x4: 16 keys, 32 bytes of depth.
    const LdsLayout layout(config);
    std::vector<std::int64_t> addresses;
    for (std::int64_t lane = 0; lane < 32; ++lane) {
      addresses.push_back(swizzled_byte(
          row.swizzle, layout.byte(StageIdx{0}, KeyIdx{lane % 8 + 8 * (lane / 16)}, DimIdx{8 * (lane / 8 % 2)})));
    }
    EXPECT_EQ(cycles(ldmatrix, 16, addresses), row.ldmatrix);
  }
}

// V: totals by type, block width, M and swizzle.
TEST(BankTotals, OfVReadsAreThePublishedOnes) {
  struct Row {
    bool fp8;
    std::int64_t width, M;
    int none, s304, s303, s203;
  };
  const Row rows[] = {
      {false, 32, 32, 2, 2, 2, 2}, {false, 64, 32, 4, 4, 4, 4}, {false, 32, 16, 4, 4, 2, 2},
      {false, 64, 16, 8, 4, 2, 4}, {true, 64, 32, 4, 2, 4, 4},  {true, 128, 16, 16, 4, 4, 8},
      {true, 64, 16, 8, 4, 4, 4},
  };
  const BankProfile gfx950 = bank_profile(SharedTarget::gfx950, SharedOp::read, 8);
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message() << (row.fp8 ? "fp8" : "bf16") << ", blocks of " << row.width << ", M " << row.M);
    KVBufferParams p = named(row.fp8 ? (row.M == 32 ? "C V" : "G-Vd") : (row.M == 32 ? "B V" : "F-Vd"));
    if (row.fp8 && row.M == 16) {
      p.bk_smem = row.width;
    } else {
      p.BK = row.width;
    }
    const KVBufferConfig config(p);
    for (const LdsReadInstruction& read : all_reads(config, WaveIdx{0}, StageIdx{0})) {
      EXPECT_EQ(cycles(gfx950, 8, under(kNone, read)), row.none);
      EXPECT_EQ(cycles(gfx950, 8, under(k304, read)), row.s304);
      EXPECT_EQ(cycles(gfx950, 8, under(k303, read)), row.s303);
      EXPECT_EQ(cycles(gfx950, 8, under(k203, read)), row.s203);
    }
  }
}

// Copies write 16 * lane from a base, which is free of conflicts.
TEST(BankTotals, OfCopiesAreWithoutConflict) {
  for (const char* id : {"A K", "G K", "H K"}) {
    const KVBufferConfig config(named(id));
    for (const CopyInstruction& copy : copy_instructions(config, WaveIdx{1}, StageIdx{1}, {.row_stride = 1})) {
      SharedAccess access{.width = 16, .addresses = {}};
      for (const CopyVector& vector : copy.lanes) access.addresses.emplace_back(vector.lds_byte);
      for (const SharedTarget target : {SharedTarget::gfx942, SharedTarget::gfx950}) {
        EXPECT_EQ(bank_report(bank_profile(target, SharedOp::write, 16), access).extra(), 0);
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::bank_totals_test
