// The bytes of a box, moved between device memory and shared memory, or combined with those of device memory.
//
//   load     each row is written: its data, and fill before and behind it. Bytes between short rows keep their values
//   store    rows inside the tensor are written. A row that ends inside a 16-byte chunk is written to the end of the
//            chunk with the tile's bytes, where the allocation goes that far (measured by others on an H100)
//   reduce   memory = op(memory, tile), element by element; nothing past a row's data changes
//
// The source or destination is looked up once for the whole box where all its data is in one allocation. A row is moved in
// one piece; under a swizzle 16 bytes at a time, or 8 for FLIP_8B.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/virtual/machine/copies/tensor_box.h"
#include "gpu/virtual/machine/memory/detail/reduction.h"
#include "gpu/virtual/machine/memory/device_memory.h"

namespace kvscope::ptx {

// `window` is shared memory from box.shared on, box.size.window() bytes. False: some memory of the tensor is in no live
// allocation; rows before it have been moved. Precondition of store and reduce: no coordinate is below 0.
[[nodiscard]] bool load_bytes(const CopyMap& map, const TensorBox& box, const DeviceMemory& memory, std::byte* window);
[[nodiscard]] bool store_bytes(const CopyMap& map, const TensorBox& box, DeviceMemory& memory, const std::byte* window);
[[nodiscard]] bool reduce_bytes(const CopyMap& map, const TensorBox& box, DeviceMemory& memory, const std::byte* window,
                                Reduce reduce);

}  // namespace kvscope::ptx
