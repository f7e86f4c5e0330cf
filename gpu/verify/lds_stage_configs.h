// The KVBuffer configurations that lds_stage is compiled for, as parameters of the model, and their published
// checksums. A change of only the kernel or only the model fails a test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/staging/lds/kv_buffer_config.h"
#include "gpu/kernels/lds_stage/config.h"

namespace kvscope::gpu {

struct LdsConfig {
  std::string id;                            // of the kernel's entry: "a_k"
  KVBufferParams params;                     // of the buffer that is filled
  std::optional<KVBufferParams> per_wave{};  // V: of the buffer through which a wave reads its columns
  std::int64_t amd_degree = 1;               // degree of ldmatrix's bank conflicts with the swizzle of AMD's kernels
};

inline KVBufferParams lds_params(DType dtype, MmaShape mma, std::int64_t BN, std::int64_t WN, std::int64_t BK,
                                 std::int64_t depth, std::optional<Swizzle> swizzle, bool transpose = true) {
  KVBufferParams p;
  p.dtype = dtype;
  p.mma_shape = mma;
  p.BN = BN;
  p.WN = WN;
  p.BK = BK;
  p.depth = depth;
  p.num_threads = kStageThreads;
  p.swizzle = swizzle;
  p.transpose = transpose;
  return p;
}

// For V shared by waves: each wave has `depth` columns.
inline KVBufferParams per_wave_params(KVBufferParams p, std::int64_t depth, std::int64_t smem_depth) {
  p.depth = depth;
  p.smem_depth = smem_depth;
  p.depth_slices = 4;
  return p;
}

inline const std::vector<LdsConfig>& lds_configs() {
  static const std::vector<LdsConfig> all = [] {
    constexpr auto bf16 = DType::bf16, e4m3 = DType::e4m3;
    const MmaShape wide16{32, 32, 16}, wide8{32, 32, 64}, narrow16{16, 16, 32}, narrow8{16, 16, 128};
    const Swizzle by4{3, 0, 4}, by3{3, 0, 3};
    const auto V = [](DType dtype, MmaShape mma, std::int64_t BN, std::int64_t WN, std::int64_t BK,
                      std::int64_t depth) { return lds_params(dtype, mma, BN, WN, BK, depth, std::nullopt, false); };
    KVBufferParams e = lds_params(bf16, wide16, 128, 128, 32, 512, by4);
    e.full_kv = false;
    KVBufferParams h = lds_params(e4m3, narrow8, 128, 32, 128, 576, by3);
    h.bk_smem = 64;
    h.smem_depth = 576;
    const KVBufferParams f_v = V(bf16, narrow16, 128, 128, 32, 64), g_v = V(e4m3, narrow8, 128, 128, 128, 128);
    return std::vector<LdsConfig>{
        {"a_k", lds_params(bf16, wide16, 64, 32, 32, 128, by4), {}, 2},
        {"a_v", V(bf16, wide16, 64, 32, 32, 128), {}, 4},
        {"b_k", lds_params(bf16, wide16, 64, 64, 32, 128, by4), {}, 2},
        {"b_v", V(bf16, wide16, 64, 64, 32, 128), {}, 4},
        {"c_k", lds_params(e4m3, wide8, 64, 64, 64, 128, by4), {}, 2},
        {"c_v", V(e4m3, wide8, 64, 64, 64, 128), {}, 4},
        {"d_k", lds_params(bf16, wide16, 64, 64, 32, 256, by4), {}, 2},
        {"d_v", V(bf16, wide16, 64, 64, 32, 256), {}, 4},
        {"e_k", e, {}, 2},
        {"e2_k", lds_params(bf16, wide16, 32, 32, 32, 512, by4), {}, 2},
        {"f_k", lds_params(bf16, narrow16, 128, 32, 32, 64, by3), {}, 1},
        {"f_v", f_v, per_wave_params(f_v, 16, 32), 4},
        {"g_k", lds_params(e4m3, narrow8, 128, 32, 128, 128, by3), {}, 1},
        {"g_v", g_v, per_wave_params(g_v, 32, 128), 8},
        {"h_k", h, {}, 1},
        {"i_k", lds_params(bf16, wide16, 64, 64, 32, 64, by4), {}, 2},
    };
  }();
  return all;
}

inline const LdsConfig& lds_config_of(const std::string& id) {
  return *std::find_if(lds_configs().begin(), lds_configs().end(), [&](const LdsConfig& c) { return c.id == id; });
}

// The same with a swizzle that ldmatrix reads without conflicts (that of TMA and wgmma), and with the other 16-bit
// type.
inline LdsConfig with_nv_swizzle(LdsConfig config) {
  config.params.swizzle = constants_of(config.params).row_bytes() == 64 ? Swizzle{2, 0, 3} : Swizzle{3, 0, 3};
  if (config.params.dtype == DType::bf16) config.params.dtype = DType::f16;
  return config;
}

// Raw bits of element (key, column), and checksums of both stages and of all registers: 64-bit FNV-1a.
using LdsPattern = std::uint32_t (*)(std::int64_t key, std::int64_t column);
inline constexpr LdsPattern kP16 = [](std::int64_t key, std::int64_t column) {
  return static_cast<std::uint32_t>(key * 256 + column) & 0xffffU;
};
inline constexpr LdsPattern kP16Of512 = [](std::int64_t key, std::int64_t column) {
  return static_cast<std::uint32_t>(key * 512 + column) & 0xffffU;
};
inline constexpr LdsPattern kP8K = [](std::int64_t key, std::int64_t) {
  return static_cast<std::uint32_t>(key) & 0xffU;
};
inline constexpr LdsPattern kP8D = [](std::int64_t, std::int64_t column) {
  return static_cast<std::uint32_t>(column) & 0xffU;
};

struct PublishedSums {
  const char* id;
  LdsPattern pattern;
  std::int64_t valid;
  std::uint64_t image, registers;  // 0: not published
};
inline constexpr PublishedSums kPublished[] = {
    {"a_k", kP16, 64, 0x76c8f81dc7f28c25, 0x449ef18fde5fe925},
    {"a_k", kP16, 50, 0x3d69c55edf76f2a5, 0},
    {"a_k", kP16, 0, 0xf767f1a60ca82325, 0},
    {"a_v", kP16, 64, 0, 0xb9d91409e68b5f25},
    {"b_k", kP16, 64, 0, 0x64b99fbdcf8c9725},
    {"b_v", kP16, 64, 0x6d87dbba6473ee25, 0xec3ba7cfd3977725},
    {"c_k", kP8K, 64, 0x4eb8b86c155cf325, 0x7d61a85c97ade325},
    {"c_k", kP8D, 64, 0x96b5e8e41a574325, 0x5004fe2709cea325},
    {"c_v", kP8K, 64, 0x6f12c359fee4f325, 0x1d68ab47e993a325},
    {"c_v", kP8D, 64, 0x9ff62c055da08325, 0x48f16874be12f325},
    {"d_k", kP16, 64, 0x8055c4d2b6d36d25, 0x0d3d314c57b9c325},
    {"e2_k", kP16Of512, 32, 0x3a4a493b22d1a525, 0xa789cc2606606b25},
    {"f_k", kP16, 128, 0x96fcc5bbdb511525, 0x19f54cc70eba0425},
    {"f_v", kP16, 128, 0xcbd35f56ae823125, 0x4307c91647c7ee25},
    {"g_k", kP8K, 128, 0xe07905d6c7cac325, 0x105e60417b60d325},
    {"g_k", kP8D, 128, 0xbb4c9f01e58c6325, 0x13e38dbe68ab6325},
    {"g_v", kP8K, 128, 0xe07905d6c7cac325, 0x44a2dd6d5ee16325},
    {"g_v", kP8D, 128, 0x4e9366da64fbe325, 0x105e60417b60d325},
    {"h_k", kP8K, 128, 0x340da4206ab9d925, 0xab2afaf54169a325},
    {"h_k", kP8D, 128, 0xf214cc44af77c325, 0x9c0560ccb2724325},
    {"i_k", kP16, 64, 0xdd2179708904f025, 0xa8147934b46d9325},
};

}  // namespace kvscope::gpu
