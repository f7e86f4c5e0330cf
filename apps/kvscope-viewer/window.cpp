#include "apps/kvscope-viewer/window.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <QtCore/QCoreApplication>
#include <QtGui/QIcon>
#include <QtWidgets/QApplication>

#include "apps/common/scenario_input.h"
#include "apps/kvscope-viewer/display.h"
#include "apps/kvscope-viewer/lab_list.h"
#include "apps/kvscope-viewer/simulator_backend.h"
#include "core/base/errors.h"
#include "viz/playback/event_source.h"
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

void check_lab_result(const WindowRequest& request) {
  std::vector<Fault> faults;
  for (const auto& [option, given] :
       {std::pair{"--step", request.step.has_value()}, std::pair{"--view", request.view.has_value()},
        std::pair{"--candidate", request.candidate.has_value()}, std::pair{"--compare", request.compare.has_value()}}) {
    if (!given) continue;
    faults.push_back({option, fmt::format("'{}' is the result of a lab's check, which opens at its first failed test: "
                                          "leave it out",
                                          *request.file)});
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
}

// The window opens a file by its content. One that the option excludes is thus opened here, by the reader of the
// option's kind, which throws: the words are those of --render and of kvscope.
void check_file(const WindowRequest& request) {
  std::error_code ignored;
  if (!request.file || !std::filesystem::is_regular_file(*request.file, ignored)) return;
  const bool result = is_lab_result(*request.file);
  const FileKind kind = kind_of(*request.file);
  if (request.kind == FileKind::trace && kind != FileKind::trace) {
    static_cast<void>(viz::open_trace(*request.file));
  } else if (request.kind == FileKind::scenario && (kind != FileKind::scenario || result)) {
    static_cast<void>(read_scenario(*request.file, {}));
  } else if (result) {
    check_lab_result(request);
  }
}

}  // namespace

void set_up_application() {
  QApplication::setApplicationName(QStringLiteral("kvscope-viewer"));
  QApplication::setApplicationVersion(QStringLiteral(KVSCOPE_VERSION));
  QApplication::setOrganizationName(QStringLiteral("kvscope"));
  QApplication::setDesktopFileName(QStringLiteral("kvscope-viewer"));
  QApplication::setWindowIcon(QIcon(QStringLiteral(":/icons/kvscope-viewer.svg")));
  if (!viz::load_fonts()) {
    throw InputError("internal error", "", "the embedded fonts are missing: text would be boxes; build it again");
  }
}

int show_window(const WindowRequest& request, int argc, char** argv) {
  check_file(request);
  need_a_display();
  QApplication application(argc, argv);
  set_up_application();
  SimulatorBackend backend(QCoreApplication::applicationFilePath().toStdString());
  viz::MainWindow window(backend);
  if (request.theme) window.set_theme(setting_of(*request.theme));
  if (request.font_scale) window.set_font_scale(*request.font_scale);
  auto view = first_view(request);
  if (request.compare && !view && !viz::shows_run(window.view())) view = viz::View::overview;  // the last one used
  if (view) window.set_view(*view);
  window.show();
  if (request.file) {
    viz::OpenWish wish;
    if (request.step) wish.step = StepIdx{*request.step};
    wish.view = view;
    if (request.candidate) wish.candidate = QString::fromStdString(*request.candidate);
    if (request.compare) wish.compared = QString::fromStdString(*request.compare);
    window.open(QString::fromStdString(*request.file), wish);
  }
  return QApplication::exec();
}

}  // namespace kvscope::apps
