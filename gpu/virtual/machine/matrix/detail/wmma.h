// wmma: a warp loads tiles of matrices from memory, multiplies them, and stores the result.
//
//   m16n16k16 m32n8k16 m8n32k16   f16 bf16 s8 u8        m16n16k8   tf32        m8n8k4   f64
//   m8n8k32                       s4 u4                 m8n8k128   b1
//
// The mapping of elements to registers is implementation-defined: a kernel passes whole fragments on, or applies the
// same operation to every register. Here a fragment consists of fragments of mma, block after block of 16 rows (8 of
// m8) and 8 columns; E elements a register, g = lane / 4, t = lane % 4, S = k / 4E steps, H = 2 halves of a block (1 of
// m8):
//
//   A register (16 rows: block) (S block + s) H + h    row 16 block + 8 h + g, k = t E + e + 4 E s
//   B register (8 columns: block) S block + s          k = t E + e + 4 E s, column 8 block + g
//   C, D register (block H + h) 2 + i                  row and column of the block: 8 h + g, 2t + i
//        of f16 register block H + h                   likewise, i = 0 in the lower half, 1 in the upper
//
// A and B of f16 have eight registers in every shape: those after the first S H blocks are copies.
//
// Memory: rows (.row) or columns (.col) are `stride` elements apart; without a stride they are contiguous. Each lane
// accesses one 32nd of the tile, so its bytes are checked like those of any other access. The base must be a multiple
// of the fragment's bytes, and the distance of two rows a multiple of 16 bytes (of the fragment's bytes, if smaller);
// otherwise MISALIGNED.
// Source: PTX ISA, "Matrix Fragments for WMMA", "Matrix Storage for WMMA"; CUDA C++, "load_matrix_sync" (the distance).
#pragma once

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

[[nodiscard]] MachineHandler find_wmma(const Instr& instr);  // nullptr: another instruction

}  // namespace kvscope::ptx
