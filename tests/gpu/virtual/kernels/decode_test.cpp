// K09: decode attention over a paged cache.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/gpu/virtual/kernels/decode_case.h"

namespace kvscope::ptx::test::decode_test {
namespace {

// The sequence ends with its last page: 64 tiles through a ring of two stages. The remaining error is the rounding of
// the weights to bf16.
TEST(K09, DecodesFourThousandTokensWithinTheRoundingOfTheWeights) {
  const DecodeCase data(4096);
  std::vector<float> first;
  for (const Schedule& schedule : kSchedules) {
    SCOPED_TRACE(schedule.name);
    Gpu gpu("decode.ptx", schedule);
    const DecodeCase::Launch launch = data.launch(gpu, "paged_decode");
    gpu.run_clean(launch.run);
    const std::vector<float> out = data.output(gpu, launch);
    EXPECT_LE(data.error(out), 2e-4);
    if (first.empty()) first = out;
    EXPECT_EQ(fnv_of(out), fnv_of(first));
  }
}

// The last tile has 21 of 64 tokens: two warps mask some or all of their keys, and one has its first key late.
TEST(K09, MasksKeysPastTheEndOfTheSequence) {
  for (const std::int64_t tokens : {1, 17, 85, 277}) {
    const DecodeCase data(tokens);
    std::vector<float> first;
    for (const Schedule& schedule : kSchedules) {
      SCOPED_TRACE(testing::Message() << tokens << ' ' << schedule.name);
      Gpu gpu("decode.ptx", schedule);
      const DecodeCase::Launch launch = data.launch(gpu, "paged_decode");
      gpu.run_clean(launch.run);
      const std::vector<float> out = data.output(gpu, launch);
      // Few tokens: the rounding of a weight is not averaged, 2^-9 of a value up to 2.
      EXPECT_LE(data.error(out), 5e-3);
      if (first.empty()) first = out;
      EXPECT_EQ(fnv_of(out), fnv_of(first));
    }
  }
}

}  // namespace
}  // namespace kvscope::ptx::test::decode_test
