// bf16_product is the reference for attention times, so it must compute a product: exact sums, each element rounded
// once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/convert.h"
#include "core/base/random.h"
#include "gpu/bench/workload.h"
#include "gpu/launch/virtual_gpu.h"
#include "gpu/verify/cache_fixture.h"

namespace kvscope::gpu::bf16_product_test {
namespace {

// Multiples of 1/8 below 2: products are multiples of 1/64, and sums of 2^15 of them are exact in fp32.
std::vector<std::byte> eighths(std::int64_t count, std::uint64_t seed) {
  const CounterRng rng(seed, 1);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count * 2));
  for (std::int64_t i = 0; i < count; ++i)
    store_from_double(DType::bf16, static_cast<double>(rng.integer(static_cast<std::uint64_t>(i), -15, 15)) / 8,
                      bytes.data() + i * 2, Overflow::saturate);
  return bytes;
}

std::optional<std::string> wrong(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t ctas) {
  VirtualGpu device;
  const std::vector<std::byte> a = eighths(m * k, 1), b = eighths(n * k, 2);
  const DeviceArray a_there = device.upload("A", a), b_there = device.upload("B", b),
                    c = device.filled("C", m * n * 2 + 64, std::byte{0xab});
  Launch call = product_call(device, a_there.address(), b_there.address(), c.address(), m, n, k);
  call.launch.grid[0] = ctas;
  const Outcome outcome = device.launch(call.launch, call.params);
  if (!outcome.faults.empty()) return outcome.faults.front();

  const auto numbers = [](const std::vector<std::byte>& bytes) {
    std::vector<float> all(bytes.size() / 2);
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<float>(load_as_double(DType::bf16, bytes.data() + 2 * i));
    return all;
  };
  const std::vector<float> x = numbers(a), y = numbers(b);
  std::vector<std::byte> golden(static_cast<std::size_t>(m * n * 2 + 64), std::byte{0xab});
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t column = 0; column < n; ++column) {
      float sum = 0;
      for (std::int64_t i = 0; i < k; ++i)
        sum += x[static_cast<std::size_t>(row * k + i)] * y[static_cast<std::size_t>(column * k + i)];
      store_from_double(DType::bf16, static_cast<double>(sum), golden.data() + (row * n + column) * 2,
                        Overflow::saturate);
    }
  return first_difference(golden, c.download(), 2, [&](std::int64_t i) {
    return "row " + std::to_string(i / n) + ", column " + std::to_string(i % n);
  });
}

// Seven steps through four stages: a stage is refilled while the step after it is multiplied.
TEST(Bf16Product, MoreStepsThanStages) {
  EXPECT_EQ(wrong(128, 256, 7 * 64, 1), std::nullopt);
}

// One step per tile and more tiles than CTAs: stages and parities continue across tiles.
TEST(Bf16Product, SeveralTilesACta) {
  EXPECT_EQ(wrong(3 * 128, 2 * 256, 64, 4), std::nullopt);
}

// 17 rows of tiles: a band of 16, and one of a single row.
TEST(Bf16Product, ABandThatIsNotWhole) {
  EXPECT_EQ(wrong(17 * 128, 2 * 256, 64, 5), std::nullopt);
}

}  // namespace
}  // namespace kvscope::gpu::bf16_product_test
