// What panels ask of a tile, at some of its events; of long lists about the first and the last.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "viz/playback/facts.h"
#include "viz/playback/happened.h"
#include "viz/playback/motion.h"
#include "viz/playback/state.h"
#include "viz/playback/tile_banks.h"
#include "viz/playback/tile_layouts.h"
#include "viz/playback/tile_reads.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"

namespace kvscope::viz::testing_support {

// std::logic_error: an answer is outside of the tile.
inline void ask_tile(const Tile& tile, const Facts& facts) {
  const auto must_hold = [](bool holds, const char* what) {
    if (!holds) throw std::logic_error(what);
  };
  const State state;
  const auto ends = [](auto size, const auto& visit) {
    const auto count = static_cast<std::int64_t>(size);
    if (count > 0) visit(std::int64_t{0});
    if (count > 1) visit(count - 1);
  };
  std::vector<TileElement> elements{{0, 0}, {-1, -1}, {tile.rows() - 1, tile.columns() - 1}, {tile.rows(), 0}};
  for (const TileElement& element : elements) {
    static_cast<void>(tile.chunk_of(element));
    static_cast<void>(tile.shared_byte(element));
    static_cast<void>(tile.pool_byte(element));
    for (const std::int32_t fill : tile.fills_of(element)) {
      must_hold(static_cast<std::size_t>(fill) < tile.fills.size(), "fills_of");
    }
  }
  ends(tile.registers().size(), [&](std::int64_t n) {
    for (const TileElement& e : tile.elements_of(tile.registers()[static_cast<std::size_t>(n)])) {
      must_hold(e.row >= 0 && e.row < tile.rows() && e.column >= 0 && e.column < tile.columns(), "elements_of");
    }
  });
  ends(tile.rows(), [&](std::int64_t row) {
    static_cast<void>(tile.row_of(tile.opened.seq, tile.token_of(row)));
    if (tile.page_of(row)) static_cast<void>(tile.slot_of(row));
  });
  ends(tile.chunks.size(), [&](std::int64_t n) {
    const std::int64_t byte = tile.chunks[static_cast<std::size_t>(n)].shared;
    must_hold(tile.chunk_at(byte).has_value(), "chunk_at");
    static_cast<void>(tile.unswizzled(byte));
  });
  static_cast<void>(tile.gathers());
  static_cast<void>(title(tile, facts) + no_registers(tile) + read_name(tile) + matrix_name(tile));
  static_cast<void>(swizzle_formula(tile));
  for (const TileLayout& layout : tile_layouts(tile)) static_cast<void>(layout_cost(tile, layout));
  ends(tile.reads.size(), [&](std::int64_t read) {
    static_cast<void>(bank_use(tile, read, true));
    static_cast<void>(bank_use(tile, read, false));
  });

  TileState before = tile_state(tile, 0);
  for (const std::int64_t event : {std::int64_t{0}, tile.events / 3, event_of_landed(tile), tile.events}) {
    const TileState now = tile_state(tile, event);
    ends(tile.copies.size(), [&](std::int64_t n) { static_cast<void>(arrival_of_copy(tile, now, n)); });
    ends(tile.chunks.size(), [&](std::int64_t n) { static_cast<void>(arrival_of_chunk(tile, now, n)); });
    ends(tile.reads.size(), [&](std::int64_t n) { static_cast<void>(arrival_of_read(tile, now, n)); });
    ends(tile.fills.size(), [&](std::int64_t n) { static_cast<void>(arrival_of_fill(tile, now, n)); });
    static_cast<void>(what_happened(tile, now));
    static_cast<void>(uncovered_copies(tile, event));
    static_cast<void>(next_early_read(tile, event));
    static_cast<void>(flights_between(tile, before, now, 100));
    static_cast<void>(lights_between(tile, before, now));
    for (const Selection& selection : {of_token(tile.opened.seq, tile.opened.first_token),
                                       of_page(tile.opened.seq, PageIdx{0}), of_tile_row(0), of_tile_chunk({0, 0})}) {
      const Lit lit = resolve(state, facts, &tile, selection);
      static_cast<void>(chain(tile, now, lit.tile));
      static_cast<void>(describe(state, facts, &tile, selection));
      static_cast<void>(lit_reads(tile, lit.tile));
      if (const auto shown = shown_read(tile, now, lit.tile)) static_cast<void>(taken_in_words(tile, *shown));
    }
    before = now;
  }
}

}  // namespace kvscope::viz::testing_support
