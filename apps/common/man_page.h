// A program's man page, rendered from the same words as its help pages. The build writes <program>.1 with the hidden
// option --man of each program and installs it in share/man/man1.
#pragma once

#include <string>
#include <string_view>

#include "apps/common/command_words.h"

namespace kvscope::apps {

// roff with the macros of man(7): NAME, SYNOPSIS, DESCRIPTION, OPTIONS, COMMANDS (one part per command, with its
// options and examples), EXAMPLES, EXIT STATUS, SEE ALSO. The same program gives the same bytes on every machine: the
// page carries the version, but no date and no commit.
[[nodiscard]] std::string man_page(std::string_view program, const CommandWords& words);

}  // namespace kvscope::apps
