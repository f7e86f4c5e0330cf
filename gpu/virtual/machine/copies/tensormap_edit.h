// tensormap.replace and tensormap.cp_fenceproxy: a kernel edits the 128 bytes of a tensor map (our record,
// core/tma/tensor_map_record.h) in shared or global memory, and hands them to the copy engine.
// The numbers of types here are the instruction's, not the encoder's: 8 is f32.ftz and 9 is f64.
// Source: PTX ISA, "tensormap.replace".
#pragma once

#include "core/tma/tensor_map.h"
#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/semantics/op.h"
#include "gpu/virtual/text/types.h"

namespace kvscope::ptx {

[[nodiscard]] MachineHandler find_tensormap_edit(const Instr& instr);

// The type of a map's elements as reductions see it; none: they cannot be reduced.
[[nodiscard]] Type element_type(TmaDataType type);

}  // namespace kvscope::ptx
