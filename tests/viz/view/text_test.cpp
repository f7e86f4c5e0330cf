#include "viz/view/text.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include <QtGui/QFontMetricsF>
#include <QtGui/QImage>

#include "viz/view/theme.h"

namespace kvscope::viz::text_test {
namespace {

QImage painted(double scale, const std::function<void(QPainter&)>& paint) {
  QImage image(QSize(260, 50) * scale, QImage::Format_RGB32);
  image.setDevicePixelRatio(scale);
  image.fill(QColor(0x1a, 0x1d, 0x24));
  QPainter painter(&image);
  paint(painter);
  return image;
}

std::vector<QFont> fonts() {
  return {ui_font(12),   ui_font(12, QFont::Medium), ui_font(15, QFont::DemiBold), mono_font(12),
          mono_font(11), mono_font(11, QFont::Bold)};
}

// Cached glyphs against QPainter's text, for fonts that differ in one property each: a cache key without the family,
// the size or the weight would paint glyphs of another font. Glyphs that the font lacks come from another font.
TEST(Text, TheSamePixelsAsThePaintersOwnText) {
  for (int round = 0; round < 2; ++round) {
    for (const QString& text : {QStringLiteral("seq 12 · fi -> 7"), QStringLiteral("Block pool"),
                                QString::fromUtf8("漢 and ₅"), QStringLiteral("  a  "), QString()}) {
      for (const QFont& font : fonts()) {
        for (const QColor& color : {QColor(0xea, 0xec, 0xf1), QColor(0xff, 0x7b, 0x72)}) {
          for (const double scale : {1.0, 1.25, 2.0}) {
            const QPointF at(10.25, 30.5);
            const QImage expected = painted(scale, [&](QPainter& painter) {
              painter.setFont(font);
              painter.setPen(color);
              painter.drawText(at, text);
            });
            const QImage image = painted(scale, [&](QPainter& to) { draw_text(to, font, color, at, text); });
            ASSERT_EQ(image, expected) << text.toStdString() << " " << font.toString().toStdString() << " " << scale;
          }
        }
      }
    }
  }
}

// In rectangles at fractional positions: an error of 1/64 of a pixel moves single digits by a quarter of a pixel.
TEST(Text, InARectangleItStandsWhereThePainterPutsIt) {
  const QString text = QStringLiteral("1 234");
  for (const QFont& font : fonts()) {
    for (const Qt::Alignment alignment : {Qt::AlignLeft, Qt::AlignHCenter, Qt::AlignRight}) {
      for (int i = 0; i < 60; ++i) {
        const QRectF rect(10 + i * 0.137, 2 + i * 0.091, 90 + i * 0.211, 30 + i * 0.07);
        for (const double scale : {1.0, 2.0}) {
          const QImage expected = painted(scale, [&](QPainter& painter) {
            painter.setFont(font);
            painter.setPen(Qt::white);
            painter.drawText(rect, static_cast<int>(alignment | Qt::AlignVCenter) | Qt::TextSingleLine, text);
          });
          const auto paint = [&](QPainter& to) { draw_text_in(to, font, Qt::white, rect, alignment, text); };
          ASSERT_EQ(painted(scale, paint), expected) << font.toString().toStdString() << " " << i << " " << scale;
        }
      }
    }
  }
}

// Computed twice: the second result comes from the cache.
TEST(Text, WidthsAreThoseOfTheFontAndTextsAreCutBetweenWords) {
  const QString text = QStringLiteral("2 running, 1 waiting");
  for (int round = 0; round < 2; ++round) {
    for (const QFont& font : fonts()) {
      const QFontMetricsF metrics(font);
      EXPECT_EQ(text_width(font, text), metrics.horizontalAdvance(text));
      EXPECT_EQ(cap_height(font), metrics.capHeight());
      const auto room = [&](const char16_t* words) { return metrics.horizontalAdvance(QString::fromUtf16(words)); };
      EXPECT_EQ(elided(font, text, metrics.horizontalAdvance(text)), text);
      EXPECT_EQ(elided(font, text, metrics.horizontalAdvance(text) - 1), QStringLiteral("2 running, 1 …"));
      EXPECT_EQ(elided(font, text, room(u"2 running, 1 …") - 1), QStringLiteral("2 running …"));
      EXPECT_EQ(elided(font, text, room(u"2 running …") - 1), QStringLiteral("2 …"));
      EXPECT_EQ(elided(font, text, room(u"2 …") - 1), QStringLiteral("…"));
      EXPECT_EQ(elided(font, text, 0), QString());
      EXPECT_EQ(elided(font, QString(), 0), QString());
    }
  }
}

// Half a number is another number; half a word is still a hint.
TEST(Text, ANumberIsNeverCut) {
  const QFont font = mono_font(11);
  const double nine = text_width(font, QStringLiteral("123456789"));
  EXPECT_EQ(elided(font, QStringLiteral("299008–299023"), nine), QStringLiteral("…"));
  EXPECT_EQ(elided(font, QStringLiteral("all 1,073,728 B"), nine), QStringLiteral("all …"));
  EXPECT_EQ(elided(font, QStringLiteral("preemptions"), nine), QStringLiteral("preempt…"));
}

TEST(Text, WholePartsEndBeforeASeparator) {
  const QFont font = ui_font(12);
  const auto parts = [&](const QString& text, const QString& room) {
    return whole_parts(font, text, text_width(font, room));
  };
  const QString boxes = QStringLiteral("TMA · 9 boxes · 64 × 64 each");
  EXPECT_EQ(parts(boxes, boxes), boxes);
  EXPECT_EQ(parts(boxes, QStringLiteral("TMA · 9 boxes · 64 × 64 e")), QStringLiteral("TMA · 9 boxes"));
  EXPECT_EQ(parts(boxes, QStringLiteral("TMA · 9 box")), QStringLiteral("TMA"));
  EXPECT_EQ(parts(boxes, QStringLiteral("T")), QString());
  // A comma inside a number separates nothing.
  const QString bytes = QStringLiteral("9 of 9 boxes issued, all 73,728 B landed");
  EXPECT_EQ(parts(bytes, QStringLiteral("9 of 9 boxes issued, all 73,728 B ")), QStringLiteral("9 of 9 boxes issued"));
}

// "In the whole run" alone states nothing.
TEST(Text, WholePartsEndAfterASentenceAndNotAfterAnIntroduction) {
  const QFont font = ui_font(12);
  const auto parts = [&](const QString& text, const QString& room) {
    return whole_parts(font, text, text_width(font, room));
  };
  const QString two = QStringLiteral("In step 3: 1 preemption. In the whole run: 5 preemptions, 2 copies.");
  EXPECT_EQ(parts(two, two), two);
  EXPECT_EQ(parts(two, two.chopped(3)), QStringLiteral("In step 3: 1 preemption. In the whole run: 5 preemptions"));
  EXPECT_EQ(parts(two, QStringLiteral("In step 3: 1 preemption. In the whole run: 5 p")),
            QStringLiteral("In step 3: 1 preemption."));
  EXPECT_EQ(parts(two, QStringLiteral("In step 3: 1 preem")), QStringLiteral("In step 3"));
}

// More texts than the cache holds: it is cleared and filled again.
TEST(Text, TenThousandTextsArePaintedAndMeasuredAsTheFirst) {
  const QFont font = mono_font(12);
  const QString first = QStringLiteral("first");
  const auto paint = [&](QPainter& painter) { draw_text(painter, font, Qt::white, {5, 30}, first); };
  const QImage before = painted(1, paint);
  static_cast<void>(painted(1, [&](QPainter& painter) {
    for (int i = 0; i < 10000; ++i) {
      const QString text = QString::number(i);
      draw_text(painter, font, Qt::white, {5, 30}, text);
      EXPECT_EQ(text_width(font, text), QFontMetricsF(font).horizontalAdvance(text));
    }
  }));
  EXPECT_EQ(painted(1, paint), before);
}

}  // namespace
}  // namespace kvscope::viz::text_test
