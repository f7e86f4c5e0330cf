#include "apps/kvscope-viewer/kernel_window.h"

#include <fmt/format.h>

#include <optional>

#include <QtCore/QEventLoop>
#include <QtGui/QImage>
#include <QtWidgets/QApplication>

#include "apps/common/faults.h"
#include "apps/kvscope-viewer/display.h"
#include "apps/kvscope-viewer/kernel_run.h"
#include "apps/kvscope-viewer/simulator_backend.h"
#include "apps/kvscope-viewer/window.h"
#include "core/base/errors.h"
#include "viz/view/theme.h"
#include "viz/window/export.h"
#include "viz/window/kernel_window.h"
#include "viz/window/message_bar.h"
#include "viz/window/session.h"
#include "viz/window/theme_choice.h"

namespace kvscope::apps {
namespace {

// The launch as the window takes it; nothing if no option of it was given. Throws what is wrong with the file or the
// launch, which is not executed: the window does that.
std::optional<viz::KernelLaunch> checked_launch(const KernelRequest& request) {
  if (!request.has_launch && !request.out) {
    static_cast<void>(read_kernel_file(request.launch.path));
    return std::nullopt;
  }
  viz::KernelLaunch launch = launch_of(request.launch);
  launch.entry = start_kernel(request.launch, [] { return false; })->code().kernel;  // it may be given by a part of it
  return launch;
}

}  // namespace

int show_kernel(const KernelRequest& request, int argc, char** argv) {
  const std::optional<viz::KernelLaunch> launch = checked_launch(request);
  need_a_display();
  QApplication application(argc, argv);
  set_up_application();
  const QString settings = viz::settings_folder();
  const viz::SessionLook look = viz::Session::stored_look(settings);
  const viz::ThemeKind kind = request.theme.value_or(viz::theme_kind(look.theme, viz::desktop_palette()));
  const double font_scale = request.font_scale.value_or(look.font_scale);
  viz::apply_look(viz::theme(kind), font_scale);
  SimulatorBackend backend(QCoreApplication::applicationFilePath().toStdString());
  viz::KernelWindow window(backend, settings);
  window.set_look(viz::theme(kind), font_scale);
  window.show();
  window.open(QString::fromStdString(request.launch.path), launch, request.step);
  return QApplication::exec();
}

int render_kernel(const KernelRequest& request, int argc, char** argv) {
  const std::optional<viz::KernelLaunch> launch = checked_launch(request);
  need_no_display();
  QApplication application(argc, argv);
  set_up_application();
  const viz::Theme& theme = viz::theme(request.theme.value_or(viz::ThemeKind::dark));
  viz::apply_look(theme, request.font_scale.value_or(1));
  SimulatorBackend backend(QCoreApplication::applicationFilePath().toStdString());
  viz::KernelWindow window(backend, {});
  window.set_look(theme, request.font_scale.value_or(1));
  window.resize(request.size);
  window.show();
  QApplication::processEvents();
  if (window.size() != request.size) {
    throw InputError("command line", "--size",
                     fmt::format("a kernel's window is at least {}x{} at this text size, not {}x{}: choose a larger "
                                 "picture",
                                 window.width(), window.height(), request.size.width(), request.size.height()));
  }
  QEventLoop until_shown;
  QObject::connect(&window, &viz::KernelWindow::shown, &until_shown, &QEventLoop::quit, Qt::QueuedConnection);
  window.open(QString::fromStdString(request.launch.path), launch, request.step);
  until_shown.exec();
  if (!window.started()) {
    throw InputError(request.launch.path, "",
                     window.messages().lines(QStringLiteral("launch")).join(QLatin1Char('\n')).toStdString());
  }
  QApplication::processEvents();  // what the last state has changed in the layout
  const std::optional<std::uint64_t> last = window.state().last;
  if (request.step && last && *request.step > *last) {
    throw InputError(
        "command line", "--step",
        fmt::format("{} is after the end of the launch, which has {} warp instructions", *request.step, *last));
  }
  QImage picture((QSizeF(window.size()) * request.scale).toSize(), QImage::Format_RGB32);
  picture.setDevicePixelRatio(request.scale);
  picture.fill(theme.surface);
  window.render(&picture);
  picture.setDevicePixelRatio(1);
  viz::write_png(QString::fromStdString(*request.out), picture, request.scale);
  return kExitFine;
}

}  // namespace kvscope::apps
