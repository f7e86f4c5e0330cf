// The embedded fonts: registered once and requested by family name; system fonts are not used.
#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include <QtGui/QFontDatabase>

#include "viz/view/theme.h"

// Declares the resources that rcc generated from fonts.qrc: those of a static library are linked only if referenced.
// Must be outside any namespace.
static void register_resources() {
  Q_INIT_RESOURCE(fonts);
}

namespace kvscope::viz {
namespace {

constexpr const char* kUiFamily = "Inter";
constexpr const char* kMonoFamily = "JetBrains Mono";

// Returns false also if the file exists but holds another family: text would then use a system font, or be boxes.
bool add(const char* file, const char* family) {
  const int id = QFontDatabase::addApplicationFont(QString::fromLatin1(file));
  return id >= 0 && QFontDatabase::applicationFontFamilies(id).contains(QString::fromLatin1(family));
}

// A glyph that the family lacks comes from the other embedded one: JetBrains Mono has no narrow no-break space, which
// separates thousands. Without this Qt would take a system font, and widths would depend on what is installed.
QFont made(const char* family, int px, QFont::Weight weight, QFont::StyleStrategy strategy) {
  QFont font(
      QStringList{QString::fromLatin1(family), QString::fromLatin1(kUiFamily), QString::fromLatin1(kMonoFamily)});
  font.setPixelSize(px);
  font.setWeight(weight);
  font.setHintingPreference(QFont::PreferNoHinting);  // the same picture at every scale
  font.setStyleStrategy(strategy);
  return font;
}

// A cache of QFont objects per thread: Qt looks up every new QFont in the font database again, and a picture needs
// hundreds. Zooming adds new sizes: above kMostFonts the cache is cleared.
QFont font(const char* family, double px, QFont::Weight weight, QFont::StyleStrategy strategy) {
  using Key = std::tuple<std::string_view, int, int, int>;
  constexpr std::size_t kMostFonts = 64;
  thread_local std::map<Key, QFont> kept;
  const int whole = std::max(1, qRound(px));
  const Key key{family, whole, weight, strategy};
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  if (kept.size() >= kMostFonts) kept.clear();
  return kept[key] = made(family, whole, weight, strategy);
}

}  // namespace

// The first call needs a QGuiApplication; later calls are cheap and possible on any thread.
bool load_fonts() {
  static const bool kLoaded = [] {
    register_resources();
    bool all = true;
    for (const char* file : {":/fonts/Inter-Regular.otf", ":/fonts/Inter-Medium.otf", ":/fonts/Inter-SemiBold.otf"}) {
      all = add(file, kUiFamily) && all;
    }
    for (const char* file : {":/fonts/JetBrainsMono-Regular.ttf", ":/fonts/JetBrainsMono-Bold.ttf"}) {
      all = add(file, kMonoFamily) && all;
    }
    return all;
  }();
  return kLoaded;
}

QFont ui_font(double px, QFont::Weight weight) {
  return font(kUiFamily, px, weight, QFont::PreferDefault);
}

// Without ligatures: JetBrains Mono would join -> and != into one sign each, but formulas must show each character.
QFont mono_font(double px, QFont::Weight weight) {
  return font(kMonoFamily, px, weight, QFont::PreferNoShaping);
}

}  // namespace kvscope::viz
