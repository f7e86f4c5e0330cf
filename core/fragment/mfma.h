// AMD's matrix instructions (MFMA): which lane of a wave holds which element of K, Q, V and P, and of the result.
//
//   l = lane, G = 64 / M groups of M lanes, g = l / M, SW = 16 bytes of elements
//
//   K, Q   row l % M        depth (e / SW) * (K / packs) + SW g + e % SW        [M rows, K deep], packs = frag / SW
//   V, P   depth l % M      key 4 G (e / 4) + 4 g + e % 4; 16x16x128: 32 g + e   [K keys, M deep]
//   sum    column l % M     row 4 G (p / 4) + 4 g + p % 4                        [M rows, M columns]
//
//   instruction       M   K   type   elements of a lane
//   32x32x8   (twice) 32   16 bf16    8, 4 of them for each of two instructions: one 16-byte read feeds both
//   32x32x16          32   16 bf16    8
//   16x16x32          16   32 bf16    8
//   32x32x64          32   64 fp8    32
//   16x16x128         16  128 fp8    32
//
// These maps need not be the hardware's slot order of K's or V's elements: the instruction multiplies element e of lane
// (m, g) with element e of lane (n, g), whatever they represent, so it is enough that both operands use the same order.
// The order of V is the one in which the sum of Q K^T is held in registers, so that P can be used as an operand without
// moving it. Example: 32x32x64, K: lane 33, element 16 holds row 1, depth 48.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/fragment/fragment_map.h"

namespace kvscope {

enum class Mfma : std::uint8_t { bf16_32x32x8, bf16_32x32x16, bf16_16x16x32, fp8_32x32x64, fp8_16x16x128 };

struct MfmaShape {
  Mfma id = Mfma::bf16_32x32x16;
  std::string_view name;  // "mfma 32x32x16 bf16"
  int M = 0;              // rows, and columns
  int K = 0;              // depth of one fragment: of both instructions of 32x32x8
  int element_bytes = 0;  // [bytes]
  int elements = 0;       // of a lane: M * K / 64
  int instructions = 1;   // instructions that use one fragment, `elements / instructions` elements each, in order
  [[nodiscard]] int groups() const { return 64 / M; }
  [[nodiscard]] int vector() const { return 16 / element_bytes; }  // SW
};

[[nodiscard]] std::span<const MfmaShape> all_mfma_shapes();
[[nodiscard]] const MfmaShape& mfma_shape(Mfma mfma);

[[nodiscard]] FragmentMap mfma_k_map(Mfma mfma);    // rows: keys (queries for Q); columns: depth
[[nodiscard]] FragmentMap mfma_v_map(Mfma mfma);    // rows: keys; columns: depth (queries for P)
[[nodiscard]] FragmentMap mfma_sum_map(Mfma mfma);  // rows: of the first operand; columns: of the second

// The arithmetic of the instruction: sum[m][n] += sum over g, e of a[lane (m, g)][e] * b[lane (n, g)][e], with lane (x,
// g) = g M + x. a, b: [lane, element]; sum: [lane, register] in the order of mfma_sum_map. It uses no map of the
// operands, so it can check those maps. The attention kernels give K (or V) first and Q (or P) second, so the rows of
// the sum are keys (or depths). GeometryError: a wrong number of values.
[[nodiscard]] std::vector<double> mfma_multiply_add(Mfma mfma, std::span<const double> a, std::span<const double> b,
                                                    std::span<const double> sum);

}  // namespace kvscope
