// What a person points at, and everything that lights up with it: one selection, linked through all panels.
//
//   a token      lights its page, the block that holds it and its slot there, its cell of the lookup table
//   a block      lights every page of every sequence that it stands for
//   a sequence   lights all its pages and blocks
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
  StepIdx step{-1};    // step: a place on the timeline
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
  std::optional<SeqIdx> seq;         // the one sequence meant, if there is one
  std::optional<PageIdx> page;       // the one page
  std::optional<TokIdx> token;       // the one token
  std::optional<BlockIdx> block;     // the one block
  std::optional<std::int64_t> slot;  // of `token` in `block`
  std::vector<TablePlace> places;    // every cell of the lookup table that is meant, by sequence and page
  std::vector<BlockIdx> blocks;      // every block that is meant, ascending, each once
  friend bool operator==(const Lit&, const Lit&) = default;
};

// What it lights at this state; objects that are not there now light nothing.
[[nodiscard]] Lit resolve(const State& state, const Facts& facts, const Selection& selection);

// One sentence for a tooltip, the status bar and a screen reader:
//   "Sequence 3, token 37: page 2, slot 5 of block 18, shared by 2 sequences"
[[nodiscard]] std::string describe(const State& state, const Facts& facts, const Selection& selection);

}  // namespace kvscope::viz
