// Where the values of registers and of matrices are in tensor memory.
//
// tcgen05.ld and st: cell (lane, column), from the address on, of register j of thread t of the warp.
//
//   shape      lane                        column                      registers per repeat
//   32x32b     t                           j                           1
//   16x64b     t / 4 + 8 (t % 2)           2 j + t / 2 % 2             1
//   16x128b    t / 4 + 8 (j % 2)           4 (j / 2) + t % 4           2
//   16x256b    t / 4 + 8 (j / 2 % 2)       8 (j / 4) + 2 (t % 4) + j % 2      4
//   16x32bx2   t % 16                      j, and the split offset if t >= 16     1
//
// .pack::16b and .unpack::16b: columns 2 c and 2 c + 1 in place of column c, the low 16 bits of each.
//
// tcgen05.mma: element (m, n) of D of an M x N product. Letters as in the PTX ISA.
//
//   A  M 256, pair of CTAs     CTA m / 128, lane m % 128, column n
//   B  M 128, pair             CTA m / 64, lane m % 64 + 64 (n / (N / 2)), column n % (N / 2)
//   D  M 128                   lane m, column n
//   F  M 64                    lane 32 (m / 16) + m % 16, column n; from lane 0 or 16
//   E  M 64, .ws               lane m + 64 (n / (N / 2)), column n % (N / 2)
//   G  M 32, .ws               lane m + 32 (n / (N / 4)), column n % (N / 4)
//
// Example: 16x256b, thread 3, register 2: lane 8, column 6.
// Source: PTX ISA 9.0, "Data Movement Shape", "Data Path Layout Organization"; CUTLASS, copy_traits_sm100 and the
// fragments of its tensor memory.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/machine/tensor/tensor_memory.h"

namespace kvscope::ptx {

enum class TensorShape : std::uint8_t { s32x32b, s16x64b, s16x128b, s16x256b, s16x32bx2 };

struct TensorMove {
  TensorShape shape = TensorShape::s32x32b;
  int registers = 1;       // per thread
  bool halves = false;     // .pack::16b, .unpack::16b
  std::int64_t split = 0;  // of 16x32bx2 [columns]
};
// From the instruction alone: `split` is an operand.
[[nodiscard]] TensorMove tensor_move(const Instr& instr);
// The cell of a register, or the first of its two cells. Precondition: thread < 32, reg < registers.
[[nodiscard]] TensorAddress cell_of(const TensorMove& move, int thread, int reg);
// All cells of a warp's access that begins at `from`.
[[nodiscard]] std::vector<TensorRegion> regions_of(const TensorMove& move, TensorAddress from);

// D of a product, or A of one that has it in tensor memory: the CTA of the pair (0 or 1), and the lane and column from
// the address on. `n` counts cells.
struct TensorCell {
  int cta = 0;
  int lane = 0, column = 0;
};
enum class TensorLayout : std::uint8_t { a, b, d, e, f, g };
[[nodiscard]] TensorLayout layout_of_product(int m, bool pair, bool weight_stationary);
[[nodiscard]] TensorCell cell_of(TensorLayout layout, int m, int n, int columns);
// The cells of one CTA of an M x `columns` matrix whose address is `from`.
[[nodiscard]] std::vector<TensorRegion> regions_of(TensorLayout layout, int columns, TensorAddress from);

}  // namespace kvscope::ptx
