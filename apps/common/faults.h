// How faults are printed: one line per fault on standard error, without a stack trace.
//   kvscope: scenario.json: $.cache.page_size: 0 is outside [1, 65536]: use a power of two such as 16
#pragma once

#include <exception>
#include <string_view>

namespace kvscope::apps {

inline constexpr int kExitFine = 0;
inline constexpr int kExitCheckFailed = 1;
inline constexpr int kExitBadInput = 2;

// Prints each line of fault_lines(error) to standard error, after the program's name, and returns kExitBadInput.
int print_faults(std::string_view program, const std::exception& error);

}  // namespace kvscope::apps
