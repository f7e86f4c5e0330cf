// Loads a tile of K or V: performs the issues of kv_copy.h one after the other. Each reports its bytes to one barrier,
// as the copies of a kernel's producer do.
//
//   barrier: arrive and expect expected_bytes | load issue 0: its bytes complete | ... | the last one ends the phase
//
// Example: the K tile of kv_copy.h: 4 loads of 4096 B, the phase ends with the fourth.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/smem/shared_image.h"
#include "core/staging/tma/kv_copy.h"
#include "core/tma/arrival_barrier.h"
#include "core/tma/box_copy.h"
#include "core/tma/global_memory.h"
#include "core/tma/tensor_map.h"

namespace kvscope {

// Announces the bytes, then loads every issue at dst + its offset; issue i becomes copy first + i. `barrier` gets one
// arrival, that of the producer. GeometryError when dst is not a multiple of the swizzle's period, because consumers
// compute addresses from the tile's first element. Other errors as in load_box, after the earlier issues were done.
std::vector<BoxLoad> carry_out(const KvCopy& copy, const TensorMap& map, const GlobalMemory& memory, SharedImage& image,
                               std::int64_t dst, ArrivalBarrier& barrier, CopyIdx first,
                               const BoxSwitches& switches = {});

// Shared byte address of element (row, column) of the tile, and the inverse for any byte.
// Example: the K tile of kv_copy.h at dst 0: (1, 0) -> 144.
[[nodiscard]] std::int64_t kv_shared_address(const KvCopy& copy, std::int64_t dst, std::int64_t row,
                                             std::int64_t depth);
[[nodiscard]] std::optional<KvElement> kv_element_at_address(const KvCopy& copy, std::int64_t dst,
                                                             std::int64_t address);

}  // namespace kvscope
