#include "core/trace/recorder.h"

#include <gtest/gtest.h>

#include "tests/core/trace/support.h"

namespace kvscope::trace::recorder_test {
namespace {

// A recorder that counts the events it receives.
class Counter final : public Recorder {
 public:
  using Recorder::Recorder;
  int written = 0;

 private:
  void write(const Event&) override { ++written; }
};

TEST(Recorder, HearsWhatItsDetailAsksForAndNothingElse) {
  const std::vector<Event> events = testing::sample_events(30);
  const auto of_steps = std::count_if(events.begin(), events.end(),
                                      [](const Event& e) { return kind_detail(e.index()) == Detail::steps; });
  ASSERT_GT(of_steps, 0);
  ASSERT_LT(of_steps, static_cast<std::ptrdiff_t>(events.size()));
  const std::pair<Detail, std::ptrdiff_t> expected[] = {
      {Detail::off, 0}, {Detail::steps, of_steps}, {Detail::full, static_cast<std::ptrdiff_t>(events.size())}};
  for (const auto& [detail, count] : expected) {
    Counter counter(detail);
    testing::record_all(counter, events);
    EXPECT_EQ(counter.written, count) << detail_name(detail);
  }
}

TEST(MemoryRecorder, KeepsEventsInOrder) {
  const std::vector<Event> events = testing::sample_events(12);
  MemoryRecorder recorder;
  testing::record_all(recorder, events);
  EXPECT_TRUE(testing::equal(recorder.events(), events));
}

}  // namespace
}  // namespace kvscope::trace::recorder_test
