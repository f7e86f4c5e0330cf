#include "viz/playback/timeline_now.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace kvscope::viz {
namespace {

double share_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? std::clamp(static_cast<double>(part) / static_cast<double>(whole), 0.0, 1.0) : 0.0;
}

// The value at the end of an earlier or of the current step; 0 before the first step.
double at_end_of(const Timeline& timeline, Series series, std::int64_t index) {
  return index < 0 ? 0.0 : static_cast<double>(timeline[series][static_cast<std::size_t>(index)]);
}

std::int64_t live_in(const State& state, bool running) {
  return std::ranges::count_if(
      state.live, [&](SeqIdx seq) { return (state.sequences[seq.value].phase == Phase::running) == running; });
}

// The empty share of the slots of used blocks.
double empty_share(const State& state, std::int64_t page_size) {
  std::int64_t filled = 0, used = 0;
  for (std::int64_t number = 0; number < state.blocks.size(); ++number) {
    const BlockState& block = state.blocks[number];
    if (block.ref_count == 0) continue;
    ++used;
    filled += block.filled;
  }
  return share_of(used * page_size - filled, used * page_size);
}

std::int64_t computed(const Marks& marks, bool decode) {
  std::int64_t tokens = 0;
  for (const trace::TokensWritten& run : marks.written) {
    if (run.decode == decode) tokens += run.tokens;
  }
  return tokens;
}

}  // namespace

double value_now(const Cursor& cursor, Series series) {
  const State& state = cursor.state();
  const Timeline& timeline = cursor.run().timeline();
  const std::int64_t index = cursor.row() - 1;
  if (!state.in_step) return at_end_of(timeline, series, index);
  const Facts& facts = cursor.run().facts();
  switch (series) {
    case Series::utilization:
      return share_of(state.used_blocks, facts.blocks);
    case Series::cached:
      return share_of(state.cached_blocks, facts.blocks);
    case Series::fragmentation:
      if (facts.detail == trace::Detail::full) return empty_share(state, facts.page_size);
      break;
    case Series::running:
      return static_cast<double>(live_in(state, true));
    case Series::waiting:
      return static_cast<double>(live_in(state, false));
    case Series::prefill:
      return static_cast<double>(computed(cursor.marks(), false));
    case Series::decode:
      return static_cast<double>(computed(cursor.marks(), true));
    case Series::hit_rate:
      break;
  }
  return at_end_of(timeline, series, index - 1);
}

std::int64_t count_now(const Cursor& cursor, Mark mark) {
  if (!cursor.state().in_step) {
    return cursor.run().timeline()[mark][static_cast<std::size_t>(cursor.row() - 1)];
  }
  const Marks& marks = cursor.marks();
  switch (mark) {
    case Mark::preemption:
      return std::ssize(marks.preempted);
    case Mark::eviction:
      return std::ssize(marks.evicted);
    case Mark::refusal:
      return std::ssize(marks.refused);
    case Mark::copy:
      break;
  }
  return std::ssize(marks.copied);
}

std::int64_t count_so_far(const Cursor& cursor, Mark mark) {
  const auto& counts = cursor.run().timeline()[mark];
  return std::accumulate(counts.begin(), counts.begin() + cursor.row() - 1, count_now(cursor, mark));
}

std::int64_t time_now(const Cursor& cursor) {
  return cursor.state().in_step ? cursor.state().time_us
                                : cursor.run().timeline().time_us[static_cast<std::size_t>(cursor.row() - 1)];
}

}  // namespace kvscope::viz
