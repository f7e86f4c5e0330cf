// The plan of one box copy: for each 16-byte chunk of the box, its address in global memory and in shared memory. The
// plan moves no bytes; box_copy.h moves them.
//
//   tile extents   t[0] = box[0], t[i] = ceil(box[i] / element_strides[i])
//   tile element j  ->  tensor position   x[0] = c[0] + j[0], x[i] = c[i] + j[i] * element_strides[i]
//                       in bounds         0 <= x[i] < dim[i], tested per dimension; other elements are filled
//                       global address    base + x[0] * size + sum x[i] * stride[i - 1]
//                   ->  row               R = j[1] + t[1] * (j[2] + t[2] * (j[3] + t[3] * j[4])); 0 in rank 1
//                       shared address    swizzle(dst + R * pitch + j[0] * size)
//
//   pitch = inner bytes without a swizzle, else the swizzle's span. The bytes between the end of a short row and the
//   span are neither written nor counted.
// Example: bf16 {64, 20}, box {64, 8} at {0, 17}, 128B swizzle, dst 0: row 2 is filled from row 3 on; element (1, 0) is
// global byte 18 * 128, shared byte 144; 1024 bytes are counted, filled ones included.
// Source: PTX ISA, cp.async.bulk.tensor and "Tensors"; each behavior that it leaves open is a field of BoxSwitches.
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

// Choices that the manuals leave open and a run on hardware would settle. Result files store them with their numbers.
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
  std::int64_t tx_bytes = 0;                                     // credited to the barrier
  std::int64_t window_bytes = 0;                                 // rows * pitch: the size to reserve
  friend bool operator==(const BoxShape&, const BoxShape&) = default;
};
// For a map that obeys its rules and copies bytes (require_box_copyable). Example: u8, box {64, 128}, 128B swizzle:
// 8192 bytes counted, a window of 16384.
[[nodiscard]] BoxShape box_shape(const TensorMap& map, const BoxSwitches& switches = {});

enum class BoxDirection : std::uint8_t { load, store };

// UnsupportedError: an interleaved map, a packed or TF32 type, a mode the target lacks, or a store with FLIP_8B.
// GeometryError: a map that breaks a rule.
void require_box_copyable(const TensorMap& map, BoxDirection direction, const BoxSwitches& switches);

// The instruction's conditions on the start of a copy; GeometryError with all faults.
//   coordinates    one for each dimension; c[0] * size a multiple of 16 B (else error 715 on Hopper); a store: none < 0
//   shared address a multiple of 128 B (else error 716), the window inside `shared_bytes`
void require_box_start(const TensorMap& map, const TmaCoord& at, std::int64_t shared, std::int64_t shared_bytes,
                       BoxDirection direction, const BoxSwitches& switches);

// 16 bytes of one row of a box. Bytes [0, data_bytes) come from memory, the rest is fill.
struct BoxChunk {
  std::int64_t row = 0;      // R
  std::int64_t column = 0;   // [elements] of the first, in the row
  std::uint64_t global = 0;  // [byte address] of the first; meaningless when filled()
  std::int64_t shared = 0;   // [byte address] the chunk lands at
  std::int8_t data_bytes = 0;
  bool halves_swapped = false;  // FLIP_8B in an odd line: bytes 8..15 come first
  [[nodiscard]] bool filled() const { return data_bytes == 0; }
  friend bool operator==(const BoxChunk&, const BoxChunk&) = default;
};

// All chunks of a box, row by row. Precondition: the map and the start have been checked.
// IllegalAddress: an element inside the map has an address past 2^64.
[[nodiscard]] std::vector<BoxChunk> box_chunks(const TensorMap& map, const TmaCoord& at, std::int64_t dst,
                                               const BoxSwitches& switches = {});

// The element that a byte of shared memory belongs to.
struct BoxElement {
  std::array<std::int64_t, kTmaMaxRank> tile{};      // j, fastest first
  std::array<std::int64_t, kTmaMaxRank> position{};  // x in the tensor, inside it or not
  std::int64_t row = 0;                              // R
  std::int64_t byte = 0;                             // of the element
  std::optional<std::uint64_t> global;               // [byte address] of the element's first byte; empty: fill
};
// Empty: the byte is outside the window, or in the padding after a short row.
// Example: the box above: byte 147 is byte 1 of element (1, 1) of the tile, tensor position (1, 18).
[[nodiscard]] std::optional<BoxElement> box_element_at(const TensorMap& map, const TmaCoord& at, std::int64_t dst,
                                                       std::int64_t shared, const BoxSwitches& switches = {});

}  // namespace kvscope
