// The grid of configurations that the laws of this folder hold over: BN 32 to 128, every WN of a wave, BK 32 to 128,
// depth 64 to 576 in steps of 16, 128 to 512 threads in steps of a wave, 8 and 16 bits, every shape, five swizzles, K
// and V, whole stages and stages of one block, blocks of half a strip, stages padded to whole blocks or whole strips.
//
// The legality of a point is implemented here a second time, in integers (`the_rules_take`), so that a rule that
// accepts too much or too little is detected, and so that a million illegal points cost little time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/staging/lds/kv_buffer_config.h"
#include "tests/property.h"

namespace kvscope::test {

struct GridShape {
  DType dtype;
  MmaShape mma;
};
inline constexpr std::array<GridShape, 5> kGridShapes{{{DType::bf16, {32, 32, 16}},
                                                       {DType::bf16, {16, 16, 32}},
                                                       {DType::bf16, {32, 32, 8}},
                                                       {DType::e4m3, {32, 32, 64}},
                                                       {DType::e4m3, {16, 16, 128}}}};
inline const std::array<std::optional<Swizzle>, 5> kGridSwizzles{std::nullopt, Swizzle(3, 0, 4), Swizzle(3, 0, 3),
                                                                 Swizzle(2, 0, 2), Swizzle(2, 0, 3)};

inline std::int64_t whole(std::int64_t value, std::int64_t of) {
  return (value + of - 1) / of * of;
}

// The rules that a point of this grid can break. bk_smem and smem_depth are given.
inline bool the_rules_take(const KVBufferParams& p) {
  const bool fp8 = p.dtype == DType::e4m3;
  const std::int64_t row = *p.bk_smem * (fp8 ? 1 : 2), M = p.mma_shape.M, waves = p.num_threads / 64;
  if (row != 64 && row != 128) return false;
  if (p.BK % p.mma_shape.K != 0) return false;
  if (*p.bk_smem != p.BK && !(fp8 && M == 16 && p.BK == 128)) return false;
  if (*p.smem_depth % *p.bk_smem != 0 || *p.smem_depth < p.depth) return false;
  if (p.transpose) {
    const bool half = fp8 && p.BK == p.mma_shape.K && p.depth % p.BK == p.BK / 2;
    if (p.BN % p.WN != 0 || p.WN % M != 0 || (p.depth % p.BK != 0 && !half)) return false;
  } else {
    if (p.WN % p.BK != 0 || p.WN > p.BN || p.depth % M != 0) return false;
    if (fp8 && M == 32 && p.BK != 64) return false;
    if (fp8 && M == 16 && (p.WN != 128 || p.BN != 128)) return false;
  }
  if (p.full_kv) {
    const bool one_wave_a_sub_tile = *p.smem_depth == 64 && p.BN <= 64 && *p.smem_depth >= 2 * *p.bk_smem;
    if (one_wave_a_sub_tile && waves != p.BN / 16) return false;
  } else if (p.BN / 32 % waves != 0 || *p.bk_smem != p.BK) {
    return false;
  }
  return !p.swizzle || p.swizzle->size() <= M * row / 16;  // M is 16 or 32; the writer's limit is the same or larger
}

// [columns] of a stage: the head rounded up to whole blocks, and to whole strips where that differs. A stage of one
// block has no other size.
inline std::vector<std::int64_t> stage_depths(const KVBufferParams& p) {
  const std::int64_t blocks = whole(p.depth, *p.bk_smem), strips = whole(p.depth, p.BK);
  if (!p.full_kv || strips == blocks) return {blocks};
  return {blocks, strips};
}

// Every point of the grid, accepted or not. The number of heads of the cache only changes the row stride in memory, so
// 1, 2 and 3 alternate.
template <class Visit>
void for_each_point(const Visit& visit) {
  std::int64_t n = 0;
  const auto over_tiles = [&](KVBufferParams p) {
    for (const std::int64_t BN : {32, 64, 96, 128}) {
      p.BN = BN;
      for (p.depth = 64; p.depth <= 576; p.depth += 16) {
        for (const std::int64_t smem_depth : stage_depths(p)) {
          p.smem_depth = smem_depth;
          for (const std::int64_t WN : {16, 32, 64, 96, 128}) {
            p.WN = WN;
            for (std::int64_t waves = 8; waves >= 2; --waves) {  // largest first: it includes the waves of the others
              p.num_threads = 64 * waves;
              p.kv_num_heads = 1 + n++ % 3;
              visit(p);
            }
          }
        }
      }
    }
  };
  struct Strip {
    std::int64_t BK, bk_smem;
  };
  for (const auto& [dtype, mma] : kGridShapes) {
    for (const Strip strip : {Strip{32, 32}, {32, 16}, {64, 64}, {64, 32}, {128, 128}, {128, 64}}) {
      for (const auto& swizzle : kGridSwizzles) {
        for (const bool transpose : {true, false}) {
          for (const bool full_kv : {true, false}) {
            KVBufferParams p;
            p.dtype = dtype;
            p.mma_shape = mma;
            p.k_group = mma.K == 8 ? 2 : 1;
            p.BK = strip.BK;
            p.bk_smem = strip.bk_smem;
            p.swizzle = swizzle;
            p.transpose = transpose;
            p.full_kv = full_kv;
            over_tiles(p);
          }
        }
      }
    }
  }
}

// Every accepted configuration, ordered by layout.
inline const std::vector<KVBufferParams>& whole_grid() {
  static const std::vector<KVBufferParams> grid = [] {
    std::vector<KVBufferParams> accepted;
    for_each_point([&](const KVBufferParams& p) {
      if (the_rules_take(p)) accepted.push_back(p);
    });
    return accepted;
  }();
  return grid;
}

// One configuration of each kind: the first one of every `kind_of`.
template <class KindOf>
std::vector<KVBufferParams> one_of_each(const KindOf& kind_of) {
  std::vector<KVBufferParams> result;
  std::set<decltype(kind_of(whole_grid().front()))> kinds;
  for (const KVBufferParams& p : whole_grid()) {
    if (kinds.insert(kind_of(p)).second) result.push_back(p);
  }
  return result;
}

// A random point, for tests that use a hundred of them.
inline const KVBufferParams& drawn() {
  return whole_grid()[prop::uniform<std::size_t>(0, whole_grid().size())];
}

inline std::string to_text(const KVBufferParams& p) {
  return std::string(p.transpose ? "K " : "V ") + std::string(name(p.dtype)) + " " + kvscope::to_text(p.mma_shape) +
         " BN " + std::to_string(p.BN) + " WN " + std::to_string(p.WN) + " BK " + std::to_string(p.BK) + " depth " +
         std::to_string(p.depth) + " threads " + std::to_string(p.num_threads) +
         (p.swizzle ? " " + p.swizzle->text() : " no swizzle") + (p.full_kv ? "" : " blocks") +
         (p.bk_smem ? " bk_smem " + std::to_string(*p.bk_smem) : "") +
         (p.smem_depth ? " smem_depth " + std::to_string(*p.smem_depth) : "") +
         (p.depth_slices > 1 ? " slices " + std::to_string(p.depth_slices) : "");
}

}  // namespace kvscope::test
