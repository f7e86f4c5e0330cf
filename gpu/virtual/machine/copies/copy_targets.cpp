#include "gpu/virtual/machine/copies/detail/copy_targets.h"

#include <fmt/format.h>

#include <bit>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"

namespace kvscope::ptx {

std::optional<std::uint32_t> multicast_mask(Exec& exec, const Op& op, int lane, std::uint32_t reg) {
  const auto mask = static_cast<std::uint32_t>(lane_value(exec, reg, 2, lane));
  const std::int64_t size = cluster_size(exec.launch);
  const std::uint32_t missing = mask >> size << size;
  if (mask != 0 && missing == 0) return mask;
  const std::string named = mask == 0 ? "no CTA" : fmt::format("rank {}", std::countr_zero(missing));
  fault(exec, op, lane, ReportKind::bad_window,
        fmt::format("{}: mask 0x{:04x} names {} of a cluster of {}", name(exec.program().instr(op).opcode), mask, named,
                    size),
        fmt::format("bit r of the mask is the CTA of rank r, from 0 to {}", size - 1));
  return std::nullopt;
}

void add_target_writes(PendingOp& p) {
  for (std::uint32_t rest = p.ranks(); rest != 0; rest &= rest - 1) {
    const auto rank = static_cast<std::uint64_t>(std::countr_zero(rest));
    p.writes.push_back({Space::shared, shared_address(rank, offset_of(p.shared)), p.bytes});
  }
}

std::vector<Cta*> live_targets(Launch& launch, Cta& cta, const PendingOp& p) {
  std::vector<Cta*> targets;
  for (std::uint32_t rest = p.ranks(); rest != 0; rest &= rest - 1) {
    const auto rank = static_cast<std::uint64_t>(std::countr_zero(rest));
    Cta* const target = cta_of_rank(launch, cta, rank);
    // The issuer's own memory exists until its copies have been performed.
    if (target != nullptr && (target->state != CtaState::done || target == &cta)) {
      targets.push_back(target);
    } else {
      engine_fault(launch, cta, p.op, ReportKind::dsmem_after_exit,
                   fmt::format("{} bytes for the CTA of rank {}, which has exited", p.bytes, rank),
                   "end the kernel with a cluster barrier: barrier.cluster.arrive, barrier.cluster.wait");
    }
  }
  return targets;
}

}  // namespace kvscope::ptx
