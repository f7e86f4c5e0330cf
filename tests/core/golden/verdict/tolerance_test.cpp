#include "core/golden/verdict/tolerance.h"

#include <gtest/gtest.h>

#include "tests/core/golden/support.h"

namespace kvscope::golden::tolerance_test {
namespace {

TEST(Tolerance, ProfilesHaveTheValuesOfTheirSuites) {
  EXPECT_EQ(profile("torch", DType::bf16).relative, 1.6e-2);
  EXPECT_EQ(profile("torch", DType::f16).relative, 1e-3);
  EXPECT_EQ(profile("torch", DType::f32).relative, 1.3e-6);
  EXPECT_EQ(profile("torch", DType::f32).absolute, 1e-5);
  EXPECT_EQ(profile("torch", DType::f64).absolute, 1e-7);
  EXPECT_EQ(profile("flashinfer", DType::f16).absolute, 1e-3);
  EXPECT_EQ(profile("flashinfer", DType::bf16).absolute, 1e-2);
  EXPECT_EQ(profile("flashattention", DType::bf16).absolute, 1e-2);
  EXPECT_EQ(profile("flashmla", DType::bf16).cosine_difference, 5e-6);
}

TEST(Tolerance, AddsTheTwoPartsUnlessEitherSuffices) {
  EXPECT_DOUBLE_EQ(profile("vllm", DType::bf16).allowed(-0.5), 0.02);
  EXPECT_DOUBLE_EQ(profile("flashmla", DType::bf16).allowed(1), 2.01 / 128);
  EXPECT_DOUBLE_EQ(profile("flashmla", DType::bf16).allowed(0.01), 8e-4);
}

TEST(Tolerance, UnknownProfileNamesTheKnownOnes) {
  EXPECT_EQ(
      message_of([] { static_cast<void>(profile("strict", DType::f32)); }),
      "command line rejected: --profile: 'strict' is not a profile; profiles are flashattention, flashinfer, vllm, "
      "flashmla, "
      "torch");
}

}  // namespace
}  // namespace kvscope::golden::tolerance_test
