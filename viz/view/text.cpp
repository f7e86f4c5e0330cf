#include "viz/view/text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include <QtCore/QHash>
#include <QtGui/QFontMetricsF>
#include <QtGui/QGlyphRun>
#include <QtGui/QPaintEngine>
#include <QtGui/QRawFont>
#include <QtGui/QTextLayout>
#include <QtGui/QTransform>

namespace kvscope::viz {
namespace {

// Maximum number of cached texts. Playing adds new numbers and zooming new sizes: when the cache is full it is cleared,
// and the next repaint adds the few hundred texts in use again.
constexpr qsizetype kMostTexts = 4000;

// The properties that distinguish the fonts used here, which all come from ui_font() and mono_font().
struct FontKey {
  QString family;
  int px = 0, weight = 0;
  explicit FontKey(const QFont& font) : family(font.family()), px(font.pixelSize()), weight(font.weight()) {}
  friend bool operator==(const FontKey&, const FontKey&) = default;
};
struct TextKey {
  FontKey font;
  QString text;
  friend bool operator==(const TextKey&, const TextKey&) = default;
};
struct ElidedKey {
  TextKey text;
  double room = 0;
  friend bool operator==(const ElidedKey&, const ElidedKey&) = default;
};
std::size_t qHash(const TextKey& key, std::size_t seed) {
  return qHashMulti(seed, key.text, key.font.px, key.font.weight, key.font.family);
}
std::size_t qHash(const ElidedKey& key, std::size_t seed) {
  return qHashMulti(seed, key.room, qHash(key.text, seed));
}

// Glyphs of a line, relative to the start of its baseline. No fonts are stored: they must not outlive the application.
struct Glyphs {
  std::vector<std::uint32_t> indexes;
  std::vector<QPointF> places;
};

template <class Key, class Value>
class KeptTexts {
 public:
  template <class Make>
  const Value& get(const Key& key, Make&& make) {
    const auto found = values_.constFind(key);
    if (found != values_.constEnd()) return *found;
    if (values_.size() >= kMostTexts) values_.clear();
    return *values_.insert(key, make());
  }

 private:
  QHash<Key, Value> values_;
};

// nullopt for a line with glyphs of more than one font, or of another font than the requested one.
std::optional<Glyphs> glyphs_of(const QFont& font, const QRawFont& raw, const QString& text) {
  QTextLayout layout(text, font);
  layout.beginLayout();
  const QTextLine line = layout.createLine();
  layout.endLayout();
  const QList<QGlyphRun> runs = layout.glyphRuns();
  if (!line.isValid() || layout.lineCount() != 1 || runs.size() != 1 || runs.front().rawFont() != raw) {
    return std::nullopt;
  }
  const QList<quint32> indexes = runs.front().glyphIndexes();
  const QList<QPointF> places = runs.front().positions();
  Glyphs glyphs{{indexes.begin(), indexes.end()}, {places.begin(), places.end()}};
  for (QPointF& place : glyphs.places) place -= QPointF(0, line.y() + line.ascent());
  return glyphs;
}

// The width of a text that is measured once; text_width() keeps its results.
double width_of(const QFont& font, const QString& text) {
  return QFontMetricsF(font).horizontalAdvance(text);
}

QString cut_between_words(const QFont& font, const QString& text, double room) {
  if (width_of(font, text) <= room) return text;
  const QString loose = QStringLiteral(" ·,;:(–");  // no text that is cut ends with these
  const QString dots = QStringLiteral("…");
  QString longest;
  for (qsizetype blank = text.indexOf(QLatin1Char(' '), 1); blank >= 0;
       blank = text.indexOf(QLatin1Char(' '), blank + 1)) {
    qsizetype end = blank;
    while (end > 0 && loose.contains(text[end - 1])) --end;
    const QString words = text.left(end) + QLatin1Char(' ') + dots;
    if (width_of(font, words) > room) break;
    longest = words;
  }
  if (!longest.isEmpty()) return longest;
  const QString first = text.section(QLatin1Char(' '), 0, 0, QString::SectionSkipEmpty);
  const bool number = std::any_of(first.begin(), first.end(), [](QChar c) { return c.isDigit(); });
  if (number) return width_of(font, dots) <= room ? dots : QString();
  return QFontMetricsF(font).elidedText(text, Qt::ElideRight, room);
}

}  // namespace

double text_width(const QFont& font, const QString& text) {
  if (text.isEmpty()) return 0;
  thread_local KeptTexts<TextKey, double> kept;
  return kept.get({FontKey(font), text}, [&] { return QFontMetricsF(font).horizontalAdvance(text); });
}

double cap_height(const QFont& font) {
  return QFontMetricsF(font).capHeight();
}

QString elided(const QFont& font, const QString& text, double room) {
  thread_local KeptTexts<ElidedKey, QString> kept;
  return kept.get({{FontKey(font), text}, room}, [&] { return cut_between_words(font, text, room); });
}

QString whole_parts(const QFont& font, const QString& text, double room) {
  if (text_width(font, text) <= room) return text;
  for (qsizetype at = text.size() - 1; at > 0; --at) {
    const bool dot = text[at] == QChar(u' ') && text.mid(at + 1, 2) == QStringLiteral("· ");
    const bool before_blank = at + 1 < text.size() && text[at + 1] == QLatin1Char(' ');
    const bool list = text[at] == QLatin1Char(',') || text[at] == QLatin1Char(';');
    const bool sentence = text[at] == QLatin1Char('.');
    // What introduces a list is a part of its own only at the beginning.
    const bool colon = text[at] == QLatin1Char(':') && !text.left(at).contains(QStringLiteral(". "));
    const bool ends = dot || (before_blank && (list || sentence || colon));
    const QString part = text.left(sentence ? at + 1 : at);
    if (ends && text_width(font, part) <= room) return part;
  }
  return {};
}

QString first_that_fits(const QFont& font, const QStringList& texts, double room) {
  for (const QString& text : texts) {
    if (text_width(font, text) <= room) return text;
  }
  return elided(font, texts.last(), room);
}

QPainterPath text_outline(const QFont& font, const QString& text) {
  constexpr int kLarge = 1000;  // [px] at this size an error of 1/64 of a pixel is negligible
  QFont large = font;
  large.setPixelSize(kLarge);
  QPainterPath outline;
  outline.addText(QPointF(0, 0), large, text);
  const double scale = static_cast<double>(font.pixelSize()) / kLarge;
  return QTransform::fromScale(scale, scale).map(outline);
}

void draw_text(QPainter& painter, const QFont& font, const QColor& color, QPointF baseline, const QString& text) {
  painter.setFont(font);
  painter.setPen(color);
  if (text.isEmpty()) return;
  if (painter.paintEngine()->type() != QPaintEngine::Raster) return painter.drawText(baseline, text);
  thread_local KeptTexts<TextKey, std::optional<Glyphs>> kept;
  const QRawFont raw = QRawFont::fromFont(font);
  const std::optional<Glyphs>& glyphs = kept.get({FontKey(font), text}, [&] { return glyphs_of(font, raw, text); });
  if (!glyphs) return painter.drawText(baseline, text);
  QGlyphRun run;
  run.setRawFont(raw);
  run.setRawData(glyphs->indexes.data(), glyphs->places.data(), static_cast<int>(glyphs->indexes.size()));
  painter.drawGlyphRun(baseline, run);
}

void draw_text_in(QPainter& painter, const QFont& font, const QColor& color, const QRectF& rect,
                  Qt::Alignment alignment, const QString& text) {
  const QFontMetricsF metrics(font);
  const double spare = rect.width() - text_width(font, text);
  const double left = alignment.testFlag(Qt::AlignRight) ? spare : alignment.testFlag(Qt::AlignHCenter) ? spare / 2 : 0;
  const double top = rect.top() + (rect.height() - metrics.ascent() - metrics.descent()) / 2;
  // Qt rounds the position of a line down to 1/64 of a pixel.
  const auto placed = [](double at) { return static_cast<int>(at * 64) / 64.0; };
  draw_text(painter, font, color, {placed(rect.left() + left), placed(top) + metrics.ascent()}, text);
}

}  // namespace kvscope::viz
