// ld and st, and functions shared by memory instructions: order and scope, and reporting accesses to monitors.
#pragma once

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

[[nodiscard]] MachineHandler find_load_store(const Instr& instr);  // ld ldu st; nullptr: another one
[[nodiscard]] MachineHandler find_bulk_fill(const Instr& instr);   // st.bulk

// Derived from the modifiers: .volatile, .relaxed, .acquire ...; weak without any. Scope: none without any, sys for
// volatile.
[[nodiscard]] Order order_of(const Instr& instr);
[[nodiscard]] Scope scope_of(const Instr& instr);

// Calls Monitor::access and stored for these lanes. Precondition: there is a monitor.
void tell_access(Exec& exec, const Op& op, const AccessRequest& request, const Reach& r,
                 const LaneAddresses& addresses);
void tell_stored(Exec& exec, const Op& op, const AccessRequest& request, const Reach& r,
                 const LaneAddresses& addresses);

}  // namespace kvscope::ptx
