// K10: tiles and runs of bytes stored by engines.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::store_test {
namespace {

// 100 rows of 64 floats: the reduction's 64 rows begin at row 64, so 28 of them do not exist. A store that does not
// undo the swizzle, or an engine that reads later stores, would change values.
TEST(K10, StoresTilesRunsAndSumsByEngines) {
  constexpr std::size_t kRows = 100, kColumns = 64;
  std::vector<float> tensor(kRows * kColumns), expected;
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<float>(i % 100);
  expected = tensor;
  for (std::size_t row = 0; row < 64; ++row)
    for (std::size_t column = 0; column < 32; ++column) {
      const auto in_tile = static_cast<float>(32 * row + column);
      expected[row * kColumns + column] = in_tile;
      expected[row * kColumns + 32 + column] = 5000 + in_tile;
      if (row + 64 < kRows) expected[(row + 64) * kColumns + column] += 5000 + in_tile;
    }
  std::vector<std::int32_t> run(256), sums(256), expected_sums(256);
  for (std::size_t i = 0; i < 256; ++i) {
    run[i] = static_cast<std::int32_t>(3 * i) - 100;
    sums[i] = static_cast<std::int32_t>(i * i);
    expected_sums[i] = sums[i] + run[i];
  }

  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("store.ptx", schedule);
    const std::uint64_t to = gpu.upload("tensor", tensor), copy = gpu.zeros("copy", 1024),
                        added = gpu.upload("sums", sums);
    const TensorMap map =
        tensor_map(TmaDataType::f32, to, {kColumns, kRows}, {kColumns * 4}, {32, 64}, TmaSwizzle::b128);
    gpu.run_clean({.kernel = "store_tiles",
                   .block = {128, 1, 1},
                   .values = {map_bytes(map), copy, added},
                   .dynamic_shared = 8192});
    EXPECT_EQ(gpu.download<float>(to, kRows * kColumns), expected);
    EXPECT_EQ(gpu.download<std::int32_t>(copy, 256), run);
    EXPECT_EQ(gpu.download<std::int32_t>(added, 256), expected_sums);
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::store_test
