// Functions: their heads, and what may stand in a body.
//
//   .visible .entry scale(.param .u64 x) .maxntid 128, 1, 1 { body }
//   .func (.param .b32 r) f (.param .b32 a);                    a declaration: its definition follows, or never does
#pragma once

#include "gpu/virtual/text/detail/context.h"

namespace kvscope::ptx {

// The token is .entry or .func; afterwards it is behind the body or the ';'. TextFault: the head is wrong.
void read_function(Context& context, Linkage linkage);

// The token is '{'; afterwards it is behind the matching '}'. Faults of statements are noted, one each. Throws Enough.
void read_body(Context& context, std::int32_t function);

// "(.param .b32 a, .param .b64 b)", the token is '('; new variables of the module, named "_" in a prototype.
void read_parameters(Context& context, std::int32_t function, std::vector<std::int32_t>& into);

// ".callprototype (.param .b32 _) _ (.param .b32 _);" behind the directive: a function without a name. Its index.
[[nodiscard]] std::int32_t read_prototype(Context& context);

// Thrown when kMostErrors have been noted.
struct Enough {};

}  // namespace kvscope::ptx
