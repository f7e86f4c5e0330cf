// The events of one tile: its geometry, copies, waits and reads.
#include <algorithm>
#include <map>
#include <vector>

#include "gpu/virtual/debug/detail/kernel_tile.h"
#include "gpu/virtual/machine/copies/tensor_box.h"

namespace kvscope::ptx {

void TileTrace::record(const Tile& tile) {
  if (tile.empty()) return;  // a barrier that counts something other than copies
  const TileNote& note = note_of(tile);
  const std::int64_t base = note.shared.value_or(tile.first);
  std::int64_t rows = 0, columns = 0, head = note.head.value_or(0);
  for (const LandedBox& box : tile.boxes) {
    rows = std::max(rows, (box.event.sub_tile + 1) * box.rows);
    columns = std::max(columns, box.event.column + box.width);
  }
  if (!tile.boxes.empty() && tile.boxes.front().head != kNotKnown) head = tile.boxes.front().head;
  trace::TileOpened e;
  e.step = StepIdx{note.step.value_or(0)};
  e.seq = SeqIdx{note.seq.value_or(0)};
  e.layer = LayerIdx{note.layer.value_or(0)};
  e.head = HeadIdx{head};
  e.value = note.value.value_or(0) != 0;
  e.tma = tile.tma;
  e.first_token = TokIdx{note.first_token.value_or(0)};
  e.rows = note.rows.value_or(rows);
  e.tokens = note.tokens.value_or(e.rows);
  e.columns = note.columns.value_or(columns);
  e.bytes = note.bytes.value_or(tile.end - base);
  recorder_.record(e);
  ++recorded_;

  const std::int64_t stage = stage_of(tile);
  if (options_.lanes) record_geometry(tile, e, base, stage);
  for (const std::int64_t bytes : tile.expects) recorder_.record(trace::BarrierExpects{0, bytes});
  record_boxes(tile, base);
  record_warp_copies(tile, base, stage);
  if (tile.completed) recorder_.record(trace::BarrierCompleted{0});
  record_reads(tile, e, base);
}

// Of cp.async: the index of the tile's address among those at which tiles begin.
std::int64_t TileTrace::stage_of(const Tile& tile) {
  if (tile.copies.empty()) return 0;
  const auto known = std::find(stages_.begin(), stages_.end(), tile.first);
  const std::int64_t stage = known - stages_.begin();
  if (known == stages_.end()) stages_.push_back(tile.first);
  return stage;
}

// Bands of columns follow one another: the distance of two is the size of one.
std::optional<trace::TileShared> TileTrace::shared_of(const Tile& tile, const trace::TileOpened& opened,
                                                      std::int64_t base) {
  if (!tile.map) return std::nullopt;
  std::int64_t band = 0;
  for (const LandedBox& box : tile.boxes) {
    const std::int64_t apart = box.event.shared - tile.boxes.front().event.shared;
    const bool other = box.event.column != tile.boxes.front().event.column && apart > 0;
    if (other && box.event.sub_tile == tile.boxes.front().event.sub_tile && (band == 0 || apart < band)) band = apart;
  }
  const std::int64_t pitch = box_size(*tile.map).pitch;
  const std::int64_t rows = band > 0 && band % pitch == 0 ? band / pitch : std::max<std::int64_t>(opened.rows, 1);
  return shared_geometry(*tile.map, base, rows);
}

void TileTrace::record_geometry(const Tile& tile, const trace::TileOpened& opened, std::int64_t base,
                                std::int64_t stage) {
  if (tile.map) {
    const TileNote& note = note_of(tile);
    record_pool(tile, opened);
    recorder_.record(map_geometry(*tile.map, row_axis_of(*tile.map, note), head_axis_of(*tile.map, note), tile.gather));
    if (const auto shared = shared_of(tile, opened, base)) recorder_.record(*shared);
  } else {
    recorder_.record(line_geometry(opened.bytes, stage + 1, !tile.copies.empty()));
  }
  record_fragments(tile);
}

// The pool's blocks, from the rows of the map that the boxes copied.
void TileTrace::record_pool(const Tile& tile, const trace::TileOpened& opened) {
  const TileNote& note = note_of(tile);
  if (!note.page_size || !note.layers || !note.kinds || *note.page_size < 1) return;
  const CopyMap& map = *tile.map;
  const std::size_t row_axis = row_axis_of(map, note);
  const auto head_axis = head_axis_of(map, note);
  trace::TileMemory memory;
  memory.kinds = *note.kinds;
  memory.layers = *note.layers;
  memory.page_size = *note.page_size;
  memory.heads = head_axis ? static_cast<std::int64_t>(map.dims[*head_axis]) : 1;
  memory.head_size = static_cast<std::int64_t>(map.dims[0]);
  memory.element_bytes = map.element_bytes();
  memory.stride = memory.kinds * memory.layers * memory.page_size;
  memory.first_column = note.column.value_or(0);
  if (memory.element_bytes < 1 || memory.stride < 1) return;
  recorder_.record(memory);
  std::map<std::int64_t, trace::TilePage> pages;  // by page of the sequence
  for (const LandedBox& box : tile.boxes) {
    for (const LandedChunk& chunk : box.chunks) {
      const std::int64_t row = box.event.sub_tile * box.rows + chunk.row;
      if (chunk.pool < 0 || chunk.map_row < 0 || row >= opened.tokens) continue;
      const std::int64_t token = opened.first_token.value + row, slot = token % memory.page_size;
      trace::TilePage page;
      page.page = PageIdx{token / memory.page_size};
      page.block = BlockIdx{chunk.map_row / memory.stride};
      page.row = chunk.map_row - slot;
      page.pool = chunk.pool - (box.event.column + chunk.column) * memory.element_bytes -
                  slot * static_cast<std::int64_t>(map.strides[row_axis]);
      pages.try_emplace(page.page.value, page);
    }
  }
  for (const auto& [number, page] : pages) recorder_.record(page);
}

void TileTrace::record_fragments(const Tile& tile) {
  trace::TileFragments e;
  e.lanes = kLanes;
  std::map<std::int32_t, std::int64_t> registers;  // by warp
  bool same = true;
  for (const TileReader& read : tile.reads) {
    registers[read.warp] += read.registers;
    same = same && read.form == tile.reads.front().form;
  }
  if (!tile.reads.empty()) {
    e.instruction = same ? tile.reads.front().form.instruction : trace::ReadInstruction::several;
    e.width = same ? tile.reads.front().form.bytes : 0;
    e.steps = 1;
  }
  e.warps = static_cast<std::int64_t>(registers.size());
  for (const auto& [warp, count] : registers) e.registers = std::max(e.registers, count);
  recorder_.record(e);
  if (e.width == 0 || e.instruction == trace::ReadInstruction::wgmma) return;
  for (const trace::BankPhase& phase : bank_phases(e.width)) recorder_.record(phase);
}

void TileTrace::record_boxes(const Tile& tile, std::int64_t base) {
  for (const LandedBox& box : tile.boxes) {
    trace::BoxCopied e = box.event;
    e.shared -= base;
    recorder_.record(e);
    for (const LandedChunk& chunk : box.chunks) {
      recorder_.record(trace::ChunkLanded{e.copy, e.sub_tile * box.rows + chunk.row, e.column + chunk.column,
                                          chunk.pool, chunk.shared - base});
    }
  }
}

void TileTrace::record_warp_copies(const Tile& tile, std::int64_t base, std::int64_t stage) {
  std::int64_t number = 0;
  for (const auto& [warp, copies] : tile.copies) {
    for (const Tile::Copy& copy : copies) {
      recorder_.record(trace::LdsCopied{number, warp, stage, copy.chunks.front().shared - base, copy.zero_lanes});
      for (const LandedChunk& chunk : copy.chunks) {
        if (!options_.lanes) break;
        recorder_.record(trace::ChunkLanded{number, chunk.row, chunk.column, chunk.pool, chunk.shared - base});
      }
      ++number;
    }
  }
  for (const auto& [warp, waits] : tile.waits) {
    for (const trace::WaveWaited& wait : waits) recorder_.record(wait);
  }
}

void TileTrace::record_reads(const Tile& tile, const trace::TileOpened& opened, std::int64_t base) {
  std::vector<const TileReader*> reads;
  for (const TileReader& read : tile.reads) reads.push_back(&read);
  std::stable_sort(reads.begin(), reads.end(),
                   [](const TileReader* a, const TileReader* b) { return a->warp < b->warp; });
  TileOrigins origins(tile.map ? tile.map->element_bytes() : 0);
  for (const LandedBox& box : tile.boxes) {
    for (const LandedChunk& chunk : box.chunks) {
      origins.add(chunk.shared, box.event.sub_tile * box.rows + chunk.row, box.event.column + chunk.column);
    }
  }
  if (const auto shared = shared_of(tile, opened, base)) origins.extend(opened, *shared, base);
  std::int64_t number = 0, first_register = 0, warp = kNotKnown;
  for (const TileReader* read : reads) {
    if (read->warp != warp) first_register = 0;
    warp = read->warp;
    if (read->operand) {
      trace::OperandRead e = *read->operand;
      e.read = number;
      e.start -= base;
      recorder_.record(e);
      for (trace::OperandChunk chunk : read->chunks) {
        chunk.read = number;
        chunk.shared -= base;
        recorder_.record(chunk);
      }
      ++number;
      continue;
    }
    recorder_.record(trace::FragmentRead{number, warp, first_register, read->registers, read->cycles, read->conflicts});
    for (const auto& [lane, shared] : read->lanes) {
      recorder_.record(trace::LaneRead{number, std::int64_t{lane}, shared - base});
    }
    for (trace::RegisterFilled filled : origins.fills(read->form, read->lanes)) {
      filled.read = number;
      filled.index += first_register;
      recorder_.record(filled);
    }
    first_register += read->registers;
    ++number;
  }
}

}  // namespace kvscope::ptx
