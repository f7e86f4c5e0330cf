// Performs box copies: global -> shared (load) and shared -> global (store), byte for byte, at absolute shared
// addresses. box_plan.h computes the address of each byte.
//
//   load    every element of the tile is written, from memory or as fill; padding and other bytes are unchanged
//   store   elements outside the tensor are skipped; a row that ends inside a 16-byte chunk is written to the chunk's
//           end, with the tile's bytes (published measurements on an H100; BoxSwitches::store_edge)
//   fill    zeros; or, on request and for floating types, every 16-bit half 0x7FF7: a NaN to ordinary arithmetic
//
// A copy that throws writes nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/smem/shared_image.h"
#include "core/tma/box_plan.h"
#include "core/tma/global_memory.h"
#include "core/tma/tensor_map.h"
#include "core/tma/tma_tile.h"

namespace kvscope {

// The result of a load.
struct BoxLoad {
  CopyIdx copy;
  std::int64_t dst = 0;           // [byte address] of the window
  std::int64_t window_bytes = 0;  // from dst on; padding included
  std::int64_t tx_bytes = 0;      // credited to the barrier
  std::int64_t filled_bytes = 0;  // of those, fill: not from memory
  friend bool operator==(const BoxLoad&, const BoxLoad&) = default;
};

// Throws as require_box_copyable and require_box_start; IllegalAddress when an element inside the map is outside every
// allocation. `copy` becomes the writer of every byte written.
// Example: the box of box_plan.h: {copy, 0, 1024, 1024, 640}.
BoxLoad load_box(const TensorMap& map, const TmaCoord& at, const GlobalMemory& memory, SharedImage& image,
                 std::int64_t dst, CopyIdx copy, const BoxSwitches& switches = {});

// The result of a store.
struct BoxStore {
  std::int64_t global_bytes = 0;   // written, overrun included
  std::int64_t overrun_bytes = 0;  // of those, past the tensor's last column
  std::int64_t poison_bytes = 0;   // of those, bytes of shared memory that no copy had written
  friend bool operator==(const BoxStore&, const BoxStore&) = default;
};

// Throws as load_box, and for a coordinate below 0 or FLIP_8B.
BoxStore store_box(const TensorMap& map, const TmaCoord& at, GlobalMemory& memory, const SharedImage& image,
                   std::int64_t src, const BoxSwitches& switches = {});

// A prefetch of a tile into L2: a hint that changes no byte. Checks the rules of a load and does nothing.
void prefetch_box(const TensorMap& map, const TmaCoord& at, const BoxSwitches& switches = {});

// The 16 bytes of fill: zeros, or the pattern of the map's type.
[[nodiscard]] std::array<std::byte, 16> box_fill(const TensorMap& map, const BoxSwitches& switches = {});

}  // namespace kvscope
