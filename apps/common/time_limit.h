// A limit of a program's wall-clock time: the option --timeout.
#pragma once

#include <string>

namespace kvscope::apps {

// Why the text is not a limit: a number of seconds from 0 to 1e6. Empty: it is one.
[[nodiscard]] std::string time_limit_fault(const std::string& text);

// From now on the program ends after `seconds`, and with it the commands that it started: temporary files and folders
// are removed, one line that names the limit goes to standard error, and the exit code is 2. 0: no limit. Standard
// output that is not yet flushed is lost.
void start_time_limit(double seconds);

}  // namespace kvscope::apps
