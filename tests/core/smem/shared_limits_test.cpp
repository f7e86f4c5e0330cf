#include "core/smem/shared_limits.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::shared_limits_test {
namespace {

TEST(SharedLimits, AreThoseOfTheManuals) {
  struct Row {
    GpuArch arch;
    std::string name;
    std::int64_t by_default, opt_in, per_sm, reserved;
    SharedTarget target;
  };
  const std::vector<Row> rows = {
      {GpuArch::sm_80, "sm_80", 49152, 166912, 167936, 1024, SharedTarget::nvidia},
      {GpuArch::sm_86, "sm_86", 49152, 101376, 102400, 1024, SharedTarget::nvidia},
      {GpuArch::sm_89, "sm_89", 49152, 101376, 102400, 1024, SharedTarget::nvidia},
      {GpuArch::sm_90, "sm_90", 49152, 232448, 233472, 1024, SharedTarget::nvidia},
      {GpuArch::sm_100, "sm_100", 49152, 232448, 233472, 1024, SharedTarget::nvidia},
      {GpuArch::sm_120, "sm_120", 49152, 101376, 102400, 1024, SharedTarget::nvidia},
      {GpuArch::gfx942, "gfx942", 65536, 65536, 65536, 0, SharedTarget::gfx942},
      {GpuArch::gfx950, "gfx950", 163840, 163840, 163840, 0, SharedTarget::gfx950},
  };
  ASSERT_EQ(all_shared_limits().size(), rows.size());
  for (const Row& row : rows) {
    const SharedLimits& limits = shared_limits(row.arch);
    EXPECT_EQ(limits.name, row.name);
    EXPECT_EQ(limits.by_default, row.by_default) << row.name;
    EXPECT_EQ(limits.opt_in, row.opt_in) << row.name;
    EXPECT_EQ(limits.per_sm, row.per_sm) << row.name;
    EXPECT_EQ(limits.reserved, row.reserved) << row.name;
    EXPECT_EQ(limits.target, row.target) << row.name;
  }
}

// The limit itself is accepted; one byte more is rejected with the limit and a next step.
TEST(SharedLimits, RejectTheFirstByteTooMany) {
  for (const SharedLimits& limits : all_shared_limits()) {
    EXPECT_EQ(shared_fault(limits.arch, "tile", limits.opt_in), std::nullopt) << limits.name;
    EXPECT_TRUE(shared_fault(limits.arch, "tile", limits.opt_in + 1).has_value()) << limits.name;
    EXPECT_EQ(shared_fault(limits.arch, "tile", 0), std::nullopt) << limits.name;
  }
  const auto message = [](GpuArch arch, std::string_view object, std::int64_t bytes) {
    const std::optional<Fault> fault = shared_fault(arch, object, bytes);
    return fault ? fault->where + ": " + fault->message : "no fault";
  };
  EXPECT_EQ(message(GpuArch::sm_89, "K and V", 131072),
            "K and V: 131072 B, but a block has at most 101376 B: use fewer stages, a smaller tile or a narrower type "
            "(gfx950 takes up to 163840 B)");
  EXPECT_EQ(message(GpuArch::gfx942, "K", 262144),
            "K: 262144 B, but a block has at most 65536 B: use fewer stages, a smaller tile or a narrower type (no "
            "architecture here takes them)");
  EXPECT_EQ(message(GpuArch::sm_90, "K", -1), "K: -1 B is below 0");
}

// Two stages of K and V: the architectures that hold them.
TEST(SharedLimits, DecideWhereTwoStagesOfKAndVFit) {
  const auto fits = [](GpuArch arch, std::int64_t bytes) { return !shared_fault(arch, "K and V", bytes); };
  EXPECT_TRUE(fits(GpuArch::gfx942, 65536));  // bf16, 64 x 128: exactly
  EXPECT_TRUE(fits(GpuArch::gfx950, 131072));
  EXPECT_FALSE(fits(GpuArch::gfx942, 131072));
  EXPECT_FALSE(fits(GpuArch::gfx950, 262144));
  EXPECT_TRUE(fits(GpuArch::sm_80, 131072));
  EXPECT_TRUE(fits(GpuArch::sm_90, 131072));
  EXPECT_FALSE(fits(GpuArch::sm_86, 131072));
  EXPECT_FALSE(fits(GpuArch::sm_120, 131072));
}

TEST(SharedLimits, DecideHowManyBlocksFit) {
  EXPECT_EQ(blocks_per_sm(GpuArch::sm_90, 65536), 3);  // each takes 1024 more
  EXPECT_EQ(blocks_per_sm(GpuArch::sm_90, 232448), 1);
  EXPECT_EQ(blocks_per_sm(GpuArch::sm_90, 232449), 0);
  EXPECT_EQ(blocks_per_sm(GpuArch::sm_90, 115712), 2);  // the largest size of which two fit
  EXPECT_EQ(blocks_per_sm(GpuArch::sm_90, 115713), 1);
  EXPECT_EQ(blocks_per_sm(GpuArch::gfx942, 32768), 2);
  EXPECT_EQ(blocks_per_sm(GpuArch::gfx942, 0), 65536);
  EXPECT_EQ(blocks_per_sm(GpuArch::sm_120, 0), 100);
  EXPECT_EQ(blocks_per_sm(GpuArch::gfx942, -1), 0);
}

}  // namespace
}  // namespace kvscope::shared_limits_test
