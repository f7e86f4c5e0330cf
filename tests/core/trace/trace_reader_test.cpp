#include "core/trace/trace_reader.h"

#include <gtest/gtest.h>

#include "tests/core/trace/support.h"
#include "tests/property.h"

namespace kvscope::trace::trace_reader_test {
namespace {

using testing::Folder;

std::vector<Event> scan(TraceReader& trace) {
  std::vector<Event> events;
  trace.for_each([&](std::int64_t number, const Event& event) {
    EXPECT_EQ(number, static_cast<std::int64_t>(events.size()));
    events.push_back(event);
  });
  return events;
}

// Any events in any order: steps out of order or of equal numbers, no step at all, extremes in every field.
TEST(TraceReader, ReadsBackEveryEventOfEveryKindInOrder) {
  const Folder folder;
  EXPECT_TRUE(prop::check("written events are read", [&] {
    const auto kinds = prop::vector_of<std::size_t>(0, kKinds);
    std::vector<Event> events;
    for (const std::size_t kind : kinds) {
      std::vector<std::int64_t> numbers;
      while (numbers.size() < field_names(kind).size()) {
        numbers.push_back(prop::any<bool>()
                              ? prop::any<std::int64_t>()
                              : prop::one_of<std::int64_t>(INT64_MIN, INT64_MAX, -1, 0, 1, INT64_C(1) << 47));
      }
      events.push_back(testing::event_of(kind, numbers));
    }
    testing::write_trace(folder / "a.kvt", events);
    TraceReader trace(folder / "a.kvt");
    trace.verify_all();
    RC_ASSERT(trace.events() == static_cast<std::int64_t>(events.size()));
    RC_ASSERT(testing::equal(scan(trace), events));
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      RC_ASSERT(trace.events_of_kind(kind) == std::count(kinds.begin(), kinds.end(), kind));
    }
  }));
}

TEST(TraceReader, OpensTheEmptyTraceAsAProloguedNothing) {
  const Folder folder;
  testing::write_trace(folder / "a.kvt", {}, {{"producer", "x"}});
  TraceReader trace(folder / "a.kvt");
  EXPECT_EQ(trace.rows(), 1);
  EXPECT_EQ(trace.span(0), (StepSpan{StepIdx{-1}, 0, 0, 0}));
  EXPECT_EQ(trace.events(), 0);
  EXPECT_TRUE(trace.events_of_row(0).empty());
  EXPECT_TRUE(trace.events_in(0, 0).empty());
  EXPECT_EQ(trace.meta().find("producer")->second, "x");
  trace.verify_all();
}

TEST(TraceReader, IndexCutsAtEveryStepBeganAndPutsWhatIsBeforeInThePrologue) {
  const Folder folder;
  testing::write_trace(folder / "a.kvt", {RequestArrived{SeqIdx{0}, 5, 1}, StepBegan{StepIdx{4}, 0},
                                          BlockEvicted{BlockIdx{1}}, StepBegan{StepIdx{9}, 1}});
  const TraceReader trace(folder / "a.kvt");
  ASSERT_EQ(trace.rows(), 3);
  const std::int64_t expected[][3] = {{-1, 0, 1}, {4, 1, 2}, {9, 3, 1}};  // step, first event, events
  for (std::int64_t row = 0; row < 3; ++row) {
    EXPECT_EQ(trace.span(row).step.value, expected[row][0]);
    EXPECT_EQ(trace.span(row).first_event, expected[row][1]);
    EXPECT_EQ(trace.span(row).events, expected[row][2]);
  }
  EXPECT_EQ(trace.find_step(StepIdx{9}), 2);
  EXPECT_EQ(trace.find_step(StepIdx{-1}), 0);
  EXPECT_EQ(trace.find_step(StepIdx{5}), std::nullopt);
  for (const auto& [event, row] : std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {1, 1}, {2, 1}, {3, 2}}) {
    EXPECT_EQ(trace.row_of_event(event), row) << event;
  }
}

// A reader that moves its cursors wrongly is correct only when read from front to back: read in random order, and
// compare with a new reader each time.
TEST(TraceReader, SeeksInAnyOrderToWhatAFreshScanFinds) {
  const Folder folder;
  const std::vector<Event> events = testing::sample_events(120);
  testing::write_trace(folder / "a.kvt", events);
  TraceReader trace(folder / "a.kvt");
  EXPECT_TRUE(prop::check("seek", [&] {
    const auto row = prop::in_range<std::int64_t>(0, trace.rows());
    const StepSpan span = trace.span(row);
    const std::vector<Event> expected(events.begin() + span.first_event, events.begin() + span.end_event());
    RC_ASSERT(testing::equal(trace.events_of_row(row), expected));
    RC_ASSERT(testing::equal(TraceReader(folder / "a.kvt").events_of_row(row), expected));
  }));
}

TEST(TraceReader, RangesOfEventsCrossStepsAndMayBeEmpty) {
  const Folder folder;
  const std::vector<Event> events = testing::sample_events(40);
  const auto total = static_cast<std::int64_t>(events.size());
  testing::write_trace(folder / "a.kvt", events);
  TraceReader trace(folder / "a.kvt");
  EXPECT_TRUE(prop::check("range", [&] {
    const auto first = prop::in_range<std::int64_t>(0, total + 1);
    const auto end = prop::in_range<std::int64_t>(first, total + 1);
    RC_ASSERT(testing::equal(trace.events_in(first, end), {events.begin() + first, events.begin() + end}));
  }));
  EXPECT_TRUE(testing::equal(trace.events_in(0, total), events));
}

TEST(TraceReader, RowsAndEventsPastTheEndAreIndexErrors) {
  const Folder folder;
  testing::write_trace(folder / "a.kvt", testing::sample_events(2));
  TraceReader trace(folder / "a.kvt");
  const auto says = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const IndexError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(says([&] { (void)trace.span(3); }), "row of the step index 3 is outside [0, 3)");
  EXPECT_EQ(says([&] { (void)trace.events_of_row(-1); }), "row of the step index -1 is outside [0, 3)");
  EXPECT_EQ(says([&] { (void)trace.row_of_event(5); }), "event 5 is outside [0, 5)");
  EXPECT_EQ(says([&] { (void)trace.events_in(0, 6); }), "end of a range of events 6 is outside [0, 6)");
  EXPECT_EQ(says([&] { (void)trace.events_in(3, 2); }), "first of a range of events 3 is outside [0, 3)");
}

// After an error in the middle of a step, the next call must not use the cursors' positions.
TEST(TraceReader, StaysUsableAfterADamagedStep) {
  const Folder folder;
  const std::vector<Event> events = testing::sample_events(30);
  testing::write_trace(folder / "a.kvt", events);
  TraceReader whole(folder / "a.kvt");
  const std::int64_t damaged = whole.find_step(StepIdx{6}).value();
  testing::edit(folder / "a.kvt", "UPDATE step_began SET time_us = time_us + 1 WHERE step = 6");
  TraceReader trace(folder / "a.kvt");
  for (std::int64_t row = 0; row < trace.rows(); ++row) {
    if (row == damaged) {
      EXPECT_THROW((void)trace.events_of_row(row), InputError);
    } else {
      EXPECT_TRUE(testing::equal(trace.events_of_row(row), whole.events_of_row(row))) << row;
    }
  }
}

// A file name with every character that is special in a URI.
TEST(TraceReader, OpensFilesOfAwkwardNamesAndLeavesNothingBesideThem) {
  const Folder folder;
  const std::string name = "a b?mode=rw#1%41&é'\".kvt";
  testing::write_trace(folder / name, testing::sample_events(3));
  TraceReader(folder / name).verify_all();
  EXPECT_EQ(folder.names(), std::vector<std::string>{name});
}

TEST(TraceReader, TwoReadersOfOneFileDoNotDisturbEachOther) {
  const Folder folder;
  testing::write_trace(folder / "a.kvt", testing::sample_events(20));
  TraceReader one(folder / "a.kvt");
  TraceReader two(folder / "a.kvt");
  const std::vector<Event> first = one.events_of_row(13);
  (void)two.events_of_row(2);
  EXPECT_TRUE(testing::equal(one.events_of_row(13), first));
  EXPECT_TRUE(testing::equal(two.events_of_row(13), first));
}

// A stored file of version 1: it has 13 kinds of event, those before tile_opened.
TEST(TraceReader, AFileOfVersion1IsReadAsItWasWritten) {
  TraceReader trace(KVSCOPE_SOURCE_DIR "/tests/fuzz/corpus/trace/valid.kvt");
  trace.verify_all();
  EXPECT_EQ(trace.events(), 45);
  EXPECT_EQ(trace.rows(), 13);
  EXPECT_EQ(trace.events_of_kind(*find_kind("tokens_written")), 3);
  EXPECT_EQ(trace.events_of_kind(*find_kind("tile_opened")), 0);
  EXPECT_EQ(scan(trace).size(), 45u);
}

// A file of version 2, kept: it has 22 kinds of event, the ones before tile_memory, and tiles with lanes.
TEST(TraceReader, AFileOfVersion2IsReadAsItWasWritten) {
  TraceReader trace(KVSCOPE_SOURCE_DIR "/tests/fuzz/corpus/trace/valid_version_2.kvt");
  trace.verify_all();
  EXPECT_EQ(trace.events(), 149);
  EXPECT_EQ(trace.events_of_kind(*find_kind("chunk_landed")), 56);
  EXPECT_EQ(trace.events_of_kind(*find_kind("tile_memory")), 0);
  EXPECT_EQ(scan(trace).size(), 149u);
}

}  // namespace
}  // namespace kvscope::trace::trace_reader_test
