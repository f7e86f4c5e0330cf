// Shared memory of a kernel: the variables used by it and by the functions it calls, in order of appearance from
// kSharedBase; all extern [] variables begin at one address after them.
//
//   .shared .align 8 .b8 bars[48];   0x400       .extern .shared .align 1024 .b8 ring[];   0x800
#include <algorithm>

#include "core/base/checked.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/program/detail/lower.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {
namespace {

bool calls_by_address(const Function& f) {
  for (const Statement& s : f.body) {
    if (!s.opcode.starts_with("call")) continue;
    const auto operands = f.operands_of(s);
    const bool by_name =
        std::any_of(operands.begin(), operands.end(), [](const Operand& o) { return o.kind == OperandKind::function; });
    if (!by_name) return true;
  }
  return false;
}

// Functions whose address is in an initializer or is taken by a statement: an indirect call may call any of them.
std::vector<bool> address_taken(const Module& module) {
  std::vector<bool> out(module.functions.size());
  for (const Variable& v : module.variables) {
    for (const InitItem& item : v.init) {
      if (item.kind == InitItem::Kind::function) out[static_cast<std::size_t>(item.index)] = true;
    }
  }
  for (const Function& f : module.functions) {
    for (const Statement& s : f.body) {
      if (s.opcode.starts_with("call")) continue;
      for (const Operand& o : f.operands_of(s)) {
        if (o.kind == OperandKind::function) out[static_cast<std::size_t>(o.index)] = true;
      }
    }
  }
  return out;
}

std::vector<bool> reached_from(const Module& module, std::size_t kernel, const std::vector<bool>& taken) {
  std::vector<bool> seen(module.functions.size());
  std::vector<std::size_t> left{kernel};
  const auto add = [&](std::size_t f) {
    if (!seen[f]) left.push_back(f);
  };
  while (!left.empty()) {
    const std::size_t at = left.back();
    left.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    const Function& f = module.functions[at];
    for (const Operand& o : f.operands) {
      if (o.kind == OperandKind::function) add(static_cast<std::size_t>(o.index));
    }
    if (!calls_by_address(f)) continue;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (taken[i]) add(i);
    }
  }
  return seen;
}

KernelLayout lay_out(const Module& module, std::vector<bool> reaches) {
  KernelLayout out;
  std::vector<bool> used(module.variables.size());
  for (std::size_t f = 0; f < reaches.size(); ++f) {
    if (!reaches[f]) continue;
    for (const Operand& o : module.functions[f].operands) {
      if (o.kind == OperandKind::variable) used[static_cast<std::size_t>(o.index)] = true;
    }
  }
  auto next = static_cast<std::int64_t>(kSharedBase);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const Variable& v = module.variables[i];
    if (!used[i] || v.space != Space::shared || v.bytes == 0) continue;
    next = round_up(next, std::max<std::int64_t>(v.align, 1));
    out.shared.emplace_back(static_cast<std::int32_t>(i), next);
    next += v.bytes;
  }
  out.static_shared = next - static_cast<std::int64_t>(kSharedBase);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const Variable& v = module.variables[i];
    if (used[i] && v.space == Space::shared && v.bytes == 0) {
      out.dynamic_shared_align = std::max(out.dynamic_shared_align, v.align);
    }
  }
  out.dynamic_shared = round_up(next, out.dynamic_shared_align);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const Variable& v = module.variables[i];
    if (used[i] && v.space == Space::shared && v.bytes == 0) {
      out.shared.emplace_back(static_cast<std::int32_t>(i), out.dynamic_shared);
    }
  }
  out.reaches = std::move(reaches);
  return out;
}

}  // namespace

void place_activation_variables(const Module& module, Program& program) {
  program.placements.assign(module.variables.size(), -1);
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    const Function& function = module.functions[f];
    FunctionCode& code = program.functions[f];
    const auto place = [&](std::int32_t index, std::int64_t& size, std::int64_t base) {
      const Variable& v = module.variables[static_cast<std::size_t>(index)];
      size = round_up(size, std::max<std::int64_t>(v.align, 1));
      program.placements[static_cast<std::size_t>(index)] = base + size;
      size += v.bytes;
    };
    for (const std::int32_t p : function.parameters) {
      if (function.entry) {
        const Variable& v = module.variables[static_cast<std::size_t>(p)];
        program.placements[static_cast<std::size_t>(p)] = v.parameter_offset;
      } else {
        place(p, code.param_bytes, kBodyParams);
      }
    }
    for (const std::int32_t r : function.results) place(r, code.param_bytes, kBodyParams);
    for (const std::int32_t i : function.variables) {
      if (program.placements[static_cast<std::size_t>(i)] >= 0) continue;
      const Space space = module.variables[static_cast<std::size_t>(i)].space;
      if (space == Space::local) place(i, code.local_bytes, 0);
      if (space == Space::param) place(i, code.param_bytes, kBodyParams);
    }
    code.local_bytes = round_up(code.local_bytes, 16);
    code.param_bytes = round_up(code.param_bytes, 16);
  }
}

void lay_out_kernels(const Module& module, Program& program) {
  const std::vector<bool> taken = address_taken(module);
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    if (!module.functions[f].entry || !module.functions[f].defined) continue;
    program.kernels[static_cast<std::int32_t>(f)] = lay_out(module, reached_from(module, f, taken));
  }
}

}  // namespace kvscope::ptx
