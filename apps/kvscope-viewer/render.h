// --render: writes a picture of a run, in this process and without a display.
#pragma once

#include "apps/kvscope-viewer/command_line.h"

namespace kvscope::apps {

// Returns the exit code; throws exceptions that fault_lines() formats. `argc` and `argv` are the program's own.
[[nodiscard]] int render(const RenderRequest& request, int argc, char** argv);

}  // namespace kvscope::apps
