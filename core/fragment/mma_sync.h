// NVIDIA's mma.sync: which lane of a warp holds which element of A, B and the sum. g = lane / 4, t = lane % 4.
//
//                              element v        row                  column
//   m16n8k16 (16-bit)   A      0..7             g + 8 (v / 2 % 2)    k = 2t + v % 2 + 8 (v / 4)
//                       B      0..3             k = 2t + v % 2 + 8 (v / 2)         n = g
//                       C, D   0..3             g + 8 (v / 2)        n = 2t + v % 2
//   m16n8k32 (8-bit)    A      0..15            g + 8 (v / 4 % 2)    k = 4t + v % 4 + 16 (v / 8)
//                       B      0..7             k = 4t + v % 4 + 16 (v / 4)        n = g
//                       C, D   0..3             as above
//
// Example: lane 31 = (g 7, t 3): element 7 of A of m16n8k16 is row 15, k 15. Source: PTX ISA, matrix fragments for
// mma.m16n8k16 and mma.m16n8k32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/fragment/fragment_map.h"

namespace kvscope {

enum class MmaSync : std::uint8_t { m16n8k16, m16n8k32 };
enum class MmaOperand : std::uint8_t { a, b, c };

[[nodiscard]] constexpr int depth_of(MmaSync mma) {
  return mma == MmaSync::m16n8k16 ? 16 : 32;
}

// A: [16, k], B: [k, 8], C and D: [16, 8].
[[nodiscard]] FragmentMap mma_sync_map(MmaSync mma, MmaOperand operand);

// d = a b + c over registers [lane, element], products summed in the order of k. GeometryError: a wrong number of
// values.
[[nodiscard]] std::vector<double> mma_sync(MmaSync mma, std::span<const double> a, std::span<const double> b,
                                           std::span<const double> c);

// The sum of Q K^T becomes the A operand of P V without an exchange between lanes: A's element v is component
// `component` of the sum of the 8 keys `tile`.
//
//   m16n8k16   tile v / 4                     component v % 4
//   m16n8k32   tile 2 (v / 8) + v % 4 / 2     component 2 (v / 4 % 2) + v % 2       keys in the order of fp8_v.h
struct SumSource {
  int tile = 0;
  int component = 0;
  friend bool operator==(const SumSource&, const SumSource&) = default;
};
[[nodiscard]] SumSource sum_source_of_p(MmaSync mma, int element);

}  // namespace kvscope
