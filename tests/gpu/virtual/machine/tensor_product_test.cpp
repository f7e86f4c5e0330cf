// tcgen05.mma with a dense A: each kind, type, layout and shape.
#include <gmock/gmock.h>

#include "tests/gpu/virtual/machine/tensor_case.h"

namespace kvscope::ptx::test::tensor_product_test {
namespace {

using ::testing::HasSubstr;

TEST(TensorProduct, OfEachTypeIsThatOfAPlainLoop) {
  expect_product({.kind = "f16", .a = &kF16, .b = &kF16});
  expect_product({.kind = "f16", .a = &kBf16, .b = &kF16, .m = 64, .n = 24});
  expect_product({.kind = "f16", .a = &kF16, .b = &kF16, .n = 16, .d = 0});
  expect_product({.kind = "tf32", .a = &kTf32, .b = &kTf32, .n = 48});
  const Element* const narrow[] = {&kE4m3, &kE5m2, &kE2m3, &kE3m2, &kE2m1};
  for (int i = 0; i < 5; ++i) expect_product({.kind = "f8f6f4", .a = narrow[i], .b = narrow[(i + 2) % 5]});
  expect_product({.kind = "i8", .a = &kS8, .b = &kU8, .d = 2});
  expect_product({.kind = "i8", .a = &kU8, .b = &kS8, .m = 64, .n = 8, .d = 2});
}

TEST(TensorProduct, OfEachLayoutOfBothOperands) {
  for (const int row : {16, 32, 64, 128}) {
    for (int flags = 0; flags < 4; ++flags) {
      const bool a_along = (flags & 1) != 0, b_along = (flags & 2) != 0;
      expect_product({.kind = "f16",
                      .a = &kBf16,
                      .b = &kBf16,
                      .n = 64,
                      .row_a = row,
                      .row_b = 128,
                      .a_along_m = a_along,
                      .b_along_n = b_along});
      expect_product({.kind = "f8f6f4",
                      .a = &kE4m3,
                      .b = &kE5m2,
                      .n = 128,
                      .row_a = 64,
                      .row_b = row,
                      .a_along_m = a_along,
                      .b_along_n = b_along});
    }
  }
}

TEST(TensorProduct, AddsToDAndNegatesAUnderEachSchedule) {
  for (const Policy policy : {Policy::late, Policy::early, Policy::seeded}) {
    expect_product({.times = 3, .policy = policy});
    expect_product({.n = 16, .negate_a = true, .times = 2, .policy = policy});
  }
}

TEST(TensorProduct, OfAPairOfCtas) {
  expect_product({.m = 256, .n = 64, .pair = true});
  expect_product({.m = 128, .n = 64, .pair = true});
  expect_product({.kind = "i8", .a = &kS8, .b = &kS8, .m = 256, .n = 32, .d = 2, .pair = true});
}

TEST(TensorProduct, WithBlockScales) {
  expect_product(
      {.kind = "mxf8f6f4", .a = &kE4m3, .b = &kE2m1, .n = 64, .scale = ".block_scale.scale_vec::1X", .scales = 1});
  expect_product({.kind = "mxf4", .a = &kPacked, .b = &kPacked, .n = 40, .scale = ".block_scale", .scales = 2});
  expect_product(
      {.kind = "mxf4nvf4", .a = &kPacked, .b = &kPacked, .n = 128, .scale = ".block_scale.scale_vec::4X", .scales = 4});
}

TEST(TensorProduct, OfAInTensorMemory) {
  const Element* const narrow[] = {&kE4m3, &kE5m2, &kE2m3, &kE3m2, &kE2m1};
  for (const Policy policy : {Policy::late, Policy::early, Policy::seeded}) {
    expect_product({.a = &kBf16, .b = &kBf16, .policy = policy, .a_in_tensor = true});
    expect_product({.m = 64, .n = 24, .policy = policy, .a_in_tensor = true});
  }
  expect_product({.kind = "tf32", .a = &kTf32, .b = &kTf32, .a_in_tensor = true});
  for (const Element* a : narrow) expect_product({.kind = "f8f6f4", .a = a, .b = &kE4m3, .a_in_tensor = true});
  expect_product({.kind = "i8", .a = &kS8, .b = &kU8, .d = 2, .a_in_tensor = true});
  expect_product({.m = 256, .n = 64, .pair = true, .a_in_tensor = true});
  expect_product({.m = 128, .n = 64, .pair = true, .times = 2, .a_in_tensor = true});
  expect_product(
      {.kind = "mxf4", .a = &kPacked, .b = &kPacked, .scale = ".block_scale", .scales = 2, .a_in_tensor = true});
}

TEST(TensorProduct, WithStationaryWeights) {
  for (const int m : {32, 64, 128}) {
    for (const int n : {64, 128}) {
      expect_product({.m = m, .n = n, .weights = true});
      expect_product({.kind = "f8f6f4", .a = &kE4m3, .b = &kE2m3, .m = m, .n = n, .times = 2, .weights = true});
    }
    expect_product({.kind = "tf32", .a = &kTf32, .b = &kTf32, .m = m, .n = 64, .weights = true});
    expect_product({.kind = "i8", .a = &kS8, .b = &kS8, .m = m, .n = 64, .d = 2, .weights = true});
  }
}

TEST(TensorProduct, MultipliesDByAPowerOfTwoBeforeItAdds) {
  for (const int scale : {1, 3, 15}) {
    expect_product({.times = 2, .scale_d = scale});
    expect_product({.kind = "tf32", .a = &kTf32, .b = &kTf32, .m = 64, .n = 24, .times = 2, .scale_d = scale});
    expect_product({.m = 256, .n = 64, .pair = true, .times = 2, .scale_d = scale});
  }
  expect_product({.m = 128, .n = 64, .pair = true, .times = 2, .a_in_tensor = true, .scale_d = 3});
}

TEST(TensorProduct, WithScalesOfE4m3) {
  expect_product({.kind = "mxf4nvf4",
                  .a = &kPacked,
                  .b = &kPacked,
                  .n = 64,
                  .scale = ".block_scale.scale_vec::4X",
                  .scales = 4,
                  .ue4m3 = true});
}

TEST(TensorProduct, KeepsDisabledLanes) {
  // Lanes 0 to 31 of D stay as they were allocated; the others are written.
  const ProductOutcome outcome = run_product({.n = 16, .tail = "{-1, 0, 0, 0}, %p4"});
  EXPECT_EQ(outcome.cells[0], 0xffffffffu);
  EXPECT_EQ(outcome.cells[31 * 16 + 15], 0xffffffffu);
  EXPECT_NE(outcome.cells[32 * 16], 0xffffffffu);
}

TEST(TensorProduct, ReportsDescriptorsThatAreWrong) {
  EXPECT_THAT(product_message({.n = 24}), HasSubstr("N: 24 in bits 17-22: a multiple of 16 to 256 with M 128"));
  EXPECT_THAT(product_message({.m = 96}), HasSubstr("M: 96 in bits 24-28: 64 or 128"));
  EXPECT_THAT(product_message({.kind = "tf32", .a = &kTf32, .b = &kTf32, .d = 0}),
              HasSubstr("type of D: 0 in bits 4-5"));
  EXPECT_THAT(product_message({.kind = "f8f6f4", .a = &kE2m1, .b = &kE4m3, .a_along_m = true}),
              HasSubstr("elements of 6 and 4 bits must be K-major"));
}

}  // namespace
}  // namespace kvscope::ptx::test::tensor_product_test
