#include "viz/playback/run_difference.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <variant>

#include "viz/playback/event_tape.h"

namespace kvscope::viz {
namespace {

// The row of `other` with the step of a row of `run`; -1: it has none. Row 0 has the events before the first step.
std::int64_t same_row(const Run& run, std::int64_t row, const Run& other) {
  if (row == 0) return 0;
  return other.find_row(run.span(row).step).value_or(-1);
}

constexpr std::string_view kTime = "time_us";

// Equal in kind and in every number but times.
bool are_equal_but_for_time(const trace::Event& a, const trace::Event& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&b]<class E>(const E& left) {
        const E& right = std::get<E>(b);
        const auto same = [&](const auto& field) {
          return field.name == kTime || trace::to_i64(left.*field.member) == trace::to_i64(right.*field.member);
        };
        return std::apply([&same](const auto&... field) { return (same(field) && ...); }, E::fields());
      },
      a);
}

std::int64_t tokens_of_page(const SequenceState& seq, PageIdx page, std::int64_t page_size) {
  return std::clamp<std::int64_t>(seq.tokens - page.value * page_size, 0, page_size);
}

bool sequence_differs(const SequenceState& a, const SequenceState& b) {
  return a.phase != b.phase || a.tokens != b.tokens || !(a.pages == b.pages);
}

const SequenceState& sequence_of(const State& state, std::int64_t seq) {
  static const SequenceState kAbsent;
  return seq < state.sequences.size() ? state.sequences[seq] : kAbsent;
}

}  // namespace

Position counterpart(const Cursor& cursor, const Run& other) {
  const Run& run = cursor.run();
  const std::int64_t row = cursor.row();
  const std::int64_t same = same_row(run, row, other);
  if (same < 0) return other.end_of_row(other.row_of_step(run.span(row).step));
  const Position end = other.end_of_row(same);
  if (cursor.position() == run.end_of_row(row)) return end;
  const std::int64_t done = cursor.position().value - run.span(row).first_event;
  return std::min(Position{other.span(same).first_event + done}, end);
}

bool step_differs(const Run& run, std::int64_t row, const Run& other) {
  const trace::StepSpan& span = run.span(row);
  const std::int64_t same = same_row(run, row, other);
  if (same < 0 || span.events != other.span(same).events) return true;
  // Not events_of_row(): it looks through the rows that it keeps, which are many after a search through small rows.
  EventTape::Reader left(run.tape(), span.first_event), right(other.tape(), other.span(same).first_event);
  while (left.position() < span.end_event()) {
    if (!are_equal_but_for_time(left.next(), right.next())) return true;
  }
  return false;
}

bool are_comparable(const Facts& a, const Facts& b) {
  return a.detail == trace::Detail::full && b.detail == trace::Detail::full && a.page_size == b.page_size;
}

bool block_differs(const State& a, const State& b, BlockIdx block) {
  return block.value < std::min(a.blocks.size(), b.blocks.size()) && a.blocks[block.value] != b.blocks[block.value];
}

bool page_differs(const State& a, const State& b, SeqIdx seq, PageIdx page, std::int64_t page_size) {
  const SequenceState& of_a = sequence_of(a, seq.value);
  const SequenceState& of_b = sequence_of(b, seq.value);
  return of_a.pages[page.value] != of_b.pages[page.value] ||
         tokens_of_page(of_a, page, page_size) != tokens_of_page(of_b, page, page_size);
}

StateDifference difference(const State& a, const State& b) {
  StateDifference found;
  for (BlockIdx block{0}; block.value < std::min(a.blocks.size(), b.blocks.size()); ++block) {
    if (block_differs(a, b, block)) ++found.blocks;
  }
  for (std::int64_t seq = 0; seq < std::max(a.sequences.size(), b.sequences.size()); ++seq) {
    if (sequence_differs(sequence_of(a, seq), sequence_of(b, seq))) ++found.sequences;
  }
  return found;
}

}  // namespace kvscope::viz
