// What the compilers of C++ and of CUDA share: one job in the sandbox that leaves one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/labs/compile.h"

namespace kvscope::labs {

// Places inside the sandbox: the submission with the lab's headers, the course's harness folder, the lab's harness and
// its object file, a program of kvscope that is not compiled, and the folder that the compiler writes.
inline constexpr std::string_view kSources = "/lab/src", kHarness = "/lab/harness", kMain = "/lab/main.cpp",
                                  kObject = "/lab/main.o", kTool = "/lab/tool.py", kOut = "/lab/out";

[[nodiscard]] SandboxLimits compiler_limits(const LabLimits& limits);

// Runs the job and reads `product`, a file outside the sandbox that the compiler wrote, or takes the result of an
// earlier run from the cache of the options. `folders` are removed from the messages.
[[nodiscard]] Compiled run_compiler(const GradeOptions& options, SandboxJob job, const std::filesystem::path& product,
                                    const std::vector<std::string>& folders);

// Creates the folder `to` with the headers of the lab's starter folder.
void copy_headers(const Lab& lab, const std::filesystem::path& to);

}  // namespace kvscope::labs
