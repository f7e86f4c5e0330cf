// What a declaration says of a variable, parameter or register, and reading it: everything between the space and the
// initialiser.
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

// ".global" -> global; nothing for a directive that is no space of variables.
[[nodiscard]] std::optional<Space> space_from_directive(std::string_view directive);

// The token is the directive of the space. Reads alignment, attributes, .ptr and the type, up to the name. align: 0
// unless said.
[[nodiscard]] Variable read_variable_type(Context& context);
// Then the name and its extents; fills in alignment and size.
void read_variable_name(Context& context, Variable& variable);

// "{1, generic(x)+8, 0xFF(f)}" or one item, behind '='.
void read_initialiser(Context& context, Variable& variable);

// A statement of the module or of a body: .global .const .shared .local .param (of a call), with its ';'.
// `function`: whose body it stands in, and `body` where that keeps its variables; -1 and null for the module.
void read_variables(Context& context, Linkage linkage, std::int32_t function, std::vector<std::int32_t>* body);

// ".reg .b32 %r<5>, x;" behind .reg.
void read_registers(Context& context, Function& function);

}  // namespace kvscope::ptx
