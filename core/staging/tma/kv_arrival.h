// A tile of K or V arriving: the issues of kv_copy.h carried out one after the other, every one reporting its bytes to
// one barrier, as a kernel's producer does.
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

// Announces the bytes, then loads every issue at dst + its place; issue i becomes copy first + i. `barrier` gets one
// arrival: that of the producer. GeometryError when dst is not a multiple of the swizzle's period: consumers compute
// addresses from the tile's first element. Else throws as load_box, with the earlier issues done.
std::vector<BoxLoad> carry_out(const KvCopy& copy, const TensorMap& map, const GlobalMemory& memory, SharedImage& image,
                               std::int64_t dst, ArrivalBarrier& barrier, CopyIdx first,
                               const BoxSwitches& switches = {});

// Where element (row, column) of the tile stands in shared memory [byte address], and back from any byte.
// Example: the K tile of kv_copy.h at dst 0: (1, 0) -> 144.
[[nodiscard]] std::int64_t kv_shared_address(const KvCopy& copy, std::int64_t dst, std::int64_t row,
                                             std::int64_t depth);
[[nodiscard]] std::optional<KvElement> kv_element_at_address(const KvCopy& copy, std::int64_t dst,
                                                             std::int64_t address);

}  // namespace kvscope
