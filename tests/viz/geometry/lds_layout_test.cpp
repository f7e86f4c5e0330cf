// Where the lanes of every copy through LDS are: found again at their centers, inside the body, in the order of the
// waves; parts that do not fit are left out in a fixed order.
#include "viz/geometry/lds_layout.h"

#include <gmock/gmock.h>

#include <vector>

namespace kvscope::viz::lds_layout_test {
namespace {

const QRectF kBody(380, 210, 265, 440);

LdsSize double_buffer() {
  return {{{2, 2, 2, 2}, {0, 0, 0, 0}}, 64, 3};
}

template <class Check>
void for_each_layout(const Check& check) {
  for (const QSizeF size : {QSizeF(100, 60), QSizeF(200, 180), QSizeF(265, 440), QSizeF(500, 900)}) {
    for (const double scale : {0.75, 1.0, 1.6, 2.5}) {
      for (const std::int64_t schedule : {0, 3, 40}) {
        for (const auto& copies : std::vector<std::vector<std::vector<std::int64_t>>>{
                 {{2, 2, 2, 2}, {0, 0, 0, 0}}, {{10, 10, 8, 8}, {1, 0, 0, 7}}, {{1}}, {{4, 4}, {4, 4}, {4, 4}}}) {
          const QRectF body(QPointF(31, 17), size);
          check(lds_layout({copies, 64, schedule}, body, scale), body);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

// The example of the header.
TEST(LdsLayout, ADoubleBufferOfFourWavesHasEightStripsOf16Pixels) {
  const LdsLayout at = lds_layout(double_buffer(), kBody, 1);
  EXPECT_EQ(at.pitch, 16);
  ASSERT_EQ(at.stages.size(), 2U);
  EXPECT_EQ(at.stages[0].waves.size(), 4U);
  EXPECT_TRUE(at.stages[1].waves.empty());
  EXPECT_FALSE(at.stages[1].title.isEmpty());
  EXPECT_EQ(at.counters.size(), 4U);
  EXPECT_EQ(at.schedule.size(), 3U);
  EXPECT_FALSE(at.warning.isEmpty());
}

TEST(LdsLayout, EveryLaneIsFoundAtItsCenter) {
  std::int64_t lanes = 0;
  for_each_layout([&](const LdsLayout& at, const QRectF&) {
    for (std::size_t stage = 0; stage < at.stages.size(); ++stage) {
      for (const LdsWave& wave : at.stages[stage].waves) {
        for (std::int64_t copy = 0; copy < wave.copies; ++copy) {
          for (std::int64_t lane = 0; lane < 64; ++lane) {
            const LdsLayout::Place place{static_cast<std::int64_t>(stage), wave.wave, copy, lane};
            const QRectF rect = at.lanes_rect(place, lane + 1);
            if (wave.strips.width() < 128) continue;  // a lane is less than 2 px wide: rounding moves its center
            ASSERT_EQ(at.at(rect.center()), place);
            ++lanes;
          }
        }
      }
    }
    EXPECT_EQ(at.at({at.axis.left() - 1, at.axis.top()}), std::nullopt);
  });
  EXPECT_GT(lanes, 10'000);
}

// At 100 x 60 and font scale 2.5 titles alone are higher than the body: the panel clips what is below it.
TEST(LdsLayout, PartsFollowOneAnotherDownwardsAndStayInABodyThatIsHighEnough) {
  for_each_layout([](const LdsLayout& at, const QRectF& body) {
    std::vector<QRectF> parts{at.axis};
    for (const LdsStage& stage : at.stages) {
      parts.push_back(stage.title);
      for (const LdsWave& wave : stage.waves) parts.push_back(wave.strips);
    }
    if (!at.counters.empty()) parts.push_back(at.counter_title);
    parts.insert(parts.end(), at.counters.begin(), at.counters.end());
    if (!at.warning.isEmpty()) parts.push_back(at.warning);
    if (!at.schedule.empty()) parts.push_back(at.schedule_title);
    parts.insert(parts.end(), at.schedule.begin(), at.schedule.end());
    double bottom = body.top();
    for (const QRectF& part : parts) {
      ASSERT_GE(part.top(), bottom - 0.01);
      ASSERT_GE(part.left(), body.left());
      ASSERT_LE(part.right(), body.right() + 0.01);
      bottom = part.bottom();
    }
    if (body.height() >= 440 && at.pitch >= 2) {
      ASSERT_LE(bottom, body.bottom() + 0.01);
    }
  });
}

TEST(LdsLayout, TheScheduleGoesBeforeTheCountersAndTheseBeforeTheWarning) {
  bool schedule = true, counters = true, warning = true;
  for (double height = 440; height >= 60; --height) {
    const LdsLayout at = lds_layout(double_buffer(), QRectF(0, 0, 265, height), 1);
    EXPECT_GE(schedule, !at.schedule.empty()) << height;
    EXPECT_GE(counters, !at.counters.empty()) << height;
    EXPECT_GE(warning, !at.warning.isEmpty()) << height;
    schedule = !at.schedule.empty();
    counters = !at.counters.empty();
    warning = !at.warning.isEmpty();
    EXPECT_TRUE(counters || !schedule) << height;
    EXPECT_TRUE(warning || !counters) << height;
  }
  EXPECT_FALSE(schedule || counters || warning);
}

TEST(LdsLayout, OfALongScheduleAsManyLinesAsFit) {
  LdsSize size = double_buffer();
  size.schedule = 40;
  const LdsLayout at = lds_layout(size, kBody, 1);
  EXPECT_GT(at.schedule.size(), 2U);
  EXPECT_LT(at.schedule.size(), 40U);
  EXPECT_LE(at.schedule.back().bottom(), kBody.bottom());
}

}  // namespace
}  // namespace kvscope::viz::lds_layout_test
