// Opens the kernel window alone, or paints a picture of it without a display.
#pragma once

#include "apps/kvscope-viewer/command_line.h"

namespace kvscope::apps {

// Returns the exit code. `argc` and `argv` are the program's own.
[[nodiscard]] int show_kernel(const KernelRequest& request, int argc, char** argv);

// Throws InputError for faults of the launch, and for a step behind its end.
[[nodiscard]] int render_kernel(const KernelRequest& request, int argc, char** argv);

}  // namespace kvscope::apps
