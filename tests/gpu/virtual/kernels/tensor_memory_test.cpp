// K25: a product of matrices through tensor copies, tensor memory and tcgen05.mma, as nvcc compiles it for sm_100a.
#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::tensor_memory_test {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kRows = 256, kColumns = 128, kDepth = 320;  // five steps of k through two stages

enum Bug { kNone = 0, kNoWaitForFull, kNoWaitForDone, kNoAfterFence, kWrongStride, kNoDealloc, kRefillEarly };

struct Matrices {
  std::vector<std::uint16_t> a = bf16_noise(kRows * kDepth, 1), b = bf16_noise(kColumns * kDepth, 2);
  // f32 sums in the order of k: what SumMode::seq computes.
  [[nodiscard]] std::vector<float> product() const {
    std::vector<float> c;
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t j = 0; j < kColumns; ++j) {
        float sum = 0;
        for (std::size_t k = 0; k < kDepth; ++k) sum += from_bf16(a[i * kDepth + k]) * from_bf16(b[j * kDepth + k]);
        c.push_back(sum);
      }
    }
    return c;
  }
};

struct Launched {
  LaunchResult result;
  std::vector<float> c;
};
Launched launch(const Schedule& schedule, int bug, bool clean) {
  const Matrices m;
  Gpu gpu("tensor_memory.sm_100a.ptx", schedule, 100);
  const std::uint64_t a = gpu.upload("a", m.a), b = gpu.upload("b", m.b), c = gpu.zeros("c", kRows * kColumns * 4);
  const auto map = [](std::uint64_t base, std::uint64_t rows, std::uint32_t box) {
    return map_bytes(tensor_map(TmaDataType::bf16, base, {kDepth, rows}, {kDepth * 2}, {64, box}, TmaSwizzle::b128));
  };
  const Run run{.kernel = "gemm",
                .grid = {kColumns / 64, kRows / 128, 1},
                .block = {128, 1, 1},
                .values = {map(a, kRows, 128), map(b, kColumns, 64), c, value(kDepth), value(kColumns), value(bug)},
                .dynamic_shared = 2 * (128 + 64) * 128};
  Launched out{.result = clean ? gpu.run_clean(run) : gpu.run_checked(run), .c = {}};
  out.c = gpu.download<float>(c, kRows * kColumns);
  return out;
}

TEST(K25, IsTheProductOfAPlainLoopUnderEverySchedule) {
  const std::vector<float> expected = Matrices().product();
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    EXPECT_EQ(launch(schedule, kNone, true).c, expected);
  }
}

std::string reports_of(int bug) {
  return reports_text(launch(kLate, bug, false).result);
}

TEST(K25, EachMistakeIsReported) {
  EXPECT_THAT(reports_of(kNoWaitForFull), HasSubstr("RACE"));
  EXPECT_THAT(reports_of(kNoWaitForDone), HasSubstr("TENSOR_ORDER"));
  EXPECT_THAT(reports_of(kNoAfterFence), HasSubstr("TENSOR_FENCE"));
  EXPECT_THAT(reports_of(kNoDealloc), HasSubstr("TENSOR_ALLOC"));
  EXPECT_THAT(reports_of(kRefillEarly), HasSubstr("MBAR_UNDERFLOW"));  // the stage is announced twice
}

// A wrong distance of rows is legal: only the result shows it.
TEST(K25, AWrongDescriptorGivesAWrongProduct) {
  EXPECT_NE(launch(kLate, kWrongStride, false).c, Matrices().product());
}

}  // namespace
}  // namespace kvscope::ptx::test::tensor_memory_test
