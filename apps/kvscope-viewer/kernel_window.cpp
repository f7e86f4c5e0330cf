#include "apps/kvscope-viewer/kernel_window.h"

#include <fmt/format.h>

#include <optional>

#include <QtCore/QBuffer>
#include <QtCore/QEventLoop>
#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtWidgets/QApplication>

#include "apps/common/faults.h"
#include "apps/kvscope-viewer/display.h"
#include "apps/kvscope-viewer/kernel_run.h"
#include "apps/kvscope-viewer/simulator_backend.h"
#include "apps/kvscope-viewer/window.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "viz/view/theme.h"
#include "viz/window/kernel_window.h"
#include "viz/window/session.h"
#include "viz/window/theme_choice.h"

namespace kvscope::apps {
namespace {

void open_request(viz::KernelWindow& window, const KernelRequest& request) {
  window.open(QString::fromStdString(request.launch.path),
              request.has_launch || request.out ? std::optional(launch_of(request.launch)) : std::nullopt,
              request.step);
}

}  // namespace

int show_kernel(const KernelRequest& request, int argc, char** argv) {
  static_cast<void>(read_kernel_file(request.launch.path));  // faults of the file are printed, as by kvscope
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
  open_request(window, request);
  return QApplication::exec();
}

int render_kernel(const KernelRequest& request, int argc, char** argv) {
  // Faults of the launch are printed, as by kvscope. It is not executed: the window does that.
  static_cast<void>(start_kernel(request.launch, [] { return false; }));
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
  open_request(window, request);
  until_shown.exec();
  QApplication::processEvents();  // what the last state has changed in the layout
  const std::optional<std::uint64_t> last = window.state().last;
  if (request.step && last && *request.step > *last) {
    throw InputError(
        "command line", "--step",
        fmt::format("{} is behind the end of the launch: it has {} warp instructions", *request.step, *last));
  }
  QImage picture((QSizeF(window.size()) * request.scale).toSize(), QImage::Format_RGB32);
  picture.setDevicePixelRatio(request.scale);
  picture.fill(theme.surface);
  window.render(&picture);
  picture.setDevicePixelRatio(1);
  QBuffer bytes;
  if (!bytes.open(QIODevice::WriteOnly) || !picture.save(&bytes, "PNG")) {
    throw InputError(*request.out, "", "the picture could not be encoded as PNG");
  }
  write_file_atomically(*request.out, bytes.data().toStdString());
  return kExitFine;
}

}  // namespace kvscope::apps
