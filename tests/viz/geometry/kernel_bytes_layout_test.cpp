// Words of shared memory over the banks, for each size of the view: no word covers another, each word is at its
// rectangle, and visible() is exactly the lines in the view.
#include "viz/geometry/kernel_bytes_layout.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "tests/whole_grid.h"

namespace kvscope::viz::kernel_bytes_layout_test {
namespace {

using test::require;

struct Point {
  double width = 0, scale = 0;
  std::int64_t bytes = 0;
  std::uint64_t base = 0;
  double scroll = 0;
};

KernelBytesLayout layout_of(const Point& p) {
  return kernel_bytes_layout(p.width, p.scale, p.bytes, p.base, p.scroll);
}

std::string text_of(const Point& p) {
  std::ostringstream out;
  out << p.width << " px, scale " << p.scale << ", " << p.bytes << " bytes at " << p.base << ", scrolled " << p.scroll;
  return out.str();
}

// Bases that are no multiple of 128, one that is no multiple of 8, and one beyond 32 bits.
std::vector<Point> points() {
  std::vector<Point> all;
  for (const double width : {0.0, 90.0, 353.0, 700.5, 1311.0}) {
    for (const double scale : {0.7, 1.0, 1.6, 2.5}) {
      for (const std::int64_t bytes : {0, 1, 3, 4, 5, 127, 128, 129, 1000, 4096}) {
        for (const std::uint64_t base : {std::uint64_t{0}, std::uint64_t{0x400}, std::uint64_t{0x404},
                                         std::uint64_t{0x47c}, (std::uint64_t{1} << 40) + 20}) {
          for (const double scroll : {0.0, 7.0, 45.5, 300.0}) all.push_back({width, scale, bytes, base, scroll});
        }
      }
    }
  }
  return all;
}

template <class Law>
void hold(const char* what, const Law& law) {
  EXPECT_GT(test::for_whole_grid(what, points(), 49, law, text_of), 80U);
}

// 1000 bytes are 250 words; the first of them is in bank 1, so they end in line (1 + 249) / 32 = 7.
TEST(KernelBytesLayout, CountsWordsAndLinesFromTheBankOfTheFirst) {
  const KernelBytesLayout at = kernel_bytes_layout(704, 1, 1000, 0x404, 0);
  EXPECT_EQ(at.words, 250);
  EXPECT_EQ(at.first_bank, 1);
  EXPECT_EQ(at.lines(), 8);
  EXPECT_EQ(at.height(), at.head + 8 * at.line);
  EXPECT_EQ(at.cell, 20);
  // 31 words more fill the line to its end, one more begins another.
  EXPECT_EQ(kernel_bytes_layout(704, 1, 4 * 31, 0x404, 0).lines(), 1);
  EXPECT_EQ(kernel_bytes_layout(704, 1, 4 * 32, 0x404, 0).lines(), 2);
}

TEST(KernelBytesLayout, NoBytesAreNoWordsAndNoLines) {
  for (const Point& p : points()) {
    if (p.bytes != 0) continue;
    const KernelBytesLayout at = layout_of(p);
    EXPECT_EQ(at.words, 0);
    EXPECT_EQ(at.lines(), 0);
    EXPECT_EQ(at.height(), at.head);
    const auto [first, last] = at.visible(500);
    EXPECT_GE(first, last);
    EXPECT_EQ(at.word_at({at.axis + 3, at.head + 3}), std::nullopt);
  }
}

TEST(KernelBytesLayout, TheBankOfAWordIsThatOfItsAddress) {
  hold("banks", [](const Point& p) {
    const KernelBytesLayout at = layout_of(p);
    for (std::int64_t w = 0; w < at.words; ++w) {
      const std::uint64_t address = p.base + 4 * static_cast<std::uint64_t>(w);
      const QRectF cell = at.word(w), bank = at.bank(static_cast<std::int64_t>(address / 4 % 32));
      require(cell.left() == bank.left() && cell.width() == bank.width(), "a word is under another bank");
      // A line begins at a multiple of 128 bytes.
      const QRectF line = at.address(static_cast<std::int64_t>(address / 128 - p.base / 128));
      require(cell.top() == line.top() && cell.height() == line.height(), "a word is in another line");
    }
  });
}

TEST(KernelBytesLayout, WordsDoNotOverlapAndLeaveTheAxisFree) {
  hold("overlaps", [](const Point& p) {
    const KernelBytesLayout at = layout_of(p);
    for (std::int64_t w = 0; w < at.words; ++w) {
      const QRectF cell = at.word(w);
      require(cell.width() >= 6 && cell.height() > 0, "a word is too small");
      require(cell.left() >= at.axis - 1e-9, "a word covers the addresses");
      if (w == 0) continue;
      const QRectF before = at.word(w - 1);
      require(cell.top() == before.top() ? cell.left() >= before.right() - 1e-9 : cell.top() >= before.bottom() - 1e-9,
              "a word covers the one before");
    }
    require(at.bank(31).right() <= std::max(p.width, at.axis + 32 * 6) + 1e-6, "the banks leave the view");
  });
}

TEST(KernelBytesLayout, APointBelongsToTheWordWhoseCellHoldsIt) {
  hold("points", [](const Point& p) {
    const KernelBytesLayout at = layout_of(p);
    for (std::int64_t w = 0; w < at.words; ++w) {
      const QRectF cell = at.word(w);
      for (const double x : {0.01, 0.5, 0.99}) {
        for (const double y : {0.01, 0.5, 0.99}) {
          const QPointF point(cell.left() + x * cell.width(), cell.top() + y * cell.height());
          const auto found = at.word_at(point);
          // The numbers of the banks cover words that are scrolled below them.
          require(found == (point.y() < at.head ? std::nullopt : std::optional(w)), "another word is found");
        }
      }
    }
    const double middle = at.head + at.line / 2 - p.scroll;
    require(!at.word_at({at.axis - 0.01, std::max(middle, at.head)}), "a word at the addresses");
    require(!at.word_at({at.bank(31).right() + 0.01, std::max(middle, at.head)}), "a word beside the banks");
    require(!at.word_at({at.axis + 1, at.height() - p.scroll + 0.01}), "a word below the last line");
    if (at.first_bank > 0) require(!at.word_at(at.word(-1).center()), "a word before the first");
    require(!at.word_at(at.word(at.words).center()), "a word after the last");
  });
}

TEST(KernelBytesLayout, TheVisibleLinesAreExactlyThoseOfWhichSomethingIsSeen) {
  hold("visible lines", [](const Point& p) {
    const KernelBytesLayout at = layout_of(p);
    for (const double height : {0.0, 5.0, at.head, at.head + 1, 77.0, 200.0, 5000.0}) {
      const auto [first, last] = at.visible(height);
      require(first >= 0 && first <= last && last <= at.lines(), "no range of lines");
      for (std::int64_t line = 0; line < at.lines(); ++line) {
        const QRectF box = at.address(line);
        const bool seen = box.bottom() > at.head + 1e-9 && box.top() < height - 1e-9;
        require(seen == (line >= first && line < last), seen ? "a line is missing" : "a line is not seen");
      }
    }
  });
}

}  // namespace
}  // namespace kvscope::viz::kernel_bytes_layout_test
