// The language of lab 12: what each wave of a block does to bring the tiles of K and V through LDS.
//
//   start                                       once, before the first tile
//     issue K 0 into 0                          copies of tile 0 of K into stage 0
//     issue V 0 into 0
//   tile                                        for i = 0 .. tiles - 1
//     wait vmcnt(v_copies)                      until at most so many copies of the wave are in flight
//     barrier                                   of all waves
//     read K i from i % 2                       tile i of K from stage i % 2 into registers
//     compute scores                            scores, softmax or output, of tile i
//     issue K i + 1 into (i + 1) % 2 when i + 1 < tiles
//
// One statement a line, executed in order by every wave; `when` makes it conditional; a # begins a comment.
//
//   program     [start STATEMENT...] tile STATEMENT...
//   STATEMENT   issue OPERAND TILE into STAGE | wait vmcnt ( COUNT ) | barrier | read OPERAND TILE from STAGE
//               | compute (scores | softmax | output),  each followed by [when CONDITION]
//   CONDITION   EXPR (< | <= | == | != | >= | >) EXPR [and CONDITION]
//   EXPR        whole numbers and names with + - * / % and parentheses; / and % round down
//   names       i (not in start), tiles, wave, waves, k_copies, v_copies: the copies of this wave per issue of K or V
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::labs {

// The block that a program runs on. Waves may issue different numbers of copies per load.
struct WaveBlock {
  std::int64_t tiles = 0;
  std::vector<std::int64_t> k_copies, v_copies;  // [waves] per load
  [[nodiscard]] std::int64_t waves() const { return static_cast<std::int64_t>(k_copies.size()); }
};

enum class WaveOpKind : std::uint8_t { issue, wait, barrier, read, compute };
enum class WaveCompute : std::uint8_t { scores, softmax, output };

struct WaveOp {
  WaveOpKind kind = WaveOpKind::barrier;
  bool of_v = false;                           // issue, read: V instead of K
  std::int64_t tile = 0;                       // issue, read, compute
  std::int64_t stage = 0;                      // issue, read
  std::int64_t count = 0;                      // wait: copies that may stay in flight; issue: copies issued
  WaveCompute computed = WaveCompute::scores;  // compute
  int line = 0;
};
[[nodiscard]] std::string to_text(const WaveOp& op);  // "read K 2 from 0"

inline constexpr std::int64_t kLdsStages = 2;
inline constexpr std::int64_t kMostInFlight = 63;  // the vmcnt counter has six bits

class WaveProgram {
 public:
  // InputError with every fault by line: "line 4: 'red' is no statement: did you mean "read"?"
  [[nodiscard]] static WaveProgram parse(std::string_view text, std::string_view source);

  // The statements that a wave executes, in order. InputError with the first fault by line: a tile or stage that does
  // not exist, a count outside [0, 63], a division by 0, a number that is too large.
  [[nodiscard]] std::vector<WaveOp> unroll(const WaveBlock& block, std::int64_t wave) const;

  struct Statement;

 private:
  std::string source_;
  std::vector<std::shared_ptr<const Statement>> start_, tile_;
};

}  // namespace kvscope::labs
