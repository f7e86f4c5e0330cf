// Moves the bytes of a box between device memory and shared memory, or combines them with those of device memory.
//
//   load     each row is written: its data, and fill before and after it. Bytes between short rows keep their values
//   store    rows inside the tensor are written. A row that ends inside a 16-byte chunk is written to the end of the
//            chunk with the tile's bytes, if the allocation extends that far (published measurement on an H100)
//   reduce   memory = op(memory, tile), element by element; bytes past a row's data do not change
//
// If all data of the box is in one allocation, the allocation is looked up once. A row is moved in one piece; under a
// swizzle in pieces of 16 bytes, or 8 for FLIP_8B.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/virtual/machine/copies/tensor_box.h"
#include "gpu/virtual/machine/memory/detail/reduction.h"
#include "gpu/virtual/machine/memory/device_memory.h"

namespace kvscope::ptx {

// `window` is shared memory from box.shared, box.size.window() bytes. Returns false if part of the tensor is in no live
// allocation; the rows before that part have been moved. Precondition of store and reduce: no coordinate is below 0.
[[nodiscard]] bool load_bytes(const CopyMap& map, const TensorBox& box, const DeviceMemory& memory, std::byte* window);
[[nodiscard]] bool store_bytes(const CopyMap& map, const TensorBox& box, DeviceMemory& memory, const std::byte* window);
[[nodiscard]] bool reduce_bytes(const CopyMap& map, const TensorBox& box, DeviceMemory& memory, const std::byte* window,
                                Reduce reduce);

}  // namespace kvscope::ptx
