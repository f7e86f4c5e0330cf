// wgmma: four warps multiply a 64 x K tile by a K x N one; warp w of the group has rows 16w .. 16w + 15 of D in its
// registers. B, and A unless it is in registers too, are in shared memory where a 64-bit descriptor says
// (matrix_operand.h).
//
//   D register i of lane (g, t)   row 16w + g + 8 ((i / 2) % 2), column 8 (i / 4) + 2t + i % 2, i < N / 2 (f16: pairs)
//   A register r of lane (g, t)   row 16w + g + 8 (r % 2), k = t E + e + 4 E (r / 2), E elements a register
//
// Registers that others touch in between: wgmma_registers.h. Each warp carries out its own sixteen rows,
// at its wait_group (policy early: at the issue).
// Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/machine/matrix/matrix_operand.h"
#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

// Where the flattened rows of a wgmma.mma_async stand in Op::list.
struct WgmmaShape {
  int n = 0, k = 0;
  int d_registers = 0;  // from list[0] on
  int a_registers = 0;  // 0: a descriptor, one row
  int a_at = 0, b_at = 0, scale_d_at = 0;
  int imm_a_at = -1, imm_b_at = -1;      // signs; -1: none
  int trans_a_at = -1, trans_b_at = -1;  // -1: K-major
  bool scale_is_predicate = false;       // as a number is, too; else a register of 32 bits
};
[[nodiscard]] WgmmaShape wgmma_shape(const Exec& exec, const Op& op);

}  // namespace kvscope::ptx
