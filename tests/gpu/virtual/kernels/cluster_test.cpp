// K19: two CTAs of a cluster.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::cluster_test {
namespace {

// Each CTA reads from its memory what the other wrote: by a store, by a multicast copy, by stores counted as bytes.
TEST(K19, TwoBlocksShareTheirSharedMemory) {
  constexpr std::size_t kPart = 64 + 64 + 4 + 256;
  std::vector<std::int32_t> source(256);
  for (std::size_t i = 0; i < 256; ++i) source[i] = static_cast<std::int32_t>(i * i) - 7;
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("cluster.ptx", schedule);
    const std::uint64_t from = gpu.upload("source", source), out = gpu.zeros("out", 2 * kPart * 4);
    const TensorMap map = tensor_map(TmaDataType::i32, from, {16, 16}, {64}, {16, 16}, TmaSwizzle::none);
    gpu.run_clean(
        {.kernel = "cluster_pair", .grid = {2, 1, 1}, .block = {64, 1, 1}, .values = {map_bytes(map), out, value(0)}});
    const std::vector<std::int32_t> got = gpu.download<std::int32_t>(out, 2 * kPart);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const auto other = static_cast<std::int32_t>(1 - rank);
      const std::vector<std::int32_t> mine(got.begin() + static_cast<std::ptrdiff_t>(rank * kPart),
                                           got.begin() + static_cast<std::ptrdiff_t>((rank + 1) * kPart));
      for (std::int32_t t = 0; t < 64; ++t) {
        EXPECT_EQ(mine[static_cast<std::size_t>(t)], 1000 * other + t);
        EXPECT_EQ(mine[static_cast<std::size_t>(64 + t)], 1000 * static_cast<std::int32_t>(rank) + (t ^ 1));
      }
      for (std::int32_t t = 0; t < 4; ++t) EXPECT_EQ(mine[static_cast<std::size_t>(128 + t)], 50 * (other + 1) + t);
      EXPECT_EQ(std::vector<std::int32_t>(mine.begin() + 132, mine.end()), source);
    }
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::cluster_test
