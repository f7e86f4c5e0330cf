// The words of a shell's command line, read and written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

// A line of text as words: blanks separate them; quotes and backslashes are those of a shell. Nothing is expanded.
// InputError("launch"): a quote that does not end. Example: --arg 'n=6 4' -> {"--arg", "n=6 4"}.
[[nodiscard]] std::vector<std::string> shell_words(const std::string& line);

// One word between single quotes, for any shell: it's -> 'it'\''s'.
[[nodiscard]] std::string shell_quoted(std::string_view word);

// A line of which shell_words() and a shell make the same words; only those are quoted that need it.
[[nodiscard]] std::string shell_line(const std::vector<std::string>& words);

}  // namespace kvscope
