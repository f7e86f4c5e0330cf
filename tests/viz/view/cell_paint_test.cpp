// Looks of cells differ without their hue; the fast painter against the exact one; the legend fits its line.
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <QtGui/QImage>
#include <QtGui/QPicture>

#include "viz/view/cell_paint.h"
#include "viz/view/cell_painter.h"

namespace kvscope::viz::cell_paint_test {
namespace {

BlockState held_by(std::int32_t owner, std::int32_t ref_count, bool cached = false) {
  BlockState block;
  block.owner = owner;
  block.page = 0;
  block.ref_count = ref_count;
  block.cached = cached;
  return block;
}

QImage cell_image(Look look, double filled, int side, const Theme& theme) {
  QImage image(side, side, QImage::Format_RGB32);
  image.fill(theme.card);
  QPainter painter(&image);
  paint_cell(painter, QRectF(0, 0, side, side), look, filled, theme);
  painter.end();
  return image;
}

TEST(CellPaint, ABlocksLookFollowsFromItsState) {
  EXPECT_EQ(block_look(BlockState{}), kFreeLook);
  EXPECT_EQ(block_look(held_by(0, 1)), owner_look(0));
  EXPECT_EQ(block_look(held_by(37, 1)), owner_look(37));
  EXPECT_EQ(block_look(held_by(37, 2)), kSharedLook);
  EXPECT_EQ(block_look(held_by(3, 0, true)), cached_look(3));
  EXPECT_EQ(owner_look(31), kFirstOwnerLook + 31);
  EXPECT_EQ(owner_look(32), owner_look(0));  // eight colors times four patterns
  EXPECT_EQ(cached_look(31), kLooks - 1);
}

// From the minimum size of a pattern on, the 32 owners and all other kinds differ in gray images too: hue is not
// needed.
TEST(CellPaint, NoTwoLooksArePaintedAlike) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
    for (const int side : {9, 24}) {
      std::vector<QImage> pictures;
      for (int look = 0; look < kFirstCachedLook; ++look) {
        pictures.push_back(
            cell_image(static_cast<Look>(look), 1, side, theme(kind)).convertToFormat(QImage::Format_Grayscale8));
      }
      pictures.push_back(cell_image(cached_look(0), 1, side, theme(kind)).convertToFormat(QImage::Format_Grayscale8));
      for (std::size_t a = 0; a < pictures.size(); ++a) {
        for (std::size_t b = a + 1; b < pictures.size(); ++b) {
          EXPECT_NE(pictures[a], pictures[b]) << a << " and " << b << " at " << side;
        }
      }
    }
  }
}

// Shared is a hatch, not only a color; the null page and padding have their signs.
TEST(CellPaint, SharedNullPageCachedAndPaddingHaveASignOfTheirOwn) {
  const Theme& dark = theme(ThemeKind::dark);
  for (const Look look : {kSharedLook, kNullPageLook, kPaddingLook, cached_look(0), owner_look(8)}) {
    const QImage image = cell_image(look, 1, 16, dark);
    std::set<QRgb> colors;
    for (int y = 3; y < 13; ++y) {
      for (int x = 0; x < 16; ++x) colors.insert(image.pixel(x, y));
    }
    EXPECT_GE(colors.size(), 2U) << int{look};
  }
}

TEST(CellPaint, TextReadsOnEveryFill) {
  for (const ThemeKind kind : kThemeKinds) {
    const Theme& of = theme(kind);
    for (int look = 0; look < kLooks; ++look) {
      const Look l = static_cast<Look>(look);
      EXPECT_GE(contrast(look_ink(of, l), look_fill(of, l)), 4.5) << look;
    }
    for (std::int64_t seq = 0; seq < 8; ++seq) {
      const QColor owner = of.owner_style(seq).fill, name = readable(of, owner, of.card);
      EXPECT_GE(contrast(name, of.card), 4.5) << seq;
      EXPECT_NE(name, of.text) << seq;
      EXPECT_LE(std::min(std::abs(name.hue() - owner.hue()), 360 - std::abs(name.hue() - owner.hue())), 25) << seq;
    }
    EXPECT_EQ(readable(of, of.text, of.card), of.text);
  }
}

// Copied cells and glyphs against the same calls drawn directly: a picture on the screen and its SVG must not differ.
// Sizes, places, levels and looks are random.
RC_GTEST_PROP(CellPainter, TheFastWayPaintsWhatTheExactOneDoes, ()) {
  const Theme& of = theme(*rc::gen::element(ThemeKind::dark, ThemeKind::light));
  const QSizeF size(*rc::gen::inRange(1, 60), *rc::gen::inRange(1, 50));
  struct Cell {
    QPointF at;
    Look look;
    double filled;
  };
  std::vector<Cell> cells;
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 4; ++column) {
      cells.push_back({QPointF(-20 + column * (size.width() + 3), -10 + row * (size.height() + 2)),
                       static_cast<Look>(*rc::gen::inRange(0, kLooks)), *rc::gen::inRange(0, 17) / 16.0});
    }
  }
  const QRectF body(0, 0, 150, 100);
  const auto paint = [&](QPainter& painter) {
    CellPainter to(painter, body, of);
    to.set_cell_size(size);
    to.set_font(mono_font(11));
    for (const Cell& cell : cells) {
      to.cell(cell.at, cell.look, cell.filled);
      const QRectF rect(cell.at, size);
      if (size.height() > 20 && size.width() > 24)
        to.label_on(cell.at + QPointF(4, 14), "18", rect, cell.look, cell.filled);
      if (size.height() > 20) to.badge(rect.bottomRight(), 3, 8);
      if (size.height() > 30) to.just_now(rect, JustNow::filled);
    }
  };
  QImage fast(170, 120, QImage::Format_ARGB32_Premultiplied), exact = fast;
  fast.fill(Qt::red);
  exact.fill(Qt::red);
  QPainter fast_painter(&fast);
  paint(fast_painter);
  fast_painter.end();
  QPicture calls;
  QPainter recorder(&calls);
  paint(recorder);
  recorder.end();
  QPainter exact_painter(&exact);
  exact_painter.drawPicture(0, 0, calls);
  exact_painter.end();
  // Antialiased edges may differ: fill levels between pixels, corners, starts of dashes. Whole areas may not differ, so
  // each pixel is compared with the nearest color around its place.
  double difference = 0;
  for (int y = 1; y + 1 < fast.height(); ++y) {
    for (int x = 1; x + 1 < fast.width(); ++x) {
      int nearest = 3 * 255;
      for (int n = 0; n < 9; ++n) {
        const QRgb a = fast.pixel(x, y), b = exact.pixel(x + n % 3 - 1, y + n / 3 - 1);
        nearest = std::min(
            nearest, std::abs(qRed(a) - qRed(b)) + std::abs(qGreen(a) - qGreen(b)) + std::abs(qBlue(a) - qBlue(b)));
      }
      difference += nearest;
    }
  }
  // The largest of 10,000 random pictures has 0.76. Of 300 pictures with a fill level 3 pixels off, some have more than 1.5.
  RC_ASSERT(difference / (fast.width() * fast.height() * 3) < 1.5);
}

// A number across the fill level: a digit half black and half white would not be legible. The number has the color for
// the empty part, and a rim in the empty part's color around it.
TEST(CellPainter, ANumberHasOneInkAndARimWhereItCrossesTheLevel) {
  const Theme& of = theme(ThemeKind::dark);
  const Look look = owner_look(5);  // light: black on it, white on its empty part
  const QColor fill = look_fill(of, look), empty = look_empty(of, look);
  const QColor on_fill = look_ink(of, look), on_empty = of.ink_on(empty);
  ASSERT_NE(on_fill, on_empty);
  for (const bool raster : {true, false}) {
    for (const double filled : {0.02, 0.2, 0.5, 0.9}) {
      QImage image(80, 40, QImage::Format_RGB32);
      QPicture calls;
      QPainter painter(raster ? static_cast<QPaintDevice*>(&image) : &calls);
      {
        CellPainter cells(painter, QRectF(0, 0, 80, 40), of);
        cells.set_cell_size({60, 30});
        cells.set_font(mono_font(18, QFont::Bold));
        cells.cell({10, 5}, look, filled);
        cells.label_on({14, 28}, "888", QRectF(10, 5, 60, 30), look, filled);
      }
      painter.end();
      if (!raster) {
        QPainter onto(&image);
        onto.drawPicture(0, 0, calls);
      }
      const auto count = [&](int left, int right, const QColor& color) {
        int found = 0;
        for (int y = 7; y < 33; ++y) {
          for (int x = left; x < right; ++x) found += image.pixel(x, y) == color.rgb() ? 1 : 0;
        }
        return found;
      };
      // 3 digits of 10.8 px: from 14 to 46; the fill ends at 11, 22, 40 and 64.
      const bool bright = filled == 0.9;
      EXPECT_GT(count(14, 22, bright ? on_fill : on_empty), 5) << raster << filled;
      EXPECT_GT(count(40, 46, bright ? on_fill : on_empty), 5) << raster << filled;
      EXPECT_EQ(count(11, 69, bright ? on_empty : on_fill), 0) << raster << filled;
      // A number that does not cross the level has no rim.
      const int level = 10 + static_cast<int>(std::lround(60 * filled));
      EXPECT_EQ(count(13, level - 1, empty) > 3, filled == 0.2 || filled == 0.5) << raster << filled;
      // Below the number the fill level is unchanged.
      const QPoint end(level - 1, level > 14 ? 32 : 20);  // not in the cell's round corner
      EXPECT_EQ(image.pixel(end), fill.rgb()) << raster;
      EXPECT_EQ(image.pixel(level + 1, 32), empty.rgb()) << raster;
    }
  }
}

// The number of a block with a pattern has a plain background.
TEST(CellPainter, NoPatternIsUnderANumber) {
  const Theme& of = theme(ThemeKind::dark);
  QImage image(60, 40, QImage::Format_RGB32);
  QPainter painter(&image);
  CellPainter cells(painter, QRectF(0, 0, 60, 40), of);
  cells.set_cell_size({50, 30});
  cells.set_font(mono_font(12));
  cells.cell({0, 0}, kSharedLook);
  cells.label_on({5, 20}, "   ", QRectF(0, 0, 50, 30), kSharedLook, 1);
  cells.finish();
  painter.end();
  for (int y = 13; y < 20; ++y) {
    for (int x = 6; x < 24; ++x) ASSERT_EQ(image.pixel(x, y), of.shared.rgb()) << x << " " << y;
  }
}

// At scale 2 the picture has finer pixels but the same positions.
TEST(CellPainter, APictureOfTwiceThePixelsIsTheSamePicture) {
  const Theme& of = theme(ThemeKind::dark);
  const auto paint = [&](double scale) {
    QImage image(QSize(120, 60) * scale, QImage::Format_ARGB32_Premultiplied);
    image.setDevicePixelRatio(scale);
    image.fill(Qt::red);
    QPainter painter(&image);
    CellPainter cells(painter, QRectF(10, 5, 100, 50), of);
    cells.set_cell_size({21, 17});
    cells.set_font(mono_font(9));
    for (int i = 0; i < 4; ++i) {
      const QRectF rect(QPointF(10 + i * 24, 15), QSizeF(21, 17));
      cells.cell(rect.topLeft(), owner_look(i), i / 4.0);
      cells.label_on(rect.topLeft() + QPointF(3, 10), "7", rect, owner_look(i), i / 4.0);
    }
    cells.finish();
    painter.end();
    return image;
  };
  const QImage once = paint(1);
  for (const double scale : {1.5, 2.0, 3.0}) {
    QImage finer = paint(scale);
    finer.setDevicePixelRatio(1);
    const QImage back = finer.scaled(once.size(), Qt::IgnoreAspectRatio, Qt::SmoothTransformation);
    double difference = 0;
    for (int y = 0; y < once.height(); ++y) {
      for (int x = 0; x < once.width(); ++x)
        difference += std::abs(qGreen(once.pixel(x, y)) - qGreen(back.pixel(x, y)));
    }
    EXPECT_LT(difference / (once.width() * once.height()), 4.0) << scale;
  }
}

// Regression: a free cell was hardly darker than the card. As painted, at each size, it has a line or a fill of 3:1.
TEST(PaintCell, AFreeCellIsVisibleOnTheCard) {
  for (const ThemeKind kind : kThemeKinds) {
    const Theme& of = theme(kind);
    for (const int side : {3, 5, 8, 12, 20, 46, 90}) {
      QImage image(side + 4, side + 4, QImage::Format_RGB32);
      image.fill(of.card);
      QPainter painter(&image);
      paint_cell(painter, QRectF(2, 2, side, side), kFreeLook, 1, of);
      painter.end();
      double most = 1;
      for (int x = 0; x < image.width(); ++x)
        most = std::max(most, contrast(image.pixelColor(x, image.height() / 2), of.card));
      EXPECT_GE(most, 3) << static_cast<int>(kind) << ' ' << side;
    }
  }
}

// --- the legend ------------------------------------------------------------------------------------------------------

std::vector<SeqIdx> owners(int count) {
  std::vector<SeqIdx> seqs;
  for (int i = 0; i < count; ++i) seqs.push_back(SeqIdx{i});
  return seqs;
}

double legend_width(int width, int count, QImage& image) {
  const std::vector<LegendEntry> kinds{{kSharedLook, QStringLiteral("shared")}, {kFreeLook, QStringLiteral("free")}};
  image = QImage(900, 40, QImage::Format_RGB32);
  image.fill(theme(ThemeKind::dark).card);
  QPainter painter(&image);
  return paint_legend(painter, QRectF(10, 5, width, 30), owners(count), kinds, theme(ThemeKind::dark), 1);
}

int last_painted_column(const QImage& image) {
  for (int x = image.width() - 1; x >= 0; --x) {
    for (int y = 0; y < image.height(); ++y) {
      if (image.pixel(x, y) != theme(ThemeKind::dark).card.rgb()) return x;
    }
  }
  return -1;
}

TEST(Legend, NeverLeavesItsLineAndKeepsTheKindsWhenOwnersAreMany) {
  QImage image;
  for (int width = 20; width < 800; width += 7) {
    const double used = legend_width(width, 12, image);
    EXPECT_LE(used, width);
    EXPECT_LE(last_painted_column(image), 10 + width) << width;
    EXPECT_NEAR(last_painted_column(image), 10 + used, used > 0 ? 4 : 12) << width;
  }
  // 12 owners do not fit in 300 px; the two kinds must still be there.
  const double two_kinds = legend_width(300, 0, image);
  EXPECT_GT(legend_width(300, 12, image), two_kinds + 60);
  EXPECT_GT(legend_width(130, 12, image), two_kinds - 1);
}

}  // namespace
}  // namespace kvscope::viz::cell_paint_test
