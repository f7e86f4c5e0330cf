// The content of the rows of the sequences panel, computed from a state: the sequence, its progress, the looks of its
// pages. No positions and no painting.
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
  std::int64_t wanted = 0;  // final length: prompt and answer together, at least `tokens`
  std::int64_t pages = 0;   // in its row of the lookup table
  std::int64_t hits = 0;    // tokens found in the cache if it was admitted in the current step; else 0
  bool preempted_now = false;
  std::int64_t behind = 0;  // tokens [0, behind) will not be read by any later query
  friend bool operator==(const SequenceRow&, const SequenceRow&) = default;
};

// The number of the first `tokens` in the cache that the masks of the next and all later queries exclude. They keep
// their blocks. Example: 155 tokens under a window of 40: the first 115; in chunks of 64: the first 128.
[[nodiscard]] std::int64_t left_behind(const Facts& facts, std::int64_t tokens);

[[nodiscard]] SequenceRow sequence_row(const Scene& scene, SeqIdx seq);

// The live sequences with a separate row. In a long queue each row would be one pixel high: if more than kMostWaiting
// sequences wait for their first page, they share one line of text under the others.
inline constexpr std::int64_t kMostWaiting = 6;
struct SequenceRows {
  std::vector<SeqIdx> seqs;                // ascending
  std::int64_t waiting = 0;                // sequences in the shared line; 0: there is no such line
  SeqIdx first_waiting{}, last_waiting{};  // the first and the last of them
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(seqs.size()); }
  [[nodiscard]] SeqIdx seq(std::int64_t row) const {
    KVSCOPE_ASSERT(row >= 0 && row < count());
    return seqs[static_cast<std::size_t>(row)];
  }
  // nullopt if the sequence has no separate row.
  [[nodiscard]] std::optional<std::int64_t> row_of(SeqIdx seq) const;
};
[[nodiscard]] SequenceRows sequence_rows(const State& state);

[[nodiscard]] SequencesExtent sequences_extent(const Facts& facts, const State& state, const SequenceRows& rows);

// The look of a page of a sequence: its owner's, or shared; padding if no block is assigned. Inline, because one
// repaint calls it for half a million pages.
[[nodiscard]] inline Look page_look(const State& state, SeqIdx seq, std::int64_t page) {
  const std::int32_t block = state.sequences[seq.value].pages[page];
  if (block < 0 || block >= state.blocks.size()) return kPaddingLook;
  return state.blocks[block].ref_count > 1 ? kSharedLook : owner_look(seq.value);
}
// Tokens of the sequence in that page.
[[nodiscard]] std::int64_t page_tokens(const SequenceRow& row, std::int64_t page, std::int64_t page_size);

// Tokens [first, last) of a sequence that were computed in the current step. Adjacent runs are merged.
struct WrittenRun {
  SeqIdx seq;
  std::int64_t first = 0, last = 0;
  friend bool operator==(const WrittenRun&, const WrittenRun&) = default;
};
[[nodiscard]] std::vector<WrittenRun> written_runs(const Marks& marks);  // by sequence, then by token

// The words beside a row without cells: "waiting", "preempted 2x"; empty for a running sequence.
[[nodiscard]] QString phase_words(const Scene& scene, const SequenceRow& row);
// A band of rows in words: "sequences 120 to 205: 80 running, 6 waiting; token 300 is stored for 41 of them".
[[nodiscard]] QString band_words(const Scene& scene, const SequenceRows& rows, const IndexRange& band,
                                 std::int64_t token);
// "5 sequences: 3 running, 1 waiting, 1 preempted; 4 tokens computed in step 12". Without sequences: the reason.
[[nodiscard]] QString sequences_summary(const Scene& scene);

}  // namespace kvscope::viz
