#include "apps/labs/user_python.h"

#include <cstdlib>
#include <string>

namespace kvscope::labs {

SandboxEnd run_user_python(const std::filesystem::path& python, std::string_view program) {
  const char* const path = std::getenv("PATH");
  SandboxJob job;
  // The command gets a PATH of its own (sandbox_child.h), so the user's is an argument.
  job.command = {"/bin/sh", "-c", "cd / && PATH=$1 && export PATH && exec \"$0\" -",
                 python.empty() ? "python3" : python.string(),
                 std::string(path == nullptr ? "" : path) + ":/usr/local/bin:/usr/bin:/bin"};
  job.input = std::string(program);
  job.limits.processes = true;
  return run_in_sandbox(SandboxKind::trusted, job);
}

}  // namespace kvscope::labs
