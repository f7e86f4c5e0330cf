// Parses PTX text to a Module. All errors of a file are reported together, at most 20, one per statement:
//
//   scale.ptx:8:2: error: expected ';', found 'add'
//       add.s32 %r1, %r1, 1;
//       ^
//
// Safe for arbitrary bytes: it does not crash, and sizes are bounded by the length of the text and by kMost...
// Source: PTX ISA, "Syntax" and "Directives".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

inline constexpr std::int64_t kMostRegisters = 1 << 20;        // per function
inline constexpr std::int64_t kMostVariableBytes = 1ll << 32;  // per variable
inline constexpr int kMostErrors = 20;

// One error in a text. `message` does not contain the place: "expected ';', found 'add'".
struct TextError {
  TextPlace at;
  std::string message;
};

// The text printed after a message: the line without its leading blanks, and a caret under the column.
// "\n    add.s32 %r1, %r1, 1;\n    ^"
[[nodiscard]] std::string caret_lines(std::string_view line, std::int32_t column);
// "file:8:2: error: expected ';', found 'add'" and the caret lines.
[[nodiscard]] std::string to_text(std::string_view file, std::string_view line, const TextError& error);

struct Parsed {
  Module module;                  // complete only if there are no errors
  std::vector<TextError> errors;  // by place
};
[[nodiscard]] Parsed parse_text(std::string text, std::string file);

// Throws InputError with one fault per error ("8:2", message and caret lines).
[[nodiscard]] Module parse_module(std::string text, std::string file);

}  // namespace kvscope::ptx
