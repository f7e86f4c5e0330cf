// Copies of waves through LDS: for each stage of the buffer one strip of 64 lanes for each copy, grouped by wave;
// below them the counter of each wave, one line for a warning, and the schedule.
//
//   lanes      0      16      32      48
//   stage 0
//   wave 0     ------------------------------   one strip a copy
//              ------------------------------
//   wave 1     ------------------------------
//   stage 1                                     no copies: its title only
//   vmcnt
//   wave 0     # #   vmcnt 2, wait allows 0
//   warning
//   schedule   issue, wait, read
//
// Where the body is low the schedule goes first, then the counters; strips keep at least 2 px.
// Example: 2 stages, 4 waves with 2 copies each in stage 0, body 265 x 440 at font scale 1: 8 strips of 16 px.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <QtCore/QPointF>
#include <QtCore/QRectF>

namespace kvscope::viz {

struct LdsSize {
  std::vector<std::vector<std::int64_t>> copies;  // [stage, wave]
  std::int64_t lanes = 64;
  std::int64_t schedule = 0;  // lines
};

struct LdsWave {
  std::int64_t wave = 0;
  QRectF label;   // [px] left of the strips
  QRectF strips;  // [px] all of them
  std::int64_t copies = 0;
};

struct LdsStage {
  QRectF title;
  std::vector<LdsWave> waves;  // those that copy into it
};

struct LdsLayout {
  LdsSize size;
  QRectF axis;  // [px] lane numbers; empty without room
  std::vector<LdsStage> stages;
  QRectF counter_title;
  std::vector<QRectF> counters;  // [px] a line for each wave; empty without room
  QRectF warning;                // [px] two lines of text; empty without room
  QRectF schedule_title;
  std::vector<QRectF> schedule;  // [px] lines; fewer than size.schedule without room for all
  double pitch = 1, gap = 0;     // [px] of a strip

  struct Place {
    std::int64_t stage = 0, wave = 0;
    std::int64_t copy = 0;  // of the wave in the stage
    std::int64_t lane = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  // Lanes [first, end) of a strip. Precondition: the wave copies into the stage.
  [[nodiscard]] QRectF lanes_rect(const Place& first, std::int64_t end) const;
  [[nodiscard]] std::optional<Place> at(QPointF point) const;
};

[[nodiscard]] LdsLayout lds_layout(LdsSize size, const QRectF& body, double font_scale);

}  // namespace kvscope::viz
