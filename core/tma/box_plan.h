// One box copy on paper: for every 16-byte chunk of the box, where it stands in global memory and where in shared
// memory. Nothing is moved; box_copy.h does that with the same list.
//
//   tile extents   t[0] = box[0], t[i] = ceil(box[i] / element_strides[i])
//   tile element j  ->  tensor position   x[0] = c[0] + j[0], x[i] = c[i] + j[i] * element_strides[i]
//                       in bounds         0 <= x[i] < dim[i] in every dimension by itself; else it is filled
//                       global address    base + x[0] * size + sum x[i] * stride[i - 1]
//                   ->  row               R = j[1] + t[1] * (j[2] + t[2] * (j[3] + t[3] * j[4])); 0 in rank 1
//                       shared address    swizzle(dst + R * pitch + j[0] * size)
//
//   pitch = inner bytes without a swizzle, else the swizzle's span: what lies between a short row's end and the span is
//   neither written nor counted.
// Example: bf16 {64, 20}, box {64, 8} at {0, 17}, 128B swizzle, dst 0: row 2 is filled from row 3 on; element (1, 0) is
// global byte 18 * 128, shared byte 144; 1024 bytes are counted, filled ones included.
// Sources: PTX ISA, cp.async.bulk.tensor and "Tensors"; what it leaves open is a BoxSwitches.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tma/tensor_map.h"
#include "core/tma/tma_tile.h"

namespace kvscope {

// What manuals leave open and one run on hardware would settle; a result file keeps them beside its numbers.
struct BoxSwitches {
  TmaTarget target = TmaTarget::sm_90;
  enum class Padding : std::uint8_t { to_span, dense } padding = Padding::to_span;       // rows shorter than the span
  enum class Nan : std::uint8_t { halves_7ff7, quiet } nan = Nan::halves_7ff7;           // pattern of the NaN fill
  enum class StoreEdge : std::uint8_t { chunk, element } store_edge = StoreEdge::chunk;  // where a store's row ends
  friend bool operator==(const BoxSwitches&, const BoxSwitches&) = default;
};
// "target sm_90, short rows padded to the span, NaN fill 7ff7, store edge 16 B"
[[nodiscard]] std::string to_text(const BoxSwitches& switches);

struct BoxShape {
  std::array<std::int64_t, kTmaMaxRank> extents{1, 1, 1, 1, 1};  // [elements] of the tile, fastest first
  std::int64_t rows = 0;                                         // of the tile: product of all extents but the first
  std::int64_t inner = 0;                                        // [bytes] of one row
  std::int64_t pitch = 0;                                        // [bytes] from row to row in shared memory
  std::int64_t tx_bytes = 0;                                     // what the barrier is credited with
  std::int64_t window_bytes = 0;                                 // rows * pitch: what to reserve
  friend bool operator==(const BoxShape&, const BoxShape&) = default;
};
// For a map that obeys its rules and copies bytes (require_box_copyable). Example: u8, box {64, 128}, 128B swizzle:
// 8192 bytes counted, a window of 16384.
[[nodiscard]] BoxShape box_shape(const TensorMap& map, const BoxSwitches& switches = {});

enum class BoxDirection : std::uint8_t { load, store };

// UnsupportedError: an interleaved map, a packed or TF32 type, a mode the target lacks, or a store with FLIP_8B.
// GeometryError: a map that breaks a rule.
void require_box_copyable(const TensorMap& map, BoxDirection direction, const BoxSwitches& switches);

// What the instruction demands of where a copy begins; GeometryError with all faults.
//   coordinates    one for each dimension; c[0] * size a multiple of 16 B (else error 715 on Hopper); a store: none < 0
//   shared address a multiple of 128 B (else error 716), the window inside `shared_bytes`
void require_box_start(const TensorMap& map, const TmaCoord& at, std::int64_t shared, std::int64_t shared_bytes,
                       BoxDirection direction, const BoxSwitches& switches);

// 16 bytes of one row of a box. Bytes [0, data_bytes) are memory, the rest is filled.
struct BoxChunk {
  std::int64_t row = 0;      // R
  std::int64_t column = 0;   // [elements] of the first, in the row
  std::uint64_t global = 0;  // [byte address] of the first; of no meaning when filled()
  std::int64_t shared = 0;   // [byte address] the chunk lands at
  std::int8_t data_bytes = 0;
  bool halves_swapped = false;  // FLIP_8B in an odd line: bytes 8..15 come first
  [[nodiscard]] bool filled() const { return data_bytes == 0; }
  friend bool operator==(const BoxChunk&, const BoxChunk&) = default;
};

// All chunks of a box, row by row. The map and the start are the caller's to check.
// IllegalAddress: an element inside the map lies past 2^64.
[[nodiscard]] std::vector<BoxChunk> box_chunks(const TensorMap& map, const TmaCoord& at, std::int64_t dst,
                                               const BoxSwitches& switches = {});

// Back from a byte of shared memory.
struct BoxElement {
  std::array<std::int64_t, kTmaMaxRank> tile{};      // j, fastest first
  std::array<std::int64_t, kTmaMaxRank> position{};  // x in the tensor, inside it or not
  std::int64_t row = 0;                              // R
  std::int64_t byte = 0;                             // of the element
  std::optional<std::uint64_t> global;               // [byte address] of the element's first byte; nothing: filled
};
// Nothing: the byte is outside the window, or padding behind a short row.
// Example: the box above: byte 147 is byte 1 of element (1, 1) of the tile, tensor position (1, 18).
[[nodiscard]] std::optional<BoxElement> box_element_at(const TensorMap& map, const TmaCoord& at, std::int64_t dst,
                                                       std::int64_t shared, const BoxSwitches& switches = {});

}  // namespace kvscope
