// Kernels without tensor cores: a product staged in shared memory, and a flash attention with its tiles and scores there.
#include "tests/gpu/virtual/kernels/plain_case.h"

#include <gmock/gmock.h>

namespace kvscope::ptx::test {
namespace {

// 64 products below 4 are rounded to f32 one after the other: at most 64 times 2^-24 of the largest sum, 256.
constexpr double kGemmBound = 64 * 256 * 0x1p-24;
// A score is a sum of 64 products below 4, and so a weight is off by at most e^(64 * 256 * 2^-24 / 8) - 1, of values below 2.
constexpr double kFlashBound = 1e-3;

TEST(Plain, TheProductMatchesALoopUnderEverySchedule) {
  const PlainGemmCase data;
  for (const Schedule& schedule : kSchedules) {
    Gpu gpu("plain.ptx", schedule);
    const PlainLaunch launch = data.launch(gpu);
    gpu.run_clean(launch.run);
    EXPECT_LE(data.error(gpu, launch), kGemmBound) << schedule.name;
  }
}

TEST(Plain, TheAttentionMatchesALoopUnderEverySchedule) {
  const PlainFlashCase data;
  for (const Schedule& schedule : kSchedules) {
    Gpu gpu("plain.ptx", schedule);
    const PlainLaunch launch = data.launch(gpu);
    gpu.run_clean(launch.run);
    EXPECT_LE(data.error(gpu, launch), kFlashBound) << schedule.name;
  }
}

}  // namespace
}  // namespace kvscope::ptx::test
