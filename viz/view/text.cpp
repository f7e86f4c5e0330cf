#include "viz/view/text.h"

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
  return kept.get({{FontKey(font), text}, room},
                  [&] { return QFontMetricsF(font).elidedText(text, Qt::ElideRight, room); });
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
