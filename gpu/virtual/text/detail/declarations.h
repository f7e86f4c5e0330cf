// Parses declarations of variables, parameters and registers: everything between the space and the initializer.
//
//   .global .align 8 .b8 name[4][3] = {1, 2}      space, alignment, type, name, extents: 12 bytes
//   .param .u64 .ptr .global .align 4 x           a pointer to global memory, what it points to aligned to 4
//   .reg .v4 .f32 v                               four registers
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gpu/virtual/text/detail/context.h"
#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

// ".global" -> global; std::nullopt if the directive does not name a space of variables.
[[nodiscard]] std::optional<Space> space_from_directive(std::string_view directive);

// Precondition: the token is the directive of the space. Reads alignment, attributes, .ptr and the type, up to the
// name. align is 0 if not given.
[[nodiscard]] Variable read_variable_type(Context& context);
// Reads the name and its extents; fills in alignment and size.
void read_variable_name(Context& context, Variable& variable);

// Reads "{1, generic(x)+8, 0xFF(f)}" or one item; the token is after '='.
void read_initializer(Context& context, Variable& variable);

// Reads a declaration of the module or of a body: .global .const .shared .local .param (of a call), with its ';'.
// `function` is the function whose body contains it, and `body` that function's list; -1 and null for the module.
void read_variables(Context& context, Linkage linkage, std::int32_t function, std::vector<std::int32_t>* body);

// Reads ".reg .b32 %r<5>, x;"; the token is after .reg.
void read_registers(Context& context, Function& function);

}  // namespace kvscope::ptx
