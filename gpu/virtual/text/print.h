// Prints a module as PTX text that parses to the same module. Used by `kvscope ptx disasm`, and by tests to show that
// parsing loses nothing.
//
// Differences from the original: a statement is one line; all names of a body are in one scope, so repeated names get
// the suffixes "$2", "$3"; numbers are decimal, floating-point numbers are bits; constant expressions are evaluated;
// .pragma, .attribute and debug sections other than .debug_str are omitted. ptxas assembles it to the same machine
// code.
#pragma once

#include <string>

#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

[[nodiscard]] std::string to_ptx(const Module& module);
// One statement without its ';': "@!%p1 ld.global.u32 %r3, [%rd3+-4]".
[[nodiscard]] std::string to_ptx(const Module& module, const Function& function, const Statement& statement);

}  // namespace kvscope::ptx
