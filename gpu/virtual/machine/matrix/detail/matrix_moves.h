// ldmatrix and stmatrix: 8x8 matrices of 16-bit elements between shared memory and registers. For wmma tiles see
// wmma.h.
//
//   lane 8m + i names row i of matrix m: 16 bytes        register m of lane (g, t), g = lane / 4, t = lane % 4:
//                                                        word t of row g; .trans: halfwords (2t, g) and (2t + 1, g)
// Example: bytes s[i] = i mod 251, rows at 16 * row: lane 5 register 1 is 97969594, with .trans b3b2a3a2.
// Source: PTX ISA, "Warp-level matrix load instruction: ldmatrix".
#pragma once

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

[[nodiscard]] MachineHandler find_matrix_move(const Instr& instr);  // including wmma's; nullptr: another instruction

}  // namespace kvscope::ptx
