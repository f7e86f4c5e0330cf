#include "gpu/virtual/machine/warp/detail/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/warp/detail/builtins.h"
#include "gpu/virtual/machine/warp/detail/control.h"
#include "gpu/virtual/machine/warp/detail/lane_groups.h"
#include "gpu/virtual/machine/warp/scheduler.h"
#include "gpu/virtual/machine/warp/special_registers.h"

namespace kvscope::ptx {
namespace {

Activation& activation(Warp& warp, std::int32_t index) {
  return warp.activations[static_cast<std::size_t>(index)];
}

const FunctionCode& code_of(const Launch& launch, std::int32_t function) {
  return launch.program->functions[static_cast<std::size_t>(function)];
}

// Addresses that depend on the activation or on the CTA; the others are in Launch::initial_registers.
void fill_addresses(const Launch& launch, const Cta& cta, Activation& a) {
  for (const AddressPlace& reg : code_of(launch, a.function).addresses) {
    std::uint64_t add = 0;
    if (reg.space == Space::local) {
      add = static_cast<std::uint64_t>(a.local_base);
    } else if (reg.space == Space::shared && cta.cluster_rank != 0) {
      add = static_cast<std::uint64_t>(cta.cluster_rank) << 24;
    }
    if (add == 0) continue;
    for (int lane = 0; lane < kLanes; ++lane) {
      std::byte* at = a.registers.data() + reg.reg + lane * reg.bytes;
      std::uint64_t value = 0;
      const std::size_t bytes = std::min(sizeof value, std::size_t{reg.bytes});  // the upper half of 128 bits is 0
      std::memcpy(&value, at, bytes);
      value += add;
      std::memcpy(at, &value, bytes);
    }
  }
}

std::int32_t free_activation(Warp& warp, std::int32_t function) {
  std::int32_t any = -1;
  for (std::size_t i = 0; i < warp.activations.size(); ++i) {
    if (warp.activations[i].users > 0) continue;
    any = static_cast<std::int32_t>(i);
    if (warp.activations[i].function == function) return any;
  }
  if (any >= 0) return any;
  warp.activations.emplace_back();
  return static_cast<std::int32_t>(warp.activations.size()) - 1;
}

// Bytes of the parameters and .param variables of an activation, in all lanes.
std::int64_t param_bytes_of(const Launch& launch, std::int32_t function) {
  return code_of(launch, function).param_bytes * kLanes;
}

// A new activation, or an existing one that other lanes entered by the same calls; -1: its parameters would exceed
// limits.local_bytes. The caller extends the lanes' local memory.
std::int32_t enter(Launch& launch, const Cta& cta, Warp& warp, std::int32_t function, std::int32_t caller,
                   std::int32_t return_pc, LaneMask lanes) {
  std::int64_t base = 0;
  if (caller >= 0) {
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
      base = std::max(base, activation(warp, caller).local_end[static_cast<std::size_t>(std::countr_zero(left))]);
    }
    base = round_up(base, 16);
  }
  const std::int64_t end = base + code_of(launch, function).local_bytes;
  for (std::size_t i = 0; i < warp.activations.size(); ++i) {
    Activation& a = warp.activations[i];
    if (a.users == 0 || caller < 0 || a.caller != caller || a.function != function || a.return_pc != return_pc ||
        a.local_base < base) {
      continue;
    }
    const std::int64_t own_end = a.local_base + code_of(launch, function).local_bytes;
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
      a.local_end[static_cast<std::size_t>(std::countr_zero(left))] = own_end;
    }
    return static_cast<std::int32_t>(i);
  }
  const std::int32_t index = free_activation(warp, function);
  Activation& a = activation(warp, index);
  const std::int64_t more = std::max<std::int64_t>(param_bytes_of(launch, function) - a.param_room, 0);
  if (more > launch.config.options.limits.local_bytes - launch.local_bytes) return -1;
  launch.local_bytes += more;
  a.param_room += more;
  if (caller >= 0) ++activation(warp, caller).users;
  a.function = function;
  a.caller = caller;
  a.return_pc = return_pc;
  a.registers = (*launch.initial_registers)[static_cast<std::size_t>(function)];
  a.params.assign(static_cast<std::size_t>(param_bytes_of(launch, function)), std::byte{0});
  a.local_base = base;
  a.local_end.fill(end);
  a.users = 0;
  a.entered = launch.step;
  fill_addresses(launch, cta, a);
  for (const SpecialPlace& reg : code_of(launch, function).specials) {
    fill_special(launch, cta, warp, reg, a.registers.data());
  }
  return index;
}

// The bytes of one value in the caller: in its params, or in a register.
std::byte* value_in(Activation& a, const FunctionCode& code, const CallValue& v, int lane) {
  if (v.param >= kBodyParams) return a.params.data() + lane * code.param_bytes + (v.param - kBodyParams);
  return v.reg == kNoRegister ? nullptr : a.registers.data() + v.reg + lane * v.bytes;
}

enum class Direction : std::uint8_t { in, out };

// Copies arguments into the callee, or results out of it. Values missing on one side are ignored.
void pass(const Launch& launch, Warp& warp, std::int32_t caller, std::int32_t callee,
          const std::vector<CallValue>& values, const std::vector<std::int32_t>& formals, LaneMask lanes,
          Direction direction) {
  Activation& outer = activation(warp, caller);
  Activation& inner = activation(warp, callee);
  const FunctionCode& outer_code = code_of(launch, outer.function);
  const FunctionCode& inner_code = code_of(launch, inner.function);
  for (std::size_t i = 0; i < std::min(values.size(), formals.size()); ++i) {
    const auto formal = static_cast<std::size_t>(formals[i]);
    const Variable& variable = launch.program->module->variables[formal];
    const auto bytes = static_cast<std::size_t>(std::min(values[i].bytes, variable.bytes));
    // A parameter in space reg is a register of the callee.
    CallValue own_value{.param = launch.program->placements[formal], .reg = kNoRegister, .bytes = variable.bytes};
    if (variable.in_register >= 0) {
      own_value = {.param = -1,
                   .reg = inner_code.registers[static_cast<std::size_t>(variable.in_register)].reg,
                   .bytes = inner_code.registers[static_cast<std::size_t>(variable.in_register)].bytes};
    }
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      std::byte* const own = value_in(inner, inner_code, own_value, lane);
      std::byte* const other = value_in(outer, outer_code, values[i], lane);
      if (own == nullptr || other == nullptr) continue;
      if (direction == Direction::in) {
        std::memcpy(own, other, bytes);
      } else {
        std::memcpy(other, own, bytes);
      }
    }
  }
}

Report too_deep(std::string message) {
  Report r;
  r.kind = ReportKind::stack;
  r.message = std::move(message);
  return r;
}

// The lanes `lanes` of the running lane group enter `function`; the others continue after the call.
Flow enter_function(Exec& exec, const CallSite& site, std::int32_t function, LaneMask lanes) {
  const Function& callee = exec.program().module->functions[static_cast<std::size_t>(function)];
  const FunctionCode& code = code_of(exec.launch, function);
  const std::int32_t call_pc = exec.lane_group.pc;
  if (exec.lane_group.depth >= kMostCalls) {
    return report(exec,
                  too_deep(fmt::format("{} nested calls are the limit: '{}' exceeds it", kMostCalls, callee.name)));
  }
  if (code.param_bytes > kMostLocal) {
    return report(exec, too_deep(fmt::format("'{}' needs {} bytes of parameters and .param variables per thread: at "
                                             "most {}",
                                             callee.name, code.param_bytes, kMostLocal)));
  }
  const std::int32_t caller = exec.lane_group.activation;
  const std::int32_t inside = enter(exec.launch, exec.cta, exec.warp, function, caller, call_pc + 1, lanes);
  if (inside < 0)
    return report(exec, over_local(exec.launch, callee.name, code.param_bytes, "parameters and .param variables"));
  const std::int64_t end = activation(exec.warp, inside).local_base + code.local_bytes;
  if (end > kMostLocal) {
    return report(exec, too_deep(fmt::format("'{}' needs {} bytes of local memory per thread: at most {}", callee.name,
                                             end, kMostLocal)));
  }
  if (!grow_local(exec.launch, exec.warp, lanes, end)) return report(exec, over_local(exec.launch, callee.name, end));
  pass(exec.launch, exec.warp, caller, inside, site.arguments, callee.parameters, lanes, Direction::in);
  LaneGroup* f = &exec.lane_group;
  if (lanes != f->lanes) {
    f = &split_off(exec, lanes, code.first_op);
    exec.lane_group.pc = call_pc + 1;
  }
  release(exec.warp, caller);
  f->activation = inside;
  f->depth += 1;
  f->pc = code.first_op;
  ++activation(exec.warp, inside).users;
  return Flow::jumped;
}

// Lanes whose register holds the same address enter that function; the rest follow in later calls.
Flow call_by_address(Exec& exec, const CallSite& site, LaneMask lanes) {
  std::array<std::uint64_t, kLanes> to{};
  std::memcpy(to.data(), exec.registers + site.callee, sizeof to);
  const std::uint64_t address = to[static_cast<std::size_t>(std::countr_zero(lanes))];
  LaneMask same = 0;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    if (to[static_cast<std::size_t>(std::countr_zero(left))] == address) same |= left & (~left + 1);
  }
  const std::uint64_t number = (address - kCodeBase) / 16;
  const Program& program = exec.program();
  if (address < kCodeBase || address % 16 != 0 || number >= program.functions.size() ||
      program.functions[static_cast<std::size_t>(number)].ops == 0) {
    Report r;
    r.kind = ReportKind::trap;
    r.message = fmt::format("a call of 0x{:x}, which is not the address of a function", address);
    return report(exec, std::move(r));
  }
  // The other lanes stay at the call and are handled next.
  const std::int32_t pc = exec.lane_group.pc;
  const LaneMask others = lanes & ~same;
  if (others != 0) split_off(exec, others, pc);
  return enter_function(exec, site, static_cast<std::int32_t>(number), same);
}

}  // namespace

void release(Warp& warp, std::int32_t index) {
  while (index >= 0) {
    Activation& a = activation(warp, index);
    if (--a.users > 0) return;
    index = a.caller;
  }
}

bool grow_local(Launch& launch, Warp& warp, LaneMask lanes, std::int64_t end) {
  const auto size = static_cast<std::size_t>(end);
  std::int64_t more = 0;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const std::vector<std::byte>& memory = warp.local[static_cast<std::size_t>(std::countr_zero(left))];
    if (memory.size() < size) more += static_cast<std::int64_t>(size - memory.size());
  }
  if (more > launch.config.options.limits.local_bytes - launch.local_bytes) return false;
  launch.local_bytes += more;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    std::vector<std::byte>& memory = warp.local[static_cast<std::size_t>(std::countr_zero(left))];
    if (memory.size() < size) memory.resize(size, std::byte{0xff});
  }
  return true;
}

Report over_local(const Launch& launch, std::string_view object, std::int64_t bytes, std::string_view what) {
  Report r;
  r.kind = ReportKind::limit;
  r.message =
      fmt::format("'{}' needs {} bytes of {} per thread: the threads that have started hold {} of at most {} bytes",
                  object, bytes, what, launch.local_bytes, launch.config.options.limits.local_bytes);
  r.hint = "less local memory or fewer calls within one another, or a larger limit: --max-local";
  return r;
}

void begin_kernel(Launch& launch, const Cta& cta, Warp& warp) {
  const std::int32_t inside = enter(launch, cta, warp, launch.function, -1, -1, live_lanes(warp));
  // Launch checks and start_next() have made room for the kernel's own local memory and .param variables.
  KVSCOPE_ASSERT(inside >= 0);
  activation(warp, inside).users = 1;
  KVSCOPE_ASSERT(grow_local(launch, warp, live_lanes(warp), code_of(launch, launch.function).local_bytes));
  warp.lane_groups.reserve(kMaxLaneGroups);
  LaneGroup f;
  f.activation = inside;
  f.pc = code_of(launch, launch.function).first_op;
  f.lanes = live_lanes(warp);
  warp.lane_groups.push_back(f);
}

std::byte* call_param(Exec& exec, int lane, std::int64_t address) {
  Activation& a = activation(exec.warp, exec.lane_group.activation);
  return a.params.data() + lane * code_of(exec.launch, a.function).param_bytes + (address - kBodyParams);
}

Flow run_call(Exec& exec, const Op& op, LaneMask lanes) {
  const CallSite& site = exec.program().calls[static_cast<std::size_t>(op.target)];
  if (site.builtin != Builtin::none) return run_builtin(exec, site, lanes);
  if (site.function < 0) return call_by_address(exec, site, lanes);
  if (code_of(exec.launch, site.function).ops == 0) {
    Report r;
    r.kind = ReportKind::unsupported;
    const Statement& s = exec.program().statement(op.source);
    r.message = fmt::format(
        "{}:{}:{} '{}' kernel {}: function '{}' is declared but not defined, and the machine does not implement it",
        exec.program().module->file, s.at.line, s.at.column, s.opcode, exec.launch.config.kernel,
        exec.program().module->functions[static_cast<std::size_t>(site.function)].name);
    return report(exec, std::move(r));
  }
  return enter_function(exec, site, site.function, lanes);
}

Flow run_ret(Exec& exec, const Op&, LaneMask lanes) {
  if (exec.lane_group.depth == 0) return exit_lanes(exec, lanes);
  const std::int32_t inside = exec.lane_group.activation;
  const std::int32_t caller = activation(exec.warp, inside).caller;
  const std::int32_t return_pc = activation(exec.warp, inside).return_pc;
  const Program& program = exec.program();
  const Op& call = program.ops[static_cast<std::size_t>(return_pc - 1)];
  const Function& callee = program.module->functions[static_cast<std::size_t>(activation(exec.warp, inside).function)];
  pass(exec.launch, exec.warp, caller, inside, program.calls[static_cast<std::size_t>(call.target)].results,
       callee.results, lanes, Direction::out);
  LaneGroup* f = &exec.lane_group;
  const std::int32_t pc = f->pc;
  if (lanes != f->lanes) {
    f = &split_off(exec, lanes, return_pc);
    exec.lane_group.pc = pc + 1;
  }
  ++activation(exec.warp, caller).users;
  release(exec.warp, inside);
  f->activation = caller;
  f->depth -= 1;
  f->pc = return_pc;
  return Flow::jumped;
}

}  // namespace kvscope::ptx
