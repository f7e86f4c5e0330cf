// A tensor map as a JSON file, with an optional copy to simulate.
//
//   { "kvscope_tensor_map": 1,
//     "type": "bf16", "base": 4096, "dims": [64, 20], "strides": [128], "box": [64, 8], "element_strides": [1, 1],
//     "swizzle": "128B", "interleave": "none", "l2_promotion": "none", "fill": "zeros", "target": "sm_90",
//     "copy": { "at": [0, 17], "dst": 0 } }
//
// Lists run fastest dimension first, as the encoder takes them; dims and box count elements, strides bytes. Required:
// type, dims, strides (rank 1 has none), box. Rank is the number of dims. This reader checks only the form. The rules
// are in tensor_map_rules.h, so that a map that breaks them can be read and explained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/tma/tensor_map.h"
#include "core/tma/tma_tile.h"

namespace kvscope {

inline constexpr int kTensorMapFileVersion = 1;

struct TensorMapFile {
  TensorMap map;
  TmaTarget target = TmaTarget::sm_90;
  std::optional<TmaCoord> at;  // of "copy"
  std::int64_t dst = 0;        // [byte address] of shared memory
};

// InputError with every fault and its JSON path: unknown and missing keys, wrong kinds, numbers that do not fit,
// unknown words, lists whose length does not match the rank.
[[nodiscard]] TensorMapFile parse_tensor_map(std::string_view text, std::string_view source);

}  // namespace kvscope
