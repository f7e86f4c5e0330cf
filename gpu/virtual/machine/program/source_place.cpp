#include "gpu/virtual/machine/program/source_place.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace kvscope::ptx {
namespace {

// Files of library wrappers: a report shows the line that calls them.
constexpr std::array<std::string_view, 9> kWrappers{"/targets/x86_64-linux/include/",
                                                    "/targets/sbsa-linux/include/",
                                                    "/cuda/include/",
                                                    "_intrinsics.h",
                                                    "cuda_fp16.h",
                                                    "cuda_bf16.h",
                                                    "cuda_fp8.h",
                                                    "device_functions.h",
                                                    "/cuda/std/"};

bool is_wrapper(std::string_view path) {
  for (const std::string_view w : kWrappers) {
    if (path.find(w) != path.npos) return true;
  }
  return false;
}

const Frame& frame_of(const Program& program, std::int32_t index) {
  return program.module->frames[static_cast<std::size_t>(index)];
}

}  // namespace

const Statement& placed_statement(const Program& program, std::int32_t pc) {
  const OpSource& source = program.sources[static_cast<std::size_t>(pc)];
  const Function& f = program.module->functions[static_cast<std::size_t>(source.function)];
  const Statement& statement = program.statement(pc);
  const bool closes = statement.at.line == 0 && !f.body.empty();
  return closes ? f.body.back() : statement;
}

std::int32_t shown_frame(const Program& program, std::int32_t pc) {
  std::int32_t shown = placed_statement(program, pc).frame;
  while (shown >= 0 && is_wrapper(program.module->file_of(frame_of(program, shown))) &&
         frame_of(program, shown).outer >= 0)
    shown = frame_of(program, shown).outer;
  return shown;
}

bool same_shown_place(const Program& program, std::int32_t a, std::int32_t b) {
  const Statement &of_a = placed_statement(program, a), &of_b = placed_statement(program, b);
  if (of_a.frame < 0 && of_b.frame < 0) return of_a.at.line == of_b.at.line;
  if (of_a.frame == of_b.frame) return true;
  std::int32_t i = shown_frame(program, a), j = shown_frame(program, b);
  while (i != j && i >= 0 && j >= 0) {
    const Frame &x = frame_of(program, i), &y = frame_of(program, j);
    if (x.file != y.file || x.line != y.line) return false;
    i = x.outer;
    j = y.outer;
  }
  return i == j;
}

}  // namespace kvscope::ptx
