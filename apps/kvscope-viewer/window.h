// Opens the window, connects it with the simulator, and runs until it is closed.
#pragma once

#include "apps/kvscope-viewer/command_line.h"

namespace kvscope::apps {

// Returns the exit code. Throws InputError when there is no display, when the file is not of the kind that its option
// requires, or when a file of its kind does not use an option. A missing file is reported in the window.
// `argc` and `argv` are the program's own.
[[nodiscard]] int show_window(const WindowRequest& request, int argc, char** argv);

// Names, icon and fonts of the application. Precondition: a QApplication exists. InputError: the fonts are missing.
void set_up_application();

}  // namespace kvscope::apps
