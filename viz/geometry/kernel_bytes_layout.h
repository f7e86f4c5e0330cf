// Shared memory as words of 4 bytes over the 32 banks: one line per 128 bytes, the address at its left, the banks
// above. With base 0x400, word 33 is at address 0x484: line 1, bank 1.
//
//            bank 0    1    2  ...  31
//   0x00400      [ ]  [ ]  [ ]      [ ]
//   0x00480      [ ]  [ ]  [ ]      [ ]
#pragma once

#include <cstdint>
#include <optional>

#include <QtCore/QPointF>
#include <QtCore/QRectF>

namespace kvscope::viz {

inline constexpr std::int64_t kBankBytes = 4, kBanks = 32, kBankLineBytes = kBankBytes * kBanks;

struct KernelBytesLayout {
  double axis = 0;    // [px] width of the addresses
  double head = 0;    // [px] height of the banks' numbers
  double cell = 0;    // [px] width of a word
  double line = 0;    // [px] height of a line
  double scroll = 0;  // [px] that the lines are moved up
  std::int64_t words = 0;
  std::int64_t first_bank = 0;  // of word 0

  [[nodiscard]] std::int64_t lines() const;
  [[nodiscard]] double height() const { return head + line * static_cast<double>(lines()); }  // of everything
  [[nodiscard]] QRectF word(std::int64_t number) const;
  [[nodiscard]] QRectF address(std::int64_t line_number) const;
  [[nodiscard]] QRectF bank(std::int64_t number) const;
  [[nodiscard]] std::optional<std::int64_t> word_at(QPointF point) const;  // nullopt: none is there
  // The lines [first, last) of which something is seen in a view of that height.
  struct Lines {
    std::int64_t first = 0, last = 0;
  };
  [[nodiscard]] Lines visible(double view_height) const;
};

// `width`: of the view; the words take what the axis leaves.
[[nodiscard]] KernelBytesLayout kernel_bytes_layout(double width, double font_scale, std::int64_t bytes,
                                                    std::uint64_t base, double scroll);

}  // namespace kvscope::viz
