// What a program does when it has no memory: one line on standard error and exit code 2, never an abort. Without memory
// the line cannot be composed, so it is constant text, written by the system's call.
#pragma once

#include <string_view>

namespace kvscope::apps {

// The name that the line begins with. set_up_program() calls it; until then, such as in the constructors
// of global objects, the name is "kvscope".
void set_program_name(std::string_view program) noexcept;

// Prints "<program>: out of memory: ask for fewer tokens, layers or heads at a time".
void print_memory_failure() noexcept;

}  // namespace kvscope::apps
