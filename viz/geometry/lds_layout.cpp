#include "viz/geometry/lds_layout.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {
namespace {

// [px] at font scale 1
constexpr double kLdsAxis = 13, kLdsTitle = 19, kLdsLine = 16, kLdsWarning = 32, kLdsLabel = 50, kLdsAfterStage = 4;
constexpr double kLdsHighest = 16, kLdsGapFrom = 3;
constexpr double kLdsEnough = 5;  // [px] of a strip, for which the schedule and the counters make room
constexpr double kLdsLeast = 2;   // [px] of a strip
constexpr double kLdsWaveGap = 3;

struct LdsCount {
  double strips = 0, groups = 0;
};

LdsCount count_of(const LdsSize& size) {
  LdsCount count;
  for (const auto& stage : size.copies) {
    for (const std::int64_t copies : stage) {
      count.strips += static_cast<double>(copies);
      count.groups += copies > 0 ? 1 : 0;
    }
  }
  return count;
}

const LdsWave* find_wave(const LdsLayout& layout, std::int64_t stage, std::int64_t wave) {
  if (stage < 0 || stage >= std::ssize(layout.stages)) return nullptr;
  const std::vector<LdsWave>& waves = layout.stages[static_cast<std::size_t>(stage)].waves;
  const auto found = std::ranges::find(waves, wave, &LdsWave::wave);
  return found == waves.end() ? nullptr : &*found;
}

}  // namespace

LdsLayout lds_layout(LdsSize size, const QRectF& body, double font_scale) {
  LdsLayout at;
  at.size = std::move(size);
  const auto px = [&](double n) { return std::round(n * font_scale); };
  const LdsCount count = count_of(at.size);
  const auto stages = static_cast<double>(at.size.copies.size());
  const auto waves = at.size.copies.empty() ? 0 : std::ssize(at.size.copies.front());
  const double above = px(kLdsAxis) + stages * px(kLdsTitle + kLdsAfterStage) + count.groups * px(kLdsWaveGap);
  const double counters = px(kLdsTitle) + static_cast<double>(waves) * px(kLdsLine);
  const double lines = static_cast<double>(at.size.schedule);
  const double schedule = px(kLdsTitle) + lines * px(kLdsLine);
  double room = body.height() - above;
  const auto take = [&](double height, double strip) {
    if (room - height < count.strips * strip * font_scale) return false;
    room -= height;
    return true;
  };
  const bool warns = take(px(kLdsWarning), kLdsLeast);
  const bool counts = waves > 0 && take(counters, kLdsEnough);
  // Of a long schedule as many lines as fit, two at least.
  double shown = lines;
  const auto fits = [&](double n) {
    return room - px(kLdsTitle) - n * px(kLdsLine) >= count.strips * kLdsEnough * font_scale;
  };
  while (shown > 2 && !fits(shown)) --shown;
  const bool plans = lines > 0 && (counts || waves == 0) && fits(shown);
  if (plans) room -= schedule - (lines - shown) * px(kLdsLine);
  const double fit = count.strips > 0 ? room / count.strips : 0;
  at.pitch = std::max(fit >= kLdsGapFrom ? std::floor(std::min(fit, kLdsHighest * font_scale)) : fit, 0.1);
  at.gap = at.pitch >= kLdsGapFrom ? 1 : 0;
  const double label = std::floor(std::min(kLdsLabel * font_scale, body.width() / 3));
  const QRectF strips(body.left() + label, body.top(), std::max(body.width() - label, 1.0), 0);
  double y = body.top();
  at.axis = QRectF(strips.left(), y, strips.width(), px(kLdsAxis));
  y = at.axis.bottom();
  for (const auto& copies : at.size.copies) {
    LdsStage stage;
    stage.title = QRectF(body.left(), y, body.width(), px(kLdsTitle));
    y = stage.title.bottom();
    for (std::int64_t wave = 0; wave < std::ssize(copies); ++wave) {
      const std::int64_t n = copies[static_cast<std::size_t>(wave)];
      if (n < 1) continue;
      const double height = at.pitch * static_cast<double>(n);
      stage.waves.push_back({wave, QRectF(body.left(), y, label, std::max(height, 1.0)),
                             QRectF(strips.left(), y, strips.width(), height), n});
      y += height + px(kLdsWaveGap);
    }
    y += px(kLdsAfterStage);
    at.stages.push_back(std::move(stage));
  }
  const auto next = [&](double height) {
    const QRectF rect(body.left(), y, body.width(), height);
    y += height;
    return rect;
  };
  if (counts) {
    at.counter_title = next(px(kLdsTitle));
    for (std::int64_t wave = 0; wave < waves; ++wave) at.counters.push_back(next(px(kLdsLine)));
  }
  if (warns) at.warning = next(px(kLdsWarning));
  if (plans) {
    at.schedule_title = next(px(kLdsTitle));
    for (double n = 0; n < shown; ++n) at.schedule.push_back(next(px(kLdsLine)));
  }
  return at;
}

QRectF LdsLayout::lanes_rect(const Place& first, std::int64_t end) const {
  const LdsWave* const of = find_wave(*this, first.stage, first.wave);
  if (of == nullptr) return {};
  const double lane = of->strips.width() / static_cast<double>(std::max<std::int64_t>(size.lanes, 1));
  const double left = std::round(of->strips.left() + lane * static_cast<double>(first.lane));
  const double right = std::round(of->strips.left() + lane * static_cast<double>(end));
  return {left, of->strips.top() + pitch * static_cast<double>(first.copy), std::max(right - left, 1.0), pitch - gap};
}

std::optional<LdsLayout::Place> LdsLayout::at(QPointF point) const {
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (const LdsWave& wave : stages[stage].waves) {
      if (!wave.strips.contains(point)) continue;
      const double lane = wave.strips.width() / static_cast<double>(std::max<std::int64_t>(size.lanes, 1));
      return Place{static_cast<std::int64_t>(stage), wave.wave,
                   std::min(static_cast<std::int64_t>((point.y() - wave.strips.top()) / pitch), wave.copies - 1),
                   std::clamp<std::int64_t>(static_cast<std::int64_t>((point.x() - wave.strips.left()) / lane), 0,
                                            size.lanes - 1)};
    }
  }
  return std::nullopt;
}

}  // namespace kvscope::viz
