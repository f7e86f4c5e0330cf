// CLI11, only for the files that parse or describe a command line (listed in tests/layering). It adds about three
// seconds of compile time to each file, so the work of a command that is longer than a few lines is in files without
// it.
#pragma once

#include <CLI/CLI.hpp>
