// Configurations drawn from a whole grid: BN 32 to 128, BK 32 to 128, depth 64 to 576, 128 to 512 threads, 8 and 16 bits,
// every shape, five swizzles, K and V, whole stages and stages of one block. What the rules refuse is drawn again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/lds/kv_buffer_config.h"
#include "tests/property.h"

namespace kvscope::test {

inline KVBufferParams draw_params() {
  const auto pick = [](auto... values) { return prop::one_of<std::int64_t>(values...); };
  KVBufferParams p;
  const bool fp8 = prop::any<bool>();
  p.dtype = fp8 ? DType::e4m3 : DType::bf16;
  const std::int64_t shape = prop::uniform<std::int64_t>(0, fp8 ? 2 : 3);
  if (fp8) {
    p.mma_shape = shape == 0 ? MmaShape{32, 32, 64} : MmaShape{16, 16, 128};
  } else {
    p.mma_shape = shape == 0 ? MmaShape{32, 32, 16} : shape == 1 ? MmaShape{16, 16, 32} : MmaShape{32, 32, 8};
    if (shape == 2) p.k_group = 2;
  }
  p.transpose = prop::any<bool>();
  p.full_kv = prop::uniform(0, 4) != 0;
  p.BN = pick(32, 64, 96, 128);
  p.WN = p.transpose ? pick(16, 32, 64, 96, 128) : p.BN;
  p.BK = fp8 ? pick(64, 128) : pick(32, 64);
  p.depth = 32 * prop::uniform<std::int64_t>(2, 19);
  p.num_threads = pick(128, 256, 384, 512);
  switch (prop::uniform(0, 5)) {
    case 1:
      p.swizzle = Swizzle(3, 0, 4);
      break;
    case 2:
      p.swizzle = Swizzle(3, 0, 3);
      break;
    case 3:
      p.swizzle = Swizzle(2, 0, 2);
      break;
    case 4:
      p.swizzle = Swizzle(2, 0, 3);
      break;
    default:
      break;
  }
  if (fp8 && p.BK == 128 && prop::any<bool>()) p.bk_smem = 64;
  // A stage wider than the head now and then: 576 columns in strips of 128, or a head that is padded.
  if (prop::uniform(0, 3) == 0) {
    const std::int64_t width = p.bk_smem.value_or(p.BK);
    p.smem_depth = (p.depth + width - 1) / width * width;
  }
  p.kv_num_heads = pick(1, 2, 3);
  return p;
}

inline KVBufferParams accepted_params() {
  for (;;) {
    const KVBufferParams p = draw_params();
    if (check(p).refusals.empty()) return p;
  }
}

inline std::string to_text(const KVBufferParams& p) {
  return std::string(p.transpose ? "K " : "V ") + std::string(name(p.dtype)) + " " + kvscope::to_text(p.mma_shape) +
         " BN " + std::to_string(p.BN) + " WN " + std::to_string(p.WN) + " BK " + std::to_string(p.BK) + " depth " +
         std::to_string(p.depth) + " threads " + std::to_string(p.num_threads) +
         (p.swizzle ? " " + p.swizzle->text() : " no swizzle") + (p.full_kv ? "" : " blocks") +
         (p.bk_smem ? " bk_smem " + std::to_string(*p.bk_smem) : "") +
         (p.smem_depth ? " smem_depth " + std::to_string(*p.smem_depth) : "");
}

}  // namespace kvscope::test
