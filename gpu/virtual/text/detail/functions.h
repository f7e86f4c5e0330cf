// Parses functions: their heads and bodies.
//
//   .visible .entry scale(.param .u64 x) .maxntid 128, 1, 1 { body }
//   .func (.param .b32 r) f (.param .b32 a);                    a declaration: its definition may follow
#pragma once

#include "gpu/virtual/text/detail/context.h"

namespace kvscope::ptx {

// Precondition: the token is .entry or .func. Reads past the body or the ';'. Throws TextFault for a malformed head.
void read_function(Context& context, Linkage linkage);

// Precondition: the token is '{'. Reads past the matching '}'. Records one fault per statement. Throws Enough.
void read_body(Context& context, std::int32_t function);

// Reads "(.param .b32 a, .param .b64 b)"; the token is '('. Adds variables to the module, named "_" in a prototype.
void read_parameters(Context& context, std::int32_t function, std::vector<std::int32_t>& into);

// Reads ".callprototype (.param .b32 _) _ (.param .b32 _);" after the directive, as an unnamed function. Returns its
// index.
[[nodiscard]] std::int32_t read_prototype(Context& context);

// Thrown when kMostErrors have been recorded.
struct Enough {};

}  // namespace kvscope::ptx
