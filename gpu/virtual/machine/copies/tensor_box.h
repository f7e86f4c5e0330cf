// One box of a tensor copy: the rows that one instruction moves between a tensor and shared memory.
//
// The box covers positions x[i] = c[i], c[i] + e[i], c[i] + 2 e[i] .. below c[i] + box[i] of the tensor in each
// dimension i (c: coordinates, e: element strides, e[0] = 1). A position outside [0, dim[i]) in any dimension is out of
// bounds: a load fills it, a store skips it. A row is the run of positions along dimension 0.
//
//   shared memory   row R, counted with dimension 1 fastest, begins at `shared` + R * pitch. The pitch is the row's
//                   size without a swizzle, otherwise the swizzle's span. The swizzle then changes the absolute address
//   in a row        | fill | data | fill |      bytes [begin, end) are data, the same in every row that is inside
//
// Example: bf16, dims {64, 20}, box {64, 8} at {0, 17}, 128B swizzle, shared 1024: 8 rows of 128 bytes, rows 0 to 2
// inside; row 1 begins at 1152, and its chunk 0 is stored at 1152 ^ 16 = 1168.
// Source: PTX ISA 8.7, "Tensors" (bounding box, traversal stride, out-of-boundary access, swizzling modes). That rows
// shorter than the span are one span apart is a published measurement.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "gpu/virtual/machine/copies/copy_map.h"

namespace kvscope::ptx {

inline constexpr std::int64_t kCopyChunk = 16;

// In the instruction's order, fastest dimension first.
struct Coordinates {
  int count = 0;
  std::array<std::int32_t, kMaxDimensions> at{};
};

// The size of a box of a map in shared memory, independent of where it begins.
struct BoxSize {
  std::array<std::int64_t, kMaxDimensions> counts{1, 1, 1, 1, 1};  // positions that are copied in each dimension
  std::int64_t rows = 1;
  std::int64_t inner = 0;                                             // [bytes] of a row
  std::int64_t pitch = 0;                                             // [bytes] from row to row
  [[nodiscard]] std::int64_t bytes() const { return rows * inner; }   // credited to the barrier, fill included
  [[nodiscard]] std::int64_t window() const { return rows * pitch; }  // [bytes] of shared memory
};
// For maps of types of whole bytes. Example: u8, box {64, 128}, 128B swizzle: 8192 bytes, a window of 16384.
[[nodiscard]] BoxSize box_size(const CopyMap& map);

enum class CopyDirection : std::uint8_t { load, store };

// Why the machine cannot copy boxes of this map in this direction on this target (90 for sm_90a); empty: supported.
[[nodiscard]] std::string map_fault(const CopyMap& map, CopyDirection direction, int target);
// Why a copy cannot begin at `at`: the number of coordinates is not the map's rank, the first coordinate is not a
// multiple of 16 bytes, a store begins below 0, the shared address is not a multiple of 128 bytes, or the window
// exceeds the `shared_bytes` bytes of shared memory. Empty: valid.
[[nodiscard]] std::string start_fault(const CopyMap& map, const Coordinates& at, std::int64_t shared,
                                      std::int64_t window, std::int64_t shared_bytes, CopyDirection direction);

struct BoxRow {
  std::int64_t index = 0;    // R
  std::int64_t shared = 0;   // [byte address] of its first byte, before the swizzle
  std::uint64_t global = 0;  // [byte address] of its data; undefined if the row is outside
  bool inside = false;       // has data
};

struct TensorBox {
  BoxSize size;
  SwizzleBits swizzle;
  std::int64_t shared = 0;          // [byte address] of row 0
  std::int64_t begin = 0, end = 0;  // [bytes] of data in a row that is inside; equal: no row is
  std::uint64_t lowest = 0;         // [byte address] of the first data
  std::int64_t hull = 0;            // [bytes] from there to the end of the last data

  [[nodiscard]] bool has_data() const { return end > begin; }

  // Calls body(BoxRow) for each row in order.
  template <class Body>
  void each_row(const Body& body) const;

  // For each dimension: the first position, the distance to the next one, the tensor's size, and the distance in memory
  // between positions of the box [bytes]. Past the rank: one position that is inside.
  struct Axis {
    std::int64_t first = 0, every = 1;
    std::uint64_t dim = 1, bytes = 0;
  };
  std::array<Axis, kMaxDimensions> axes{};
  std::uint64_t origin = 0;  // [byte address] of the data of row 0, modulo 2^64: it may be outside
};

// Precondition: map_fault and start_fault are empty. `shared` is a multiple of the pitch within a line, or of 16 bytes.
// Throws IllegalAddress for data past 2^64.
[[nodiscard]] TensorBox tensor_box(const CopyMap& map, const Coordinates& at, std::int64_t shared);

template <class Body>
void TensorBox::each_row(const Body& body) const {
  // The inner loop uses local copies: stores by the body could alias the members.
  const auto [first, every, dim, step] = axes[1];
  const std::int64_t rows = size.counts[1], pitch = size.pitch;
  const auto inside = [&](std::size_t i, std::int64_t x) { return static_cast<std::uint64_t>(x) < axes[i].dim; };
  std::int64_t index = 0, to = shared, x4 = axes[4].first;
  std::uint64_t at4 = origin;
  for (std::int64_t n4 = size.counts[4]; n4 > 0; --n4, x4 += axes[4].every, at4 += axes[4].bytes) {
    std::int64_t x3 = axes[3].first;
    std::uint64_t at3 = at4;
    for (std::int64_t n3 = size.counts[3]; n3 > 0; --n3, x3 += axes[3].every, at3 += axes[3].bytes) {
      std::int64_t x2 = axes[2].first;
      std::uint64_t at2 = at3;
      for (std::int64_t n2 = size.counts[2]; n2 > 0; --n2, x2 += axes[2].every, at2 += axes[2].bytes) {
        const bool outer = has_data() && inside(4, x4) && inside(3, x3) && inside(2, x2);
        std::int64_t x1 = first;
        std::uint64_t at1 = at2;
        for (std::int64_t n1 = rows; n1 > 0; --n1, x1 += every, at1 += step, to += pitch) {
          body(BoxRow{index++, to, at1, outer && static_cast<std::uint64_t>(x1) < dim});
        }
      }
    }
  }
}

// 16 bytes of a row.
struct CopyChunk {
  std::int64_t row = 0;
  std::int64_t column = 0;      // [elements] of its first, in the row
  std::uint64_t global = 0;     // [byte address] of its data; undefined if it has none
  std::int64_t shared = 0;      // [byte address] where it is stored
  std::int64_t data_bytes = 0;  // bytes [0, data_bytes) come from memory, the rest is fill
  [[nodiscard]] bool filled() const { return data_bytes == 0; }
};

// Calls body(CopyChunk) for each chunk of a row, in order. Stops and returns false when `body` returns false.
template <class Body>
bool each_chunk(const TensorBox& box, const BoxRow& row, std::int64_t element_bytes, const Body& body) {
  const auto change = static_cast<std::int64_t>(box.swizzle.change(static_cast<std::uint64_t>(row.shared)));
  for (std::int64_t c = 0; c < box.size.inner; c += kCopyChunk) {
    CopyChunk chunk{row.index, c / element_bytes, 0, ((row.shared + c) ^ change) & -kCopyChunk, 0};
    if (row.inside && c >= box.begin && c < box.end) {
      chunk.data_bytes = box.end - c < kCopyChunk ? box.end - c : kCopyChunk;
      chunk.global = row.global + static_cast<std::uint64_t>(c - box.begin);
    }
    if (!body(static_cast<const CopyChunk&>(chunk))) return false;
  }
  return true;
}

}  // namespace kvscope::ptx
