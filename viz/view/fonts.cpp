// The embedded fonts: registered once, asked for by family, never looked for on the machine.
#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include <QtGui/QFontDatabase>

#include "viz/view/theme.h"

// Declares what rcc made of fonts.qrc; a static library's resources are linked only when named. Outside any namespace.
static void register_resources() {
  Q_INIT_RESOURCE(fonts);
}

namespace kvscope::viz {
namespace {

constexpr const char* kUiFamily = "Inter";
constexpr const char* kMonoFamily = "JetBrains Mono";

// False also when the file is there and holds another family: text would then come from the machine, or be boxes.
bool add(const char* file, const char* family) {
  const int id = QFontDatabase::addApplicationFont(QString::fromLatin1(file));
  return id >= 0 && QFontDatabase::applicationFontFamilies(id).contains(QString::fromLatin1(family));
}

QFont made(const char* family, int px, QFont::Weight weight, QFont::StyleStrategy strategy) {
  QFont font(QString::fromLatin1(family));
  font.setPixelSize(px);
  font.setWeight(weight);
  font.setHintingPreference(QFont::PreferNoHinting);  // the same picture at every scale
  font.setStyleStrategy(strategy);
  return font;
}

// One of each for every thread, so that what Qt finds for it is found once: a new QFont is looked up in the database
// again, and a picture asks for hundreds. Zooming makes new sizes: past kMostFonts all are made again.
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

// The first call needs a QGuiApplication; later ones cost nothing, on any thread.
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

// Without shaping: JetBrains Mono would join -> and != into one sign each, and a formula has to show what is typed.
QFont mono_font(double px, QFont::Weight weight) {
  return font(kMonoFamily, px, weight, QFont::PreferNoShaping);
}

}  // namespace kvscope::viz
