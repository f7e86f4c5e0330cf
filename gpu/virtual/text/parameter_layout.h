// The parameters of a kernel as its source declares them: names, types, and the fields of structs passed by value.
// In PTX a struct is only a block of bytes:
//
//   struct Params { float* out; int n; float scale[2]; };       .param .align 8 .b8 f_param_0[24]
//   __global__ void f(Params p)
//
//   ParameterLayout {"p", "Params", 24 bytes, fields:  out       offset 0   8 bytes  u64  pointer "float*"
//                                                      n         offset 8   4 bytes  s32
//                                                      scale[0]  offset 12  4 bytes  f32
//                                                      scale[1]  offset 16  4 bytes  f32 }
//
// The layout comes from debug information (nvcc -G, LLVM), or from a C header. `cv`, typedefs and base classes are
// resolved; the members of a union share their offset.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/text/module.h"
#include "gpu/virtual/text/types.h"

namespace kvscope::ptx {

struct ParameterField {
  std::string path;         // "in[1].page"; "" if the parameter is not a struct
  std::int64_t offset = 0;  // [bytes] from the parameter's first byte
  std::int64_t bytes = 0;
  Type type = Type::none;  // none: a bit field, which cannot be set by itself
  bool pointer = false;    // `type` is u64
  std::string type_name;   // as in the source: "unsigned int", "float*"
};

struct ParameterLayout {
  std::string name;       // "p"; "": unknown
  std::string type_name;  // "Params"
  std::int64_t bytes = 0;
  std::vector<ParameterField> fields;  // in the order of their offsets

  [[nodiscard]] const ParameterField* find(std::string_view path) const;  // null: no such field
};

constexpr std::size_t kMostFields = 65'536;  // of a kernel's parameters

// The parameters of the kernel, in order. Empty: the file has no debug information about it, or describes other
// parameters than the kernel has.
[[nodiscard]] std::vector<ParameterLayout> layouts_from_debug_info(const Module& module, const Function& kernel);

// The struct `type` of a C header: struct definitions whose members are numbers, pointers, earlier structs and arrays of
// these with constant bounds; CUDA's vector types and half types; typedef and using; comments and preprocessor lines are
// skipped. `type` may be "" if the header has one struct only. InputError, with the line: anything else, such as a
// template or a member function.
[[nodiscard]] ParameterLayout layout_from_header(std::string_view text, std::string_view what, std::string_view type);

}  // namespace kvscope::ptx
