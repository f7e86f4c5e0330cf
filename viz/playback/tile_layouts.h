// Other ways to store a tile in shared memory, and the wavefronts that its reads would take under each: without a
// swizzle, with the swizzles of TMA, with padded rows.
//
//   const auto all = tile_layouts(tile);            {none, 32B, 64B, 128B (stored), +16 B}
//   placed(tile, all[1], byte)                      where the byte would be
//   layout_cost(tile, all[1])                       of all reads together
//   bank_use(tile, read, all[1])                    of one read, bank by bank
//
// The lanes ask for the same elements under every layout. The banks follow from the places alone, as in tile_banks.h.
// Under a swizzle of TMA, bands are as wide as its rows: 32, 64 or 128 bytes.
// Example: 64 x 64 bf16 read by 16 ldmatrix.x4: 512 wavefronts without a swizzle, 64 with each of them and with 16
// bytes of padding for each row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viz/playback/tile.h"
#include "viz/playback/tile_banks.h"

namespace kvscope::viz {

struct TileLayout {
  std::string name;                   // "none", "64B", "(3,0,4)", "+16 B"
  std::int64_t row_bytes = 0;         // of a band, without the padding
  std::int64_t padding = 0;           // [bytes] behind each row
  int bits = 0, base = 0, shift = 0;  // swizzle of byte offsets; bits 0: none
  bool stored = false;                // the layout of the tile itself
  friend bool operator==(const TileLayout&, const TileLayout&) = default;
};

// In the order in which they are offered; the tile's own is among them. Empty: the trace does not contain the geometry
// or the lanes of reads, or a read takes other bytes than those of rows.
[[nodiscard]] std::vector<TileLayout> tile_layouts(const Tile& tile);

// Byte of shared memory of the element that is stored at `byte`.
[[nodiscard]] std::int64_t placed(const Tile& tile, const TileLayout& layout, std::int64_t byte);

struct LayoutCost {
  std::int64_t wavefronts = 0;  // of all reads
  std::int64_t ideal = 0;       // without a conflict
  friend bool operator==(const LayoutCost&, const LayoutCost&) = default;
};
[[nodiscard]] LayoutCost layout_cost(const Tile& tile, const TileLayout& layout);

// As bank_use of tile_banks.h. BankWord::byte is the stored place.
[[nodiscard]] BankUse bank_use(const Tile& tile, std::int64_t read, const TileLayout& layout);

// The one that is shown beside the tile's own unless a person chooses: none for a swizzled tile; for others the first
// with the fewest wavefronts, if these are fewer. `costs` of `layouts`. Nothing: there is nothing to compare.
[[nodiscard]] std::optional<std::size_t> compared_layout(const std::vector<TileLayout>& layouts,
                                                         const std::vector<LayoutCost>& costs);

// A swizzle as the field of its path is written: (bits, base, shift) of byte offsets, through LDS of 16-byte vectors.
// Example: (3,4,4) on bytes is "(3,0,4)" through LDS.
[[nodiscard]] std::string swizzle_text(const Tile& tile, std::int64_t bits, std::int64_t base, std::int64_t shift);

// "without the swizzle", "with the 64B swizzle", "with rows padded by 16 B".
[[nodiscard]] std::string layout_in_words(const TileLayout& layout);

}  // namespace kvscope::viz
