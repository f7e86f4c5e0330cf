// wmma: a warp loads tiles of matrices from memory, multiplies them and stores what comes out.
//
//   m16n16k16 m32n8k16 m8n32k16   f16 bf16 s8 u8        m16n16k8   tf32        m8n8k4   f64
//   m8n8k32                       s4 u4                 m8n8k128   b1
//
// Which register has which element is nobody's business but the machine's: a kernel hands whole fragments on, or does
// the same to every register. Here a fragment is made of those of mma, block after block of 16 rows (8 of m8) and 8
// columns; E elements a register, g = lane / 4, t = lane % 4, S = k / 4E steps, H = 2 halves of a block (1 of m8):
//
//   A register (16 rows: block) (S block + s) H + h    row 16 block + 8 h + g, k = t E + e + 4 E s
//   B register (8 columns: block) S block + s          k = t E + e + 4 E s, column 8 block + g
//   C, D register (block H + h) 2 + i                  row and column of the block: 8 h + g, 2t + i
//        of f16 register block H + h                   likewise, i = 0 in the lower half, 1 in the upper
//
// A and B of f16 have eight registers in every shape: those behind the first S H blocks are copies.
//
// Memory: rows (.row) or columns (.col) `stride` elements apart; without a stride they touch. Each lane reaches a
// 32nd of the tile, so that its bytes are checked like those of any access. The base is a multiple of the fragment's
// bytes, the distance of two rows one of 16 bytes (of a smaller fragment's bytes); else MISALIGNED.
// Source: PTX ISA, "Matrix Fragments for WMMA", "Matrix Storage for WMMA"; CUDA C++, "load_matrix_sync" (the distance).
#pragma once

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

[[nodiscard]] MachineHandler find_wmma(const Instr& instr);  // nullptr: another instruction

}  // namespace kvscope::ptx
