#include "viz/geometry/kernel_bytes_layout.h"

#include <algorithm>
#include <cmath>

namespace kvscope::viz {
namespace {

constexpr double kBytesAxis = 64, kBytesHead = 20, kBytesLine = 18;  // [px] at font scale 1
constexpr double kSmallestWord = 6;                                  // [px]

}  // namespace

std::int64_t KernelBytesLayout::lines() const {
  return words == 0 ? 0 : (first_bank + words + kBanks - 1) / kBanks;
}

QRectF KernelBytesLayout::word(std::int64_t number) const {
  const std::int64_t place = first_bank + number;
  return {axis + cell * static_cast<double>(place % kBanks), head + line * static_cast<double>(place / kBanks) - scroll,
          cell, line};
}

QRectF KernelBytesLayout::address(std::int64_t line_number) const {
  return {0, head + line * static_cast<double>(line_number) - scroll, axis, line};
}

QRectF KernelBytesLayout::bank(std::int64_t number) const {
  return {axis + cell * static_cast<double>(number), 0, cell, head};
}

std::optional<std::int64_t> KernelBytesLayout::word_at(QPointF point) const {
  if (point.x() < axis || point.y() < head || cell <= 0 || line <= 0) return std::nullopt;
  const auto column = static_cast<std::int64_t>(std::floor((point.x() - axis) / cell));
  const auto row = static_cast<std::int64_t>(std::floor((point.y() - head + scroll) / line));
  const std::int64_t number = row * kBanks + column - first_bank;
  if (column >= kBanks || number < 0 || number >= words) return std::nullopt;
  return number;
}

KernelBytesLayout::Lines KernelBytesLayout::visible(double view_height) const {
  const auto first = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(scroll / line)), 0, lines());
  const auto last = static_cast<std::int64_t>(std::ceil((scroll + view_height - head) / line));
  return {first, std::clamp<std::int64_t>(last, first, lines())};
}

KernelBytesLayout kernel_bytes_layout(double width, double font_scale, std::int64_t bytes, std::uint64_t base,
                                      double scroll) {
  KernelBytesLayout out;
  out.axis = kBytesAxis * font_scale;
  out.head = kBytesHead * font_scale;
  out.line = kBytesLine * font_scale;
  out.cell = std::max(kSmallestWord, (width - out.axis) / static_cast<double>(kBanks));
  out.scroll = scroll;
  out.words = (bytes + kBankBytes - 1) / kBankBytes;
  out.first_bank = static_cast<std::int64_t>(base / kBankBytes % kBanks);
  return out;
}

}  // namespace kvscope::viz
