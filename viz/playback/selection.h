// The selected object and everything that is highlighted with it, in all panels:
//
//   a token      highlights its page, its block, its slot in that block, and its cell of the lookup table
//   a block      highlights every page of every sequence that is stored in it
//   a sequence   highlights all its pages and blocks
//   a flow tile  highlights the pages and blocks that hold its tokens
//   an error     highlights the page behind it, or its sequence
//
// In the tile that is shown, both ways (tile_selection.h):
//
//   a token, page or block        highlights its rows, their chunks and registers
//   a row, chunk, lane, register  highlights the elements that it holds, their rows, token, page and block
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index.h"
#include "viz/playback/state.h"
#include "viz/playback/tile.h"

namespace kvscope::viz {

struct Selection {
  enum class Kind : std::uint8_t {
    none,
    sequence,
    page,
    token,
    block,
    step,
    tile_row,       // of the tile that is shown: also one that holds no token
    tile_chunk,     // 16 bytes of a row
    tile_lane,      // of a warp or wave: all its registers
    tile_register,  // of one lane
    tile_event,     // a place on the tile's time axis
    tile_axis,      // of the tensor map
    tile_scale,     // of a row and a granule of its elements
    tile_bytes,     // 16 bytes of a row of the pool, staged or not
    tile_layout,    // a way to store the tile: a choice, not an object
    tile_path,      // another path to stage it by: likewise
    flow_tile,      // a tile of the attention flow: tokens [token, end) of a sequence
    error_cell,     // error of a candidate: one head of a sequence, or one element of a query
  };
  Kind kind = Kind::none;
  SeqIdx seq{-1};                    // sequence, page, token, flow_tile, error_cell
  PageIdx page{-1};                  // page: also a cell of the lookup table; flow_tile: its first; error_cell or -1
  TokIdx token{-1};                  // token; flow_tile: its first; error_cell: the query's, or -1
  TokIdx end{-1};                    // flow_tile: one past its last token
  PageIdx end_page{-1};              // flow_tile: one past its last page
  HeadIdx head{-1};                  // error_cell
  DimIdx dim{-1};                    // error_cell: or -1, the whole head
  BlockIdx block{-1};                // block; facts.blocks is the null page
  StepIdx step{-1};                  // step: of the timeline
  TileElement element{-1, -1};       // tile_row: its row; tile_chunk: its first element; tile_scale: row and granule;
                                     // tile_bytes: row and first byte
  std::int64_t event = -1;           // tile_event: events that have happened there; flow_tile: its number
  std::int64_t layout = -1;          // tile_layout: index into tile_layouts(); tile_axis: its number, past the last the
                                     // map as a whole; tile_path: a TilePath
  TileRegister reg{-1, -1, -1, -1};  // tile_lane: its wave and lane; tile_register
  friend bool operator==(const Selection&, const Selection&) = default;
  [[nodiscard]] bool none() const { return kind == Kind::none; }
  // A place in time: a click goes there and keeps the pinned object.
  [[nodiscard]] bool of_time() const { return kind == Kind::step || kind == Kind::tile_event; }
  [[nodiscard]] bool of_tile() const { return kind >= Kind::tile_row && kind <= Kind::tile_path; }
  [[nodiscard]] bool of_attention() const { return kind >= Kind::flow_tile; }
};
[[nodiscard]] Selection of_sequence(SeqIdx seq);
[[nodiscard]] Selection of_page(SeqIdx seq, PageIdx page);
[[nodiscard]] Selection of_token(SeqIdx seq, TokIdx token);
[[nodiscard]] Selection of_block(BlockIdx block);
[[nodiscard]] Selection of_step(StepIdx step);
[[nodiscard]] Selection of_tile_row(std::int64_t row);
[[nodiscard]] Selection of_tile_chunk(TileElement first);  // (row, first column of the chunk)
[[nodiscard]] Selection of_tile_lane(std::int64_t wave, std::int64_t lane);
[[nodiscard]] Selection of_tile_register(const TileRegister& reg);
[[nodiscard]] Selection of_tile_event(std::int64_t event);
[[nodiscard]] Selection of_tile_layout(std::int64_t layout);
[[nodiscard]] Selection of_tile_axis(std::int64_t axis);
[[nodiscard]] Selection of_tile_scale(std::int64_t row, std::int64_t granule);
[[nodiscard]] Selection of_tile_bytes(std::int64_t row, std::int64_t first);
[[nodiscard]] Selection of_tile_path(TilePath path);

// Tokens [token, end), end > token >= 0, of the flow's tile `number`.
[[nodiscard]] Selection of_flow_tile(SeqIdx seq, std::int64_t number, TokIdx token, TokIdx end, std::int64_t page_size);
// The whole head of a sequence: token and dim are -1. `page` is the page that a click leads to, or -1.
[[nodiscard]] Selection of_error_cell(SeqIdx seq, HeadIdx head, TokIdx token, DimIdx dim, PageIdx page);

struct TablePlace {
  SeqIdx seq;
  PageIdx page;
  friend bool operator==(const TablePlace&, const TablePlace&) = default;
};

// What is lit in the tile that is shown; all empty without one.
struct LitTile {
  std::optional<TileElement> element;   // the one meant, the first of a chunk or a register
  std::optional<std::int64_t> row;      // the one row
  std::optional<std::int64_t> chunk;    // the one chunk: index into Tile::chunks
  std::optional<TileRegister> reg;      // the one register
  std::vector<std::int64_t> rows;       // every row that is meant, ascending
  std::vector<std::int64_t> chunks;     // every chunk, ascending: those that copies brought
  std::vector<TileRegister> registers;  // every register, ascending
  friend bool operator==(const LitTile&, const LitTile&) = default;
};

struct Lit {
  std::optional<SeqIdx> seq;         // the sequence, if exactly one is highlighted
  std::optional<PageIdx> page;       // the page, if exactly one
  std::optional<TokIdx> token;       // the token, if exactly one
  std::optional<BlockIdx> block;     // the block, if exactly one
  std::optional<std::int64_t> slot;  // of `token` in `block`
  std::vector<TablePlace> places;    // every highlighted cell of the lookup table, ordered by sequence and page
  std::vector<BlockIdx> blocks;      // every highlighted block, ascending, each once
  LitTile tile;
  friend bool operator==(const Lit&, const Lit&) = default;
};

// The highlighted objects at this state. A selected object that does not exist at this state highlights nothing.
// Objects of a tile: tile_selection.h.
[[nodiscard]] Lit resolve(const State& state, const Facts& facts, const Selection& selection);

// One sentence for a tooltip, the status bar and a screen reader:
//   "Sequence 3, token 37: page 2, slot 5 of block 18, shared by 2 sequences"
[[nodiscard]] std::string describe(const State& state, const Facts& facts, const Selection& selection);

}  // namespace kvscope::viz
