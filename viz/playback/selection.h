// The selected object and everything that is highlighted with it, in all panels:
//
//   a token      highlights its page, its block, its slot in that block, and its cell of the lookup table
//   a block      highlights every page of every sequence that is stored in it
//   a sequence   highlights all its pages and blocks
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index.h"
#include "viz/playback/state.h"

namespace kvscope::viz {

struct Selection {
  enum class Kind : std::uint8_t { none, sequence, page, token, block, step };
  Kind kind = Kind::none;
  SeqIdx seq{-1};      // sequence, page, token
  PageIdx page{-1};    // page: also a cell of the lookup table
  TokIdx token{-1};    // token
  BlockIdx block{-1};  // block; facts.blocks is the null page
  StepIdx step{-1};    // step: of the timeline
  friend bool operator==(const Selection&, const Selection&) = default;
  [[nodiscard]] bool none() const { return kind == Kind::none; }
};
[[nodiscard]] Selection of_sequence(SeqIdx seq);
[[nodiscard]] Selection of_page(SeqIdx seq, PageIdx page);
[[nodiscard]] Selection of_token(SeqIdx seq, TokIdx token);
[[nodiscard]] Selection of_block(BlockIdx block);
[[nodiscard]] Selection of_step(StepIdx step);

struct TablePlace {
  SeqIdx seq;
  PageIdx page;
  friend bool operator==(const TablePlace&, const TablePlace&) = default;
};

struct Lit {
  std::optional<SeqIdx> seq;         // the sequence, if exactly one is highlighted
  std::optional<PageIdx> page;       // the page, if exactly one
  std::optional<TokIdx> token;       // the token, if exactly one
  std::optional<BlockIdx> block;     // the block, if exactly one
  std::optional<std::int64_t> slot;  // of `token` in `block`
  std::vector<TablePlace> places;    // every highlighted cell of the lookup table, ordered by sequence and page
  std::vector<BlockIdx> blocks;      // every highlighted block, ascending, each once
  friend bool operator==(const Lit&, const Lit&) = default;
};

// The highlighted objects at this state. A selected object that does not exist at this state highlights nothing.
[[nodiscard]] Lit resolve(const State& state, const Facts& facts, const Selection& selection);

// One sentence for a tooltip, the status bar and a screen reader:
//   "Sequence 3, token 37: page 2, slot 5 of block 18, shared by 2 sequences"
[[nodiscard]] std::string describe(const State& state, const Facts& facts, const Selection& selection);

}  // namespace kvscope::viz
