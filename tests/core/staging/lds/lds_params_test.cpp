#include "core/staging/lds/lds_params.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "core/base/dtype.h"

namespace kvscope::lds_params_test {
namespace {

// Llama 3 8B: 8 KV heads of 128.
Scenario llama(DType dtype) {
  Scenario scenario;
  scenario.model = {"llama", 32, 32, 8, 128, false, 128};
  scenario.cache.dtype = dtype;
  return scenario;
}

KVBufferParams with(DType dtype, LdsGeometry lds, KOrV kv = KOrV::k) {
  Scenario scenario = llama(dtype);
  scenario.lds = lds;
  return lds_params(scenario, kv);
}

// The table of the header, written a second time.
TEST(LdsParams, DefaultsOfEachTypeAreThoseOfTheShippedKernels) {
  struct Row {
    DType dtype;
    MmaShape shape;
    std::int64_t BK;
  };
  for (const Row& row : {Row{DType::bf16, {32, 32, 16}, 32}, Row{DType::f16, {32, 32, 16}, 32},
                         Row{DType::e4m3, {32, 32, 64}, 64}, Row{DType::e5m2, {32, 32, 64}, 64}}) {
    for (const KOrV kv : {KOrV::k, KOrV::v}) {
      SCOPED_TRACE(std::string(name(row.dtype)) + (kv == KOrV::k ? " K" : " V"));
      const KVBufferParams p = lds_params(llama(row.dtype), kv);
      EXPECT_EQ(p.dtype, row.dtype);
      EXPECT_EQ(p.mma_shape, row.shape);
      EXPECT_EQ(p.BN, 64);
      EXPECT_EQ(p.WN, 64);
      EXPECT_EQ(p.BK, row.BK);
      EXPECT_EQ(p.num_threads, 256);
      EXPECT_EQ(p.depth, 128);
      EXPECT_EQ(p.cache_depth, 128);
      EXPECT_EQ(p.kv_num_heads, 8);
      EXPECT_EQ(p.transpose, kv == KOrV::k);
      EXPECT_EQ(p.swizzle, kv == KOrV::k ? std::optional(Swizzle(3, 0, 4)) : std::nullopt);
      EXPECT_EQ(p.k_group, 1);
      EXPECT_EQ(p.num_smem_stages, 2);
      EXPECT_TRUE(check(p).refusals.empty());
    }
  }
}

// Two stages of K and V of 576 x 64 x 2 B would be 288 KiB; a block has at most 160 KiB.
TEST(LdsParams, HeadsOfMoreThan256ElementsHaveTilesOf32) {
  for (const auto& [head, BN] : {std::pair{255, 64}, {256, 64}, {257, 32}, {512, 32}, {576, 32}}) {
    Scenario scenario = llama(DType::bf16);
    scenario.model.head_size = scenario.model.value_size = head;
    EXPECT_EQ(lds_params(scenario, KOrV::k).BN, BN) << head;
    EXPECT_EQ(lds_params(scenario, KOrV::v).WN, BN) << head;
    scenario.lds.BN = 96;
    EXPECT_EQ(lds_params(scenario, KOrV::k).BN, 96) << head;
  }
}

TEST(LdsParams, EachInstructionHasItsShapeStripSwizzleAndGroup) {
  struct Row {
    DType dtype;
    LdsMma mma;
    MmaShape shape;
    std::int64_t BK, k_group;
    Swizzle shipped;
  };
  for (const Row& row : {Row{DType::bf16, LdsMma::m32x32x8, {32, 32, 8}, 32, 2, {3, 0, 4}},
                         Row{DType::bf16, LdsMma::m32x32x16, {32, 32, 16}, 32, 1, {3, 0, 4}},
                         Row{DType::bf16, LdsMma::m16x16x32, {16, 16, 32}, 32, 1, {3, 0, 3}},
                         Row{DType::e4m3, LdsMma::m32x32x64, {32, 32, 64}, 64, 1, {3, 0, 4}},
                         Row{DType::e4m3, LdsMma::m16x16x128, {16, 16, 128}, 128, 1, {3, 0, 3}},
                         // Not legal, but not checked by this function: 64 columns of 16 bits are one step of 64.
                         Row{DType::bf16, LdsMma::m32x32x64, {32, 32, 64}, 64, 1, {3, 0, 4}},
                         Row{DType::f32, LdsMma::shipped, {32, 32, 16}, 16, 1, {3, 0, 4}}}) {
    const KVBufferParams p = with(row.dtype, {.mma = row.mma});
    EXPECT_EQ(p.mma_shape, row.shape);
    EXPECT_EQ(p.BK, row.BK) << to_text(row.shape);
    EXPECT_EQ(p.k_group, row.k_group) << to_text(row.shape);
    EXPECT_EQ(p.swizzle, std::optional(row.shipped)) << to_text(row.shape);
  }
}

TEST(LdsParams, AChosenSwizzleIsOfKAlone) {
  const std::vector<std::pair<LdsSwizzle, std::optional<Swizzle>>> choices{{LdsSwizzle::none, std::nullopt},
                                                                           {LdsSwizzle::s304, Swizzle(3, 0, 4)},
                                                                           {LdsSwizzle::s303, Swizzle(3, 0, 3)},
                                                                           {LdsSwizzle::s203, Swizzle(2, 0, 3)},
                                                                           {LdsSwizzle::s202, Swizzle(2, 0, 2)}};
  for (const auto& [choice, swizzle] : choices) {
    EXPECT_EQ(with(DType::bf16, {.mma = LdsMma::m16x16x32, .swizzle = choice}).swizzle, swizzle);
    EXPECT_EQ(with(DType::bf16, {.swizzle = choice}, KOrV::v).swizzle, std::nullopt);
  }
}

// V's registers cover every key, independently of a wave's part of K, because P of all keys is multiplied by V.
TEST(LdsParams, ChosenSizesStandInPlaceOfTheDefaults) {
  const LdsGeometry lds{.BN = 128, .WN = 32, .BK = 64, .threads = 512};
  const KVBufferParams k = with(DType::bf16, lds), v = with(DType::bf16, lds, KOrV::v);
  EXPECT_EQ(k.BN, 128);
  EXPECT_EQ(k.WN, 32);
  EXPECT_EQ(k.BK, 64);
  EXPECT_EQ(k.num_threads, 512);
  EXPECT_EQ(v.BN, 128);
  EXPECT_EQ(v.WN, 128);
  EXPECT_EQ(v.BK, 64);
  EXPECT_EQ(v.num_threads, 512);
  EXPECT_EQ(with(DType::bf16, {.BN = 128}).WN, 128);
}

TEST(LdsParams, TheFiveOptionsReachKVBuffer) {
  const LdsGeometry lds{
      .full_kv = false, .smem_depth = 96, .cache_depth = 128, .head_dim_offset = 32, .reg_chunk_depth = 64};
  const KVBufferParams k = with(DType::bf16, lds), v = with(DType::bf16, lds, KOrV::v);
  for (const KVBufferParams& p : {k, v}) {
    EXPECT_FALSE(p.full_kv);
    EXPECT_EQ(p.smem_depth, 96);
    EXPECT_EQ(p.cache_depth, 128);
    EXPECT_EQ(p.head_dim_offset, 32);
    EXPECT_EQ(p.depth, 96);
  }
  EXPECT_EQ(k.reg_chunk_depth, 64);
  EXPECT_EQ(v.reg_chunk_depth, std::nullopt);
  const KVBufferParams standard = with(DType::bf16, {});
  EXPECT_TRUE(standard.full_kv);
  EXPECT_EQ(standard.smem_depth, std::nullopt);
  EXPECT_EQ(standard.reg_chunk_depth, std::nullopt);
}

// 128 keys x 512 columns: 16 strips of 32 registers, 255 per lane; 4 is the largest divisor of 16 that fits.
TEST(LdsParams, RegistersHoldTheLargestEqualPartThatFits) {
  Scenario scenario = llama(DType::bf16);
  scenario.lds.BN = 128;
  scenario.model.head_size = scenario.model.value_size = 512;
  EXPECT_EQ(lds_params(scenario, KOrV::k).reg_chunk_depth, 128);
  EXPECT_EQ(lds_params(scenario, KOrV::k).reg_chunk_keys, std::nullopt);
  scenario.model.head_size = scenario.model.value_size = 256;  // V: 4 strips of 64 registers
  EXPECT_EQ(lds_params(scenario, KOrV::v).reg_chunk_keys, 64);
  EXPECT_EQ(lds_params(scenario, KOrV::v).reg_chunk_depth, std::nullopt);
}

TEST(LdsParams, VIsAsWideAsTheModelsValues) {
  Scenario scenario = llama(DType::bf16);
  scenario.model.value_size = 96;
  EXPECT_EQ(lds_params(scenario, KOrV::k).depth, 128);
  EXPECT_EQ(lds_params(scenario, KOrV::v).depth, 96);
  EXPECT_EQ(lds_params(scenario, KOrV::v).cache_depth, 128);
}

}  // namespace
}  // namespace kvscope::lds_params_test
