// The values that calls pass: arguments into the called function, and results back.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <optional>

#include "gpu/virtual/check/init_checker.h"
#include "gpu/virtual/machine/program/body_params.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {
namespace {

// A parameter or result of a function, as a value of its activation.
CallValue formal_of(const Program& program, const FunctionCode& code, std::int32_t variable) {
  const Variable& v = program.module->variables[static_cast<std::size_t>(variable)];
  if (v.in_register < 0)
    return {.param = program.placements[static_cast<std::size_t>(variable)], .reg = kNoRegister, .bytes = v.bytes};
  const RegisterPlace& place = code.registers[static_cast<std::size_t>(v.in_register)];
  return {.param = -1, .reg = place.reg, .bytes = place.bytes};
}

// The call that began an activation.
const CallSite& site_of(const Program& program, const Activation& activation) {
  const Op& call = program.ops[static_cast<std::size_t>(activation.return_pc - 1)];
  return program.calls[static_cast<std::size_t>(call.target)];
}

constexpr std::int64_t kMostRegister = 16;  // [bytes] of a lane

}  // namespace

InitChecker::ActivationState& InitChecker::state_of(const Exec& exec, WarpState& warp, std::int32_t activation) {
  const auto place = static_cast<std::size_t>(activation);
  if (warp.activations.size() <= place) warp.activations.resize(place + 1);
  ActivationState& state = warp.activations[place];
  const Activation& now = exec.warp.activations[place];
  if (state.function != now.function || state.entered != now.entered) {  // -1: a new one
    state.function = now.function;
    state.entered = now.entered;
    state.registers = UndefinedRegisters(now.registers.size());
    state.params = {};
    state.param_bytes = exec.program().functions[static_cast<std::size_t>(now.function)].param_bytes;
    if (options_.registers) mark_unwritten(exec, activation, state.registers, kAllLanes);
  }
  return state;
}

// The undefined bytes of a value in one lane, and where the first of them comes from.
std::uint64_t InitChecker::undefined_in(const ActivationState& state, const CallValue& v, int lane, std::int64_t from,
                                        std::int64_t bytes, std::uint32_t& origin) {
  if (v.param >= kBodyParams) {
    const std::int64_t at = v.param - kBodyParams + from;
    const std::uint64_t mask = state.params.mask(lane, at, bytes);
    if (mask != 0) origin = state.params.origin(lane, at + std::countr_zero(mask));
    return mask;
  }
  std::uint64_t mask = 0;
  if (v.reg == kNoRegister || (state.registers.lanes(v.reg) >> lane & 1) == 0) return mask;
  const std::byte* const bits = state.registers.bits(v.reg) + lane * v.bytes;
  for (std::int64_t i = from; i < std::min(from + bytes, v.bytes); ++i) {
    if (bits[i] != std::byte{0}) mask |= std::uint64_t{1} << (i - from);
  }
  if (mask != 0) origin = state.registers.origin(v.reg);
  return mask;
}

// Copies the undefined bytes of one value, as the machine copies its bytes. Bits of a register count as bytes.
void InitChecker::pass_undefined(const ActivationState& from, const CallValue& source, ActivationState& to,
                                 const CallValue& target, LaneMask lanes) {
  const std::int64_t bytes = std::min(source.bytes, target.bytes);
  if (target.param < kBodyParams && target.reg == kNoRegister) return;
  std::array<std::byte, static_cast<std::size_t>(kMostRegister * kLanes)> bits{};
  std::uint32_t register_origin = 0;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const bool in_param = target.param >= kBodyParams;
    if (in_param) to.params.define(lane, target.param - kBodyParams, bytes);
    for (std::int64_t at = 0; at < bytes; at += kMostRegister) {
      std::uint32_t origin = 0;
      std::uint64_t mask = undefined_in(from, source, lane, at, std::min(kMostRegister, bytes - at), origin);
      if (mask != 0) register_origin = origin;
      for (; mask != 0; mask &= mask - 1) {
        const std::int64_t byte = at + std::countr_zero(mask);
        if (in_param) {
          if (source.param >= kBodyParams) origin = from.params.origin(lane, source.param - kBodyParams + byte);
          to.params.mark(lane, target.param - kBodyParams + byte, origin, to.param_bytes);
        } else {
          bits[static_cast<std::size_t>(lane * target.bytes + byte)] = std::byte{0xff};
        }
      }
    }
  }
  if (target.param < kBodyParams)
    to.registers.assign({target.reg, static_cast<std::uint8_t>(target.bytes)}, lanes, bits.data(), register_origin);
}

// A call: what a function of the module is passed is followed into it; functions of the machine use it.
void InitChecker::call(const Exec& exec, const Op& op, const UndefinedEffects& e, LaneMask lanes, WarpState& warp) {
  ActivationState& state = state_of(exec, warp, exec.lane_group.activation);
  const CallSite& site = exec.program().calls[static_cast<std::size_t>(op.target)];
  for (const RegisterAt r : e.reads) {
    if ((state.registers.lanes(r.reg) & lanes) == 0) continue;
    if (site.builtin != Builtin::none || r.reg == site.callee) {
      use(exec, op, state.registers, r, lanes,
          site.builtin != Builtin::none ? "is passed to a function" : "is the address of a called function");
    } else {
      name_unwritten(exec, op, state.registers, r.reg, lanes);
    }
  }
  if (site.builtin == Builtin::none) return;  // the results take their values when the function returns
  for (const RegisterAt w : e.writes) state.registers.define(w, lanes);
  for (const CallValue& v : site.arguments) {
    if (v.param < kBodyParams) continue;
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      std::uint32_t origin = 0;
      if (undefined_in(state, v, lane, 0, v.bytes, origin) == 0) continue;
      tell(exec, op, lane, LaneMask{1} << lane, origin, "is passed to a function");
      state.params.define(lane, v.param - kBodyParams, v.bytes);
    }
  }
  for (const CallValue& v : site.results) {
    if (v.param < kBodyParams) continue;
    for (LaneMask left = lanes; left != 0; left &= left - 1)
      state.params.define(std::countr_zero(left), v.param - kBodyParams, v.bytes);
  }
}

// These lanes are at the first statement of a called function. Its parameters take the arguments. The caller keeps them: it
// may pass them again, or read them.
void InitChecker::take_arguments(const Exec& exec, WarpState& warp, LaneMask lanes) {
  const Activation& activation = exec.warp.activations[static_cast<std::size_t>(exec.lane_group.activation)];
  const Program& program = exec.program();
  const auto function = static_cast<std::size_t>(activation.function);
  ActivationState& outer = state_of(exec, warp, activation.caller);
  ActivationState& inner = state_of(exec, warp, exec.lane_group.activation);
  for (LaneMask left = lanes; left != 0; left &= left - 1)
    inner.params.define(std::countr_zero(left), 0, inner.param_bytes);
  if (outer.registers.count() == 0 && outer.params.count() == 0) return;
  const CallSite& site = site_of(program, activation);
  const std::vector<std::int32_t>& formals = program.module->functions[function].parameters;
  for (std::size_t i = 0; i < std::min(site.arguments.size(), formals.size()); ++i) {
    const CallValue& argument = site.arguments[i];
    pass_undefined(outer, argument, inner, formal_of(program, program.functions[function], formals[i]), lanes);
  }
}

// These lanes return: the caller's values take the results, and nothing of the function remains.
void InitChecker::give_results(const Exec& exec, const Op& op, WarpState& warp, LaneMask lanes) {
  const Activation& activation = exec.warp.activations[static_cast<std::size_t>(exec.lane_group.activation)];
  const Program& program = exec.program();
  const auto function = static_cast<std::size_t>(activation.function);
  const FunctionCode& code = program.functions[function];
  ActivationState& outer = state_of(exec, warp, activation.caller);
  ActivationState& inner = state_of(exec, warp, exec.lane_group.activation);
  const CallSite& site = site_of(program, activation);
  const std::vector<std::int32_t>& formals = program.module->functions[function].results;
  for (std::size_t i = 0; i < std::min(site.results.size(), formals.size()); ++i) {
    const CallValue formal = formal_of(program, code, formals[i]);
    // A register that the function has not written is named here, not as the caller's register of the result.
    if (formal.reg != kNoRegister) name_unwritten(exec, op, inner.registers, formal.reg, lanes);
    pass_undefined(inner, formal, outer, site.results[i], lanes);
  }
  for (const RegisterPlace& r : code.registers) {
    if (r.reg != kNoRegister) inner.registers.define({r.reg, r.bytes}, lanes);
  }
  for (LaneMask left = lanes; left != 0; left &= left - 1)
    inner.params.define(std::countr_zero(left), 0, inner.param_bytes);
}

// st.param: the bytes of a value that is passed or returned.
void InitChecker::write_params(const Exec& exec, WarpState& warp, const WarpAccess& access, const LaneBytes& undefined,
                               std::uint32_t origin) {
  ActivationState& state = state_of(exec, warp, exec.lane_group.activation);
  for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const auto i = static_cast<std::size_t>(lane);
    const std::int64_t at = static_cast<std::int64_t>(access.addresses[i]) - kBodyParams;
    if (at < 0) continue;
    state.params.define(lane, at, access.bytes);
    for (std::uint64_t mask = undefined[i]; mask != 0; mask &= mask - 1)
      state.params.mark(lane, at + std::countr_zero(mask), origin, state.param_bytes);
  }
}

// ld.param: which of the bytes are undefined. The return value: where the first of them comes from; none is undefined.
std::optional<std::uint32_t> InitChecker::read_params(const Exec& exec, WarpState& warp, const WarpAccess& access,
                                                      LaneBytes& undefined) {
  const ActivationState& state = state_of(exec, warp, exec.lane_group.activation);
  std::optional<std::uint32_t> origin;
  for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const auto i = static_cast<std::size_t>(lane);
    const std::int64_t at = static_cast<std::int64_t>(access.addresses[i]) - kBodyParams;
    undefined[i] = state.params.mask(lane, at, access.bytes);
    if (undefined[i] != 0 && !origin) origin = state.params.origin(lane, at + std::countr_zero(undefined[i]));
  }
  return origin;
}

}  // namespace kvscope::ptx
