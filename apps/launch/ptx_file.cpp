#include "apps/launch/ptx_file.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::apps {

ptx::Module read_ptx(const std::string& path) {
  std::string text = read_file(path, kMostPtxBytes);
  if (path.ends_with(".cu")) throw InputError(path, "", "is CUDA source: compile it to PTX with nvcc -ptx -lineinfo");
  if (text.starts_with("\x7f"
                       "ELF")) {
    throw InputError(
        path, "",
        fmt::format("is a compiled program or library (ELF), not PTX: run a program with `kvscope cuda {}`, "
                    "or compile its source with nvcc -ptx -lineinfo",
                    path.find('/') == std::string::npos ? "./" + path : path));
  }
  return ptx::parse_module(std::move(text), path);
}

}  // namespace kvscope::apps
