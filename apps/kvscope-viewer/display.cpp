#include "apps/kvscope-viewer/display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include <QtCore/qlogging.h>
#include <QtCore/QByteArray>
#include <QtCore/QHashSeed>
#include <QtCore/QString>

#include "apps/common/faults.h"
#include "core/base/errors.h"

namespace kvscope::apps {
namespace {

constexpr const char* kWithoutOne = "without one, write a picture: kvscope-viewer --render picture.png FILE";

QtMessageHandler usual = nullptr;

// Handles Qt's message before it aborts. While an application is constructed, Qt's only fatal messages are about its
// platform.
void end_in_one_line(QtMsgType type, const QMessageLogContext& context, const QString& text) {
  if (type != QtFatalMsg) {
    if (type == QtWarningMsg && text.contains(QLatin1String("could not connect to display"))) return;
    if (type == QtInfoMsg && text.contains(QLatin1String("platform plugin"))) return;
    usual(type, context, text);
    return;
  }
  fmt::print(stderr, "kvscope-viewer: no display: '{}' does not answer; {}\n",
             qEnvironmentVariable("WAYLAND_DISPLAY", qEnvironmentVariable("DISPLAY")).toStdString(), kWithoutOne);
  std::fflush(nullptr);
  _exit(kExitBadInput);
}

}  // namespace

void need_a_display() {
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM") && qEnvironmentVariableIsEmpty("DISPLAY") &&
      qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY")) {
    throw InputError("no display", "", fmt::format("neither DISPLAY nor WAYLAND_DISPLAY is set; {}", kWithoutOne));
  }
  usual = qInstallMessageHandler(end_in_one_line);
}

void need_no_display() {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  for (const char* setting : {"QT_SCALE_FACTOR", "QT_SCREEN_SCALE_FACTORS", "QT_FONT_DPI", "QT_QPA_PLATFORMTHEME",
                              "QT_ENABLE_HIGHDPI_SCALING", "QT_AUTO_SCREEN_SCALE_FACTOR"}) {
    qunsetenv(setting);
  }
  QHashSeed::setDeterministicGlobalSeed();  // otherwise the order of the fonts in a PDF varies
  qputenv("TZ", "UTC");                     // otherwise the length of the date in a PDF varies
  qInstallMessageHandler([](QtMsgType type, const QMessageLogContext&, const QString& text) {
    if (type == QtCriticalMsg || type == QtFatalMsg) fmt::print(stderr, "kvscope-viewer: {}\n", text.toStdString());
  });
}

}  // namespace kvscope::apps
