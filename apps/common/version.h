// What --version of the programs prints. The commit is found at build time by build_commit.cmake.
#pragma once

#include <string>
#include <string_view>

namespace kvscope::apps {

// "aab4023c1d2e", "aab4023c1d2e-dirty" (a tracked file was modified), or "" (not built from a git checkout).
extern const char* const kBuildCommit;

// Example: version_text("kvscope", "aab4023c1d2e-dirty") == "kvscope 0.1.0 (commit aab4023c1d2e-dirty)"
//          version_text("kvscope", "")                   == "kvscope 0.1.0 (unknown commit)"
[[nodiscard]] std::string version_text(std::string_view program, std::string_view commit = kBuildCommit);

}  // namespace kvscope::apps
