// Any events in any order: each one is accepted or rejected, and a rejected event changes nothing. The accepted events
// are a run that opens, and after any moves in it the state equals the one computed from the first event. The first
// line of an input is a breakpoint, the second one a text for the find field; then each event is a byte for its kind
// and one byte per number. Tiles among the events are folded, and asked what panels ask.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/trace/event_text.h"
#include "tests/viz/playback/memory_source.h"
#include "tests/viz/playback/tile_questions.h"
#include "viz/playback/cursor.h"
#include "viz/playback/find.h"
#include "viz/playback/selection.h"
#include "viz/playback/tile_fold.h"

namespace {

using namespace kvscope;
using namespace kvscope::viz;

constexpr std::size_t kMostEvents = 400;
constexpr std::int64_t kBlocks = 16, kPageSize = 4, kSequences = 8;

void must_hold(bool holds) {
  if (!holds) std::abort();
}

std::string_view take_line(std::string_view& left) {
  const std::string_view line = left.substr(0, left.find('\n'));
  left.remove_prefix(std::min(line.size() + 1, left.size()));
  return line;
}

// Mostly small numbers, so that events match by chance; six byte values give numbers that are always out of range.
std::int64_t number_of(std::uint8_t byte) {
  constexpr std::array kWild{std::numeric_limits<std::int64_t>::min(),
                             std::int64_t{-1},
                             std::int64_t{1} << 31,
                             std::int64_t{1} << 40,
                             std::int64_t{1} << 62,
                             std::numeric_limits<std::int64_t>::max()};
  return byte < 250 ? byte : kWild[byte - 250U];
}

std::vector<trace::Event> events_of(std::string_view bytes) {
  std::vector<trace::Event> events;
  while (!bytes.empty() && events.size() < kMostEvents) {
    const std::size_t kind = static_cast<std::uint8_t>(bytes.front()) % trace::kKinds;
    bytes.remove_prefix(1);
    std::vector<std::int64_t> values(trace::field_names(kind).size());
    for (std::int64_t& value : values) {
      if (bytes.empty()) break;
      value = number_of(static_cast<std::uint8_t>(bytes.front()));
      bytes.remove_prefix(1);
    }
    if (const auto event = trace::event_from(kind, values)) events.push_back(*event);
  }
  return events;
}

Facts fuzzed_facts() {
  Facts facts;
  facts.blocks = kBlocks;
  facts.page_size = kPageSize;
  facts.sequences = kSequences;
  facts.table_columns = kMostEvents;
  facts.events = facts.rows = 100;
  return facts;
}

void check_state(const State& state) {
  std::int64_t used = 0, cached = 0, held = 0, holds = 0;
  for (std::int64_t b = 0; b < state.blocks.size(); ++b) {
    const BlockState& block = state.blocks[b];
    used += block.ref_count > 0 ? 1 : 0;
    cached += block.cached ? 1 : 0;
    held += block.ref_count;
    must_hold(block.ref_count >= 0 && block.filled >= 0 && block.filled <= kPageSize);
    must_hold(!block.cached || block.ref_count == 0);
    must_hold(block.ref_count > 0 || block.cached ? block.owner >= 0 && block.page >= 0 : block == BlockState{});
  }
  must_hold(used == state.used_blocks && cached == state.cached_blocks && state.free_blocks() >= 0);
  std::size_t live = 0;
  for (std::int64_t s = 0; s < state.sequences.size(); ++s) {
    const SequenceState& seq = state.sequences[s];
    for (std::int64_t page = 0; page < seq.pages.size(); ++page) {
      const std::int32_t block = seq.pages[page];
      if (block < 0) continue;
      ++holds;
      must_hold(block < kBlocks && state.blocks[block].page == page);
    }
    must_hold(seq.tokens >= 0);
    for (std::int64_t page = 0; page * kPageSize < seq.tokens; ++page) {
      must_hold(seq.pages[page] >= 0);
      must_hold(state.blocks[seq.pages[page]].filled >= std::min(kPageSize, seq.tokens - page * kPageSize));
    }
    const bool is_live = seq.phase == Phase::waiting || seq.phase == Phase::running || seq.phase == Phase::preempted;
    if (is_live) must_hold(live < state.live.size() && state.live[live++] == SeqIdx{s});
  }
  must_hold(live == state.live.size());
  must_hold(held == holds);
}

// Every selection can be described and highlighted.
void look_at(const State& state, const Facts& facts, std::int64_t a, std::int64_t b) {
  for (const Selection& selection :
       {of_sequence(SeqIdx{a}), of_page(SeqIdx{a}, PageIdx{b}), of_token(SeqIdx{a}, TokIdx{b}), of_block(BlockIdx{a}),
        of_step(StepIdx{a}), Selection{}}) {
    static_cast<void>(describe(state, facts, selection));
    for (const BlockIdx block : resolve(state, facts, selection).blocks) {
      must_hold(block.value >= 0 && block.value <= facts.blocks);
    }
  }
}

std::vector<trace::Event> taken_of(const std::vector<trace::Event>& events, const Facts& facts) {
  std::vector<trace::Event> taken;
  State state = empty_state(facts);
  for (const trace::Event& event : events) {
    const State before = state;
    try {
      apply(state, facts, event);
      taken.push_back(event);
    } catch (const InputError&) {
      must_hold(state == before);
    }
    check_state(state);
  }
  return taken;
}

void walk(const std::vector<trace::Event>& taken, const std::vector<Breakpoint>& breakpoints) {
  static const trace::Meta kMeta{
      {"scenario", R"({"kvscope_scenario":1,"model":"tiny","cache":{"page_size":4,"blocks":16},"tile":{"BN":4,"BK":8},)"
                   R"("requests":{"list":[{"prompt_tokens":1,"generate_tokens":1}]}})"}};
  Cursor cursor(Run::open(from_memory(taken, kMeta, trace::Detail::full), "fuzzed"));
  const Facts& facts = cursor.run().facts();
  must_hold(facts.scenario && facts.blocks == kBlocks && facts.page_size == kPageSize);
  const auto expect_fresh = [&] {
    State fresh = empty_state(facts);
    Marks marks;
    for (std::int64_t i = 0; i < cursor.position().value; ++i) {
      apply(fresh, facts, taken[static_cast<std::size_t>(i)]);
      add(marks, taken[static_cast<std::size_t>(i)]);
    }
    must_hold(cursor.state() == fresh && cursor.marks() == marks);
  };
  while (cursor.step()) look_at(cursor.state(), facts, cursor.position().value % kBlocks, cursor.row());
  expect_fresh();
  cursor.seek(Position{facts.events / 2});
  expect_fresh();
  const auto which = cursor.run_to(breakpoints);
  must_hold(which ? matches(breakpoints[*which], *last_event(cursor)) : cursor.at_end());
  expect_fresh();
  const auto back = cursor.run_back_to(breakpoints);
  must_hold(back ? matches(breakpoints[*back], *last_event(cursor)) : cursor.at_start());
  expect_fresh();
  if (cursor.event() && cursor.step() && cursor.event_back()) cursor.step_back();
  expect_fresh();
}

// Each tile is rejected, or every question has an answer.
void fold_tiles(std::span<const trace::Event> events, const Facts& facts) {
  for (const TileSpan& span : tiles_in(events)) {
    try {
      testing_support::ask_tile(fold_tile(events.subspan(static_cast<std::size_t>(span.first),
                                                         static_cast<std::size_t>(span.end - span.first))),
                                facts);
    } catch (const InputError&) {
    }
  }
}

std::optional<Breakpoint> breakpoint_of(std::string_view text) {
  try {
    const Breakpoint breakpoint = parse_breakpoint(text);
    must_hold(parse_breakpoint(to_text(breakpoint)) == breakpoint);
    return breakpoint;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view left(reinterpret_cast<const char*>(data), size);
  std::vector<Breakpoint> breakpoints{parse_breakpoint("block_evicted")};
  if (const auto breakpoint = breakpoint_of(take_line(left))) breakpoints.insert(breakpoints.begin(), *breakpoint);
  const Facts facts = fuzzed_facts();
  try {
    static_cast<void>(parse_find(take_line(left), facts));
  } catch (const InputError&) {
  }
  const std::vector<trace::Event> events = events_of(left);
  walk(taken_of(events, facts), breakpoints);
  fold_tiles(events, facts);
  // All events, without sizes of the pool: the run is opened or rejected, in bounded memory.
  try {
    const auto run = Run::open(from_memory(events, {}, trace::Detail::full), "fuzzed");
    look_at(run->state_at(Position{run->facts().events}), run->facts(), 1, 2);
  } catch (const InputError&) {
  }
  return 0;
}
