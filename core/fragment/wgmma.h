// wgmma.m64nNkK: which of the 128 threads of a warpgroup holds which element of the sum, and of A when A is in
// registers. w = thread / 32, g = thread % 32 / 4, t = thread % 4.
//
//   D, f32   element i of N / 2:  row 16 w + g + 8 (i / 2 % 2)   column 8 (i / 4) + 2t + i % 2
//   A        as mma.sync's A of the same depth, with row + 16 w
//
// Each warp holds 16 whole rows, so a row's maximum and sum need only the four lanes of a group. The sum can be used as
// A: elements 8j..8j + 7 of D, rounded to 16 bits, are A of the next product's k step j. Source: PTX ISA, register
// fragments of wgmma.mma_async. Example: thread 37 = (w 1, g 1, t 1), element 6: row 25, column 10.
#pragma once

#include "core/fragment/fragment_map.h"
#include "core/fragment/mma_sync.h"

namespace kvscope {

// The sum in f32: [64, N]. GeometryError unless N is a multiple of 8 of [8, 256].
[[nodiscard]] FragmentMap wgmma_sum_map(int N);

// A in registers: [64, depth of the mma].
[[nodiscard]] FragmentMap wgmma_a_map(MmaSync depth);

}  // namespace kvscope
