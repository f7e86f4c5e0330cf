// fp8 V as the B operand of mma.m16n8k32 on machines whose ldmatrix transposes 16-bit values only: two byte
// permutations.
//
//   ldmatrix.x4.trans of 32 keys x 16 depths, a row of 16 bytes a key, leaves in register m of lane (g, t), low byte
//   first:
//
//     V[8m + 2t][2g]   V[8m + 2t][2g + 1]   V[8m + 2t + 1][2g]   V[8m + 2t + 1][2g + 1]
//           even              odd                  even                 odd depth
//
//   B of the even depths = prmt(r0, r1, 0x6420), prmt(r2, r3, 0x6420)      column n is depth 2n
//   B of the odd depths  = prmt(r0, r1, 0x7531), prmt(r2, r3, 0x7531)      column n is depth 2n + 1
//
// k slot 4t + j (+ 16) then carries key 8 (j / 2) + 2t + j % 2 (+ 16). The sums of Q K^T have the same order, so P is
// formed from them without an exchange between lanes (sum_source_of_p). A lane's columns of the two products are depths
// 4t, 4t + 2 and 4t + 1, 4t + 3: four adjacent depths. Example: k slot 6 = (t 1, j 2) carries key 10.
#pragma once

#include <array>
#include <cstdint>

#include "core/fragment/fragment_map.h"

namespace kvscope {

// PTX prmt.b32, default mode: nibble i of the selector chooses byte i of the result from the bytes of {b, a} (a is
// lowest); with the nibble's top bit set, the result byte repeats the chosen byte's sign bit. Example:
// prmt(0x33221100, 0x77665544, 0x6420) == 0x66442200.
[[nodiscard]] std::uint32_t prmt(std::uint32_t a, std::uint32_t b, std::uint32_t selector);

struct Fp8VOperands {
  std::array<std::uint32_t, 2> even{};  // B of mma.m16n8k32: registers 0 and 1
  std::array<std::uint32_t, 2> odd{};
  friend bool operator==(const Fp8VOperands&, const Fp8VOperands&) = default;
};
[[nodiscard]] Fp8VOperands fp8_v_operands(const std::array<std::uint32_t, 4>& loaded);

// Key that k slot `k` of the product carries. IndexError outside [0, 32).
[[nodiscard]] int fp8_v_key(int k);

// Both operands as one map: elements 0..7 are B of the even depths, 8..15 of the odd; rows: 32 keys; columns: 16
// depths.
[[nodiscard]] FragmentMap fp8_v_map();

}  // namespace kvscope
