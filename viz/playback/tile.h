// One tile on its way from the pool into registers: everything that its events contain, in an order that pictures can
// use, and where an element of it is.
//
//   Tile tile = fold_tile(events);                     tile_fold.h; events[0] is its tile_opened
//   TileState now = tile_state(tile, 57);              tile_state.h; after 57 of tile.events events
//   tile.copies[0 .. now.issued)                       have been issued; the others are still outlined
//   tile.chunks[0 .. now.landed)                       are in shared memory
//   tile.reads [0 .. now.reads), tile.fills[0 .. now.fills)
//
// A kernel's tile of cp.async or of bulk copies has no rows and columns unless its note supplies them.
// A tile of a trace recorded without lanes has no chunks, lane reads and fills, one of an older format no geometry:
// every optional and every list may be empty.
// Example: 64 x 128 bf16 by TMA over pages of 16: 8 copies, 1024 chunks, 32 reads, 4096 fills.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/index.h"
#include "core/trace/events.h"
#include "viz/playback/tile_source.h"

namespace kvscope::viz {

inline constexpr std::int64_t kTileChunkBytes = 16;

// One instruction that brings bytes: a box of TMA, or 16 bytes for each lane of a wave.
struct TileCopy {
  std::int64_t number = 0;    // in order of issue
  std::int64_t sub_tile = 0;  // TMA: which of the tile's pages; LDS: 0
  std::int64_t wave = 0;      // LDS: who issued it; TMA: 0
  std::int64_t stage = 0;     // LDS
  std::int64_t column = 0;    // TMA: of the tile, the box's first
  std::int64_t row = 0;       // TMA: coordinate of its first row in the map
  std::int64_t shared = 0;    // [bytes] where it begins
  std::int64_t bytes = 0;     // fill included
  std::int64_t filled = 0;    // [bytes] of these that are zeros
  std::int64_t event = 0;     // which of the tile's events issued it
  std::int64_t first_chunk = 0, chunks = 0;
};

// 16 bytes of a copy.
struct TileChunk {
  std::int64_t copy = 0;    // index into copies
  std::int64_t row = 0;     // of the tile; -1: the trace does not tell (cp.async)
  std::int64_t column = 0;  // of the tile, its first element; -1: likewise
  std::int64_t pool = 0;    // [bytes] from the start of the pool; -1: zeros, no byte was read
  std::int64_t shared = 0;  // [bytes]
  std::int64_t event = 0;
};

// One instruction of one warp or wave, shared memory into registers.
struct TileRead {
  std::int64_t number = 0;
  std::int64_t wave = 0;
  std::int64_t step = 0;            // k-step
  std::int64_t first_register = 0;  // of every lane
  std::int64_t registers = 0;
  std::int64_t cycles = 0;     // wavefronts
  std::int64_t conflicts = 0;  // wavefronts of these that conflicts cause
  std::int64_t event = 0;
  std::int64_t first_lane = 0, lanes = 0;  // of lane_reads
  std::int64_t first_fill = 0, fills = 0;  // of fills
  std::int64_t operand = -1;               // into operands: a matrix instruction reads it, and no register takes it
  // The part of the tile that it brings: rows [row, row + rows), columns likewise; 0 rows: unknown.
  std::int64_t row = 0, rows = 0, column = 0, columns = 0;
};

struct TileLaneRead {
  std::int64_t read = 0;  // index into reads
  std::int64_t lane = 0;
  std::int64_t shared = 0;  // [bytes]
  std::int64_t event = 0;
};

// What a matrix instruction reads by itself, through a descriptor.
struct TileOperand {
  trace::OperandRead of;
  std::int64_t read = 0;                     // index into reads
  std::int64_t first_chunk = 0, chunks = 0;  // of operand_chunks
};

// 16 bytes of it.
struct TileOperandChunk {
  std::int64_t line = 0, k = 0;  // of the first element
  std::int64_t shared = 0;       // [bytes]
  std::int64_t event = 0;
};

// A register of one lane of one warp or wave. Several k-steps use the same register one after the other.
struct TileRegister {
  std::int64_t wave = 0;
  std::int64_t lane = 0;
  std::int64_t index = 0;  // 32-bit register
  std::int64_t step = 0;   // k-step
  friend auto operator<=>(const TileRegister&, const TileRegister&) = default;
};

// Neighbouring elements that a read put into a register.
struct TileFill {
  std::int64_t read = 0;  // index into reads
  TileRegister reg;
  std::int64_t bit = 0;  // where the first element begins
  std::int64_t row = 0, column = 0;
  std::int64_t elements = 0;
  bool down = false;  // false: along a row of the tile, true: along a column
  std::int64_t event = 0;
};

struct TileElement {
  std::int64_t row = 0, column = 0;
  friend auto operator<=>(const TileElement&, const TileElement&) = default;
};

// A wave waits for its copies; TMA has barrier events instead.
struct TileWait {
  std::int64_t wave = 0, outstanding = 0, allowed = 0;
  std::int64_t event = 0;
};

// What a person steps through: an instruction or a wait, with the chunks, lanes and registers that belong to it.
struct TileAction {
  enum class Kind : std::uint8_t { open, expect, copy, complete, wait, read };
  Kind kind = Kind::open;
  std::int64_t index = 0;           // of copies, waits or reads
  std::int64_t first = 0, end = 0;  // events
};

struct Tile {
  std::uint64_t serial = 0;  // of this fold; copies share it. For caches of pictures
  trace::TileOpened opened;
  std::int64_t events = 0;
  std::optional<trace::TileMemory> memory;
  std::vector<trace::TilePage> pages;  // in order
  std::optional<trace::TileMap> map;
  std::optional<trace::TileShared> shared;
  std::optional<trace::TileFragments> fragments;
  std::vector<trace::BankPhase> phases;
  std::vector<trace::BarrierExpects> expects;
  std::vector<std::int64_t> expect_events, complete_events;
  std::vector<TileCopy> copies;
  std::vector<TileChunk> chunks;
  std::vector<TileWait> waits;
  std::vector<TileRead> reads;
  std::vector<TileLaneRead> lane_reads;
  std::vector<TileFill> fills;
  std::vector<TileOperand> operands;
  std::vector<TileOperandChunk> operand_chunks;
  std::vector<TileAction> actions;  // they cover the events without a gap
  TileSource source;  // of the simulator, not of the events: empty for a tile of a trace without a scenario

  [[nodiscard]] bool tma() const { return opened.tma; }
  [[nodiscard]] std::int64_t rows() const { return opened.rows; }
  [[nodiscard]] std::int64_t columns() const { return opened.columns; }
  [[nodiscard]] std::int64_t element_bytes() const { return element_bytes_; }  // 0: unknown
  [[nodiscard]] std::int64_t chunk_columns() const { return chunk_columns_; }  // elements of a chunk; 0: unknown
  [[nodiscard]] std::int64_t waves() const { return waves_; }                  // that copy or read; at least 1

  // Each copy brings four rows of any blocks (TMA gather4).
  [[nodiscard]] bool gathers() const { return map && !copies.empty() && rows_of_copy() > map->box_rows; }
  // Of the tile, that one copy of TMA brings; 0: unknown.
  [[nodiscard]] std::int64_t rows_of_copy() const;

  // --- rows and tokens ---
  [[nodiscard]] bool holds_token(std::int64_t row) const { return row >= 0 && row < opened.tokens; }
  [[nodiscard]] TokIdx token_of(std::int64_t row) const { return opened.first_token + row; }
  [[nodiscard]] std::optional<std::int64_t> row_of(SeqIdx seq, TokIdx token) const;  // nothing: not in this tile
  // Which of `pages` holds the row, and the token's slot there; nothing: no token, or the geometry is unknown.
  [[nodiscard]] std::optional<std::int64_t> page_of(std::int64_t row) const;
  [[nodiscard]] std::int64_t slot_of(std::int64_t row) const;  // precondition: page_of(row)

  // --- elements ---
  // Index into chunks; nothing: no copy brought the element, or the trace does not tell.
  [[nodiscard]] std::optional<std::int64_t> chunk_of(TileElement element) const;
  // Index into chunks of the one that was written at that byte.
  [[nodiscard]] std::optional<std::int64_t> chunk_at(std::int64_t shared) const;
  [[nodiscard]] std::int64_t shared_byte(TileElement element) const;                // -1: unknown
  [[nodiscard]] std::int64_t pool_byte(TileElement element) const;                  // -1: zeros or unknown
  [[nodiscard]] std::span<const std::int32_t> fills_of(TileElement element) const;  // indices into fills
  // What a register holds after its k-step, lowest bits first; empty: nothing, or no such register.
  [[nodiscard]] std::vector<TileElement> elements_of(const TileRegister& reg) const;
  [[nodiscard]] std::span<const std::int32_t> fills_in(const TileRegister& reg) const;     // indices into fills
  [[nodiscard]] const std::vector<TileRegister>& registers() const { return registers_; }  // that are filled; sorted

  // Whether the trace contains how rows are stored. False: a kernel's cp.async, whose source alone defines it.
  [[nodiscard]] bool swizzle_known() const { return shared && shared->swizzle_bits >= 0; }
  // Byte of shared memory before the swizzle moved it; the same without one.
  [[nodiscard]] std::int64_t unswizzled(std::int64_t shared_byte) const;

 private:
  friend class TileFolder;
  [[nodiscard]] bool inside(TileElement e) const {
    return e.row >= 0 && e.row < rows() && e.column >= 0 && e.column < columns();
  }
  std::int64_t element_bytes_ = 0, chunk_columns_ = 0, waves_ = 1;
  std::vector<std::int32_t> chunk_grid_;    // [row, column / chunk_columns]; -1: none
  std::vector<std::int32_t> chunk_shared_;  // [shared / 16]; -1: none
  std::vector<std::int32_t> fill_first_;    // [row * columns + column], one more at the end: into fill_of_
  std::vector<std::int32_t> fill_of_;
  std::vector<TileRegister> registers_;
  std::vector<std::int32_t> register_first_;  // [registers_], one more at the end: into register_fill_
  std::vector<std::int32_t> register_fill_;
};

// The elements of a fill, lowest bits first.
[[nodiscard]] std::vector<TileElement> elements(const TileFill& fill);

}  // namespace kvscope::viz
