// Notes about a launch that is legal and seldom meant. The kernel then computes other values than its author expects,
// and no check reports it. Every front end prints these notes.
//
//   scale<<<1, 1>>>(...) of a kernel that reads %tid, without extents of a block       1 thread computes 1 element
//   f(int const*) with an array of i64 {5, 6}                                          the kernel reads 5, 0, 6, 0
//   f(__nv_bfloat16*) with an array of f32 {1, 2}                                      the kernel reads 0, 1, 0, 2
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
  std::string name = {};    // of the parameter in the source; "": unknown
};

// One note for each array whose elements are not those of the pointer in the kernel's source: "argument 1 (table) has
// elements of i64, but the kernel takes int const*: pass i32". The types are known from a mangled name. Pointers to bytes
// have no notes, because several types of C++ stand for them. Pointers to halves and their pairs accept all elements of 16
// bits, and integers of 32 bits.
[[nodiscard]] std::vector<std::string> element_notes(const Module& module, const Function& kernel,
                                                     const std::vector<ArrayArgument>& arrays);

}  // namespace kvscope::ptx
