// tensormap.replace and tensormap.cp_fenceproxy: a kernel modifies the 128 bytes of a tensor map (copy_map.h) in shared
// or global memory, and passes them to the copy engine. Type numbers here are those of the instruction, not those of
// the driver API: 8 is f32.ftz and 9 is f64.
// Source: PTX ISA, "tensormap.replace".
#pragma once

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

[[nodiscard]] MachineHandler find_tensormap_edit(const Instr& instr);

}  // namespace kvscope::ptx
