#include "gpu/virtual/check/uninit_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "gpu/virtual/machine/matrix/wgmma.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/program/register_effects.h"
#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

// Sets or clears [from, from + count).
void set_bits(std::vector<std::uint64_t>& words, std::uint64_t from, std::uint64_t count, bool value) {
  if (words.size() * 64 < from + count) words.resize((from + count + 63) / 64);
  for (std::uint64_t i = from; i < from + count;) {
    const std::uint64_t in_word = std::min<std::uint64_t>(from + count - i, 64 - i % 64);
    const std::uint64_t mask = (~std::uint64_t{0} >> (64 - in_word)) << i % 64;
    words[i / 64] = value ? words[i / 64] | mask : words[i / 64] & ~mask;
    i += in_word;
  }
}

// The first bit of the range that is not set; -1: all are set.
std::int64_t first_clear(const std::vector<std::uint64_t>& words, std::uint64_t from, std::uint64_t count) {
  for (std::uint64_t i = from; i < from + count; ++i) {
    if (i / 64 >= words.size() || (words[i / 64] >> i % 64 & 1) == 0) return static_cast<std::int64_t>(i - from);
  }
  return -1;
}

// Whether the product adds to its accumulators; otherwise it does not read them.
bool adds(const Exec& exec, const Op& op) {
  const WgmmaShape shape = wgmma_shape(exec, op);
  std::uint32_t scale = 0;
  std::memcpy(&scale, exec.registers + op.list[shape.scale_d_at], sizeof scale);
  if (!shape.scale_is_predicate) return scale != 0;
  return ((op.negated >> 3 & 1) != 0 ? ~scale & 1 : scale & 1) != 0;
}

// The variable, of the functions that the thread is in, that contains a byte of its local memory.
void name_local(const Exec& exec, std::uint64_t address, ReportAddress& to) {
  const Program& program = exec.program();
  for (std::int32_t a = exec.lane_group.activation; a >= 0;) {
    const Activation& activation = exec.warp.activations[static_cast<std::size_t>(a)];
    const std::int64_t offset = static_cast<std::int64_t>(address) - activation.local_base;
    const Function& f = program.module->functions[static_cast<std::size_t>(activation.function)];
    for (const std::int32_t i : f.variables) {
      const Variable& v = program.module->variables[static_cast<std::size_t>(i)];
      const std::int64_t within = offset - program.placements[static_cast<std::size_t>(i)];
      if (v.space != Space::local || within < 0 || within >= v.bytes) continue;
      to.symbol = v.name;
      to.offset = within;
      return;
    }
    a = activation.caller;
  }
}

}  // namespace

void UninitChecker::launch_begins(Launch& launch) {
  warps_.clear();
  find_effects(*launch.program, launch.layout->reaches);
}

void UninitChecker::find_effects(const Program& program, const std::vector<bool>& reached) {
  effects_.assign(program.ops.size(), {});
  registers_.clear();
  const auto here = [this] { return static_cast<std::int32_t>(registers_.size()); };
  RegisterEffects found;
  for (std::size_t f = 0; f < reached.size(); ++f) {
    const FunctionCode& code = program.functions[f];
    if (!reached[f] || code.ops == 0) continue;
    RegisterEffectsOf of(program, static_cast<std::int32_t>(f));
    for (std::int32_t s = 0; s + 1 < code.ops; ++s) {  // the last op is the closing ret
      const Instr& instr = program.decoded.at(static_cast<std::int32_t>(f), s);
      if (!instr.unsupported.empty()) continue;
      of.find(s, found);
      Effects& e = effects_[static_cast<std::size_t>(code.first_op + s)];
      e.product = instr.opcode == Opcode::wgmma_mma_async;
      e.calls = instr.opcode == Opcode::call;
      e.guard = found.guard;
      e.reads = here();
      for (const std::int32_t r : found.reads) {
        const bool added =
            std::find(found.accumulators.begin(), found.accumulators.end(), r) == found.accumulators.end();
        if (added) registers_.push_back(r);
      }
      e.accumulators = here();
      registers_.insert(registers_.end(), found.accumulators.begin(), found.accumulators.end());
      e.writes = here();
      registers_.insert(registers_.end(), found.writes.begin(), found.writes.end());
      e.end = here();
    }
  }
}

void UninitChecker::cta_begins(Launch&, const Cta& cta) {
  warps_.insert_or_assign(cta.index, std::vector<WarpState>(cta.warps.size()));
}

void UninitChecker::cta_ends(Launch&, const Cta& cta) {
  warps_.erase(cta.index);
}

// These lanes are at the first statement of a called function.
void UninitChecker::enter(const Exec& exec, WarpState& warp, ActivationState& state, LaneMask lanes) {
  const Activation& activation = exec.warp.activations[static_cast<std::size_t>(exec.lane_group.activation)];
  for (LaneMask& written : state.written) written &= ~lanes;
  const auto function = static_cast<std::size_t>(activation.function);
  for (const std::int32_t p : exec.program().module->functions[function].parameters) {
    const std::int32_t r = exec.program().module->variables[static_cast<std::size_t>(p)].in_register;
    if (r >= 0) state.written[static_cast<std::size_t>(r)] |= lanes;
  }
  const std::int64_t bytes = exec.program().functions[function].local_bytes;
  for (LaneMask left = lanes; left != 0 && options_.local; left &= left - 1) {
    set_bits(warp.local[static_cast<std::size_t>(std::countr_zero(left))],
             static_cast<std::uint64_t>(activation.local_base), static_cast<std::uint64_t>(bytes), false);
  }
}

void UninitChecker::instruction(const Exec& exec, const Op& op, LaneMask lanes) {
  WarpState& warp = warps_.at(exec.cta.index)[static_cast<std::size_t>(exec.warp.index)];
  const LaneGroup& f = exec.lane_group;
  const auto place = static_cast<std::size_t>(f.activation);
  if (warp.activations.size() <= place) warp.activations.resize(place + 1);
  ActivationState& state = warp.activations[place];
  const std::int32_t function = exec.warp.activations[place].function;
  if (state.function != function) {
    state.function = function;
    state.written.assign(exec.program().module->functions[static_cast<std::size_t>(function)].registers.size(), 0);
  }
  if ((warp.calling & f.lanes) != 0) {
    LaneMask entered = 0;
    for (LaneMask left = warp.calling & f.lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      if (f.depth > warp.depth[static_cast<std::size_t>(lane)]) entered |= LaneMask{1} << lane;
    }
    warp.calling &= ~f.lanes;
    if (entered != 0) enter(exec, warp, state, entered);
  }
  const Effects& e = effects_[static_cast<std::size_t>(pc_of(exec, op))];
  if (e.guard >= 0) read(exec, op, state, e.guard, f.lanes);
  for (std::int32_t i = e.reads; i < e.accumulators; ++i) {
    read(exec, op, state, registers_[static_cast<std::size_t>(i)], lanes);
  }
  if (e.accumulators < e.writes && (!e.product || adds(exec, op))) {
    for (std::int32_t i = e.accumulators; i < e.writes; ++i) {
      read(exec, op, state, registers_[static_cast<std::size_t>(i)], lanes);
    }
  }
  for (std::int32_t i = e.accumulators; i < e.end; ++i) {
    state.written[static_cast<std::size_t>(registers_[static_cast<std::size_t>(i)])] |= lanes;
  }
  if (!e.calls) return;
  warp.calling |= lanes;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    warp.depth[static_cast<std::size_t>(std::countr_zero(left))] = f.depth;
  }
}

void UninitChecker::read(const Exec& exec, const Op& op, ActivationState& state, std::int32_t reg, LaneMask lanes) {
  LaneMask& written = state.written[static_cast<std::size_t>(reg)];
  const LaneMask missing = lanes & ~written;
  if (missing == 0) [[likely]] {
    return;
  }
  written |= missing;  // report each register once
  if (!options_.registers) return;
  const Function& f = exec.program().module->functions[static_cast<std::size_t>(state.function)];
  Report r;
  r.kind = ReportKind::uninitialized;
  r.severity = severity_of(r.kind);
  r.parties = {lane_party(exec, op, std::countr_zero(missing), missing, "read")};
  r.message = fmt::format("{} is read in lanes {:08x} before anything has written it there",
                          name(f.registers[static_cast<std::size_t>(reg)]), missing);
  r.hint = "compilers copy such registers on purpose: check whether a result depends on it";
  Exec copy = exec;
  static_cast<void>(report(copy, std::move(r)));
}

void UninitChecker::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  if (!options_.local || access.space != Space::local) return;
  WarpState& warp = warps_.at(exec.cta.index)[static_cast<std::size_t>(exec.warp.index)];
  const auto bytes = static_cast<std::uint64_t>(access.bytes);
  for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    std::vector<std::uint64_t>& written = warp.local[static_cast<std::size_t>(lane)];
    const std::uint64_t address = access.addresses[static_cast<std::size_t>(lane)];
    const std::int64_t first = access.kind == AccessKind::store ? -1 : first_clear(written, address, bytes);
    if (first >= 0) {
      Report r;
      r.kind = ReportKind::uninitialized;
      r.severity = severity_of(r.kind);
      r.address =
          name_address(exec.launch, Space::local, address + static_cast<std::uint64_t>(first), access.bytes - first);
      name_local(exec, r.address.absolute, r.address);
      r.parties = {lane_party(exec, op, lane, LaneMask{1} << lane, "read")};
      r.message = "this thread has not written this byte since the function began";
      Exec copy = exec;
      static_cast<void>(report(copy, std::move(r)));
    }
    set_bits(written, address, bytes, true);
  }
}

}  // namespace kvscope::ptx
