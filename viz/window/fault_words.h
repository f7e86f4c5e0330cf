// The message of the current exception, line by line as the command line prints it (without its "kvscope: "); a general
// message for an object that is not a std::exception.
#pragma once

#include <QtCore/QStringList>

namespace kvscope::viz {

[[nodiscard]] QStringList current_fault_lines();  // precondition (caller): called in a catch handler

}  // namespace kvscope::viz
