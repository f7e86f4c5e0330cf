// What a row of the sequences panel says, read from a state: which sequence, how far it has come, how its pages look.
// No places and no painting.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QString>

#include "core/base/errors.h"
#include "viz/geometry/sequences_layout.h"
#include "viz/view/cell_paint.h"
#include "viz/view/scene.h"

namespace kvscope::viz {

// A live sequence.
struct SequenceRow {
  SeqIdx seq;
  Phase phase = Phase::waiting;
  std::int64_t tokens = 0;  // in the cache
  std::int64_t wanted = 0;  // prompt and answer together, no fewer than `tokens`
  std::int64_t pages = 0;   // of its row of the lookup table
  std::int64_t hits = 0;    // tokens found in the cache when it was admitted, in the step that is looked at; else 0
  bool preempted_now = false;
  std::int64_t behind = 0;  // tokens, from the first on, that no query will read again
  friend bool operator==(const SequenceRow&, const SequenceRow&) = default;
};

// Of `tokens` in the cache, how many the next query's mask leaves out for good. They keep their blocks all the same.
// Example: 155 tokens under a window of 40: the first 115; in chunks of 64: the first 128.
[[nodiscard]] std::int64_t left_behind(const Facts& facts, std::int64_t tokens);

[[nodiscard]] SequenceRow sequence_row(const Scene& scene, SeqIdx seq);

// Which live sequences have a row of their own. A long queue would leave a pixel to those that run: when more than
// kMostWaiting wait for their first page, they share one line of words under the others.
inline constexpr std::int64_t kMostWaiting = 6;
struct SequenceRows {
  std::vector<SeqIdx> seqs;                // ascending
  std::int64_t waiting = 0;                // sequences in that line; 0: there is none
  SeqIdx first_waiting{}, last_waiting{};  // of them
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(seqs.size()); }
  [[nodiscard]] SeqIdx seq(std::int64_t row) const {
    KVSCOPE_ASSERT(row >= 0 && row < count());
    return seqs[static_cast<std::size_t>(row)];
  }
  // Nothing when it has no row of its own.
  [[nodiscard]] std::optional<std::int64_t> row_of(SeqIdx seq) const;
};
[[nodiscard]] SequenceRows sequence_rows(const State& state);

[[nodiscard]] SequencesExtent sequences_extent(const Facts& facts, const State& state, const SequenceRows& rows);

// How a page of a sequence looks: its owner's, or shared by several. Padding where no block is assigned. Inline: asked
// for half a million pages in one repaint.
[[nodiscard]] inline Look page_look(const State& state, SeqIdx seq, std::int64_t page) {
  const std::int32_t block = state.sequences[seq.value].pages[page];
  if (block < 0 || block >= state.blocks.size()) return kPaddingLook;
  return state.blocks[block].ref_count > 1 ? kSharedLook : owner_look(seq.value);
}
// Tokens of the sequence in that page.
[[nodiscard]] std::int64_t page_tokens(const SequenceRow& row, std::int64_t page, std::int64_t page_size);

// Tokens computed in the step that is looked at, [first, last) of a sequence. Runs that follow one another are one.
struct WrittenRun {
  SeqIdx seq;
  std::int64_t first = 0, last = 0;
  friend bool operator==(const WrittenRun&, const WrittenRun&) = default;
};
[[nodiscard]] std::vector<WrittenRun> written_runs(const Marks& marks);  // by sequence, then by token

// Words beside a row that has no cells to speak for it: "waiting", "preempted 2 times"; empty for one that runs.
[[nodiscard]] QString phase_words(const Scene& scene, const SequenceRow& row);
// "5 sequences: 3 running, 1 waiting, 1 preempted; 4 tokens computed in step 12". Without sequences: why there are
// none.
[[nodiscard]] QString sequences_summary(const Scene& scene);

}  // namespace kvscope::viz
