#include "gpu/virtual/machine/program/cta_communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "gpu/virtual/machine/memory/detail/load_store.h"
#include "gpu/virtual/machine/warp/special_registers.h"

namespace kvscope::ptx {
namespace {

bool is_global(const Instr& instr) {
  const Space space = space_of(instr);
  return space == Space::global || space == Space::generic;
}

bool is_strong_load(const Instr& instr) {
  if (instr.opcode != Opcode::ld || !is_global(instr)) return false;
  const Order order = order_of(instr);
  const Scope scope = scope_of(instr);
  return order != Order::weak && scope != Scope::cta && scope != Scope::cluster;
}

// An instruction by which one CTA can see what another one did.
bool is_shared_access(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::atom:
    case Opcode::red:
      return is_global(instr);
    case Opcode::ld:
      return is_strong_load(instr);
    case Opcode::st:
      return is_global(instr) && order_of(instr) != Order::weak;
    case Opcode::cp_reduce_async_bulk:
    case Opcode::cp_reduce_async_bulk_tensor:
    case Opcode::clusterlaunchcontrol_try_cancel:
      return true;
    default:
      return false;
  }
}

// [ops] inside a loop: between a backward branch and its target. A brx may go anywhere in its function.
std::vector<bool> ops_in_loops(const Program& program, const FunctionCode& code) {
  std::vector<bool> out(static_cast<std::size_t>(code.ops));
  for (std::int32_t i = 0; i < code.ops; ++i) {
    const Op& op = program.ops[static_cast<std::size_t>(code.first_op + i)];
    const Opcode opcode = program.instr(op).opcode;
    std::int32_t from = i + 1;
    if (opcode == Opcode::bra) from = op.target - code.first_op;
    if (opcode == Opcode::brx) from = 0;
    for (std::int32_t k = std::max(from, 0); k <= i; ++k) out[static_cast<std::size_t>(k)] = true;
  }
  return out;
}

std::string place(const Program& program, std::int32_t pc) {
  return fmt::format("{} ({})", program.statement(pc).opcode, program.source_text(pc));
}

void look_at_specials(const FunctionCode& code, CtaCommunication& out) {
  for (const SpecialPlace& place : code.specials) {
    if (place.special == kGridWorkspaceHigh || place.special == kGridWorkspaceLow) {
      out.waits = "a barrier of the whole grid";
    } else if (place.special == SpecialRegister::globaltimer || place.special == SpecialRegister::globaltimer_lo ||
               place.special == SpecialRegister::globaltimer_hi) {
      if (out.shares.empty()) out.shares = "%globaltimer";
    }
  }
}

}  // namespace

CtaCommunication cta_communication(const Program& program, std::int32_t kernel) {
  CtaCommunication out;
  const KernelLayout& layout = program.kernels.at(kernel);
  for (std::size_t f = 0; f < program.functions.size(); ++f) {
    if (!layout.reaches[f]) continue;
    const FunctionCode& code = program.functions[f];
    look_at_specials(code, out);
    const std::vector<bool> loops = ops_in_loops(program, code);
    for (std::int32_t i = 0; i < code.ops; ++i) {
      const std::int32_t pc = code.first_op + i;
      const Op& op = program.ops[static_cast<std::size_t>(pc)];
      const Instr& instr = program.instr(op);
      if (out.waits.empty() && loops[static_cast<std::size_t>(i)] && is_strong_load(instr))
        out.waits = fmt::format("a loop reads {}", place(program, pc));
      if (out.shares.empty() && is_shared_access(instr)) out.shares = place(program, pc);
    }
  }
  for (const CallSite& call : program.calls) {
    if (out.shares.empty() && (call.builtin == Builtin::malloc || call.builtin == Builtin::free)) out.shares = "malloc";
  }
  if (out.shares.empty()) out.shares = out.waits;
  return out;
}

}  // namespace kvscope::ptx
