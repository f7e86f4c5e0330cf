// ld and st, and what memory instructions share: their order and scope, and telling who watches.
#pragma once

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

[[nodiscard]] MachineHandler find_load_store(const Instr& instr);  // ld ldu st; nullptr: another one

// Of the modifiers: .volatile, .relaxed, .acquire ...; weak without any. Scope: none without any, sys of a volatile.
[[nodiscard]] Order order_of(const Instr& instr);
[[nodiscard]] Scope scope_of(const Instr& instr);

// Monitor::access and stored of these lanes. Only when there is a monitor.
void tell_access(Exec& exec, const Op& op, const AccessRequest& request, const Reach& r,
                 const LaneAddresses& addresses);
void tell_stored(Exec& exec, const Op& op, const AccessRequest& request, const Reach& r,
                 const LaneAddresses& addresses);

}  // namespace kvscope::ptx
