// K01 and K02, and K23 for them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/virtual/kernels/harness.h"

namespace kvscope::ptx::test::elementwise_test {
namespace {

// Detects an off-by-one guard or a CTA that writes in full: the word after the array would change.
TEST(K01, ScalesAnArrayThatEndsInsideTheLastBlock) {
  constexpr std::size_t kCount = 250;
  std::vector<float> x(kCount), expected(kCount + 50, 0.0F);
  for (std::size_t i = 0; i < kCount; ++i) {
    x[i] = static_cast<float>(i) * 0.37F - 11.0F;
    expected[i] = x[i] * 1.7F;
  }
  for (const Dialect& dialect : kDialects)
    for (const Schedule& schedule : kSchedules) {
      SCOPED_TRACE(std::string(schedule.name) + ' ' + dialect.suffix);
      Gpu gpu(std::string("elementwise") + dialect.suffix, schedule, dialect.target);
      const std::uint64_t in = gpu.upload("x", x), out = gpu.zeros("y", (kCount + 50) * sizeof(float));
      gpu.run_clean({.kernel = "scale",
                     .grid = {3, 1, 1},
                     .block = {100, 1, 1},
                     .values = {out, in, float_bits(1.7F), value(kCount)}});
      EXPECT_EQ(gpu.download<float>(out, kCount + 50), expected);
    }
}

// The values of 128 threads after `rounds`, by a plain loop.
std::vector<float> after_rounds(int rounds) {
  std::vector<float> in(128), out(128);
  for (std::size_t i = 0; i < 128; ++i) in[i] = static_cast<float>(i);
  for (std::uint32_t t = 0; t < 128; ++t) {
    float a = in[t];
    std::uint32_t u = t;
    for (int i = 0; i < rounds; ++i) {
      a = std::fma(a, 1.0001F, 0.5F);
      u ^= u << 13;
      u ^= u >> 17;
      u ^= u << 5;
      if ((u & 1U) != 0) a -= in[u & 127U];
    }
    out[t] = a + static_cast<float>(u);
  }
  return out;
}

struct Rounds {
  int rounds;
  std::uint64_t fnv;
  std::uint64_t warp_instructions;
};

// Lanes diverge and reconverge in each round: a lane group that does not merge changes the instruction count, a fused
// multiply-add that rounds twice changes the bits.
TEST(K02, AluLoopGivesTheBitsOfAPlainLoopInTheExpectedNumberOfInstructions) {
  for (const Rounds& r : {Rounds{10, 0xda3f5a7aa17dabb9U, 892}, Rounds{100, 0x0efd26ab1eaac290U, 7776},
                          Rounds{1000, 0xbe3b164d7640974dU, 76620}}) {
    ASSERT_EQ(fnv_of(after_rounds(r.rounds)), r.fnv) << r.rounds;
    for (const Dialect& dialect : kDialects)
      for (const Schedule& schedule : kSchedules) {
        SCOPED_TRACE(std::to_string(r.rounds) + ' ' + schedule.name + ' ' + dialect.suffix);
        Gpu gpu(std::string("elementwise") + dialect.suffix, schedule, dialect.target);
        std::vector<float> in(128);
        for (std::size_t i = 0; i < 128; ++i) in[i] = static_cast<float>(i);
        const std::uint64_t from = gpu.upload("in", in), to = gpu.zeros("out", 128 * sizeof(float));
        const LaunchResult result =
            gpu.run_clean({.kernel = "alu_rounds", .block = {128, 1, 1}, .values = {to, from, value(r.rounds)}});
        EXPECT_EQ(fnv_of(gpu.download<float>(to, 128)), r.fnv);
        if (schedule.policy != Policy::seeded && dialect.target == 90) {
          EXPECT_EQ(result.steps, r.warp_instructions);
        }
      }
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::elementwise_test
