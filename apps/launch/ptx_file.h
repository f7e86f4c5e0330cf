// Reads a PTX file.
#pragma once

#include <cstdint>
#include <string>

#include "gpu/virtual/text/module.h"

namespace kvscope::apps {

inline constexpr std::int64_t kMostPtxBytes = std::int64_t{256} << 20;

// InputError with every error of the file; for CUDA source or a compiled program, with the command that helps.
[[nodiscard]] ptx::Module read_ptx(const std::string& path);

}  // namespace kvscope::apps
