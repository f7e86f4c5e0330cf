// The place of an instruction in the sources that Program::source_text() prints: the user's line, where the user's code
// calls library wrappers such as intrinsics. The debugger moves by these places, and lists them.
//
//   .loc of cuda_bf16.hpp:812, inlined at decode.cuh:62, inlined at main.cu:9
//     source_text()  "decode.cuh:62  <- main.cu:9"
//     shown_frame()  the frame of decode.cuh:62
#pragma once

#include <cstdint>

#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {

// The statement that has the place of an instruction. A function's closing ret is not in the file: it has the place of
// the last statement.
[[nodiscard]] const Statement& placed_statement(const Program& program, std::int32_t pc);

// The innermost frame that source_text() prints, an index of Module::frames; -1: the statement has no .loc.
[[nodiscard]] std::int32_t shown_frame(const Program& program, std::int32_t pc);

// Whether source_text() prints the same files and lines for both. Files of one name in two folders differ.
[[nodiscard]] bool same_shown_place(const Program& program, std::int32_t a, std::int32_t b);

}  // namespace kvscope::ptx
