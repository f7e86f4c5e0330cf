// CLI11, for the files alone that parse or word a command line (tests/layering names them): it costs each includer
// about three seconds of compile time, so what a command *does* lives in files that do not see it once it is more than
// a few lines.
#pragma once

#include <CLI/CLI.hpp>
