#include "viz/geometry/memory_layout.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {
namespace {

constexpr double kTableHeight = 26, kBelowTable = 10, kLabelWidth = 104, kJumpHeight = 44;  // [px] at font scale 1
constexpr double kHighestRow = 16, kGapFrom = 4, kLowestTable = 150;                        // [px]
constexpr double kLabelShare = 0.42;                                                        // of the body's width
constexpr double kJumpShare = 0.35;  // of the height, for all jumps together

}  // namespace

MemoryLayout memory_layout(std::vector<MemoryPart> parts, const QRectF& body, double font_scale) {
  MemoryLayout layout;
  layout.parts = std::move(parts);
  QRectF area = body;
  if (body.height() >= kLowestTable * font_scale) {
    layout.table = QRectF(body.left(), body.top(), body.width(), std::round(kTableHeight * font_scale));
    area.setTop(layout.table.bottom() + std::round(kBelowTable * font_scale));
  }
  std::int64_t rows = 0;
  for (const MemoryPart& part : layout.parts) rows += part.rows;
  if (rows == 0) return layout;
  const auto jumps = static_cast<double>(layout.parts.size() - 1);
  const double jump =
      jumps > 0 ? std::floor(std::min(kJumpHeight * font_scale, kJumpShare * area.height() / jumps)) : 0;
  const double fit = (area.height() - jumps * jump) / static_cast<double>(rows);
  layout.pitch = fit >= kGapFrom ? std::floor(std::min(fit, kHighestRow * font_scale)) : std::max(fit, 0.1);
  layout.gap = layout.pitch >= kGapFrom ? 1 : 0;
  const double label = std::floor(std::min(kLabelWidth * font_scale, kLabelShare * area.width()));
  double top = area.top();
  for (std::size_t n = 0; n < layout.parts.size(); ++n) {
    const double height = layout.pitch * static_cast<double>(layout.parts[n].rows);
    const bool last = n + 1 == layout.parts.size();
    layout.groups.push_back({QRectF(area.left(), top, label, height),
                             QRectF(area.left() + label, top, area.width() - label, height),
                             last ? QRectF() : QRectF(area.left(), top + height, area.width(), jump)});
    top += height + jump;
  }
  return layout;
}

std::optional<QRectF> MemoryLayout::row_rect(std::int64_t row) const {
  for (std::size_t n = 0; n < parts.size(); ++n) {
    const std::int64_t of_part = row - parts[n].first;
    if (of_part < 0 || of_part >= parts[n].rows) continue;
    const QRectF& rows = groups[n].rows;
    return QRectF(rows.left(), rows.top() + pitch * static_cast<double>(of_part), rows.width(), pitch - gap);
  }
  return std::nullopt;
}

std::optional<std::int64_t> MemoryLayout::row_at(QPointF point) const {
  for (std::size_t n = 0; n < groups.size(); ++n) {
    const QRectF& rows = groups[n].rows;
    if (point.x() < rows.left() || point.x() >= rows.right() || point.y() < rows.top() || point.y() >= rows.bottom()) {
      continue;
    }
    const auto of_part = static_cast<std::int64_t>((point.y() - rows.top()) / pitch);
    return parts[n].first + std::min(of_part, parts[n].rows - 1);
  }
  return std::nullopt;
}

}  // namespace kvscope::viz
