// Which handler an instruction gets, folder by folder of what it touches; each finder answers nullptr for what is not
// its own. make_program asks them in this order after find_op_handler.
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

// --- what the scheduler asks of the engines --------------------------------------------------------------------------

// Lets one waiting operation of the CTA's engines happen: the oldest, under a seed any. False: none waits.
bool perform_next(Launch& launch, Cta& cta);
// The CTA has ended: reports copies that nobody waited for, and what barriers are still owed.
void check_ended(Launch& launch, Cta& cta);

}  // namespace kvscope::ptx
