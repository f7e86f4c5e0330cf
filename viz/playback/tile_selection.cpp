#include "viz/playback/tile_selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/base/dtype.h"
#include "viz/playback/tile_layouts.h"

namespace kvscope::viz {
namespace {

using Kind = Selection::Kind;
constexpr std::int64_t kBankBytes = 4;

template <class Item>
void sort_once(std::vector<Item>& items) {
  std::ranges::sort(items);
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

// Chunks and registers of every element of one row.
void light_row(const Tile& tile, std::int64_t row, LitTile& lit) {
  lit.rows.push_back(row);
  for (std::int64_t column = 0; column < tile.columns(); ++column) {
    for (const std::int32_t fill : tile.fills_of({row, column})) {
      lit.registers.push_back(tile.fills[static_cast<std::size_t>(fill)].reg);
    }
    if (tile.chunk_columns() == 0 || column % tile.chunk_columns() != 0) continue;
    if (const auto chunk = tile.chunk_of({row, column})) lit.chunks.push_back(*chunk);
  }
}

void light_rows(const Tile& tile, std::int64_t first, std::int64_t end, LitTile& lit) {
  for (std::int64_t row = std::max<std::int64_t>(first, 0); row < std::min(end, tile.opened.tokens); ++row) {
    light_row(tile, row, lit);
  }
}

void light_page(const Tile& tile, PageIdx page, LitTile& lit) {
  if (!tile.memory) return;
  const std::int64_t first = page.value * tile.memory->page_size - tile.opened.first_token.value;
  light_rows(tile, first, first + tile.memory->page_size, lit);
}

void light_chunk(const Tile& tile, TileElement first, LitTile& lit) {
  const auto chunk = tile.chunk_of(first);
  if (!chunk) return;
  const TileChunk& of = tile.chunks[static_cast<std::size_t>(*chunk)];
  lit.element = TileElement{of.row, of.column};
  lit.row = of.row;
  lit.chunk = chunk;
  lit.rows = {of.row};
  lit.chunks = {*chunk};
  for (std::int64_t column = of.column; column < of.column + tile.chunk_columns(); ++column) {
    for (const std::int32_t fill : tile.fills_of({of.row, column})) {
      lit.registers.push_back(tile.fills[static_cast<std::size_t>(fill)].reg);
    }
  }
}

void light_register(const Tile& tile, const TileRegister& reg, LitTile& lit) {
  const std::vector<TileElement> elements = tile.elements_of(reg);
  if (elements.empty()) return;
  lit.registers.push_back(reg);
  for (const TileElement& element : elements) {
    lit.rows.push_back(element.row);
    if (const auto chunk = tile.chunk_of(element)) lit.chunks.push_back(*chunk);
  }
}

void light_lane(const Tile& tile, std::int64_t wave, std::int64_t lane, LitTile& lit) {
  const auto first = std::ranges::lower_bound(tile.registers(), TileRegister{wave, lane, -1, -1});
  for (auto at = first; at != tile.registers().end() && at->wave == wave && at->lane == lane; ++at) {
    light_register(tile, *at, lit);
  }
}

// Chunks and registers of the row's elements that share a scale.
void light_scale(const Tile& tile, std::int64_t row, std::int64_t granule, LitTile& lit) {
  if (!tile.source.scales || !tile.holds_token(row)) return;
  const TileScales& scales = *tile.source.scales;
  if (granule < scales.first || granule >= scales.first + scales.count) return;
  const std::int64_t offset = tile.memory ? tile.memory->first_column : 0;
  const std::int64_t first = std::max<std::int64_t>(granule * scales.granularity - offset, 0);
  const std::int64_t end = std::min((granule + 1) * scales.granularity - offset, tile.columns());
  lit.row = row;
  lit.rows.push_back(row);
  for (std::int64_t column = first; column < end; ++column) {
    if (const auto chunk = tile.chunk_of({row, column})) lit.chunks.push_back(*chunk);
    for (const std::int32_t fill : tile.fills_of({row, column})) {
      lit.registers.push_back(tile.fills[static_cast<std::size_t>(fill)].reg);
    }
  }
}

// The chunk of these bytes; the row alone where the tile does not have them.
void light_bytes(const Tile& tile, std::int64_t row, std::int64_t first, LitTile& lit) {
  if (!tile.holds_token(row)) return;
  if (const auto column = column_of_byte(tile, first)) return light_chunk(tile, {row, *column}, lit);
  lit.row = row;
  lit.rows.push_back(row);
}

// What a box spans along the axis: the columns of one row, or all rows.
void light_axis(const Tile& tile, std::int64_t axis, LitTile& lit) {
  if (!tile.source.map || axis < 0 || axis >= std::ssize(tile.source.map->axes)) return;
  light_rows(tile, 0, axis == 0 ? 1 : tile.rows(), lit);
}

LitTile lit_in_tile(const Tile& tile, const Lit& lit, const Selection& selection) {
  LitTile in;
  switch (selection.kind) {
    case Kind::none:
    case Kind::step:
    case Kind::tile_event:
    case Kind::flow_tile:
    case Kind::error_cell:
    case Kind::tile_layout:
    case Kind::tile_path:
      break;
    case Kind::tile_axis:
      light_axis(tile, selection.layout, in);
      break;
    case Kind::tile_scale:
      light_scale(tile, selection.element.row, selection.element.column, in);
      break;
    case Kind::tile_bytes:
      light_bytes(tile, selection.element.row, selection.element.column, in);
      break;
    case Kind::sequence:
      if (selection.seq == tile.opened.seq) light_rows(tile, 0, tile.rows(), in);
      break;
    case Kind::page:
      if (selection.seq == tile.opened.seq) light_page(tile, selection.page, in);
      break;
    case Kind::block:
      for (const TablePlace& place : lit.places) {
        if (place.seq == tile.opened.seq) light_page(tile, place.page, in);
      }
      break;
    case Kind::token:
      in.row = tile.row_of(selection.seq, selection.token);
      if (in.row) light_row(tile, *in.row, in);
      break;
    case Kind::tile_row:
      if (selection.element.row < 0 || selection.element.row >= tile.rows()) break;
      in.row = selection.element.row;
      light_row(tile, *in.row, in);
      break;
    case Kind::tile_chunk:
      light_chunk(tile, selection.element, in);
      break;
    case Kind::tile_lane:
      light_lane(tile, selection.reg.wave, selection.reg.lane, in);
      break;
    case Kind::tile_register:
      light_register(tile, selection.reg, in);
      if (in.registers.empty()) break;
      in.reg = selection.reg;
      in.element = tile.elements_of(selection.reg).front();
      break;
  }
  sort_once(in.rows);
  sort_once(in.chunks);
  sort_once(in.registers);
  if (in.rows.size() == 1) in.row = in.rows.front();
  if (in.chunks.size() == 1) in.chunk = in.chunks.front();
  return in;
}

// --- in words --------------------------------------------------------------------------------------------------------

// "3", "3 and 4", "3, 4, 9", "3 to 9" for many that follow one another.
// `all` ascending, each once.
std::string numbers(const std::vector<std::int64_t>& all) {
  const bool run = !all.empty() && all.back() - all.front() + 1 == std::ssize(all);
  if (all.size() > 2 && run) return fmt::format("{} to {}", all.front(), all.back());
  if (all.size() == 2) return fmt::format("{} and {}", all[0], all[1]);
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string count_of(std::int64_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string banks_of(const Tile& tile, std::int64_t byte) {
  if (!tile.shared) return {};
  const std::int64_t first = byte / kBankBytes % tile.shared->banks;
  return fmt::format(", banks {} to {}", first, first + kTileChunkBytes / kBankBytes - 1);
}

std::string rows_in_words(const Tile& tile, const std::vector<std::int64_t>& rows) {
  std::vector<std::int64_t> tokens;
  for (const std::int64_t row : rows) {
    if (tile.holds_token(row)) tokens.push_back(tile.token_of(row).value);
  }
  if (tokens.empty()) return fmt::format("row{} {}, no token", rows.size() > 1 ? "s" : "", numbers(rows));
  return fmt::format("token{} {}", tokens.size() > 1 ? "s" : "", numbers(tokens));
}

std::string columns_in_words(const Tile& tile, const std::vector<TileElement>& elements) {
  const bool rope = tile.source.path == TilePath::rope;  // counted from the first rope value
  const std::int64_t first = tile.memory && !rope ? tile.memory->first_column : 0;
  std::vector<std::int64_t> columns;
  for (const TileElement& element : elements) columns.push_back(first + element.column);
  sort_once(columns);
  return fmt::format("{}{} {}", rope ? "rope value" : "dim", columns.size() > 1 ? "s" : "", numbers(columns));
}

std::string lane_in_words(const Tile& tile, std::int64_t wave, std::int64_t lane) {
  const bool several = tile.fragments ? tile.fragments->warps > 1 : tile.waves() > 1;
  return several ? fmt::format("{} {}, lane {}", tile.tma() ? "warp" : "wave", wave, lane)
                 : fmt::format("lane {}", lane);
}

std::string register_in_words(const Tile& tile, const TileRegister& reg) {
  const bool steps = tile.fragments && tile.fragments->steps > 1;
  return fmt::format("register {}{}", reg.index, steps ? fmt::format(" in k-step {}", reg.step) : "");
}

std::string describe_in_tile(const Tile& tile, const LitTile& lit, const Selection& selection) {
  switch (selection.kind) {
    case Kind::tile_row:
      if (!lit.row) return "No such row of the tile";
      return fmt::format(
          "Row {} of the tile: {}", *lit.row,
          tile.holds_token(*lit.row) ? fmt::format("token {}", tile.token_of(*lit.row).value) : "no token");
    case Kind::tile_chunk: {
      if (!lit.chunk) return "No such chunk of the tile";
      const TileChunk& chunk = tile.chunks[static_cast<std::size_t>(*lit.chunk)];
      return fmt::format("Chunk c{} of row {}: columns {} to {}, shared byte {}{}{}",
                         chunk.column / tile.chunk_columns(), chunk.row, chunk.column,
                         chunk.column + tile.chunk_columns() - 1, chunk.shared, banks_of(tile, chunk.shared),
                         chunk.pool < 0 ? ", filled with zeros" : "");
    }
    case Kind::tile_lane: {
      const std::string name = lane_in_words(tile, selection.reg.wave, selection.reg.lane);
      return fmt::format("{}{}: {}", static_cast<char>(name[0] - 'a' + 'A'), name.substr(1),
                         count_of(std::ssize(lit.registers), "register"));
    }
    case Kind::tile_register: {
      const std::string name = lane_in_words(tile, selection.reg.wave, selection.reg.lane);
      const std::string where = fmt::format("{}{}, {}", static_cast<char>(name[0] - 'a' + 'A'), name.substr(1),
                                            register_in_words(tile, selection.reg));
      if (!lit.reg) return where + ": holds nothing of the tile";
      return fmt::format("{}: {}, {}", where, rows_in_words(tile, lit.rows),
                         columns_in_words(tile, tile.elements_of(*lit.reg)));
    }
    case Kind::tile_event:
      return fmt::format("Event {} of {}", selection.event, tile.events);
    case Kind::tile_layout: {
      const std::vector<TileLayout> layouts = tile_layouts(tile);
      if (selection.layout < 0 || selection.layout >= std::ssize(layouts)) return "No such layout of the tile";
      const TileLayout& layout = layouts[static_cast<std::size_t>(selection.layout)];
      const LayoutCost cost = layout_cost(tile, layout);
      return fmt::format("The tile {}: its reads take {} wavefronts, {} without conflicts{}", layout_in_words(layout),
                         cost.wavefronts, cost.ideal, layout.stored ? "; it is stored so" : "");
    }
    case Kind::tile_axis:
      return axis_in_words(tile.source, selection.layout);
    case Kind::tile_scale:
      return tile.source.scales ? scale_in_words(*tile.source.scales, selection.element.row, selection.element.column)
                                : "No such scale of the tile";
    case Kind::tile_bytes: {
      std::string text = bytes_in_words(tile.source.row, selection.element.row, selection.element.column);
      return column_of_byte(tile, selection.element.column) ? text : text + ", which the tile does not have";
    }
    case Kind::tile_path:
      return offer_in_words(tile.source, static_cast<TilePath>(selection.layout));
    default:
      return {};
  }
}

// --- the chain -------------------------------------------------------------------------------------------------------

std::string verb(Arrival arrival, const char* there, const char* moving, const char* outlined) {
  return arrival == Arrival::there ? there : arrival == Arrival::moving ? moving : outlined;
}

std::string memory_words(const Tile& tile, std::int64_t row) {
  if (!tile.holds_token(row)) return fmt::format("Row {} of the tile holds no token.", row);
  std::string text = fmt::format("Token {} is row {} of the tile", tile.token_of(row).value, row);
  if (const auto page = tile.page_of(row)) {
    const trace::TilePage& of = tile.pages[static_cast<std::size_t>(*page)];
    text += fmt::format(": page {} → block {} → row {}", of.page.value, of.block.value, of.row + tile.slot_of(row));
  }
  return text + ".";
}

std::string copy_words(const Tile& tile, const TileState& now, std::int64_t chunk) {
  const TileChunk& of = tile.chunks[static_cast<std::size_t>(chunk)];
  const TileCopy& copy = tile.copies[static_cast<std::size_t>(of.copy)];
  const std::string name = tile.tma() ? fmt::format("{} {}", tile.gathers() ? "Gather" : "Box", copy.number)
                                      : fmt::format("Wave {}, copy {}", copy.wave, copy.number);
  const Arrival arrival = arrival_of_chunk(tile, now, chunk);
  if (of.pool < 0)
    return name + verb(arrival, " filled it with zeros", " is filling it with zeros", " will fill it with zeros");
  return name + verb(arrival, " copied it", " is copying it", " will copy it");
}

std::string swizzle_words(const Tile& tile, const TileChunk& chunk) {
  std::string text = fmt::format("its chunk c{} is stored at ", chunk.column / tile.chunk_columns());
  if (tile.shared && tile.shared->swizzle_bits > 0) {
    const std::int64_t row_bytes = tile.shared->row_bytes, plain = tile.unswizzled(chunk.shared);
    const std::int64_t from = plain % row_bytes / kTileChunkBytes, to = chunk.shared % row_bytes / kTileChunkBytes;
    if (plain / row_bytes == chunk.shared / row_bytes) {
      text += fmt::format("{} XOR {} = {}, ", from, from ^ to, to);
    }
  }
  return text + fmt::format("shared byte {}{}", chunk.shared, banks_of(tile, chunk.shared));
}

// The scale of the chunk's first element.
std::string scale_words(const Tile& tile, const TileChunk& chunk) {
  if (!tile.source.scales || !tile.holds_token(chunk.row)) return {};
  const TileScales& scales = *tile.source.scales;
  if (chunk.row >= std::ssize(scales.place)) return {};
  const std::int64_t dim = (tile.memory ? tile.memory->first_column : 0) + chunk.column;
  const std::int64_t granule = dim / scales.granularity;
  return fmt::format("; its scale {} is byte {} of the scales' pool", granule,
                     scales.place[static_cast<std::size_t>(chunk.row)] + (granule - scales.first) * scales.bytes);
}

std::string register_words(const Tile& tile, const TileState& now, const TileRegister& reg) {
  const auto fills = tile.fills_in(reg);
  Arrival arrival = Arrival::there;
  for (const std::int32_t fill : fills) arrival = std::min(arrival, arrival_of_fill(tile, now, fill));
  const std::vector<TileElement> elements = tile.elements_of(reg);
  std::vector<std::int64_t> rows;
  for (const TileElement& element : elements) rows.push_back(element.row);
  sort_once(rows);
  const std::string of_tokens = rows.size() > 1 ? " of " + rows_in_words(tile, rows) : "";
  return fmt::format("{} {} {}{} in {}", lane_in_words(tile, reg.wave, reg.lane),
                     arrival == Arrival::there ? "holds" : "will hold", columns_in_words(tile, elements), of_tokens,
                     register_in_words(tile, reg));
}

}  // namespace

Lit resolve(const State& state, const Facts& facts, const Tile* tile, const Selection& selection) {
  Lit lit = resolve(state, facts, selection);
  if (tile == nullptr) return lit;
  LitTile in = lit_in_tile(*tile, lit, selection);
  if (selection.of_tile()) {
    const SeqIdx seq = tile->opened.seq;
    std::set<std::int64_t> pages;
    for (const std::int64_t row : in.rows) {
      if (const auto page = tile->page_of(row)) pages.insert(*page);
    }
    if (in.row && tile->holds_token(*in.row)) {
      lit = resolve(state, facts, of_token(seq, tile->token_of(*in.row)));
    } else if (pages.size() == 1) {
      lit = resolve(state, facts, of_page(seq, tile->pages[static_cast<std::size_t>(*pages.begin())].page));
    }
  }
  lit.tile = std::move(in);
  return lit;
}

std::optional<std::int64_t> column_of_byte(const Tile& tile, std::int64_t byte) {
  if (tile.element_bytes() == 0) return std::nullopt;
  const std::int64_t column = byte / tile.element_bytes() - (tile.memory ? tile.memory->first_column : 0);
  if (column < 0 || column >= tile.columns()) return std::nullopt;
  return column;
}

std::string describe(const State& state, const Facts& facts, const Tile* tile, const Selection& selection,
                     const TileSource* instead) {
  if (!selection.of_tile()) return describe(state, facts, selection);
  if (tile == nullptr && instead != nullptr) {
    if (selection.kind == Kind::tile_axis) return axis_in_words(*instead, selection.layout);
    if (selection.kind == Kind::tile_path) return offer_in_words(*instead, static_cast<TilePath>(selection.layout));
  }
  if (tile == nullptr) return "No tile is shown";
  return describe_in_tile(*tile, lit_in_tile(*tile, {}, selection), selection);
}

std::string chain(const Tile& tile, const TileState& now, const LitTile& lit) {
  if (lit.rows.empty()) return "Select a token, a row, a chunk or a register: its whole chain is written here.";
  const std::int64_t row = lit.element ? lit.element->row : lit.rows.front();
  std::string text = memory_words(tile, row);
  const auto chunk = lit.element           ? tile.chunk_of(*lit.element)
                     : !lit.chunks.empty() ? std::optional(lit.chunks.front())
                                           : std::nullopt;
  if (chunk) {
    const TileChunk& of = tile.chunks[static_cast<std::size_t>(*chunk)];
    text += " " + copy_words(tile, now, *chunk) + "; " + swizzle_words(tile, of) + scale_words(tile, of);
  }
  const std::string none = no_registers(tile);
  if (!none.empty()) return text + ". No register holds it: " + none + ".";
  const TileElement element =
      lit.element ? *lit.element : TileElement{row, chunk ? tile.chunks[static_cast<std::size_t>(*chunk)].column : 0};
  std::optional<TileRegister> reg = lit.reg;
  if (!reg && !tile.fills_of(element).empty()) {
    reg = tile.fills[static_cast<std::size_t>(tile.fills_of(element).front())].reg;
  }
  if (reg) text += "; " + register_words(tile, now, *reg);
  return text + ".";
}

std::string no_registers(const Tile& tile) {
  if (!tile.fragments) return {};
  if (tile.fragments->instruction == trace::ReadInstruction::wgmma) {
    return "wgmma reads it from shared memory through a descriptor";
  }
  if (tile.fragments->instruction != trace::ReadInstruction::none) {
    const bool unplaced = tile.fills.empty() && !tile.lane_reads.empty();
    return unplaced ? "the trace contains no rows and columns of the bytes that it reads" : "";
  }
  switch (tile.fragments->unread) {
    case trace::Unread::element_bits:
      return fmt::format("the matrix instruction takes elements of 8 and 16 bits, and these have {}",
                         8 * tile.element_bytes());
    case trace::Unread::whole_pieces:
      return fmt::format(
          "one ldmatrix.x4 reads a piece of 32 bytes by 16 rows, and the tile of {} x {} is no whole "
          "number of pieces",
          tile.rows(), tile.columns());
    case trace::Unread::read:
      break;
  }
  return tile.reads.empty() && tile.fragments->mma_k == 0 ? "no instruction of the trace reads it"
                                                          : "the trace names no instruction that reads it";
}

std::string read_name(const Tile& tile) {
  if (!tile.fragments) return {};
  switch (tile.fragments->instruction) {
    case trace::ReadInstruction::none:
      return {};
    case trace::ReadInstruction::ldmatrix:
      return "ldmatrix.x4";
    case trace::ReadInstruction::ldmatrix_trans:
      return "ldmatrix.x4.trans";
    case trace::ReadInstruction::ds_read_b128:
      return "ds_read_b128";
    case trace::ReadInstruction::ds_read_tr_b16:
      return "ds_read_b64_tr_b16";
    case trace::ReadInstruction::ds_read_tr_b8:
      return "ds_read_b64_tr_b8";
    case trace::ReadInstruction::ld_shared:
      return "ld.shared";
    case trace::ReadInstruction::wgmma:
      return "wgmma";
    case trace::ReadInstruction::several:
      return "several instructions";
  }
  return {};
}

std::string matrix_name(const Tile& tile) {
  if (!tile.fragments || tile.fragments->mma_k == 0) return {};
  const trace::TileFragments& of = *tile.fragments;
  return tile.tma() ? fmt::format("mma.m{}n{}k{}", of.mma_m, of.mma_n, of.mma_k)
                    : fmt::format("mfma {}x{}x{}", of.mma_m, of.mma_n, of.mma_k);
}

std::string title(const Tile& tile, const Facts& facts) {
  const trace::TileOpened& of = tile.opened;
  std::string text = fmt::format("{} of sequence {} · layer {} · head {}", of.value ? "V" : "K", of.seq.value,
                                 of.layer.value, of.head.value);
  text += of.tokens > 0 ? fmt::format(" · tokens {}–{}", of.first_token.value, of.first_token.value + of.tokens - 1)
                        : " · tokens unknown";
  if (!tile.source.dtype.empty()) {
    text += fmt::format(" · {}", tile.source.dtype);
  } else if (facts.scenario) {
    text += fmt::format(" · {}", name(facts.scenario->cache.dtype));
  } else if (tile.element_bytes() > 0) {
    text += fmt::format(" · {}-bit elements", 8 * tile.element_bytes());
  }
  const bool waves = !tile.fragments || tile.fragments->lanes > 32;  // of AMD; cp.async of a kernel has warps
  text += tile.gathers() ? " · by gather4" : of.tma ? " · by TMA" : waves ? " · through LDS" : " · by cp.async";
  if (tile.shared) {
    const trace::TileShared& s = *tile.shared;
    text += s.swizzle_bits < 0    ? ", swizzle unknown"
            : s.swizzle_bits == 0 ? ", no swizzle"
            : of.tma && s.swizzle_base == 4
                ? fmt::format(", {}B swizzle", s.row_bytes)
                : ", swizzle " + swizzle_text(tile, s.swizzle_bits, s.swizzle_base, s.swizzle_shift);
  }
  return text;
}

}  // namespace kvscope::viz
