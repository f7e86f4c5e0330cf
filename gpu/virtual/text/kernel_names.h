// Kernels by the names that people use: as C++ writes them, or the shortest part that means one kernel.
//
//   mangled     _ZN2ns4kernILi4EfEEvPT0_i
//   demangled   void ns::kern<4, float>(float*, int)
//   found by    either of these, ns::kern<4, float>, kern<4,float>, ns::kern, kern, ker (if no other kernel begins so)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

// The name itself if it is not mangled. The C++ runtime demangles names of at most 1024 characters; a longer one, as
// CUTLASS has them, is "cutlass::device_kernel<...>", cut at its first template arguments.
[[nodiscard]] std::string demangled(std::string_view name);

// The types of the parameters in a mangled name: "_Z1fPfi" -> "(float*, int)". "" for a name that is not mangled, or
// was cut.
[[nodiscard]] std::string parameter_list(std::string_view name);

// The name of a variable as its source declares it: "_ZZ10no_barrierE4tile" -> "tile". A name that is not
// mangled stays as it is, even if it contains "::".
[[nodiscard]] std::string declared_name(std::string_view name);

// The forms of a name from the most exact to the shortest: mangled, demangled, without return type and parameters, without
// scopes, without template arguments (with and without scopes).
[[nodiscard]] std::vector<std::string> name_forms(std::string_view name);

// The shortest form of the name that no other kernel of the module has: "kern<4>" beside "kern<8>".
[[nodiscard]] std::string short_name(const Module& module, std::int32_t function);

// The kernels of the module that `asked` can mean, as indices of Module::functions. The most exact form wins: the mangled
// name, the whole demangled one, that without its parameters, that without scopes, that without template arguments, and
// a prefix of any of these. Blanks do not count. More than one: the word is ambiguous.
[[nodiscard]] std::vector<std::int32_t> find_kernels(const Module& module, std::string_view asked);

}  // namespace kvscope::ptx
