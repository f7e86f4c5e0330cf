// What the compilers of C++ and of CUDA share: one job in the sandbox that leaves one file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/labs/compile.h"

namespace kvscope::labs {

// Folders inside the sandbox: the submission with the lab's headers, and what the compiler writes.
inline constexpr std::string_view kSources = "/lab/src", kOut = "/lab/out";

[[nodiscard]] SandboxLimits compiler_limits();

// Runs the job and reads `product`, a file outside the sandbox that the compiler wrote. `folders` are removed from the
// messages.
[[nodiscard]] Compiled run_compiler(const GradeOptions& options, SandboxJob job, const std::filesystem::path& product,
                                    const std::vector<std::string>& folders);

// Creates the folder `to` with the headers of the lab's starter folder.
void copy_headers(const Lab& lab, const std::filesystem::path& to);

}  // namespace kvscope::labs
