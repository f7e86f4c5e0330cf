// Where the parameters of calls begin in the parameter space: those of a function, and the .param variables of its body. A
// kernel's own parameters are below; they have at most 32764 bytes.
#pragma once

#include <cstdint>

namespace kvscope::ptx {

inline constexpr std::int64_t kBodyParams = 0x10000;

}  // namespace kvscope::ptx
