#include "core/trace/event_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "tests/core/trace/support.h"
#include "tests/property.h"

namespace kvscope::trace::event_text_test {
namespace {

using testing::event_of;

TEST(EventText, SaysKindAndEveryFieldByName) {
  EXPECT_EQ(to_text(BlockAllocated{BlockIdx{7}, SeqIdx{0}, PageIdx{3}}), "block_allocated block=7 seq=0 page=3");
  // The lowest and highest number, and a flag as 0 or 1: three values that a generic printer may get wrong.
  EXPECT_EQ(to_text(StepBegan{StepIdx{std::numeric_limits<std::int64_t>::min()}, 9223372036854775807}),
            "step_began step=-9223372036854775808 time_us=9223372036854775807");
  EXPECT_EQ(to_text(BlockReleased{BlockIdx{1}, SeqIdx{2}, PageIdx{3}, 4, true}),
            "block_released block=1 seq=2 page=3 ref_count=4 cached=1");
}

TEST(EventText, NamesAndNumbersStandInTheOrderOfTheStruct) {
  const Event event = BlockCopied{BlockIdx{10}, BlockIdx{11}, SeqIdx{12}, PageIdx{13}, 14};
  const std::vector<NamedNumber> expected{{"from", 10}, {"to", 11}, {"seq", 12}, {"page", 13}, {"tokens", 14}};
  EXPECT_EQ(named_fields(event), expected);
}

TEST(EventText, KindNumberIsTheVariantIndexAndItsNameLeadsBack) {
  std::set<std::string_view> names;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    EXPECT_EQ(event_of(kind, {}).index(), kind);
    EXPECT_EQ(find_kind(kind_name(kind)), kind);
    names.insert(kind_name(kind));
  }
  EXPECT_EQ(names.size(), kKinds);  // two structs of one name would share a table
  EXPECT_EQ(kind_name(7), "block_allocated");
  EXPECT_EQ(find_kind("block_allocate"), std::nullopt);
  EXPECT_EQ(find_kind(""), std::nullopt);
}

TEST(EventText, KindKnowsFromWhichDetailOnItIsRecorded) {
  EXPECT_EQ(kind_detail(*find_kind("step_ended")), Detail::steps);
  EXPECT_EQ(kind_detail(*find_kind("tokens_written")), Detail::full);
  for (const Detail detail : {Detail::off, Detail::steps, Detail::full}) {
    EXPECT_EQ(find_detail(detail_name(detail)), detail);
  }
  EXPECT_EQ(find_detail("all"), std::nullopt);
}

TEST(EventText, NumbersOfEveryKindMakeTheEventAgain) {
  EXPECT_TRUE(prop::check("event -> numbers -> event", [] {
    const auto kind = prop::in_range<std::size_t>(0, kKinds);
    std::vector<std::int64_t> numbers;
    while (numbers.size() < field_names(kind).size()) numbers.push_back(prop::any<std::int64_t>());
    const Event event = event_of(kind, numbers);
    std::array<std::int64_t, kMaxFields> values{};
    const std::size_t count = field_values(event, values);
    RC_ASSERT(count == field_names(kind).size());
    const auto again = event_from(kind, std::span(values).first(count));
    RC_ASSERT(again.has_value());
    RC_ASSERT(same_event(*again, event));
    RC_ASSERT(to_text(*again) == to_text(event));
  }));
}

TEST(EventText, NoEventComesOfTooFewTooManyOrUnfitNumbers) {
  const std::size_t released = *find_kind("block_released");
  EXPECT_TRUE(event_from(released, std::vector<std::int64_t>{1, 2, 3, 4, 1}).has_value());
  EXPECT_FALSE(event_from(released, std::vector<std::int64_t>{1, 2, 3, 4}).has_value());
  EXPECT_FALSE(event_from(released, std::vector<std::int64_t>{1, 2, 3, 4, 1, 0}).has_value());
  // `cached` is a flag: read as a bool, 2 and -1 would silently become 1.
  EXPECT_FALSE(event_from(released, std::vector<std::int64_t>{1, 2, 3, 4, 2}).has_value());
  EXPECT_FALSE(event_from(released, std::vector<std::int64_t>{1, 2, 3, 4, -1}).has_value());
}

TEST(EventText, EventsAreTheSameOnlyInKindAndEveryNumber) {
  const Event base = event_of(*find_kind("request_preempted"), {4, 9});
  EXPECT_TRUE(same_event(base, RequestPreempted{SeqIdx{4}, 9}));
  EXPECT_FALSE(same_event(base, RequestFinished{SeqIdx{4}, 9}));  // same numbers, another kind
  EXPECT_FALSE(same_event(base, RequestPreempted{SeqIdx{4}, 8}));
  EXPECT_FALSE(same_event(base, RequestPreempted{SeqIdx{5}, 9}));
}

}  // namespace
}  // namespace kvscope::trace::event_text_test
