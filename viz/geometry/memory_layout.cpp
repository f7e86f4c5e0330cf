#include "viz/geometry/memory_layout.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {
namespace {

constexpr double kTableHeight = 26, kBelowTable = 10, kLabelWidth = 104, kJumpHeight = 44;  // [px] at font scale 1
constexpr double kHighestRow = 16, kGapFrom = 4, kLowestTable = 150;                        // [px]
constexpr double kLeastPitch = 1e-3;  // [px] rows of a body that has no height have one too, so that none is lost
constexpr double kLabelShare = 0.42;  // of the body's width
constexpr double kJumpShare = 0.35;   // of the height, for all jumps together
constexpr double kBytesShare = 0.5;   // of the height, for the bytes of a row; if they need more, they are not drawn
constexpr double kHeading = 14, kBeside = 6, kByteLine = 8, kBytesTitle = 18;  // [px] at font scale 1
constexpr double kOffsets = 26, kOffsetCharacter = 5.25;  // [px] at font scale 1: of four characters, and of one more

}  // namespace

MemoryLayout memory_layout(std::vector<MemoryPart> parts, const QRectF& body, double font_scale,
                           const MemoryExtras& extras) {
  MemoryLayout layout;
  layout.parts = std::move(parts);
  QRectF area = body;
  if (body.height() >= kLowestTable * font_scale) {
    layout.table = QRectF(body.left(), body.top(), body.width(), std::round(kTableHeight * font_scale));
    area.setTop(layout.table.bottom() + std::round(kBelowTable * font_scale));
  }
  if (extras.bytes > 0 && extras.bytes <= kBytesShare * area.height()) {
    layout.bytes = QRectF(area.left(), area.bottom() - extras.bytes, area.width(), extras.bytes);
    area.setBottom(layout.bytes.top() - kBeside * font_scale);
  }
  const double scales = std::min(extras.scales, area.width() / 3), beside = scales > 0 ? kBeside * font_scale : 0;
  if (scales > 0) {
    layout.heading =
        QRectF(area.left(), area.top() - kBelowTable * font_scale / 2, area.width(), kHeading * font_scale);
    area.setTop(layout.heading.bottom() + 2);
  }
  std::int64_t rows = 0;
  for (const MemoryPart& part : layout.parts) rows += part.rows;
  if (rows == 0) return layout;
  const auto jumps = static_cast<double>(layout.parts.size() - 1);
  const double jump =
      jumps > 0 ? std::floor(std::min(kJumpHeight * font_scale, kJumpShare * area.height() / jumps)) : 0;
  const double fit = (area.height() - jumps * jump) / static_cast<double>(rows);
  layout.pitch = fit >= kGapFrom ? std::floor(std::min(fit, kHighestRow * font_scale)) : std::max(fit, kLeastPitch);
  layout.gap = layout.pitch >= kGapFrom ? 1 : 0;
  const double label = std::floor(std::min(kLabelWidth * font_scale, kLabelShare * area.width()));
  double top = area.top();
  for (std::size_t n = 0; n < layout.parts.size(); ++n) {
    const double height = layout.pitch * static_cast<double>(layout.parts[n].rows);
    const bool last = n + 1 == layout.parts.size();
    const QRectF row_area(area.left() + label, top, area.width() - label - scales - beside, height);
    layout.groups.push_back({QRectF(area.left(), top, label, height), row_area,
                             scales > 0 ? QRectF(row_area.right() + beside, top, scales, height) : QRectF(),
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

std::optional<QRectF> MemoryLayout::scale_rect(std::int64_t row) const {
  for (std::size_t n = 0; n < parts.size(); ++n) {
    const std::int64_t of_part = row - parts[n].first;
    if (of_part < 0 || of_part >= parts[n].rows || groups[n].scales.isEmpty()) continue;
    const QRectF& scales = groups[n].scales;
    return QRectF(scales.left(), scales.top() + pitch * static_cast<double>(of_part), scales.width(), pitch - gap);
  }
  return std::nullopt;
}

RowBytesLayout row_bytes_layout(std::int64_t bytes, const QRectF& area, double font_scale) {
  RowBytesLayout layout;
  const double title = std::round(kBytesTitle * font_scale);
  layout.title = QRectF(area.left(), area.top(), area.width(), title);
  std::int64_t digits = 1;  // of the largest offset
  for (std::int64_t left = bytes - 1; left >= 10; left /= 10) ++digits;
  const std::int64_t commas = (digits - 1) / 3;
  const auto more = static_cast<double>(std::max<std::int64_t>(digits + commas - 4, 0));
  layout.offset = std::round((kOffsets + kOffsetCharacter * more) * font_scale);
  layout.byte = std::max((area.width() - layout.offset) / static_cast<double>(kBytesOfLine), 0.5);
  layout.line = std::round(kByteLine * font_scale);
  const auto lines = static_cast<double>((bytes + kBytesOfLine - 1) / kBytesOfLine);
  layout.grid = QRectF(area.left() + layout.offset, area.top() + title, layout.byte * static_cast<double>(kBytesOfLine),
                       layout.line * lines);
  return layout;
}

QRectF RowBytesLayout::rect(std::int64_t first, std::int64_t count) const {
  return {grid.left() + byte * static_cast<double>(first % kBytesOfLine),
          grid.top() + line * static_cast<double>(first / kBytesOfLine), byte * static_cast<double>(count), line - 1};
}

double row_bytes_height(std::int64_t bytes, double font_scale) {
  const auto lines = static_cast<double>((bytes + kBytesOfLine - 1) / kBytesOfLine);
  return std::round(kBytesTitle * font_scale) + std::round(kByteLine * font_scale) * lines;
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
