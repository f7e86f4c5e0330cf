// A module as PTX text again, which parses to the same module: `kvscope ptx disasm`, and the proof that none was lost.
//
// What differs: a statement is one line; all names of a body stand in one scope, so names of two scopes get "$2", "$3"
// behind them; numbers are decimal, floating-point ones their bits; constant expressions are their values; .pragma,
// .attribute and debug sections other than .debug_str are gone. ptxas assembles it to the same machine code.
#pragma once

#include <string>

#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

[[nodiscard]] std::string to_ptx(const Module& module);
// One statement as it stands there, without its ';': "@!%p1 ld.global.u32 %r3, [%rd3+-4]".
[[nodiscard]] std::string to_ptx(const Module& module, const Function& function, const Statement& statement);

}  // namespace kvscope::ptx
