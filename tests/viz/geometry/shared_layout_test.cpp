// Where chunks, banks and wavefronts are, for each size of the panel: what is drawn is found again, nothing leaves the
// body, and lines that do not fit are scrolled and stated.
#include "viz/geometry/shared_layout.h"

#include <gmock/gmock.h>

#include <vector>

namespace kvscope::viz::shared_layout_test {
namespace {

// A tile of 64 x 128 bf16 by TMA: 2 bands of 64 lines of 8 chunks.
SharedSize two_bands() {
  return {.lines = 128,
          .chunks = 8,
          .band_lines = 64,
          .label_width = 14,
          .chunk_width = 14,
          .compare = true,
          .reads = true};
}

const QRectF kBody(700, 200, 480, 470);

template <class Check>
void for_each_layout(const Check& check) {
  for (const QSizeF size : {QSizeF(100, 60), QSizeF(240, 200), QSizeF(397, 260), QSizeF(480, 470), QSizeF(900, 1200)}) {
    for (const double scale : {0.75, 1.0, 1.6, 2.5}) {
      for (const std::int64_t lines : {1, 7, 32, 128, 576}) {
        for (const std::int64_t band : {0, 16, 64}) {
          for (const bool compare : {false, true}) {
            for (const double offset : {0.0, 37.0, 1e9}) {
              SharedSize of{lines, 8, band, 20 * scale, 14 * scale, compare, true};
              const QRectF body(QPointF(31, 17), size);
              check(shared_layout(of, body, {0, {0, offset}}, scale), body);
              if (testing::Test::HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

// The example of the header.
TEST(SharedLayout, ThirtyTwoLinesFitIntoTwoGridsAndNothingIsScrolled) {
  const SharedLayout at = shared_layout({32, 8, 0, 14, 12, true, true}, {0, 0, 480, 470}, {}, 1);
  EXPECT_EQ(at.pitch, 10);
  EXPECT_EQ(at.grid.width(), 217);
  EXPECT_EQ(at.grid_off.width(), 217);
  EXPECT_TRUE(at.more.isEmpty());
  EXPECT_TRUE(at.bar.isEmpty());
  EXPECT_EQ(at.first_line(), 0);
  EXPECT_EQ(at.end_line(), 32);
}

TEST(SharedLayout, EveryCellThatIsVisibleIsFoundAtItsCenter) {
  std::int64_t cells = 0;
  for_each_layout([&](const SharedLayout& at, const QRectF&) {
    for (std::int64_t line = at.first_line(); line < at.end_line(); ++line) {
      for (std::int64_t chunk = 0; chunk < at.size.chunks; ++chunk) {
        for (const bool off : {false, true}) {
          if (off && at.grid_off.isEmpty()) continue;
          const SharedLayout::Place place{line, chunk, off};
          const QRectF rect = at.cell_rect(place).intersected(off ? at.grid_off : at.grid);
          if (rect.height() < 0.5 || rect.width() < 0.5) continue;
          ASSERT_EQ(at.at(rect.center()), place) << line << " " << chunk;
          ++cells;
        }
      }
    }
  });
  EXPECT_GT(cells, 100'000);
}

TEST(SharedLayout, NothingIsFoundBesideTheGridsNorInTheGapAfterABand) {
  const SharedLayout at = shared_layout(two_bands(), kBody, {0, {0, 400}}, 1);
  ASSERT_FALSE(at.grid_off.isEmpty());
  EXPECT_EQ(at.at({at.grid.right() + 3, at.grid.center().y()}), std::nullopt);
  EXPECT_EQ(at.at({at.grid.center().x(), at.grid.top() - 1}), std::nullopt);
  EXPECT_EQ(at.at({at.grid.center().x(), at.grid.bottom() + 1}), std::nullopt);
  const QRectF last = at.cell_rect({63, 0, false}), next = at.cell_rect({64, 0, false});
  ASSERT_GT(next.top() - last.bottom(), 4);
  ASSERT_TRUE(at.grid.contains(QPointF(at.grid.center().x(), last.bottom() + 3)));
  EXPECT_EQ(at.at({at.grid.center().x(), last.bottom() + 3}), std::nullopt);
  EXPECT_EQ(at.label_at({at.labels.center().x(), next.center().y()}), 64);
}

TEST(SharedLayout, NoPartLeavesTheBodyOrCoversAnother) {
  for_each_layout([](const SharedLayout& at, const QRectF& body) {
    const std::vector<QRectF> parts{
        at.caption, at.caption_off, at.banks,     at.banks_off,   at.labels,          at.grid,   at.grid_off, at.bar,
        at.more,    at.strip,       at.strip_off, at.strip_title, at.strip_title_off, at.verdict};
    for (std::size_t n = 0; n < parts.size(); ++n) {
      if (parts[n].isEmpty()) continue;
      ASSERT_TRUE(body.adjusted(-0.01, -0.01, 0.01, 0.01).contains(parts[n])) << n;
      for (std::size_t m = n + 1; m < parts.size(); ++m) {
        const QRectF both = parts[n].intersected(parts[m]);
        ASSERT_TRUE(both.width() < 0.01 || both.height() < 0.01) << n << " over " << m;
      }
    }
  });
}

// A label needs 9 px at font scale 1: more lines than fit are scrolled, not drawn smaller.
TEST(SharedLayout, LinesThatDoNotFitAreScrolledAndStated) {
  const SharedLayout at = shared_layout(two_bands(), kBody, {}, 1);
  EXPECT_EQ(at.pitch, 9);
  EXPECT_LT(at.end_line(), 128);
  EXPECT_FALSE(at.more.isEmpty());
  EXPECT_FALSE(at.bar.isEmpty());
  const SharedLayout end = shared_layout(two_bands(), kBody, {0, {0, 1e9}}, 1);
  EXPECT_GT(end.first_line(), 60);
  EXPECT_EQ(end.end_line(), 128);
  EXPECT_NEAR(end.bar.bottom(), end.grid.bottom(), 0.01);
}

TEST(SharedLayout, ZoomedOutEveryLineIsVisible) {
  const SharedLayout first = shared_layout(two_bands(), kBody, {}, 1);
  const SharedLayout at = shared_layout(two_bands(), kBody, shared_zoomed(first, 0.01, kBody.center()), 1);
  EXPECT_EQ(at.first_line(), 0);
  EXPECT_EQ(at.end_line(), 128);
  EXPECT_TRUE(at.bar.isEmpty());
}

TEST(SharedLayout, ZoomKeepsTheLineUnderThePointer) {
  const Viewport scrolled{0, {0, 300}};
  const SharedLayout before = shared_layout(two_bands(), kBody, scrolled, 1);
  for (const double y : {20.0, 111.0, 160.0}) {
    const QPointF at(before.grid.center().x(), before.grid.top() + y);
    const SharedLayout after = shared_layout(two_bands(), kBody, shared_zoomed(before, 1.5, at), 1);
    ASSERT_TRUE(before.at(at) && after.at(at)) << y;
    EXPECT_EQ(after.at(at)->line, before.at(at)->line) << y;
  }
}

TEST(SharedLayout, RevealingShowsTheWholeLineAndMovesNothingThatIsVisible) {
  Viewport viewport;
  for (const std::int64_t line : {0, 127, 5, 63, 64, 64}) {
    viewport = shared_revealing(shared_layout(two_bands(), kBody, viewport, 1), viewport, line);
    const SharedLayout at = shared_layout(two_bands(), kBody, viewport, 1);
    EXPECT_TRUE(at.grid.adjusted(0, -0.01, 0, 0.01).contains(at.cell_rect({line, 0, false}))) << line;
    EXPECT_EQ(shared_revealing(at, viewport, line), viewport);
  }
}

TEST(SharedLayout, ScrollingStopsAtBothEnds) {
  const SharedLayout at = shared_layout(two_bands(), kBody, {}, 1);
  EXPECT_EQ(shared_scrolled(at, {}, {0, -50}).offset.y(), 0);
  EXPECT_EQ(shared_scrolled(at, {}, {0, 1e6}).offset.y(), at.content() - at.room);
  EXPECT_EQ(shared_scrolled(at, {}, {0, 12}).offset.y(), 12);
}

TEST(SharedLayout, TheSecondGridNeedsRoomForItsLabels) {
  SharedSize size = two_bands();
  EXPECT_FALSE(shared_layout(size, kBody, {}, 1).grid_off.isEmpty());
  size.chunks = 16;
  EXPECT_TRUE(shared_layout(size, kBody, {}, 1).grid_off.isEmpty());
  EXPECT_FALSE(shared_layout(size, kBody, {}, 1).strip_off.isEmpty());  // the comparison stays
  size = two_bands();
  size.compare = false;
  EXPECT_TRUE(shared_layout(size, kBody, {}, 1).grid_off.isEmpty());
  EXPECT_TRUE(shared_layout(size, kBody, {}, 1).strip_off.isEmpty());
}

TEST(SharedLayout, WavefrontsOfAStripDoNotOverlapAndStayInIt) {
  const QRectF strip(10, 20, 219, 40);
  for (const std::int64_t wavefronts : {1, 4, 8, 32}) {
    double bottom = strip.top();
    for (std::int64_t w = 0; w < wavefronts; ++w) {
      double right = strip.left();
      for (std::int64_t bank = 0; bank < 32; ++bank) {
        const QRectF rect = strip_rect(strip, 32, wavefronts, bank, w);
        EXPECT_GE(rect.left(), right);
        EXPECT_GE(rect.top(), bottom);
        right = rect.right();
      }
      bottom = strip_rect(strip, 32, wavefronts, 0, w).bottom();
    }
    EXPECT_LE(bottom, strip.bottom() + 0.01);
  }
}

}  // namespace
}  // namespace kvscope::viz::shared_layout_test
