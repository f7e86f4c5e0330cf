// tcgen05.mma.sp, and the zero-column masks of .ws.
#include <gmock/gmock.h>

#include "tests/gpu/virtual/machine/tensor_case.h"

namespace kvscope::ptx::test::tensor_sparse_test {
namespace {

using ::testing::HasSubstr;

TEST(TensorSparse, OfASparseA) {
  for (const int selector : {0, 1}) {
    expect_product({.n = 48, .sparse = true, .selector = selector});
    expect_product({.a = &kBf16, .b = &kBf16, .m = 64, .n = 24, .sparse = true, .selector = selector});
    expect_product({.kind = "tf32", .a = &kTf32, .b = &kTf32, .sparse = true, .selector = selector});
    expect_product(
        {.kind = "tf32", .a = &kTf32, .b = &kTf32, .m = 64, .times = 2, .sparse = true, .selector = selector});
    expect_product({.m = 256, .n = 64, .pair = true, .sparse = true, .selector = selector});
  }
  const Element* const narrow[] = {&kE4m3, &kE5m2, &kE2m3, &kE3m2, &kE2m1};
  for (int i = 0; i < 5; ++i)
    expect_product({.kind = "f8f6f4", .a = narrow[i], .b = narrow[(i + 3) % 5], .n = 64, .sparse = true});
  expect_product({.kind = "i8", .a = &kS8, .b = &kU8, .d = 2, .sparse = true});
  expect_product({.kind = "i8", .a = &kU8, .b = &kS8, .m = 64, .n = 8, .d = 2, .times = 2, .sparse = true});
  expect_product({.kind = "f8f6f4", .a = &kE4m3, .b = &kE4m3, .m = 256, .n = 32, .pair = true, .sparse = true});
  expect_product({.n = 16, .d = 0, .negate_a = true, .sparse = true});
  for (const Policy policy : {Policy::early, Policy::seeded}) expect_product({.policy = policy, .sparse = true});
}

TEST(TensorSparse, OfASparseAInEachLayout) {
  for (const int row : {16, 64, 128}) {
    expect_product({.n = 64, .row_a = row, .row_b = row, .sparse = true});
    expect_product({.n = 64, .row_a = row, .row_b = 128, .a_along_m = true, .b_along_n = true, .sparse = true});
    expect_product({.kind = "f8f6f4",
                    .a = &kE4m3,
                    .b = &kE5m2,
                    .n = 128,
                    .row_a = 32,
                    .row_b = row,
                    .b_along_n = true,
                    .sparse = true});
  }
  expect_product({.a_in_tensor = true, .sparse = true});
  expect_product({.m = 64, .n = 24, .a_in_tensor = true, .sparse = true});
  expect_product({.kind = "f8f6f4", .a = &kE3m2, .b = &kE4m3, .a_in_tensor = true, .sparse = true});
  expect_product({.m = 256, .n = 64, .pair = true, .a_in_tensor = true, .sparse = true});
}

TEST(TensorSparse, OfASparseAWithBlockScales) {
  expect_product({.kind = "mxf8f6f4",
                  .a = &kE4m3,
                  .b = &kE2m1,
                  .n = 64,
                  .scale = ".block_scale.scale_vec::1X",
                  .scales = 1,
                  .sparse = true});
  expect_product(
      {.kind = "mxf4", .a = &kPacked, .b = &kPacked, .n = 40, .scale = ".block_scale", .scales = 2, .sparse = true});
  expect_product({.kind = "mxf4nvf4",
                  .a = &kPacked,
                  .b = &kPacked,
                  .n = 128,
                  .scale = ".block_scale.scale_vec::4X",
                  .scales = 4,
                  .ue4m3 = true,
                  .sparse = true});
}

TEST(TensorSparse, OfASparseAWithStationaryWeights) {
  for (const int m : {32, 64, 128}) {
    for (int lane = 0; lane < 128; lane += m) {
      expect_product({.m = m, .n = 64, .weights = true, .sparse = true, .selector = 1, .metadata_lane = lane});
      expect_product({.kind = "i8",
                      .a = &kS8,
                      .b = &kS8,
                      .m = m,
                      .n = 64,
                      .d = 2,
                      .weights = true,
                      .sparse = true,
                      .metadata_lane = lane});
    }
  }
}

TEST(TensorSparse, OfStationaryWeightsWithZeroColumns) {
  // The examples of the PTX ISA.
  EXPECT_EQ(zero_columns({.m = 128, .n = 14, .zeros = mask_of({0, 0, 0, 0}, {0, 0, 0, 0}, 3, 4, 0)}), "BBBB000BBBB000");
  EXPECT_EQ(zero_columns({.m = 32, .n = 32, .zeros = mask_of({0, 1, 2, 1}, {1, 1, 0, 0}, 3, 4, 2)}),
            "000BBBB0"
            "00BBBB00"
            "BB000BBB"
            "BBB000BB");
  for (const int m : {32, 64, 128}) {
    for (const bool sparse : {false, true}) {
      const std::uint64_t mask = mask_of({0, 1, 2, 1}, {1, 1, 0, 0}, 3, 4, 0);
      expect_product({.m = m, .n = 64, .weights = true, .sparse = sparse, .zeros = mask});
      expect_product({.kind = "i8",
                      .a = &kS8,
                      .b = &kS8,
                      .m = m,
                      .n = 64,
                      .d = 2,
                      .weights = true,
                      .sparse = sparse,
                      .zeros = mask_of({0, 0, 0, 0}, {0, 1, 0, 1}, 17, 1, 0)});
      expect_product({.m = m,
                      .n = 64,
                      .row_b = 16,
                      .weights = true,
                      .sparse = sparse,
                      .zeros = mask_of({2, 0, 0, 3}, {0, 1, 0, 0}, 5, 9, 13),
                      .most_shift = 2});
    }
  }
  // Columns are skipped without a mask.
  expect_product({.m = 128, .n = 64, .weights = true, .zeros = std::uint64_t{32} << 56, .most_shift = 3});
}

TEST(TensorSparse, ReportsMetadataAndMasksThatAreWrong) {
  EXPECT_THAT(product_message({.m = 32, .n = 64, .weights = true, .zeros = std::uint64_t{17} << 56, .most_shift = 3}),
              HasSubstr("column shift: 17 in bits 56-61: at most 16"));
  EXPECT_THAT(
      product_message({.m = 128, .n = 64, .weights = true, .zeros = mask_of({4, 0, 0, 0}, {0, 0, 0, 0}, 3, 4, 0)}),
      HasSubstr("start count 0: 4: less than the first run of the mask, 4 columns"));
  EXPECT_THAT(product_message({.sparse = true, .selector = 2}), HasSubstr("sparsity selector: 2 in bits 0-1: 0 or 1"));
  EXPECT_THAT(product_message({.kind = "i8", .a = &kS8, .b = &kS8, .d = 2, .sparse = true, .selector = 1}),
              HasSubstr("sparsity selector: 1 in bits 0-1: this kind takes 0"));
  EXPECT_THAT(product_message({.m = 128, .n = 64, .pair = true, .sparse = true}),
              HasSubstr("M 128 is not modeled: use M 256"));
  // Row 5, chunk 3: columns 12 to 15, in the first half of lanes 0 to 7.
  EXPECT_THAT(product_message({.sparse = true, .broken = 0b0101}),
              HasSubstr("metadata 0b0101 of row 5, columns 12 to 15 of A, in bits 12 to 15 of lane 5, column 192: "
                        "expected two different indices"));
  EXPECT_THAT(product_message({.kind = "tf32", .a = &kTf32, .b = &kTf32, .sparse = true, .broken = 0b1001}),
              HasSubstr("expected 0b0100 or 0b1110"));
}

}  // namespace
}  // namespace kvscope::ptx::test::tensor_sparse_test
