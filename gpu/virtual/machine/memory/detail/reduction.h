// The operation of an atomic or an asynchronous reduction on one element of memory: new = op(old, b). Shared by atom,
// red, red.async and cp.reduce.
//
//   add   wraps; floats round to nearest even, f32 in global memory flushes subnormals    min max   NaN is ignored
//   inc   r >= b ? 0 : r + 1        dec   r == 0 or r > b ? b : r - 1
// Source: PTX ISA, "atom", "red", "cp.reduce.async.bulk".
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/text/types.h"

namespace kvscope::ptx {

enum class ReduceOp : std::uint8_t { add, min, max, inc, dec, and_, or_, xor_, exch, cas };

// The operation that the modifiers name. Precondition: there is one.
[[nodiscard]] ReduceOp reduce_op(const Instr& instr);

// Changes the element at `memory`; `b`, and for cas the new value `c`, are elements too. `flush`: f32 add flushes
// subnormals, as in global memory.
using Reduce = void (*)(std::byte* memory, const std::byte* b, const std::byte* c, bool flush);
// nullptr: the combination is not supported.
[[nodiscard]] Reduce find_reduce(ReduceOp op, Type type);

}  // namespace kvscope::ptx
