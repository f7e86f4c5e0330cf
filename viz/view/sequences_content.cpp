#include "viz/view/sequences_content.h"

#include <algorithm>
#include <array>

#include <QtCore/QCoreApplication>
#include <QtCore/QStringList>

#include "core/base/checked.h"
#include "viz/view/time_text.h"

namespace kvscope::viz {
namespace {

struct Words {
  Q_DECLARE_TR_FUNCTIONS(SequencesPanel)
};

bool contains(const std::vector<SeqIdx>& of, SeqIdx seq) {
  return std::find(of.begin(), of.end(), seq) != of.end();
}

// "3 running, 1 waiting, 1 preempted"; only the running ones are named if there are none.
QString phase_counts(const State& state, const std::vector<SeqIdx>& of) {
  std::array<std::int64_t, 3> counts{};
  for (const SeqIdx seq : of) {
    const Phase phase = state.sequences[seq.value].phase;
    ++counts[phase == Phase::running ? 0 : phase == Phase::waiting ? 1 : 2];
  }
  QStringList parts{Words::tr("%1 running").arg(number_text(counts[0]))};
  if (counts[1] > 0) parts << Words::tr("%1 waiting").arg(number_text(counts[1]));
  if (counts[2] > 0) parts << Words::tr("%1 preempted").arg(number_text(counts[2]));
  return parts.join(Words::tr(", "));
}

}  // namespace

std::int64_t left_behind(const Facts& facts, std::int64_t tokens) {
  const AttentionConfig attention = facts.scenario ? facts.scenario->attention : AttentionConfig{};
  if (attention.window <= 0 || tokens <= 0) return 0;
  // The keys that the last query does not see, counted as in core/attention/mask.h: queries end at the last key.
  switch (attention.mask) {
    case MaskKind::sliding_window:
      return std::max<std::int64_t>(tokens - attention.window, 0);
    case MaskKind::chunked:
      return (tokens - 1) / attention.window * attention.window;
    case MaskKind::none:
    case MaskKind::causal:
      break;
  }
  return 0;
}

SequenceRow sequence_row(const Scene& scene, SeqIdx seq) {
  const SequenceState& state = scene.state().sequences[seq.value];
  const Marks& marks = scene.marks();
  return {seq,
          state.phase,
          state.tokens,
          std::max(state.prompt_tokens + state.generate_tokens, state.tokens),
          state.pages.size(),
          contains(marks.admitted, seq) ? std::min(state.hit_tokens, state.tokens) : 0,
          contains(marks.preempted, seq),
          left_behind(scene.facts(), state.tokens)};
}

std::optional<std::int64_t> SequenceRows::row_of(SeqIdx seq) const {
  const auto found = std::ranges::lower_bound(seqs, seq);
  if (found == seqs.end() || *found != seq) return std::nullopt;
  return found - seqs.begin();
}

SequenceRows sequence_rows(const State& state) {
  const auto waits = [&](SeqIdx seq) {
    const SequenceState& of = state.sequences[seq.value];
    return of.phase == Phase::waiting && of.pages.size() == 0;
  };
  const auto waiting = static_cast<std::int64_t>(std::ranges::count_if(state.live, waits));
  SequenceRows rows;
  for (const SeqIdx seq : state.live) {
    if (waiting <= kMostWaiting || !waits(seq)) {
      rows.seqs.push_back(seq);
      continue;
    }
    if (rows.waiting++ == 0) rows.first_waiting = seq;
    rows.last_waiting = seq;
  }
  return rows;
}

SequencesExtent sequences_extent(const Facts& facts, const State& state, const SequenceRows& rows) {
  const std::int64_t page_size = std::max<std::int64_t>(facts.page_size, 1);
  std::int64_t needed = 1;
  for (const SeqIdx seq : rows.seqs) {
    const SequenceState& of = state.sequences[seq.value];
    needed = std::max(
        {needed, of.pages.size(), ceil_div(std::max(of.prompt_tokens + of.generate_tokens, of.tokens), page_size)});
  }
  return {rows.count(), calm_pages(needed, facts.table_columns), page_size, rows.waiting > 0};
}

std::int64_t page_tokens(const SequenceRow& row, std::int64_t page, std::int64_t page_size) {
  return std::clamp<std::int64_t>(row.tokens - page * page_size, 0, page_size);
}

std::vector<WrittenRun> written_runs(const Marks& marks) {
  std::vector<WrittenRun> runs;
  for (const trace::TokensWritten& written : marks.written) {
    runs.push_back({written.seq, written.first_token.value, written.first_token.value + written.tokens});
  }
  std::ranges::sort(runs, [](const WrittenRun& a, const WrittenRun& b) {
    return std::pair(a.seq, a.first) < std::pair(b.seq, b.first);
  });
  std::vector<WrittenRun> joined;
  for (const WrittenRun& run : runs) {
    if (!joined.empty() && joined.back().seq == run.seq && joined.back().last >= run.first) {
      joined.back().last = std::max(joined.back().last, run.last);
    } else {
      joined.push_back(run);
    }
  }
  return joined;
}

QString phase_words(const Scene& scene, const SequenceRow& row) {
  if (row.phase == Phase::waiting) return Words::tr("waiting");
  if (row.phase != Phase::preempted) return {};
  const std::int64_t times = scene.state().sequences[row.seq.value].preemptions;
  return times < 2 ? Words::tr("preempted") : Words::tr("preempted %1\u00d7").arg(times);
}

QString band_words(const Scene& scene, const SequenceRows& rows, const IndexRange& band, std::int64_t token) {
  const std::vector<SeqIdx> of(rows.seqs.begin() + band.first, rows.seqs.begin() + band.last);
  if (of.empty()) return {};
  const State& state = scene.state();
  const auto holding = std::ranges::count_if(of, [&](SeqIdx seq) { return state.sequences[seq.value].tokens > token; });
  return Words::tr("sequences %1 to %2: %3; token %4 is stored for %5 of them")
      .arg(number_text(of.front().value), number_text(of.back().value), phase_counts(state, of), number_text(token),
           number_text(holding));
}

QString sequences_summary(const Scene& scene) {
  const State& state = scene.state();
  if (state.live.empty()) {
    if (scene.cursor->at_start()) return Words::tr("The run has not begun: no request has arrived.");
    if (scene.cursor->at_end()) return Words::tr("The run is over: no request is left.");
    if (state.step.value < 0) return Words::tr("No request has arrived yet.");
    return Words::tr("No request is live at step %1.").arg(number_text(state.step.value));
  }
  const QString phases = phase_counts(state, state.live);
  const auto sequences = std::ssize(state.live);
  QString text = sequences == 1 ? Words::tr("1 sequence: %1").arg(phases)
                                : Words::tr("%1 sequences: %2").arg(number_text(sequences), phases);
  std::int64_t written = 0;
  for (const trace::TokensWritten& run : scene.marks().written) written += run.tokens;
  if (written == 1) text += Words::tr("; 1 token computed in step %1").arg(number_text(state.step.value));
  if (written > 1)
    text += Words::tr("; %1 tokens computed in step %2").arg(number_text(written), number_text(state.step.value));
  return text;
}

}  // namespace kvscope::viz
