#include "apps/kvscope-viewer/window.h"

#include <QtCore/QCoreApplication>
#include <QtGui/QIcon>
#include <QtWidgets/QApplication>

#include "apps/kvscope-viewer/display.h"
#include "apps/kvscope-viewer/simulator_backend.h"
#include "core/base/errors.h"
#include "viz/view/theme.h"
#include "viz/window/main_window.h"

namespace kvscope::apps {
namespace {

viz::ThemeSetting setting_of(viz::ThemeKind kind) {
  switch (kind) {
    case viz::ThemeKind::light:
      return viz::ThemeSetting::light;
    case viz::ThemeKind::high_contrast:
      return viz::ThemeSetting::high_contrast;
    case viz::ThemeKind::dark:
      break;
  }
  return viz::ThemeSetting::dark;
}

}  // namespace

int show_window(const WindowRequest& request, int argc, char** argv) {
  need_a_display();
  QApplication application(argc, argv);
  QApplication::setApplicationName(QStringLiteral("kvscope-viewer"));
  QApplication::setApplicationVersion(QStringLiteral(KVSCOPE_VERSION));
  QApplication::setOrganizationName(QStringLiteral("kvscope"));
  QApplication::setDesktopFileName(QStringLiteral("kvscope-viewer"));
  QApplication::setWindowIcon(QIcon(QStringLiteral(":/icons/kvscope-viewer.svg")));
  if (!viz::load_fonts()) {
    throw InputError("internal error", "", "the embedded fonts are missing: text would be boxes; build it again");
  }
  SimulatorBackend backend(QCoreApplication::applicationFilePath().toStdString());
  viz::MainWindow window(backend);
  if (request.theme) window.set_theme(setting_of(*request.theme));
  if (request.font_scale) window.set_font_scale(*request.font_scale);
  if (request.view) window.set_view(*request.view);
  window.show();
  if (request.file) {
    viz::OpenWish wish;
    if (request.step) wish.step = StepIdx{*request.step};
    wish.view = request.view;
    if (request.candidate) wish.candidate = QString::fromStdString(*request.candidate);
    window.open(QString::fromStdString(*request.file), wish);
  }
  return QApplication::exec();
}

}  // namespace kvscope::apps
