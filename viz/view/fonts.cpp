// The embedded fonts: registered once, asked for by family, never looked for on the machine.
#include <algorithm>

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

QFont font(const char* family, double px, QFont::Weight weight) {
  QFont font(QString::fromLatin1(family));
  font.setPixelSize(std::max(1, qRound(px)));
  font.setWeight(weight);
  font.setHintingPreference(QFont::PreferNoHinting);  // the same picture at every scale
  return font;
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
  return font(kUiFamily, px, weight);
}

// Without shaping: JetBrains Mono would join -> and != into one sign each, and a formula has to show what is typed.
QFont mono_font(double px, QFont::Weight weight) {
  QFont mono = font(kMonoFamily, px, weight);
  mono.setStyleStrategy(QFont::PreferNoShaping);
  return mono;
}

}  // namespace kvscope::viz
