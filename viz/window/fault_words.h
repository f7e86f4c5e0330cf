// The words for whatever was thrown, line by line as the command line prints them (without its "kvscope: "), and a line
// for what is no std::exception at all.
#pragma once

#include <QtCore/QStringList>

namespace kvscope::viz {

[[nodiscard]] QStringList current_fault_lines();  // in a handler only

}  // namespace kvscope::viz
