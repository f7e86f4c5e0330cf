// Attaches the bytes to a plan's chunks, for the copies of this folder. All global bytes are fetched first, so that a
// copy that reads outside every allocation leaves shared memory unchanged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/smem/shared_image.h"
#include "core/tma/box_plan.h"
#include "core/tma/global_memory.h"

namespace kvscope {

using BoxBytes = std::array<std::byte, 16>;

struct BoxMove {
  std::int64_t shared = 0;  // [byte address]
  BoxBytes bytes{};
};

// IllegalAddress when a chunk's data is outside every allocation.
[[nodiscard]] std::vector<BoxMove> moves_of(const std::vector<BoxChunk>& chunks, const BoxBytes& fill,
                                            const GlobalMemory& memory);
void carry_out(const std::vector<BoxMove>& moves, SharedImage& image, CopyIdx copy);
[[nodiscard]] std::int64_t filled_bytes(const std::vector<BoxChunk>& chunks);

}  // namespace kvscope
