// Runs a program of kvscope's own with the user's Python, outside the sandbox: it finds an installed package.
#pragma once

#include <filesystem>
#include <string_view>

#include "apps/labs/sandbox.h"

namespace kvscope::labs {

// `python`: an absolute path, or empty for the first python3 in PATH, or else in /usr/local/bin and /usr/bin. Nothing
// of the current folder is imported: it may be a submission's, with a json.py.
[[nodiscard]] SandboxEnd run_user_python(const std::filesystem::path& python, std::string_view program);

}  // namespace kvscope::labs
