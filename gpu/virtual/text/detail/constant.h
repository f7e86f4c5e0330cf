// Constants and constant expressions of PTX.
//
//   10  -2147483648  0x1F  017 (octal)  0b1011  12U  WARP_SZ       integer: 64 bits
//   0x7fffffff+1  (3*4)  1 ? 2 : 3  (.u64)-1 >> 1                  integer: C's operators and precedence, 64 bits wide
//   0f3F800000                                                     float_bits: 1.0f
//   0d3FF8000000000000  1.5  -1e10  1.5+2.0                        double_bits
//
// A value is signed unless it has a U, exceeds 2^63 or is cast by (.u64). Shifts by 64 and more give 0 or the sign.
// Source: PTX ISA, "Constants" and "Constant Expressions"; ptxas.
#pragma once

#include <cstdint>

#include "gpu/virtual/text/detail/reader.h"

namespace kvscope::ptx {

struct Constant {
  enum class Kind : std::uint8_t { integer, float_bits, double_bits } kind = Kind::integer;
  std::int64_t value = 0;
};

// Whether a constant can begin at the token.
[[nodiscard]] bool at_constant(const Reader& reader);
// Reads a whole expression. Throws TextFault: malformed, division by zero, nested deeper than 64.
[[nodiscard]] Constant read_constant(Reader& reader);
// Reads a single number or a parenthesized expression, where '<' and '>' are brackets. TextFault: not an integer.
[[nodiscard]] std::int64_t read_count(Reader& reader);
// An integer expression in [low, high]; `what` names it in the message.
[[nodiscard]] std::int64_t read_integer(Reader& reader, std::string_view what, std::int64_t low, std::int64_t high);
// Reads an optional +expression after a symbol or a register ("+-4"; ptxas rejects "-4"); returns the number to add.
[[nodiscard]] std::int64_t read_offset(Reader& reader);

}  // namespace kvscope::ptx
