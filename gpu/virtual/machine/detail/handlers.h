// Selects the handler of an instruction, one finder per folder. A finder returns nullptr for instructions of other
// folders. make_program calls find_op_handler first, then these finders in this order.
#pragma once

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

struct Launch;
struct Cta;

[[nodiscard]] MachineHandler find_control(const Instr& instr);        // bra call ret exit trap nanosleep ...
[[nodiscard]] MachineHandler find_warp_exchange(const Instr& instr);  // shfl vote match redux elect activemask ...
[[nodiscard]] MachineHandler find_named_barrier(const Instr& instr);  // bar.sync arrive red, barrier.cluster
[[nodiscard]] MachineHandler find_memory(const Instr& instr);         // ld st cvta isspacep alloca mapa ... ldmatrix
[[nodiscard]] MachineHandler find_atomic(const Instr& instr);         // atom red
[[nodiscard]] MachineHandler find_mbarrier(const Instr& instr);       // mbarrier.*
[[nodiscard]] MachineHandler find_copy(const Instr& instr);           // cp.async, cp.async.bulk, tensor copies, fences
[[nodiscard]] MachineHandler find_warpgroup(const Instr& instr);      // wgmma, setmaxnreg
[[nodiscard]] MachineHandler find_tensor(const Instr& instr);         // tcgen05

// --- used by the scheduler -------------------------------------------------------------------------------------------

// Performs one queued operation of the CTA's engines: the oldest, or a random one under a seed. False: none is queued.
bool perform_next(Launch& launch, Cta& cta);
// The CTA has ended: reports copies that were never waited for, and incomplete barriers.
void check_ended(Launch& launch, Cta& cta);

}  // namespace kvscope::ptx
