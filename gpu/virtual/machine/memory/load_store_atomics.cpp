// atom and red: lanes change memory one after the other, in ascending order.
#include <array>
#include <bit>
#include <cstring>

#include "gpu/virtual/machine/detail/handlers.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/detail/load_store.h"
#include "gpu/virtual/machine/memory/detail/reduction.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

// Registers of the instruction's operands: d of atom, b, and c of cas.
struct AtomicRegisters {
  const std::uint32_t* d = nullptr;  // [vector]; null: red
  const std::uint32_t* b = nullptr;  // [vector]
  std::uint32_t c = kNoRegister;
  int address = 0;  // operand
};

AtomicRegisters atomic_registers(const Op& op, bool returns, std::int32_t vector) {
  const bool list = vector > 1;
  AtomicRegisters registers;
  if (returns) registers.d = list ? op.list : op.at.data();
  registers.address = returns ? 1 : 0;
  const auto b = static_cast<std::size_t>(registers.address) + 1;
  registers.b = list ? op.list + (returns ? vector + 1 : 1) : op.at.data() + b;
  if (!list && b + 1 < 4) registers.c = op.at[b + 1];
  return registers;
}

Flow atomic(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  const bool returns = instr.opcode == Opcode::atom;
  const std::int32_t vector = instr.vector;
  const int size = bits(instr.type()) / 8;
  const ReduceOp what = reduce_op(instr);
  const Reduce reduce = find_reduce(what, instr.type());
  const AtomicRegisters registers = atomic_registers(op, returns, vector);

  const AccessRequest request{.space = space_of(instr),
                              .kind = AccessKind::atomic,
                              .bytes = size * vector,
                              .own_cta = space_of(instr) == Space::shared && !instr.has(Mod::shared_cluster)};
  LaneAddresses addresses;
  operand_addresses(exec, op, registers.address, addresses);
  Reach r;
  LaneMask left = lanes;
  while (left != 0) {
    if (!reach(exec, op, request, addresses, left, r)) return Flow::stopped;
    if (r.lanes == 0) continue;
    if (exec.launch.monitor != nullptr) tell_access(exec, op, request, r, addresses);
    const bool flush = r.space == Space::global;
    bool changed = false;
    for (LaneMask rest = r.lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      std::byte* const at = r.of(lane, request.bytes);
      std::array<std::array<std::byte, 16>, 8> old{};  // d may be a register of b
      for (std::int32_t e = 0; e < vector; ++e) {
        std::byte* const element = at + e * size;
        std::byte* const before = old[static_cast<std::size_t>(e)].data();
        std::memcpy(before, element, static_cast<std::size_t>(size));
        const std::byte* const b = exec.registers + registers.b[e] + lane * size;
        reduce(element, b, what == ReduceOp::cas ? exec.registers + registers.c + lane * size : nullptr, flush);
        changed |= std::memcmp(before, element, static_cast<std::size_t>(size)) != 0;
      }
      for (std::int32_t e = 0; e < vector && registers.d != nullptr; ++e) {
        if (registers.d[e] == kNoRegister) continue;
        std::memcpy(exec.registers + registers.d[e] + lane * size, old[static_cast<std::size_t>(e)].data(),
                    static_cast<std::size_t>(size));
      }
    }
    if (changed) event(exec);
    if (exec.launch.monitor != nullptr) tell_stored(exec, op, request, r, addresses);
  }
  return Flow::next;
}

}  // namespace

MachineHandler find_atomic(const Instr& instr) {
  if (instr.opcode != Opcode::atom && instr.opcode != Opcode::red) return nullptr;
  return find_reduce(reduce_op(instr), instr.type()) == nullptr ? nullptr : atomic;
}

}  // namespace kvscope::ptx
