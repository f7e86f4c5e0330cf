// Compiled submissions in a folder (`--cache DIR`): a second grading compiles only what is new. A class that is graded
// again after a complaint, or under another seed, has the same files.
//
// An entry is named by the SHA-256 of all that decides the product: the command, the submitted text, the lab's headers
// and harness, and the path, size and time of the compiler. Headers of the system are not part of it: remove the folder
// when they change. The limits of the compiler are not part of it either: they decide whether it ends, not what it
// writes, so a product is found under any limits. Compilations that fail are not kept, those that exceed a limit among
// them: a larger limit compiles them again. Nothing that runs in the sandbox sees the folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "apps/labs/compile.h"
#include "apps/labs/sandbox.h"

namespace kvscope::labs {

class CompileCache {
 public:
  // An empty folder name: nothing is kept, find() finds nothing.
  explicit CompileCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // 64 hexadecimal digits. `trusted` products are kept apart: outside the sandbox a compiler may read more files.
  // Precondition: the folders that the compiler reads submitted text and headers from are complete.
  [[nodiscard]] static std::string key(const SandboxJob& job, bool trusted);
  // Empty when there is no entry, or its bytes are not those that were written.
  [[nodiscard]] std::optional<Compiled> find(const std::string& name) const;
  void keep(const std::string& name, const Compiled& compiled) const;  // creates the folder

 private:
  [[nodiscard]] std::filesystem::path entry(const std::string& name) const { return folder_ / (name + ".compiled"); }
  std::filesystem::path folder_;
};

}  // namespace kvscope::labs
