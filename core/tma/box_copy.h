// Box copies carried out: global -> shared (load) and shared -> global (store), byte for byte, at absolute shared
// addresses. Where each byte goes is box_plan.h's; this moves it.
//
//   load    every element of the tile is written, from memory or as fill; padding and neighbours stay as they were
//   store   elements outside the tensor are skipped; a row that ends inside a 16-byte chunk is written to the chunk's
//           end, with the tile's bytes (measured by others on an H100; BoxSwitches::store_edge)
//   fill    zeros; or, on request and for floating types, every 16-bit half 0x7FF7: a NaN to ordinary arithmetic
//
// A copy either happens whole or, when it throws, not at all.
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

// What a load did.
struct BoxLoad {
  CopyIdx copy;
  std::int64_t dst = 0;           // [byte address] of the window
  std::int64_t window_bytes = 0;  // from dst on; padding included
  std::int64_t tx_bytes = 0;      // what the barrier is credited with
  std::int64_t filled_bytes = 0;  // of those, not from memory
  friend bool operator==(const BoxLoad&, const BoxLoad&) = default;
};

// Throws as require_box_copyable and require_box_start; IllegalAddress when an element inside the map is in no
// allocation. `copy` becomes the writer of every byte written.
// Example: the box of box_plan.h: {copy, 0, 1024, 1024, 640}.
BoxLoad load_box(const TensorMap& map, const TmaCoord& at, const GlobalMemory& memory, SharedImage& image,
                 std::int64_t dst, CopyIdx copy, const BoxSwitches& switches = {});

// What a store did.
struct BoxStore {
  std::int64_t global_bytes = 0;   // written, overrun included
  std::int64_t overrun_bytes = 0;  // of those, past the tensor's last column
  std::int64_t poison_bytes = 0;   // of those, bytes of shared memory that nobody had written
  friend bool operator==(const BoxStore&, const BoxStore&) = default;
};

// Throws as load_box, and for a coordinate below 0 or FLIP_8B.
BoxStore store_box(const TensorMap& map, const TmaCoord& at, GlobalMemory& memory, const SharedImage& image,
                   std::int64_t src, const BoxSwitches& switches = {});

// A tile into L2: a hint without a trace in any byte, so it is held to the rules of a load and does nothing.
void prefetch_box(const TensorMap& map, const TmaCoord& at, const BoxSwitches& switches = {});

// The 16 bytes of fill: zeros, or the pattern of the map's type.
[[nodiscard]] std::array<std::byte, 16> box_fill(const TensorMap& map, const BoxSwitches& switches = {});

}  // namespace kvscope
