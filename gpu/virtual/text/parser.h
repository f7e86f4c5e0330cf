// PTX text -> Module. All errors of a file come together, 20 at most, one a statement:
//
//   scale.ptx:8:2: error: expected ';', found 'add'
//       add.s32 %r1, %r1, 1;
//       ^
//
// Never crashes and never runs out of memory on any bytes: sizes are bounded by the text's own length and by kMost...
// Source: PTX ISA, "Syntax" and "Directives".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

inline constexpr std::int64_t kMostRegisters = 1 << 20;        // of a function
inline constexpr std::int64_t kMostVariableBytes = 1ll << 32;  // of a variable
inline constexpr int kMostErrors = 20;

// One error of a text. `message` without place: "expected ';', found 'add'".
struct TextError {
  TextPlace at;
  std::string message;
};

// Behind a message: the line of the text without its leading blanks, and below it a caret under the column.
// "\n    add.s32 %r1, %r1, 1;\n    ^"
[[nodiscard]] std::string caret_lines(std::string_view line, std::int32_t column);
// "file:8:2: error: expected ';', found 'add'" and the caret lines.
[[nodiscard]] std::string to_text(std::string_view file, std::string_view line, const TextError& error);

struct Parsed {
  Module module;                  // whole only when there is no error
  std::vector<TextError> errors;  // by place
};
[[nodiscard]] Parsed parse_text(std::string text, std::string file);

// InputError with one fault an error ("8:2", message and caret lines).
[[nodiscard]] Module parse_module(std::string text, std::string file);

}  // namespace kvscope::ptx
