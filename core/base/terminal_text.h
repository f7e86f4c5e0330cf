// Names and texts from files and kernels, made safe to print on a terminal: there, control characters can move the
// cursor, change what was printed before, set the window's title or type commands.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvscope {

// `text` with these characters written as \uXXXX, which is also their form in JSON: U+0000 to U+001F except newline
// and tab, U+007F to U+009F, U+2028 and U+2029 (line breaks), U+202A to U+202E and U+2066 to U+2069 (they reverse
// the text that follows). Bytes that are no UTF-8 are written as \xXX. "a\x1b[31mb" becomes "a\u001b[31mb".
[[nodiscard]] std::string terminal_text(std::string_view text);

// The same, appended to `out`. It appends at most 6 bytes for each byte of `text`, so it allocates nothing if `out` has
// room for them.
void append_terminal_text(std::string& out, std::string_view text);

// Bytes at the end of `text` that may be the beginning of one character, 0 to 3: a writer that is called with parts of
// a text keeps them for the next part. "a\xc3" -> 1.
[[nodiscard]] std::size_t unfinished_bytes(std::string_view text);

}  // namespace kvscope
