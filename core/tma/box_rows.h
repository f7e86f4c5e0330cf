// A box by whole rows: the same bytes as box_plan.h's chunks, moved a row at a time, which is faster. Chunks remain for
// code that explains or draws a copy, and for the few boxes that cannot be copied by rows.
//
//   row R of the tile    outside: all fill
//                        inside:  | lead: fill | data: memory | fill |   the same split in every inside row, because
//                                                                        each dimension is tested separately
//   in shared memory     from start = dst + R * pitch on; its 16-byte chunk c at start + (16 c ^ x), where x is the
//                        same for the whole row, because a row of a swizzled box begins a span and is in one line
//
// Inside rows are those with first[i] <= j[i] < end[i] in every dimension but the fastest, so all memory that the box
// touches is within `hull_bytes` from `base` on: one look-up of the allocation covers the whole tile.
// Example: the box of box_plan.h: rows 0 to 2 inside, 128 bytes of data each, hull 384 bytes; x of row 2 is 32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/smem/shared_image.h"
#include "core/tma/box_moves.h"
#include "core/tma/box_plan.h"
#include "core/tma/global_memory.h"
#include "core/tma/tensor_map.h"
#include "core/tma/tma_tile.h"

namespace kvscope {

struct BoxRows {
  BoxShape shape;
  std::int64_t dst = 0;   // [byte address]
  std::int64_t span = 0;  // [bytes] of the swizzle; 16 and 16 without one
  std::int64_t atom = 0;
  // Dimensions 1 .. of the tile; [0] is unused.
  std::array<std::int64_t, kTmaMaxRank> first{};             // [rows] inside
  std::array<std::int64_t, kTmaMaxRank> end{1, 1, 1, 1, 1};  // past the last one inside
  std::array<std::int64_t, kTmaMaxRank> step{};              // [bytes] of memory from one to the next
  std::int64_t lead = 0, data = 0;                           // [bytes] of a row inside; data 0: no row is
  std::uint64_t base = 0;                                    // [byte address] of the first data
  std::int64_t hull_bytes = 0;                               // from there to the last data's end

  [[nodiscard]] std::int64_t rows_inside() const;
  [[nodiscard]] std::int64_t filled_bytes() const { return shape.tx_bytes - rows_inside() * data; }
  // The bytes of the hull; empty when they are not in one allocation.
  [[nodiscard]] std::optional<std::span<const std::byte>> source(const GlobalMemory& memory) const;
};

// Precondition: the map and the start have been checked. Empty for rows packed tighter than the swizzle's span, a `dst`
// that begins no span, FLIP_8B, or data past 2^64: copy such a box chunk by chunk.
[[nodiscard]] std::optional<BoxRows> box_rows(const TensorMap& map, const TmaCoord& at, std::int64_t dst,
                                              const BoxSwitches& switches);

// Loads into plain memory, without recording writers: `window` is the shape's window_bytes from shared address dst on.
// Padding after short rows is unchanged. `source` is the hull's bytes.
void load_rows(const BoxRows& rows, std::span<const std::byte> source, const BoxBytes& fill,
               std::span<std::byte> window);
void store_rows(const BoxRows& rows, std::span<const std::byte> window, std::int64_t row_bytes,
                std::span<std::byte> target);

// `source` is rows.source(). Precondition: the window is inside the image; this is not checked before the first write.
void load_rows(const BoxRows& rows, std::span<const std::byte> source, const BoxBytes& fill, SharedImage& image,
               CopyIdx copy);

// Writes `row_bytes` of each inside row: its data, or up to the end of its last chunk. `target` is the hull and the
// bytes after it that are written. Returns how many of these bytes no copy had written in shared memory. Precondition:
// lead is 0, which holds for each store because a store begins at no negative column.
[[nodiscard]] std::int64_t store_rows(const BoxRows& rows, const SharedImage& image, std::int64_t row_bytes,
                                      std::span<std::byte> target);

}  // namespace kvscope
