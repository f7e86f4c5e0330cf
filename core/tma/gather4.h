// gather4: one instruction copies four rows of a 2-D tensor, in any order, from one start column. Sparse attention
// kernels use it to fetch tokens that are not adjacent.
//
//   coordinates  {column, row0, row1, row2, row3}      map: rank 2, box {w, 1}
//   shared       row i at dst + i * pitch, swizzled by its address, as a box of four rows would be
//   rows below 0 or past the last are filled and still counted: kernels use -1 for "no token"
//
// The instruction exists from sm_100 on. On sm_90 four ordinary loads do the same. Each of them is a separate copy,
// whose destination must be a multiple of 128 B: only a pitch of whole 128 B works, so 32B and 64B swizzles do not.
// Example: bf16, box {64, 1}, 128B swizzle, {0, 5, -1, 19, 20} over 20 rows: 512 bytes counted, rows 1 and 3 are zero.
// The order of the five coordinates follows PTX ISA's table of the instruction; its overview of tensors has another
// order.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/smem/shared_image.h"
#include "core/tma/box_copy.h"
#include "core/tma/box_plan.h"
#include "core/tma/global_memory.h"
#include "core/tma/tensor_map.h"
#include "core/tma/tma_tile.h"

namespace kvscope {

// Throws as load_box, with the window of four rows; GeometryError for a map that is not {w, 1} of rank 2 or a number of
// coordinates other than 5; UnsupportedError for a target below sm_100.
BoxLoad gather4(const TensorMap& map, const TmaCoord& at, const GlobalMemory& memory, SharedImage& image,
                std::int64_t dst, CopyIdx copy, const BoxSwitches& switches = {.target = TmaTarget::sm_100});

// The destination of each 16-byte chunk of a gather, for code that explains or draws one: as box_chunks, rows 0 to 3.
[[nodiscard]] std::vector<BoxChunk> gather4_chunks(const TensorMap& map, const TmaCoord& at, std::int64_t dst,
                                                   const BoxSwitches& switches = {.target = TmaTarget::sm_100});

// The same bytes by four loads, copies `first` .. `first + 3`. GeometryError also when a row's destination is not a
// multiple of 128 B. Works on every target; writes nothing when it throws.
std::array<BoxLoad, 4> gather4_by_loads(const TensorMap& map, const TmaCoord& at, const GlobalMemory& memory,
                                        SharedImage& image, std::int64_t dst, CopyIdx first,
                                        const BoxSwitches& switches = {});

}  // namespace kvscope
