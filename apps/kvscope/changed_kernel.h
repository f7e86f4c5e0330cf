// A changed copy of the PTX of one of our kernels, to run in its place: kvscope kernels verify --ptx FILE.
//
//   cp gpu/ptx/gather_rows.sm_90a.ptx mine.ptx; (change an instruction)
//   read_changed_kernel("mine.ptx", "").kernel == "gather_rows"      by its entries
#pragma once

#include <string>

namespace kvscope::apps {

struct ChangedKernel {
  std::string kernel;        // a name of `kvscope kernels list`
  std::string architecture;  // "sm_90a": the cases of this architecture run it
  std::string text;
};

// `asked`: the kernel; "": the one that has the same entries. Throws InputError: the file is not valid PTX, belongs to
// no kernel, lacks entries of the kernel, or is for an architecture that has no image of the kernel.
[[nodiscard]] ChangedKernel read_changed_kernel(const std::string& path, const std::string& asked);

}  // namespace kvscope::apps
