#include "viz/playback/event_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/errors.h"
#include "core/trace/trace_writer.h"
#include "tests/viz/playback/memory_source.h"
#include "tests/viz/playback/support.h"

namespace kvscope::viz::event_source_test {
namespace {

using namespace testing_support;

class OnDisk : public testing::Test {
 protected:
  OnDisk()
      : path_(std::filesystem::temp_directory_path() /
              ("kvscope_event_source_" + std::to_string(::getpid()) + ".kvt")) {}
  ~OnDisk() override {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  void write(const Recorded& recorded) const {
    trace::TraceWriter writer(path_, trace::Detail::full, recorded.meta());
    for (const trace::Event& event : recorded.events) {
      std::visit([&](const auto& e) { writer.record(e); }, event);
    }
    writer.finish();
  }
  std::filesystem::path path_;
};

void expect_same_events(EventSource& a, EventSource& b) {
  ASSERT_EQ(a.events(), b.events());
  ASSERT_EQ(a.rows(), b.rows());
  EXPECT_EQ(a.detail(), b.detail());
  EXPECT_EQ(a.meta().at("scenario"), b.meta().at("scenario"));
  for (std::int64_t row = 0; row < a.rows(); ++row) {
    EXPECT_EQ(a.span(row).step, b.span(row).step);
    EXPECT_EQ(a.span(row).first_event, b.span(row).first_event);
    EXPECT_EQ(a.span(row).events, b.span(row).events);
    const auto left = a.events_of_row(row), right = b.events_of_row(row);
    ASSERT_EQ(std::ssize(left), a.span(row).events);
    ASSERT_EQ(left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); ++i) EXPECT_TRUE(trace::same_event(left[i], right[i]));
  }
}

// A run in memory and the same run in a file have the same rows; otherwise steps would end at different events.
TEST_F(OnDisk, FileAndMemoryHaveTheSameRows) {
  const Recorded recorded = gallery("parallel_samples");
  write(recorded);
  const auto file = open_trace(path_);
  const auto memory = recorded.source();
  expect_same_events(*file, *memory);
  EXPECT_EQ(file->tape(), nullptr);
  ASSERT_NE(memory->tape(), nullptr);
  EXPECT_EQ(memory->tape()->size(), memory->events());
}

TEST_F(OnDisk, RunIsTheSameFromFileAndFromMemory) {
  const Recorded recorded = gallery("prefix_sharing");
  write(recorded);
  const auto file = Run::open(open_trace(path_), "shown");
  const auto memory = recorded.open();
  EXPECT_EQ(file->timeline(), memory->timeline());
  const Position end{file->facts().events};
  EXPECT_EQ(file->state_at(end), memory->state_at(end));
  EXPECT_EQ(file->meta().at("producer"), "test");
}

// After opening, the file is not read again: it may be deleted.
TEST_F(OnDisk, OpenRunNeedsItsFileNoMore) {
  const Recorded recorded = gallery("first_light");
  write(recorded);
  const auto run = Run::open(open_trace(path_), "shown");
  std::filesystem::remove(path_);
  EXPECT_EQ(run->events_of_row(1)->size(), static_cast<std::size_t>(run->span(1).events));
}

TEST_F(OnDisk, InvalidFileIsRejectedWithTheReadersMessage) {
  EXPECT_THROW(static_cast<void>(open_trace(path_)), InputError);
}

TEST(Memory, StepsCutTheEventsIntoRowsAndWhatComesBeforeIsThePrologue) {
  const std::vector<trace::Event> events{trace::RequestArrived{SeqIdx{0}, 1, 1}, trace::StepBegan{StepIdx{5}, 0},
                                         trace::RequestAdmitted{SeqIdx{0}, 0}, trace::StepBegan{StepIdx{6}, 0}};
  const auto source = from_memory(events, {{"producer", "me"}}, trace::Detail::steps);
  ASSERT_EQ(source->rows(), 3);
  EXPECT_EQ(source->span(0), (trace::StepSpan{StepIdx{-1}, 0, 1, 0}));
  EXPECT_EQ(source->span(1), (trace::StepSpan{StepIdx{5}, 1, 2, 0}));
  EXPECT_EQ(source->span(2), (trace::StepSpan{StepIdx{6}, 3, 1, 0}));
  EXPECT_EQ(source->detail(), trace::Detail::steps);
  EXPECT_EQ(source->meta().at("producer"), "me");
  EXPECT_THROW(static_cast<void>(source->span(3)), IndexError);
  EXPECT_THROW(static_cast<void>(source->events_of_row(-1)), IndexError);
}

TEST(Memory, NothingRecordedIsAnEmptyPrologue) {
  const auto source = from_memory({}, {}, trace::Detail::full);
  EXPECT_EQ(source->rows(), 1);
  EXPECT_EQ(source->events(), 0);
  EXPECT_TRUE(source->events_of_row(0).empty());
}

// A backend uses this instead of gigabytes of structs.
TEST(TapeRecorder, KeepsARunAsAMemoryRecorderDoes) {
  const Recorded recorded = gallery("preemption");
  TapeRecorder recorder;
  static_cast<void>(run_engine(recorded.scenario, recorded.requests, recorder));
  const auto packed = from_tape(recorder.take(), recorded.meta(), recorder.detail());
  expect_same_events(*packed, *recorded.source());
}

TEST(TapeRecorder, LeavesOutWhatItsDetailDoesNotWant) {
  TapeRecorder recorder(trace::Detail::steps);
  recorder.record(trace::BlockEvicted{BlockIdx{1}});
  recorder.record(trace::RequestArrived{SeqIdx{0}, 1, 1});
  EXPECT_EQ(recorder.take().size(), 1);
}

}  // namespace
}  // namespace kvscope::viz::event_source_test
