// wgmma: four warps multiply a 64 x K tile by a K x N tile; warp w of the warpgroup has rows 16w .. 16w + 15 of D in
// its registers. B is in shared memory, and A unless it is in registers; a 64-bit descriptor gives the address
// (matrix_operand.h).
//
//   D register i of lane (g, t)   row 16w + g + 8 ((i / 2) % 2), column 8 (i / 4) + 2t + i % 2, i < N / 2 (f16: pairs)
//   A register r of lane (g, t)   row 16w + g + 8 (r % 2), k = t E + e + 4 E (r / 2), E elements a register
//
// A sparse A has half of k elements; the metadata of a warp's rows is in a register (isa/sparse_metadata.h).
//
// wgmma_registers.h checks accesses to the registers in between. Each warp performs its own sixteen rows, at its
// wait_group (policy early: at the issue).
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

// The positions of the flattened operands of a wgmma.mma_async in Op::list.
struct WgmmaShape {
  int n = 0, k = 0;
  int d_registers = 0;  // from list[0]
  int a_registers = 0;  // 0: a descriptor, one row
  int a_at = 0, b_at = 0, scale_d_at = 0;
  int metadata_at = -1, selector_at = -1;  // of a sparse A; -1: dense
  int a_k = 0;                             // elements of a row of A that are stored: k, or k / 2
  int imm_a_at = -1, imm_b_at = -1;        // signs; -1: none
  int trans_a_at = -1, trans_b_at = -1;    // -1: K-major
  bool scale_is_predicate = false;         // also if it is a number; otherwise a register of 32 bits
};
[[nodiscard]] WgmmaShape wgmma_shape(const Exec& exec, const Op& op);

}  // namespace kvscope::ptx
