// Two runs step by step: places, steps and states against definitions that walk the events one by one.
#include "viz/playback/run_difference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/errors.h"
#include "core/scenario/checks.h"
#include "tests/viz/playback/support.h"

namespace kvscope::viz::run_difference_test {
namespace {

using namespace testing_support;
using Events = std::vector<trace::Event>;

// --- the definitions -------------------------------------------------------------------------------------------------

// The events before the first step (step -1), then those of each step.
struct Segment {
  std::int64_t step = -1;
  std::int64_t first = 0, end = 0;  // [events]
};

std::vector<Segment> segments(const Events& events) {
  std::vector<Segment> found{{}};
  for (const trace::Event& event : events) {
    if (const auto* began = std::get_if<trace::StepBegan>(&event)) {
      found.push_back({began->step.value, found.back().end, found.back().end});
    }
    ++found.back().end;
  }
  return found;
}

const Segment* with_step(const std::vector<Segment>& segments, std::int64_t step) {
  const auto found = std::ranges::find(segments, step, &Segment::step);
  return found == segments.end() ? nullptr : &*found;
}

const Segment& at(const std::vector<Segment>& segments, std::int64_t position) {
  const Segment* last = &segments.front();
  for (const Segment& segment : segments) {
    if (segment.first < position) last = &segment;
  }
  return *last;
}

Position slow_counterpart(const std::vector<Segment>& run, std::int64_t position, const std::vector<Segment>& other) {
  const Segment& here = at(run, position);
  if (const Segment* const same = with_step(other, here.step)) {
    if (position == here.end) return Position{same->end};
    return Position{std::min(same->first + position - here.first, same->end)};
  }
  const Segment* before = &other.front();
  for (const Segment& segment : other) {
    if (segment.step < here.step) before = &segment;
  }
  return Position{before->end};
}

std::string without_time(const trace::Event& event) {
  std::string words{trace::kind_name(event.index())};
  for (const trace::NamedNumber& field : trace::named_fields(event)) {
    if (field.name != "time_us") words += " " + std::string(field.name) + "=" + std::to_string(field.value);
  }
  return words;
}

std::vector<std::string> words_of(const Events& events, const Segment& segment) {
  std::vector<std::string> words;
  for (std::int64_t i = segment.first; i < segment.end; ++i) {
    words.push_back(without_time(events[static_cast<std::size_t>(i)]));
  }
  return words;
}

std::array<std::int64_t, 5> numbers_of(const BlockState& block) {
  return {block.owner, block.page, block.ref_count, block.filled, block.cached ? 1 : 0};
}

struct SlowSequence {
  Phase phase = Phase::absent;
  std::int64_t tokens = 0;
  std::vector<std::int64_t> blocks;  // [page]
  friend bool operator==(const SlowSequence&, const SlowSequence&) = default;
};

SlowSequence slow_sequence(const State& state, std::int64_t seq, std::int64_t pages) {
  SlowSequence found;
  found.blocks.assign(static_cast<std::size_t>(pages), -1);
  if (seq >= state.sequences.size()) return found;
  const SequenceState& of = state.sequences[seq];
  found.phase = of.phase;
  found.tokens = of.tokens;
  for (std::int64_t page = 0; page < std::min(pages, of.pages.size()); ++page) {
    found.blocks[static_cast<std::size_t>(page)] = of.pages[page];
  }
  return found;
}

std::int64_t tokens_in_page(const SlowSequence& seq, std::int64_t page, std::int64_t page_size) {
  std::int64_t tokens = 0;
  for (std::int64_t token = 0; token < seq.tokens; ++token) tokens += token / page_size == page ? 1 : 0;
  return tokens;
}

// --- comparisons -----------------------------------------------------------------------------------------------------

struct Pair {
  Events events, other_events;
  std::shared_ptr<const Run> run, other;
};

Pair of(const Recorded& a, const Recorded& b) {
  return {a.events, b.events, a.open(), b.open()};
}

// At most about `most` of [0, end], both ends among them.
std::vector<std::int64_t> grid(std::int64_t end, std::int64_t most) {
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < end; i += std::max<std::int64_t>(1, end / most)) found.push_back(i);
  found.push_back(end);
  return found;
}

void expect_counterparts(const Pair& pair) {
  const std::vector<Segment> of_run = segments(pair.events), of_other = segments(pair.other_events);
  Cursor cursor(pair.run);
  for (const std::int64_t position : grid(std::ssize(pair.events), 1500)) {
    cursor.seek(Position{position});
    ASSERT_EQ(counterpart(cursor, *pair.other), slow_counterpart(of_run, position, of_other)) << position;
  }
}

// Returns how many steps differ.
std::int64_t expect_steps(const Pair& pair) {
  const std::vector<Segment> of_run = segments(pair.events), of_other = segments(pair.other_events);
  EXPECT_EQ(std::ssize(of_run), pair.run->facts().rows);
  std::int64_t differ = 0;
  for (std::int64_t row = 0; row < pair.run->facts().rows; ++row) {
    const Segment& here = of_run[static_cast<std::size_t>(row)];
    const Segment* const same = with_step(of_other, here.step);
    const bool expected = same == nullptr || words_of(pair.events, here) != words_of(pair.other_events, *same);
    EXPECT_EQ(step_differs(*pair.run, row, *pair.other), expected) << "row " << row;
    differ += expected ? 1 : 0;
  }
  return differ;
}

// Returns how many blocks and sequences differ, of all states together.
StateDifference expect_states(const Pair& pair) {
  StateDifference all;
  const std::int64_t page_size = pair.run->facts().page_size;
  Cursor cursor(pair.run);
  for (const std::int64_t position : grid(std::ssize(pair.events), 60)) {
    cursor.seek(Position{position});
    const State a = pair.run->state_at(Position{position});
    const State b = pair.other->state_at(counterpart(cursor, *pair.other));
    StateDifference expected;
    for (std::int64_t block = 0; block < std::max(a.blocks.size(), b.blocks.size()); ++block) {
      const bool both = block < a.blocks.size() && block < b.blocks.size();
      const bool differs = both && numbers_of(a.blocks[block]) != numbers_of(b.blocks[block]);
      EXPECT_EQ(block_differs(a, b, BlockIdx{block}), differs) << position << " block " << block;
      EXPECT_EQ(block_differs(b, a, BlockIdx{block}), differs) << position << " block " << block;
      expected.blocks += differs ? 1 : 0;
    }
    for (std::int64_t seq = 0; seq < std::max(a.sequences.size(), b.sequences.size()); ++seq) {
      std::int64_t pages = 2;  // more than there are
      for (const State* state : {&a, &b}) {
        if (seq < state->sequences.size()) pages = std::max(pages, state->sequences[seq].pages.size() + 2);
      }
      const SlowSequence of_a = slow_sequence(a, seq, pages), of_b = slow_sequence(b, seq, pages);
      expected.sequences += of_a == of_b ? 0 : 1;
      for (std::int64_t page = 0; page < pages; ++page) {
        const auto p = static_cast<std::size_t>(page);
        const bool differs = of_a.blocks[p] != of_b.blocks[p] ||
                             tokens_in_page(of_a, page, page_size) != tokens_in_page(of_b, page, page_size);
        EXPECT_EQ(page_differs(a, b, SeqIdx{seq}, PageIdx{page}, page_size), differs) << seq << " page " << page;
        EXPECT_EQ(page_differs(b, a, SeqIdx{seq}, PageIdx{page}, page_size), differs) << seq << " page " << page;
      }
    }
    EXPECT_EQ(difference(a, b), expected) << "after event " << position;
    EXPECT_EQ(difference(b, a), expected) << "after event " << position;
    all.blocks += expected.blocks;
    all.sequences += expected.sequences;
    if (testing::Test::HasFailure()) break;  // one state is enough to read
  }
  return all;
}

// --- the gallery, and the gallery changed ----------------------------------------------------------------------------

struct Change {
  const char* name;
  std::function<void(Recorded&)> make;
};

const std::vector<Change>& changes() {
  static const std::vector<Change> kChanges{
      {"batch", [](Recorded& r) { r.scenario.scheduler.max_batch = r.scenario.scheduler.max_batch > 2 ? 2 : 1; }},
      {"page_size", [](Recorded& r) { r.scenario.cache.page_size *= 2; }},
      {"larger_pool", [](Recorded& r) { r.scenario.cache.blocks += 5; }},
      {"smaller_pool", [](Recorded& r) { r.scenario.cache.blocks -= 1; }},
      {"no_prefix_caching", [](Recorded& r) { r.scenario.cache.prefix_sharing = false; }},
      {"one_request_fewer", [](Recorded& r) { r.requests.pop_back(); }},
  };
  return kChanges;
}

// nullopt: the scenario does not allow the change.
std::optional<Recorded> changed(const Recorded& recorded, const Change& change) {
  Recorded other{recorded.scenario, recorded.requests, {}};
  if (other.requests.size() < 2) return std::nullopt;
  change.make(other);
  if (!check_scenario(other.scenario).empty()) return std::nullopt;
  return record(std::move(other.scenario), std::move(other.requests));
}

class RunDifference : public testing::TestWithParam<std::string> {};

TEST_P(RunDifference, PlacesStepsAndStatesAreThoseOfAWalkThroughTheEvents) {
  const Recorded recorded = gallery(GetParam());
  for (const Change& change : changes()) {
    SCOPED_TRACE(change.name);
    const std::optional<Recorded> other = changed(recorded, change);
    if (!other) continue;
    const Pair there = of(recorded, *other), back = of(*other, recorded);
    ASSERT_NO_FATAL_FAILURE(expect_counterparts(there));
    ASSERT_NO_FATAL_FAILURE(expect_counterparts(back));
    static_cast<void>(expect_steps(there));
    static_cast<void>(expect_steps(back));
    if (are_comparable(there.run->facts(), there.other->facts())) static_cast<void>(expect_states(there));
    ASSERT_FALSE(HasFailure());
  }
}

TEST_P(RunDifference, ARunDoesNotDifferFromItself) {
  const Recorded recorded = gallery(GetParam());
  const Pair same = of(recorded, recorded);
  EXPECT_EQ(expect_steps(same), 0);
  EXPECT_EQ(expect_states(same), StateDifference{});
  Cursor cursor(same.run);
  for (const std::int64_t position : grid(std::ssize(same.events), 1500)) {
    cursor.seek(Position{position});
    ASSERT_EQ(counterpart(cursor, *same.other), Position{position});
  }
}

INSTANTIATE_TEST_SUITE_P(All, RunDifference, testing::ValuesIn(gallery_names()),
                         [](const auto& scenario) { return scenario.param; });

// The comparisons above need changes that matter and runs that differ in every way.
TEST(RunDifferences, TheChangesOfTheGalleryDifferInStepsBlocksSequencesAndLengths) {
  std::set<std::string> steps, blocks, sequences, shorter, longer, pages;
  for (const char* name : {"preemption", "prefix_sharing"}) {
    const Recorded recorded = gallery(name);
    for (const Change& change : changes()) {
      const std::optional<Recorded> other = changed(recorded, change);
      if (!other) continue;
      const Pair pair = of(recorded, *other);
      if (expect_steps(pair) > 0) steps.insert(change.name);
      if (pair.other->facts().rows < pair.run->facts().rows) shorter.insert(change.name);
      if (pair.other->facts().rows > pair.run->facts().rows) longer.insert(change.name);
      if (!are_comparable(pair.run->facts(), pair.other->facts())) {
        pages.insert(change.name);
        continue;
      }
      const StateDifference found = expect_states(pair);
      if (found.blocks > 0) blocks.insert(change.name);
      if (found.sequences > 0) sequences.insert(change.name);
    }
  }
  const std::set<std::string> all{"batch",     "larger_pool", "no_prefix_caching", "one_request_fewer",
                                  "page_size", "smaller_pool"};
  EXPECT_EQ(steps, all);
  EXPECT_EQ(pages, std::set<std::string>{"page_size"});
  EXPECT_EQ(blocks.size(), 5u);
  EXPECT_EQ(sequences.size(), 5u);
  EXPECT_TRUE(longer.contains("batch"));
  EXPECT_TRUE(shorter.contains("one_request_fewer"));
}

TEST(RunDifferences, TheNumbersOfItsHeader) {
  const Recorded recorded = gallery("preemption");
  Scenario two = recorded.scenario;
  two.scheduler.max_batch = 2;  // as apps/examples/preemption_two.json
  const Pair pair = of(recorded, record(two, recorded.requests));
  EXPECT_FALSE(step_differs(*pair.run, pair.run->row_of_step(StepIdx{0}), *pair.other));
  EXPECT_TRUE(step_differs(*pair.run, pair.run->row_of_step(StepIdx{1}), *pair.other));
  Cursor run(pair.run), other(pair.other);
  run.seek_row(pair.run->row_of_step(StepIdx{3}));
  other.seek(counterpart(run, *pair.other));
  EXPECT_EQ(difference(run.state(), other.state()), (StateDifference{15, 6}));
}

// --- times -----------------------------------------------------------------------------------------------------------

Events with_other_times(Events events) {
  for (trace::Event& event : events) {
    if (auto* began = std::get_if<trace::StepBegan>(&event)) began->time_us = 3 * began->time_us + 7;
    if (auto* ended = std::get_if<trace::StepEnded>(&event)) ended->time_us = 3 * ended->time_us + 7;
  }
  return events;
}

std::shared_ptr<const Run> open(const Recorded& of, Events events, trace::Detail detail = trace::Detail::full) {
  return Run::open(from_memory(events, of.meta(), detail), "shown");
}

TEST(RunDifferences, OtherTimesAreNoDifference) {
  const Recorded recorded = gallery("preemption");
  const Pair pair{recorded.events, with_other_times(recorded.events), recorded.open(),
                  open(recorded, with_other_times(recorded.events))};
  ASSERT_FALSE(std::ranges::equal(pair.events, pair.other_events, trace::same_event));
  EXPECT_EQ(expect_steps(pair), 0);
  EXPECT_EQ(expect_states(pair), StateDifference{});
}

// Every number of an event that can be another one without a contradiction in the trace, except times. Of a kind's
// number, up to 10 events are tried.
TEST(RunDifferences, OneChangedNumberOfOneEventIsADifferenceInItsStepOnly) {
  const Recorded recorded = gallery("prefix_sharing");
  const auto run = recorded.open();
  std::map<std::pair<std::size_t, std::size_t>, int> tries;
  std::set<std::string> found;
  for (std::size_t i = recorded.events.size(); i-- > 0;) {
    const std::vector<trace::NamedNumber> fields = trace::named_fields(recorded.events[i]);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const std::size_t kind = recorded.events[i].index();
      const std::string name = std::string(trace::kind_name(kind)) + "." + std::string(fields[f].name);
      if (fields[f].name == "time_us" || fields[f].name == "step" || found.contains(name)) continue;
      if (++tries[{kind, f}] > 10) continue;
      std::vector<std::int64_t> values;
      for (const trace::NamedNumber& field : fields) values.push_back(field.value);
      values[f] = values[f] == 0 ? 1 : values[f] - 1;
      Events changed = recorded.events;
      changed[i] = trace::event_from(kind, values).value();
      std::shared_ptr<const viz::Run> other;
      try {
        other = open(recorded, changed);
      } catch (const InputError&) {
        continue;
      }
      found.insert(name);
      const std::int64_t row = run->row_at(Position{static_cast<std::int64_t>(i) + 1});
      for (std::int64_t r = std::max<std::int64_t>(row - 1, 0); r <= std::min(row + 1, run->facts().rows - 1); ++r) {
        EXPECT_EQ(step_differs(*run, r, *other), r == row) << name << " of event " << i << ", row " << r;
      }
    }
  }
  for (const char* name : {"step_ended.waiting", "step_ended.used_blocks", "request_arrived.prompt_tokens",
                           "block_released.cached", "request_arrived.generate_tokens"}) {
    EXPECT_TRUE(found.contains(name)) << name;
  }
}

// --- traces that are pieces of a run ---------------------------------------------------------------------------------

// The events of steps [first, end), with those before the first step if `first` is 0.
Events steps_of(const Events& events, std::int64_t first, std::int64_t end) {
  Events found;
  for (const Segment& segment : segments(events)) {
    if (segment.step < (first == 0 ? -1 : first) || segment.step >= end) continue;
    found.insert(found.end(), events.begin() + segment.first, events.begin() + segment.end);
  }
  return found;
}

Events counts_of(const Events& events) {
  Events found;
  for (const trace::Event& event : events) {
    if (trace::kind_detail(event.index()) == trace::Detail::steps) found.push_back(event);
  }
  return found;
}

// Rows of the two traces have other numbers than their steps: comparing row with row, all steps differ.
TEST(RunDifferences, TracesThatBeginAtOtherStepsAreComparedByStep) {
  const Recorded recorded = gallery("preemption");
  Events counts;  // steps alone: an event of a sequence that arrived before the piece is rejected
  for (const trace::Event& event : recorded.events) {
    if (std::holds_alternative<trace::StepBegan>(event) || std::holds_alternative<trace::StepEnded>(event)) {
      counts.push_back(event);
    }
  }
  const auto piece = [&](std::int64_t first, std::int64_t end) {
    const Events events = steps_of(counts, first, end);
    return std::pair(events, open(recorded, events, trace::Detail::steps));
  };
  const std::vector<std::pair<Events, std::shared_ptr<const viz::Run>>> pieces{piece(0, 47), piece(5, 47), piece(9, 20),
                                                                               piece(20, 31), piece(0, 3)};
  std::int64_t different = 0, same = 0;
  for (const auto& [events, run] : pieces) {
    for (const auto& [other_events, other] : pieces) {
      const Pair pair{events, other_events, run, other};
      ASSERT_NO_FATAL_FAILURE(expect_counterparts(pair));
      const std::int64_t differ = expect_steps(pair);
      different += differ;
      same += run->facts().rows - differ;
    }
  }
  EXPECT_GT(different, 100);
  EXPECT_GT(same, 100);
  // Step 12 of the piece from step 9 is in row 4, of the piece from step 5 in row 8.
  EXPECT_FALSE(step_differs(*pieces[2].second, 4, *pieces[1].second));
  EXPECT_TRUE(step_differs(*pieces[3].second, 1, *pieces[2].second));  // step 20, where that ends
}

TEST(RunDifferences, ATraceThatEndsEarlierStaysAtItsEnd) {
  const Recorded recorded = gallery("preemption");
  const Events shorter = steps_of(recorded.events, 0, 11);
  const Pair pair{recorded.events, shorter, recorded.open(), open(recorded, shorter)};
  ASSERT_NO_FATAL_FAILURE(expect_counterparts(pair));
  EXPECT_EQ(expect_steps(pair), 47 - 11);
  static_cast<void>(expect_states(pair));
  Cursor cursor(pair.run);
  cursor.seek_row(40);
  EXPECT_EQ(counterpart(cursor, *pair.other).value, std::ssize(shorter));
}

// A trace that was cut inside a step: the same step is there, with fewer events.
TEST(RunDifferences, AStepThatWasCutDiffersAndIsFollowedToItsLastEvent) {
  const Recorded recorded = gallery("preemption");
  const Segment cut = *with_step(segments(recorded.events), 11);
  ASSERT_GT(cut.end - cut.first, 4);
  const Events shorter(recorded.events.begin(), recorded.events.begin() + cut.first + 3);
  const Pair pair{recorded.events, shorter, recorded.open(), open(recorded, shorter)};
  ASSERT_NO_FATAL_FAILURE(expect_counterparts(pair));
  EXPECT_EQ(expect_steps(pair), 47 - 11);
}

TEST(RunDifferences, ATraceOfStepsIsComparedInItsStepsAndNotInItsBlocks) {
  const Recorded recorded = gallery("preemption");
  const Events counts = counts_of(recorded.events);
  const auto full = recorded.open(), steps = open(recorded, counts, trace::Detail::steps);
  EXPECT_TRUE(are_comparable(full->facts(), full->facts()));
  EXPECT_FALSE(are_comparable(full->facts(), steps->facts()));
  EXPECT_FALSE(are_comparable(steps->facts(), full->facts()));
  EXPECT_FALSE(are_comparable(steps->facts(), steps->facts()));
  const Pair pair{recorded.events, counts, full, steps};
  ASSERT_NO_FATAL_FAILURE(expect_counterparts(pair));
  EXPECT_GT(expect_steps(pair), 0);
}

TEST(RunDifferences, BlocksOfOtherPageSizesAreNotCompared) {
  Facts a = small_facts(), b = small_facts();
  a.detail = b.detail = trace::Detail::full;
  b.blocks = a.blocks + 3;
  b.sequences = a.sequences - 1;
  EXPECT_TRUE(are_comparable(a, b));
  b.page_size = a.page_size + 1;
  EXPECT_FALSE(are_comparable(a, b));
}

TEST(RunDifferences, OfRunsWithoutEventsThereAreNone) {
  const std::shared_ptr<const viz::Run> empty = viz::Run::open(from_memory({}, {}, trace::Detail::full), "empty");
  const Recorded recorded = gallery("preemption");
  const auto run = recorded.open();
  EXPECT_FALSE(step_differs(*empty, 0, *empty));
  EXPECT_EQ(counterpart(Cursor(empty), *run), run->end_of_row(0));
  Cursor cursor(run);
  cursor.seek_row(7);
  EXPECT_EQ(counterpart(cursor, *empty), Position{0});
  EXPECT_TRUE(step_differs(*run, 7, *empty));
}

// The numbers of docs and header: block 18 with another page or another fill level.
TEST(RunDifferences, OneNumberOfABlockIsADifference) {
  State a = empty_state(small_facts());
  BlockState block;
  block.owner = 3, block.page = 2, block.ref_count = 1, block.filled = 4;
  a.blocks.at(5) = block;
  const auto with = [&](auto change) {
    State b = a;
    BlockState other = block;
    change(other);
    b.blocks.at(5) = other;
    return block_differs(a, b, BlockIdx{5}) && !block_differs(a, b, BlockIdx{4}) &&
           difference(a, b) == StateDifference{1, 0};
  };
  EXPECT_FALSE(block_differs(a, a, BlockIdx{5}));
  EXPECT_TRUE(with([](BlockState& b) { b.owner = 1; }));
  EXPECT_TRUE(with([](BlockState& b) { b.page = 1; }));
  EXPECT_TRUE(with([](BlockState& b) { b.ref_count = 2; }));
  EXPECT_TRUE(with([](BlockState& b) { b.filled = 3; }));
  EXPECT_TRUE(with([](BlockState& b) { b.cached = true; }));
}

}  // namespace
}  // namespace kvscope::viz::run_difference_test
