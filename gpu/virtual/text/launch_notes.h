// Notes about a launch that is legal and seldom meant. The kernel then computes other values than its author expects,
// and no check reports it. Every front end prints these notes.
//
//   scale<<<1, 1>>>(...) of a kernel that reads %tid, without extents of a block       1 thread computes 1 element
//   f(int const*) with an array of i64 {5, 6}                                          the kernel reads 5, 0, 6, 0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

// The note for a launch whose caller gave no extents of a block, where the module reads %tid. `option` is the caller's
// name of these extents, such as "--block".
[[nodiscard]] std::optional<std::string> missing_block_note(const Module& module, std::string_view option);

struct ArrayArgument {
  std::size_t parameter = 0;
  DType dtype = DType::u8;  // of its elements
};

// One note for each array whose elements are not those of the pointer in the kernel's source: "argument 1 has elements
// of i64, but the kernel takes int const*: pass i32". The types are known from a mangled name. Pointers to bytes and to
// halves have no notes, because several types of C++ stand for each.
[[nodiscard]] std::vector<std::string> element_notes(const Module& module, const Function& kernel,
                                                     const std::vector<ArrayArgument>& arrays);

}  // namespace kvscope::ptx
