#include "viz/playback/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "viz/playback/kernel_table.h"

namespace kvscope::viz {
namespace {

bool exists(const State& state, SeqIdx seq) {
  return seq.value >= 0 && seq.value < state.sequences.size();
}

bool is_live(const State& state, SeqIdx seq) {
  return exists(state, seq) && std::binary_search(state.live.begin(), state.live.end(), seq);
}

// A finished sequence exists until it has released its pages.
bool is_there(const State& state, SeqIdx seq) {
  return is_live(state, seq) || (exists(state, seq) && state.sequences[seq.value].pages.size() > 0);
}

Lit resolve_sequence(const State& state, SeqIdx seq) {
  Lit lit;
  if (!is_there(state, seq)) return lit;
  lit.seq = seq;
  const PageTable& pages = state.sequences[seq.value].pages;
  for (std::int64_t page = 0; page < pages.size(); ++page) {
    if (pages[page] < 0) continue;
    lit.places.push_back({seq, PageIdx{page}});
    lit.blocks.push_back(BlockIdx{pages[page]});
  }
  std::sort(lit.blocks.begin(), lit.blocks.end());
  lit.blocks.erase(std::unique(lit.blocks.begin(), lit.blocks.end()), lit.blocks.end());
  return lit;
}

Lit resolve_page(const State& state, const Facts& facts, SeqIdx seq, PageIdx page) {
  Lit lit;
  if (!is_there(state, seq) || page.value < 0 || page.value >= widest_table(facts)) return lit;
  const std::int32_t block = state.sequences[seq.value].pages[page.value];
  lit.seq = seq;
  lit.page = page;
  lit.block = BlockIdx{block >= 0 ? block : facts.blocks};  // unused entries point at the null page
  lit.places = {{seq, page}};
  lit.blocks = {*lit.block};
  return lit;
}

Lit resolve_token(const State& state, const Facts& facts, SeqIdx seq, TokIdx token) {
  if (!exists(state, seq) || token.value < 0 || token.value >= state.sequences[seq.value].tokens) return {};
  Lit lit = resolve_page(state, facts, seq, PageIdx{token.value / facts.page_size});
  if (!lit.page) return lit;
  lit.token = token;
  lit.slot = token.value % facts.page_size;
  return lit;
}

// One page is lit as a page is; several as the pages of a shared block are, and no sequence as a whole.
Lit resolve_flow_tile(const State& state, const Facts& facts, const Selection& tile) {
  // The pages can be those of a damaged session: no more are visited than a table has columns.
  const PageIdx first{std::max<std::int64_t>(tile.page.value, 0)};
  const PageIdx end{std::min(tile.end_page.value, widest_table(facts))};
  if (first >= end) return {};
  if (end - first == 1) return resolve_page(state, facts, tile.seq, first);
  Lit lit;
  for (PageIdx page = first; page < end; ++page) {
    const Lit one = resolve_page(state, facts, tile.seq, page);
    lit.places.insert(lit.places.end(), one.places.begin(), one.places.end());
    lit.blocks.insert(lit.blocks.end(), one.blocks.begin(), one.blocks.end());
  }
  std::sort(lit.blocks.begin(), lit.blocks.end());
  lit.blocks.erase(std::unique(lit.blocks.begin(), lit.blocks.end()), lit.blocks.end());
  return lit;
}

// All sequences whose row points at the block: live ones, and one that has finished and is about to release it.
std::vector<TablePlace> holders(const State& state, BlockIdx block) {
  std::vector<TablePlace> found;
  const BlockState& of = state.blocks[block.value];
  const auto look = [&](SeqIdx seq) {
    if (state.sequences[seq.value].pages[of.page] == block.value) found.push_back({seq, PageIdx{of.page}});
  };
  for (const SeqIdx seq : state.live) {
    if (static_cast<std::int32_t>(found.size()) == of.ref_count) break;
    look(seq);
  }
  if (static_cast<std::int32_t>(found.size()) < of.ref_count) {
    found.clear();
    for (SeqIdx seq{0}; seq.value < state.sequences.size(); ++seq) look(seq);
  }
  return found;
}

Lit resolve_block(const State& state, const Facts& facts, BlockIdx block) {
  Lit lit;
  if (block.value < 0 || block.value > facts.blocks) return lit;
  lit.block = block;
  lit.blocks = {block};
  if (block.value == facts.blocks) return lit;
  lit.places = holders(state, block);
  if (lit.places.size() == 1) {
    lit.seq = lit.places.front().seq;
    lit.page = lit.places.front().page;
  }
  return lit;
}

// --- description ---------------------------------------------------------------------------------------------------

std::string count(std::int64_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string shared_by(const BlockState& block) {
  return block.ref_count > 1 ? fmt::format(", shared by {} sequences", block.ref_count) : std::string();
}

std::string filled(const BlockState& block, const Facts& facts) {
  return fmt::format("{} of {} filled", block.filled, count(facts.page_size, "slot"));
}

std::string describe_sequence(const State& state, SeqIdx number) {
  const std::string name = fmt::format("Sequence {}: ", number.value);
  if (!exists(state, number)) return name + "not in this run";
  const SequenceState& seq = state.sequences[number.value];
  const std::string wants =
      fmt::format(", prompt of {}, {} to generate", count(seq.prompt_tokens, "token"), seq.generate_tokens);
  switch (seq.phase) {
    case Phase::absent:
      return name + "has not arrived";
    case Phase::waiting:
      return name + "waiting" + wants;
    case Phase::running:
      return name + fmt::format("running, {} in {}", count(seq.tokens, "token"), count(seq.pages.size(), "page")) +
             wants;
    case Phase::preempted:
      return name + fmt::format("preempted {}, waiting to be computed again", count(seq.preemptions, "time")) + wants;
    case Phase::finished:
      return name + "finished";
    case Phase::refused:
      return name + "rejected, because it can never fit" + wants;
  }
  return name;
}

std::string describe_page(const State& state, const Facts& facts, const Selection& selection) {
  const std::string name = fmt::format("Sequence {}, page {}: ", selection.seq.value, selection.page.value);
  const Lit lit = resolve_page(state, facts, selection.seq, selection.page);
  if (!lit.block) return name + "no such page now";
  if (lit.block->value == facts.blocks) {
    return name + fmt::format("not assigned, its entry points at the null page, block {}", facts.blocks);
  }
  const BlockState& block = state.blocks[lit.block->value];
  return name + fmt::format("block {}, {}{}", lit.block->value, filled(block, facts), shared_by(block));
}

std::string describe_token(const State& state, const Facts& facts, const Selection& selection) {
  const std::string name = fmt::format("Sequence {}, token {}: ", selection.seq.value, selection.token.value);
  const Lit lit = resolve_token(state, facts, selection.seq, selection.token);
  if (!lit.token) return name + "not in the cache";
  return name + fmt::format("page {}, slot {} of block {}{}", lit.page->value, *lit.slot, lit.block->value,
                            shared_by(state.blocks[lit.block->value]));
}

std::string range_of(std::string_view one, std::string_view many, std::int64_t first, std::int64_t end) {
  return end - first == 1 ? fmt::format("{} {}", one, first) : fmt::format("{} {} to {}", many, first, end - 1);
}

std::string describe_flow_tile(const Selection& tile) {
  return fmt::format("Tile {} of the flow: {} of sequence {}, {}", tile.event,
                     range_of("key", "keys", tile.token.value, tile.end.value), tile.seq.value,
                     range_of("page", "pages", tile.page.value, tile.end_page.value));
}

std::string describe_error_cell(const Selection& cell) {
  std::string text = fmt::format("Error of sequence {}", cell.seq.value);
  if (cell.token.value >= 0) text += fmt::format(", query token {}", cell.token.value);
  text += fmt::format(", head {}", cell.head.value);
  if (cell.dim.value >= 0) text += fmt::format(", dim {}", cell.dim.value);
  if (cell.page.value >= 0) text += fmt::format(": page {}", cell.page.value);
  return text;
}

std::string describe_block(const State& state, const Facts& facts, BlockIdx number) {
  const std::string name = fmt::format("Block {}: ", number.value);
  if (number.value == facts.blocks) return name + "the null page, which unused entries of the lookup table point at";
  if (number.value < 0 || number.value > facts.blocks) return name + "not in this pool";
  if (facts.detail != trace::Detail::full) return name + "unknown, because the trace has events of steps only";
  const BlockState& block = state.blocks[number.value];
  if (block.owner < 0) return name + "free";
  return name + fmt::format("{}page {} of sequence {}, {}{}", block.cached ? "cached, " : "", block.page, block.owner,
                            filled(block, facts), shared_by(block));
}

}  // namespace

Selection of_sequence(SeqIdx seq) {
  Selection selection;
  selection.kind = Selection::Kind::sequence;
  selection.seq = seq;
  return selection;
}

Selection of_page(SeqIdx seq, PageIdx page) {
  Selection selection = of_sequence(seq);
  selection.kind = Selection::Kind::page;
  selection.page = page;
  return selection;
}

Selection of_token(SeqIdx seq, TokIdx token) {
  Selection selection = of_sequence(seq);
  selection.kind = Selection::Kind::token;
  selection.token = token;
  return selection;
}

Selection of_block(BlockIdx block) {
  Selection selection;
  selection.kind = Selection::Kind::block;
  selection.block = block;
  return selection;
}

Selection of_step(StepIdx step) {
  Selection selection;
  selection.kind = Selection::Kind::step;
  selection.step = step;
  return selection;
}

Selection of_tile_row(std::int64_t row) {
  Selection selection;
  selection.kind = Selection::Kind::tile_row;
  selection.element.row = row;
  return selection;
}

Selection of_tile_chunk(TileElement first) {
  Selection selection;
  selection.kind = Selection::Kind::tile_chunk;
  selection.element = first;
  return selection;
}

Selection of_tile_lane(std::int64_t wave, std::int64_t lane) {
  Selection selection;
  selection.kind = Selection::Kind::tile_lane;
  selection.reg.wave = wave;
  selection.reg.lane = lane;
  return selection;
}

Selection of_tile_register(const TileRegister& reg) {
  Selection selection;
  selection.kind = Selection::Kind::tile_register;
  selection.reg = reg;
  return selection;
}

Selection of_tile_event(std::int64_t event) {
  Selection selection;
  selection.kind = Selection::Kind::tile_event;
  selection.event = event;
  return selection;
}
Selection of_tile_layout(std::int64_t layout) {
  Selection selection;
  selection.kind = Selection::Kind::tile_layout;
  selection.layout = layout;
  return selection;
}
Selection of_tile_axis(std::int64_t axis) {
  Selection selection;
  selection.kind = Selection::Kind::tile_axis;
  selection.layout = axis;
  return selection;
}
Selection of_tile_scale(std::int64_t row, std::int64_t granule) {
  Selection selection;
  selection.kind = Selection::Kind::tile_scale;
  selection.element = {row, granule};
  return selection;
}
Selection of_tile_bytes(std::int64_t row, std::int64_t first) {
  Selection selection;
  selection.kind = Selection::Kind::tile_bytes;
  selection.element = {row, first};
  return selection;
}
Selection of_tile_path(TilePath path) {
  Selection selection;
  selection.kind = Selection::Kind::tile_path;
  selection.layout = static_cast<std::int64_t>(path);
  return selection;
}

Selection of_flow_tile(SeqIdx seq, std::int64_t number, TokIdx token, TokIdx end, std::int64_t page_size) {
  Selection selection = of_sequence(seq);
  selection.kind = Selection::Kind::flow_tile;
  selection.event = number;
  selection.token = token;
  selection.end = end;
  selection.page = PageIdx{token.value / page_size};
  selection.end_page = PageIdx{(end.value - 1) / page_size + 1};
  return selection;
}

Selection of_error_cell(SeqIdx seq, HeadIdx head, TokIdx token, DimIdx dim, PageIdx page) {
  Selection selection = of_sequence(seq);
  selection.kind = Selection::Kind::error_cell;
  selection.head = head;
  selection.token = token;
  selection.dim = dim;
  selection.page = page;
  return selection;
}

Lit resolve(const State& state, const Facts& facts, const Selection& selection) {
  switch (selection.kind) {
    case Selection::Kind::none:
    case Selection::Kind::step:
    case Selection::Kind::tile_row:
    case Selection::Kind::tile_chunk:
    case Selection::Kind::tile_lane:
    case Selection::Kind::tile_register:
    case Selection::Kind::tile_event:
    case Selection::Kind::tile_axis:
    case Selection::Kind::tile_scale:
    case Selection::Kind::tile_bytes:
    case Selection::Kind::tile_layout:
    case Selection::Kind::tile_path:
      return {};
    case Selection::Kind::sequence:
      return resolve_sequence(state, selection.seq);
    case Selection::Kind::page:
      return resolve_page(state, facts, selection.seq, selection.page);
    case Selection::Kind::token:
      return resolve_token(state, facts, selection.seq, selection.token);
    case Selection::Kind::block:
      return resolve_block(state, facts, selection.block);
    case Selection::Kind::flow_tile:
      return resolve_flow_tile(state, facts, selection);
    case Selection::Kind::error_cell:
      return selection.page.value >= 0 ? resolve_page(state, facts, selection.seq, selection.page)
                                       : resolve_sequence(state, selection.seq);
  }
  return {};
}

std::string describe(const State& state, const Facts& facts, const Selection& selection) {
  switch (selection.kind) {
    case Selection::Kind::none:
    case Selection::Kind::tile_row:
    case Selection::Kind::tile_chunk:
    case Selection::Kind::tile_lane:
    case Selection::Kind::tile_register:
    case Selection::Kind::tile_event:
    case Selection::Kind::tile_axis:
    case Selection::Kind::tile_scale:
    case Selection::Kind::tile_bytes:
    case Selection::Kind::tile_layout:
    case Selection::Kind::tile_path:
      return {};
    case Selection::Kind::step:
      return fmt::format("Step {}", selection.step.value);
    case Selection::Kind::sequence:
      return describe_sequence(state, selection.seq);
    case Selection::Kind::page:
      return describe_page(state, facts, selection);
    case Selection::Kind::token:
      return describe_token(state, facts, selection);
    case Selection::Kind::block:
      return describe_block(state, facts, selection.block);
    case Selection::Kind::flow_tile:
      return describe_flow_tile(selection);
    case Selection::Kind::error_cell:
      return describe_error_cell(selection);
  }
  return {};
}

}  // namespace kvscope::viz
