#include "viz/view/theme.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <array>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <QtGui/QFontInfo>
#include <QtGui/QFontMetricsF>
#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtGui/QRawFont>

namespace kvscope::viz::theme_test {
namespace {

// --- perceived colors: an independent oracle -------------------------------------------------------------------------

using Vec = std::array<double, 3>;
using Mat = std::array<Vec, 3>;

Vec times(const Mat& m, const Vec& v) {
  Vec out{};
  for (std::size_t i = 0; i < 3; ++i) out[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
  return out;
}

Vec linear(const QColor& color) {
  const auto channel = [](float c) {
    const double x = static_cast<double>(c);
    return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
  };
  return {channel(color.redF()), channel(color.greenF()), channel(color.blueF())};
}

// CIE L*a*b* of linear sRGB, white D65.
Vec lab(const Vec& rgb) {
  static constexpr Mat kToXyz{
      {{0.4124564, 0.3575761, 0.1804375}, {0.2126729, 0.7151522, 0.0721750}, {0.0193339, 0.1191920, 0.9503041}}};
  const Vec xyz = times(kToXyz, rgb);
  const auto f = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
  const double x = f(xyz[0] / 0.95047), y = f(xyz[1]), z = f(xyz[2] / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

// Machado, Oliveira, Fernandes: A Physiologically-based Model for Simulation of Color Vision Deficiency, 2009, severity
// 1, on linear light. The rows of each matrix add up to 1: gray stays gray.
struct Sight {
  const char* name;
  Mat matrix;
};
const std::array kSights{
    Sight{"all three cones", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
    Sight{"protanopia",
          {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}}},
    Sight{"deuteranopia",
          {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}}},
    Sight{"tritanopia",
          {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}}};

// The perceived difference of two colors (CIE 1976). About 2 is just noticeable side by side.
double apart(const Sight& sight, const QColor& a, const QColor& b) {
  const auto seen = [&](const QColor& color) {
    Vec light = times(sight.matrix, linear(color));
    for (double& c : light) c = std::clamp(c, 0.0, 1.0);
    return lab(light);
  };
  const Vec p = seen(a), q = seen(b);
  return std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

// Checks the oracle with published values: Lab of sRGB red is (53.24, 80.09, 67.20).
TEST(SightOracle, KnowsWhiteRedAndGray) {
  const Vec white = lab({1, 1, 1}), red = lab({1, 0, 0});
  EXPECT_NEAR(white[0], 100, 0.01);
  EXPECT_NEAR(std::hypot(white[1], white[2]), 0, 0.02);
  EXPECT_NEAR(red[0], 53.24, 0.01);
  EXPECT_NEAR(red[1], 80.09, 0.02);
  EXPECT_NEAR(red[2], 67.20, 0.02);
  for (const Sight& sight : kSights) {
    for (const Vec& row : sight.matrix) EXPECT_NEAR(row[0] + row[1] + row[2], 1, 2e-6) << sight.name;
  }
}

class ThemeTest : public testing::TestWithParam<ThemeKind> {
 protected:
  const Theme& theme_ = theme(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Kinds, ThemeTest, testing::ValuesIn(kThemeKinds), [](const auto& of) {
  return std::string(of.param == ThemeKind::dark ? "Dark" : of.param == ThemeKind::light ? "Light" : "HighContrast");
});

// --- words -----------------------------------------------------------------------------------------------------------

// 4.5 is WCAG 2's level AA for text. It applies to quiet text such as subtitles too.
TEST_P(ThemeTest, EveryTextReadsOnEverythingItIsWrittenOn) {
  for (const QColor& ink : {theme_.text, theme_.text_quiet}) {
    for (const QColor& behind : {theme_.surface, theme_.card, theme_.cell_free}) {
      EXPECT_GE(contrast(ink, behind), 4.5) << ink.name().toStdString() << " on " << behind.name().toStdString();
    }
  }
  for (const QColor& ink : {theme_.text_accent, theme_.warning}) {
    EXPECT_GE(contrast(ink, theme_.card), 4.5) << ink.name().toStdString();
  }
}

// Quiet text has less contrast than normal text, so that titles stand out.
TEST_P(ThemeTest, TextStandsOutFromQuietText) {
  if (GetParam() == ThemeKind::high_contrast) return;  // there all text is strong
  EXPECT_GE(contrast(theme_.text, theme_.card), 1.8 * contrast(theme_.text_quiet, theme_.card));
}

TEST_P(ThemeTest, InkReadsOnEveryFill) {
  std::vector<QColor> fills(theme_.owner.begin(), theme_.owner.end());
  fills.insert(fills.end(), {theme_.shared, theme_.cached, theme_.null_page, theme_.accent});
  for (const QColor& fill : fills) {
    EXPECT_GE(contrast(theme_.ink_on(fill), fill), 4.5) << fill.name().toStdString();
  }
}

// Regression: neither nearly black nor white reads on fills of middle lightness, such as the rows of a tile: 4.3.
TEST_P(ThemeTest, InkReadsOnAnyFill) {
  EXPECT_TRUE(rc::check([&] {
    const QColor fill(*rc::gen::inRange(0, 256), *rc::gen::inRange(0, 256), *rc::gen::inRange(0, 256));
    const QColor soft(0x10, 0x12, 0x16), white(255, 255, 255), ink = theme_.ink_on(fill);
    RC_ASSERT(contrast(ink, fill) >= 4.5);
    const double best = std::max(contrast(soft, fill), contrast(white, fill));
    if (best >= 4.5) RC_ASSERT(contrast(ink, fill) == best);
  }));
}

// --- owners ----------------------------------------------------------------------------------------------------------

// All pairs of the eight colors, not only adjacent ones: requests that share a page are seldom adjacent in the cycle.
TEST_P(ThemeTest, OwnersDifferInEveryEye) {
  for (const Sight& sight : kSights) {
    for (std::size_t a = 0; a < theme_.owner.size(); ++a) {
      for (std::size_t b = a + 1; b < theme_.owner.size(); ++b) {
        EXPECT_GE(apart(sight, theme_.owner[a], theme_.owner[b]), 10) << sight.name << ": " << a << " and " << b;
      }
    }
  }
}

// Adjacent owners of the cycle of 32 differ more in color, or in their pattern.
TEST_P(ThemeTest, NeighborsInTheCycleDifferByMoreOrByPattern) {
  for (const Sight& sight : kSights) {
    for (std::int64_t seq = 0; seq < 64; ++seq) {
      const OwnerStyle a = theme_.owner_style(seq), b = theme_.owner_style(seq + 1);
      if (a.pattern != b.pattern) continue;
      EXPECT_GE(apart(sight, a.fill, b.fill), 15) << sight.name << ": " << seq;
    }
  }
}

TEST_P(ThemeTest, ThirtyTwoOwnersInARowAreAllDifferent) {
  std::set<std::pair<QRgb, int>> styles;
  for (std::int64_t seq = 5; seq < 5 + 32; ++seq) {
    const OwnerStyle style = theme_.owner_style(seq);
    EXPECT_TRUE(styles.emplace(style.fill.rgb(), static_cast<int>(style.pattern)).second) << seq;
  }
  const OwnerStyle first = theme_.owner_style(0), again = theme_.owner_style(32);
  EXPECT_EQ(first.fill, again.fill);
  EXPECT_EQ(first.pattern, again.pattern);
}

// A block that gets another owner or becomes shared, cached or free must look different, even as one pixel.
TEST_P(ThemeTest, OwnersAreApartFromEverythingThatIsNoOwner) {
  for (const Sight& sight : kSights) {
    for (const QColor& owner : theme_.owner) {
      const std::string which = owner.name().toStdString() + " for " + sight.name;
      EXPECT_GE(apart(sight, owner, theme_.shared), 10) << which;
      EXPECT_GE(apart(sight, owner, theme_.cached), 10) << which;
      EXPECT_GE(apart(sight, owner, theme_.cell_free), 20) << which;
      EXPECT_GE(apart(sight, owner, theme_.card), 20) << which;
    }
    EXPECT_GE(apart(sight, theme_.shared, theme_.cached), 10) << sight.name;
    EXPECT_GE(apart(sight, theme_.shared, theme_.cell_free), 20) << sight.name;
    EXPECT_GE(apart(sight, theme_.cached, theme_.cell_free), 10) << sight.name;
    EXPECT_GE(apart(sight, theme_.null_page, theme_.cell_free), 7) << sight.name;
  }
}

// --- lines -----------------------------------------------------------------------------------------------------------

// 3 is WCAG 2's level for graphics. A paler curve of one or two px would not be visible on a projector.
TEST_P(ThemeTest, CurvesAndTheSelectionStandOutFromTheCard) {
  for (const QColor& line : theme_.series) EXPECT_GE(contrast(line, theme_.card), 3) << line.name().toStdString();
  EXPECT_GE(contrast(theme_.accent, theme_.card), 4.5);
  EXPECT_GE(contrast(theme_.hover, theme_.card), 4.5);
}

// The colors that an object is recognized by, and all that surrounds it: WCAG 2's 3:1 for graphics. The outline of a
// free cell is between its fill and the card; the selection has a line in the card's color on its inside.
TEST_P(ThemeTest, FreeCellsAndTheSelectionStandOutFromTheirSurroundings) {
  for (const QColor& behind : {theme_.card, theme_.cell_free}) {
    EXPECT_GE(contrast(theme_.free_line, behind), 3) << behind.name().toStdString();
  }
  for (const QColor& behind : {theme_.card, theme_.surface, theme_.cell_free}) {
    EXPECT_GE(contrast(theme_.accent, behind), 3) << behind.name().toStdString();
    EXPECT_GE(contrast(theme_.hover, behind), 3) << behind.name().toStdString();
  }
  // Small free cells are areas, not lines: visible, and quieter than every block in use.
  EXPECT_GE(contrast(theme_.free_small, theme_.card), 1.28);
  for (const QColor& owner : theme_.owner) {
    EXPECT_GT(contrast(owner, theme_.card), contrast(theme_.free_small, theme_.card)) << owner.name().toStdString();
    for (const Sight& sight : kSights)
      EXPECT_GE(apart(sight, owner, theme_.free_small), 10) << owner.name().toStdString();
  }
  for (const Sight& sight : kSights) {
    EXPECT_GE(apart(sight, theme_.shared, theme_.free_small), 10) << sight.name;
    EXPECT_GE(apart(sight, theme_.cached, theme_.free_small), 10) << sight.name;
  }
}

// Borders are visible but quiet.
TEST_P(ThemeTest, BordersAreQuiet) {
  if (GetParam() == ThemeKind::high_contrast) return;  // there borders are strong
  EXPECT_GE(contrast(theme_.card_border, theme_.card), 1.1);
  EXPECT_LE(contrast(theme_.card_border, theme_.card), 1.6);
  EXPECT_NE(theme_.surface, theme_.card);
}

// WCAG 2's level AAA for text, and borders as visible as graphics must be.
TEST(HighContrast, TextHasSevenToOneAndBordersThree) {
  const Theme& t = theme(ThemeKind::high_contrast);
  for (const QColor& ink : {t.text, t.text_quiet, t.text_accent, t.warning, t.accent, t.hover}) {
    for (const QColor& behind : {t.surface, t.card, t.cell_free}) {
      EXPECT_GE(contrast(ink, behind), 7) << ink.name().toStdString() << " on " << behind.name().toStdString();
    }
  }
  EXPECT_GE(contrast(t.card_border, t.card), 7);
  EXPECT_GE(contrast(t.cell_line, t.card), 3);
  for (const QColor& line : t.series) EXPECT_GE(contrast(line, t.card), 4.5) << line.name().toStdString();
  for (const QColor& owner : t.owner) EXPECT_GE(contrast(owner, t.card), 4.5) << owner.name().toStdString();
}

TEST(Theme, DarkIsDarkAndLightIsLight) {
  EXPECT_EQ(theme(ThemeKind::dark).kind, ThemeKind::dark);
  EXPECT_EQ(theme(ThemeKind::light).kind, ThemeKind::light);
  EXPECT_LT(theme(ThemeKind::dark).card.lightness(), 40);
  EXPECT_GT(theme(ThemeKind::light).card.lightness(), 215);
}

// The two ends of WCAG's scale, and one value of its documentation's: #777777 on white, 4.48, just fails.
TEST(Contrast, IsThatOfWcag) {
  EXPECT_NEAR(contrast(Qt::black, Qt::white), 21, 1e-9);
  EXPECT_NEAR(contrast(Qt::white, Qt::black), 21, 1e-9);
  EXPECT_EQ(contrast(Qt::red, Qt::red), 1);
  EXPECT_NEAR(contrast(QColor(0x77, 0x77, 0x77), Qt::white), 4.48, 0.005);
}

// --- fonts -----------------------------------------------------------------------------------------------------------

// Without a font Qt silently shows boxes or uses another font: the font in use must have the requested family.
TEST(Fonts, AreTheEmbeddedOnes) {
  ASSERT_TRUE(load_fonts());
  EXPECT_EQ(QFontInfo(ui_font(13)).family(), QStringLiteral("Inter"));
  EXPECT_EQ(QFontInfo(ui_font(13, QFont::DemiBold)).family(), QStringLiteral("Inter"));
  EXPECT_EQ(QFontInfo(mono_font(13)).family(), QStringLiteral("JetBrains Mono"));
  // The faces themselves; QFontInfo::exactMatch() of Qt 6.4 crashes for a font with several families.
  EXPECT_EQ(QRawFont::fromFont(ui_font(13)).familyName(), QStringLiteral("Inter"));
  EXPECT_EQ(QRawFont::fromFont(mono_font(13)).familyName(), QStringLiteral("JetBrains Mono"));
}

// Regular, medium, semibold and bold are separate files: without the file Qt synthesizes the weight.
TEST(Fonts, EveryWeightIsAFaceOfItsOwn) {
  const auto width = [](const QFont& font) {
    return QFontMetricsF(font).horizontalAdvance(QStringLiteral("Sequences"));
  };
  EXPECT_LT(width(ui_font(40)), width(ui_font(40, QFont::Medium)));
  EXPECT_LT(width(ui_font(40, QFont::Medium)), width(ui_font(40, QFont::DemiBold)));
  EXPECT_EQ(QRawFont::fromFont(mono_font(13, QFont::Bold)).weight(), QFont::Bold);
  EXPECT_EQ(QRawFont::fromFont(mono_font(13)).weight(), QFont::Normal);
}

// All characters beyond ASCII that the viewer uses, including German ones, have a glyph.
TEST(Fonts, HaveEverySignThatIsWritten) {
  const QString text = QStringLiteral("ABCxyz0123456789·–→×µ…äöüßÄÖÜ/%|+-*=(){}[]");
  for (const QFont& font : {ui_font(13), ui_font(13, QFont::DemiBold), mono_font(13)}) {
    const QRawFont raw = QRawFont::fromFont(font);
    for (const QChar sign : text) {
      EXPECT_TRUE(raw.supportsCharacter(sign))
          << QFontInfo(font).family().toStdString() << ": U+" << QString::number(sign.unicode(), 16).toStdString();
    }
    EXPECT_FALSE(raw.supportsCharacter(QChar(0x0378))) << "the check itself: no character has this number";
  }
}

// The glyphs are painted: there is ink, and it differs from the box of a missing glyph.
TEST(Fonts, PaintGlyphsAndNotBoxes) {
  const auto picture = [](QChar sign) {
    QImage image(40, 40, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    painter.setFont(mono_font(24));
    painter.drawText(QPointF(8, 30), QString(sign));
    painter.end();
    return image;
  };
  const QImage box = picture(QChar(0x0378));
  EXPECT_NE(picture(u'A'), box);
  EXPECT_NE(picture(u'A'), picture(u'B'));
  EXPECT_NE(picture(u'A'), picture(u' '));
}

// Digits have equal widths, so columns of numbers are aligned, and "->" is drawn as two characters.
TEST(Fonts, DigitsAreOfOneWidthAndNothingIsJoined) {
  const QFontMetricsF metrics(mono_font(13));
  for (const QChar sign : QStringLiteral("0123456789->=!")) {
    EXPECT_EQ(metrics.horizontalAdvance(sign), metrics.horizontalAdvance(u'0'));
  }
  QImage joined(60, 30, QImage::Format_RGB32), apart_image = joined;
  for (QImage* image : {&joined, &apart_image}) image->fill(Qt::white);
  {
    QPainter painter(&joined);
    painter.setFont(mono_font(16));
    painter.drawText(QPointF(5, 20), QStringLiteral("->"));
  }
  {
    QPainter painter(&apart_image);
    painter.setFont(mono_font(16));
    painter.drawText(QPointF(5, 20), QStringLiteral("-"));
    painter.drawText(QPointF(5 + QFontMetricsF(mono_font(16)).horizontalAdvance(u'-'), 20), QStringLiteral(">"));
  }
  EXPECT_EQ(joined, apart_image);
}

// A settings file may give sizes below a pixel; for size 0 Qt prints a warning and uses its default size.
TEST(Fonts, AreNeverSmallerThanAPixel) {
  EXPECT_EQ(ui_font(0).pixelSize(), 1);
  EXPECT_EQ(ui_font(-3).pixelSize(), 1);
  EXPECT_EQ(ui_font(19.5).pixelSize(), 20);
}

}  // namespace
}  // namespace kvscope::viz::theme_test
