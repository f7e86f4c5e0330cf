#include "viz/playback/event_tape.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/trace/event_text.h"

namespace kvscope::viz::event_tape_test {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// Arbitrary events: numbers of every size, including the ends of the range, whose differences do not fit in 64 bits.
trace::Event any_event() {
  const auto kind = *rc::gen::inRange<std::size_t>(0, trace::kKinds);
  const std::vector<std::int64_t> edges{kLeast, -1, 0, 63, 64, 127, 128, kMost};
  std::vector<std::int64_t> values;
  const std::size_t fields = trace::field_names(kind).size();
  for (std::size_t field = 0; field < fields; ++field) {
    std::vector<std::int64_t> probe(fields, 0);
    probe[field] = 2;
    const bool is_flag = !trace::event_from(kind, probe);
    values.push_back(is_flag ? *rc::gen::inRange<std::int64_t>(0, 2)
                             : *rc::gen::oneOf(rc::gen::elementOf(edges), rc::gen::inRange<std::int64_t>(-5, 100'000),
                                               rc::gen::arbitrary<std::int64_t>()));
  }
  const auto event = trace::event_from(kind, values);
  RC_ASSERT(event.has_value());
  return *event;
}

TEST(EventTape, EveryRangeOfAnyEventsReadsBackToTheNumber) {
  ASSERT_TRUE(rc::check([] {
    EventTape tape;
    std::vector<trace::Event> events;
    // Up to three frames; the lengths include the ends of frames.
    const auto size = *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(0, 600),
                                      rc::gen::elementOf(std::vector<std::int64_t>{255, 256, 257, 511, 512, 513}));
    const auto few = *rc::gen::container<std::vector<trace::Event>>(7, rc::gen::exec(any_event));
    for (std::int64_t i = 0; i < size; ++i) {
      events.push_back(few[static_cast<std::size_t>(i * i % 7)]);
      tape.push(events.back());
    }
    RC_ASSERT(tape.size() == size);
    RC_ASSERT(tape.frames() == (size + EventTape::kFrame - 1) / EventTape::kFrame);
    const auto first = *rc::gen::inRange<std::int64_t>(0, size + 1);
    const auto end = *rc::gen::inRange<std::int64_t>(first, size + 1);
    const std::vector<trace::Event> read = tape.read(first, end);
    RC_ASSERT(std::ssize(read) == end - first);
    for (std::int64_t i = first; i < end; ++i) {
      RC_ASSERT(trace::same_event(read[static_cast<std::size_t>(i - first)], events[static_cast<std::size_t>(i)]));
    }
    for (std::int64_t frame = 0; frame < tape.frames(); ++frame) {
      std::uint32_t kinds = 0;
      for (std::int64_t i = frame * EventTape::kFrame; i < std::min(size, (frame + 1) * EventTape::kFrame); ++i) {
        kinds |= 1U << events[static_cast<std::size_t>(i)].index();
      }
      RC_ASSERT(tape.kinds_in(frame) == kinds);
    }
  }));
}

// The example of the header: the sequence is 1 more, tokens and the flag are the same, three numbers change.
TEST(EventTape, ATokenBesideTheOneBeforeTakesFourBytes) {
  EventTape tape;
  tape.push(trace::TokensWritten{SeqIdx{0}, TokIdx{40}, 1, BlockIdx{9}, 8, true});
  const std::int64_t before = tape.bytes();
  tape.push(trace::TokensWritten{SeqIdx{1}, TokIdx{33}, 1, BlockIdx{12}, 1, true});
  EXPECT_EQ(tape.bytes() - before, 4);
}

// More patterns than one byte can number, in more memory than one piece of the tape: 3^7 ways in which the fields of
// two events differ, with changes of ten bytes.
TEST(EventTape, EventsOfMorePatternsThanAreNumberedReadBack) {
  EventTape tape;
  std::vector<trace::Event> events;
  for (std::int64_t n = 0; n < 20'000; ++n) {
    std::vector<std::int64_t> values(trace::field_names(1).size(), n % 2 == 0 ? kLeast : kMost / 3);
    std::int64_t ways = n / 2 * 7;
    for (std::size_t field = 0; field < 7; ++field, ways /= 3) {
      if (ways % 3 < 2) values[field] = n % 2 * (ways % 3);
    }
    events.push_back(*trace::event_from(1, values));
    tape.push(events.back());
  }
  EXPECT_GT(tape.bytes(), std::int64_t{1} << 20);
  for (std::int64_t first = 0; first < std::ssize(events); first += 777) {
    const std::int64_t end = std::min<std::int64_t>(first + 777, std::ssize(events));
    const std::vector<trace::Event> read = tape.read(first, end);
    ASSERT_TRUE(std::equal(read.begin(), read.end(), events.begin() + first, events.begin() + end, trace::same_event));
  }
}

TEST(EventTape, ReaderMayStandAtTheEnd) {
  EventTape tape;
  EXPECT_EQ(EventTape::Reader(tape, 0).position(), 0);
  for (int i = 0; i < 256; ++i) tape.push(trace::BlockEvicted{BlockIdx{i}});
  EXPECT_EQ(EventTape::Reader(tape, 256).position(), 256);
  EXPECT_TRUE(tape.read(256, 256).empty());
}

}  // namespace
}  // namespace kvscope::viz::event_tape_test
