// tcgen05.mma, cp and commit: a lane issues them, and the tensor core of its CTA performs them in issue order. They
// are checked when they are issued: the descriptors, the cells of tensor memory, the bytes of shared memory.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <optional>

#include "gpu/virtual/machine/barriers/detail/mbarrier_handlers.h"
#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/copies/detail/copy_targets.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/tensor/detail/tensor_handlers.h"
#include "gpu/virtual/machine/tensor/detail/tensor_operands.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

// The operands of a statement as the op has them: where each begins in Op::list.
class StatementOperands {
 public:
  StatementOperands(const Exec& exec, const Op& op) : exec_(exec), op_(op) {
    const OpSource& source = exec.program().sources[static_cast<std::size_t>(op.source)];
    const Function& f = exec.program().module->functions[static_cast<std::size_t>(source.function)];
    operands_ = f.operands_of(f.body[static_cast<std::size_t>(source.statement)]);
    for (const Operand& o : operands_) {
      first_.push_back(next_);
      next_ += o.kind == OperandKind::vector ? static_cast<int>(o.count) : 1;
    }
  }
  [[nodiscard]] std::size_t count() const { return operands_.size(); }
  [[nodiscard]] OperandKind kind(std::size_t i) const { return operands_[i].kind; }
  // Of element `e` of operand i, zero-extended.
  [[nodiscard]] std::uint64_t value(std::size_t i, int bytes, int lane, int e = 0) const {
    return lane_value(exec_, op_.list[first_[i] + e], bytes, lane);
  }
  // Of a number in the text.
  [[nodiscard]] std::int64_t number(std::size_t i) const { return operands_[i].value; }
  [[nodiscard]] bool predicate(std::size_t i, int lane) const {
    LaneMask word = 0;
    std::memcpy(&word, exec_.registers + op_.list[first_[i]], sizeof word);
    if (operands_[i].negated) word = ~word;
    return (word >> lane & 1) != 0;
  }
  // An address in tensor memory.
  [[nodiscard]] std::uint32_t address(std::size_t i, int lane) const {
    const auto offset = i < 4 ? static_cast<std::uint32_t>(address_offset(op_, static_cast<int>(i))) : 0U;
    return static_cast<std::uint32_t>(value(i, 4, lane)) + offset;
  }

 private:
  const Exec& exec_;
  const Op& op_;
  std::span<const Operand> operands_;
  std::vector<int> first_;
  int next_ = 0;
};

void issue_tensor_op(Exec& exec, TensorOp t) {
  exec.cta.async.tensor.push_back(std::move(t));
  ++exec.cta.async.pushed;
  event(exec);
  if (exec.launch.config.options.policy == Policy::early) perform_tensor_op(exec.launch, exec.cta);
}

// Body(lane) for each lane; true: go on.
template <class Body>
Flow for_each_issuer(LaneMask lanes, const Body& body) {
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    if (!body(std::countr_zero(left))) return Flow::stopped;
  }
  return Flow::next;
}

Flow group_of_one(Exec& exec, const Op& op) {
  return fault(exec, op, 0, ReportKind::product_arg, "an instruction with .cta_group::2 in a CTA without a peer",
               "launch clusters of an even number of CTAs");
}

// Checks the cells and bytes of one operation, and tells monitors. False: it is not issued.
bool check_use(Exec& exec, const Op& op, int lane, const TensorUse& use, const AsyncOp& number) {
  for (const TensorUse::Cells& cells : use.cells) {
    const std::string what = fmt::format("{} {} {}", name(exec.program().instr(op).opcode),
                                         cells.kind == AccessKind::load ? "reads" : "writes", cells.what);
    for (const TensorRegion& region : cells.regions) {
      if (!is_allocated(exec, op, lane, *cells.cta, region, what)) return false;
    }
  }
  for (const TensorUse::Bytes& bytes : use.bytes) {
    for (const std::uint64_t offset : bytes.offsets) {
      if (shared_at(*bytes.cta, offset, kWgmmaChunkBytes) != nullptr) continue;
      fault(exec, op, lane, ReportKind::out_of_bounds,
            fmt::format("{} of {} reads 16 bytes at shared 0x{:05x}: the CTA has 0x{:05x} to 0x{:05x}", bytes.what,
                        name(exec.program().instr(op).opcode), offset, kSharedBase,
                        kSharedBase + bytes.cta->shared.size()));
      return false;
    }
  }
  Monitor* const monitor = exec.launch.monitor;
  if (monitor == nullptr) return true;
  monitor->async_issue(exec, number, use.ranges(), {});
  for (const TensorUse::Cells& cells : use.cells) {
    monitor->tensor_access(exec, op,
                           {.kind = cells.kind,
                            .cta = cells.cta->index,
                            .regions = cells.regions,
                            .operation = number.number,
                            .lane = lane});
  }
  return true;
}

// Runs `use_of(t)`, which throws what is wrong with the descriptors, and issues the operation. False: stopped.
template <class UseOf>
bool check_and_issue(Exec& exec, const Op& op, int lane, TensorOp t, const UseOf& use_of) {
  try {
    const TensorUse use = use_of(t);
    if (check_use(exec, op, lane, use, t.op)) issue_tensor_op(exec, std::move(t));
  } catch (const std::exception& e) {
    return fault(exec, op, lane, ReportKind::product_arg, e.what()) != Flow::stopped;
  }
  return exec.launch.status == LaunchStatus::running;
}

// [d], a or [a], b, {[metadata],} description, ...
Flow issue_product(Exec& exec, const Op& op, LaneMask lanes) {
  if (!agrees_on_group(exec, op)) return Flow::stopped;
  const Instr& instr = exec.program().instr(op);
  const bool pair = instr.has(Mod::cta_group_2);
  if (ctas_of(exec.launch, exec.cta, pair).empty()) return group_of_one(exec, op);
  const StatementOperands operands(exec, op);
  return for_each_issuer(lanes, [&](int lane) {
    TensorOp t;
    t.op = new_operation(exec, op, lane, AsyncKind::tcgen05);
    t.d = operands.address(0, lane);
    t.a_in_tensor = operands.kind(1) == OperandKind::address;
    if (t.a_in_tensor) {
      t.a_tensor = operands.address(1, lane);
    } else {
      t.a = operands.value(1, 8, lane);
    }
    t.b = operands.value(2, 8, lane);
    const bool weights = instr.opcode == Opcode::tcgen05_mma_ws || instr.opcode == Opcode::tcgen05_mma_ws_sp;
    std::size_t next = 3;
    if (instr.opcode == Opcode::tcgen05_mma_sp || instr.opcode == Opcode::tcgen05_mma_ws_sp)
      t.metadata = operands.address(next++, lane);
    t.description = static_cast<std::uint32_t>(operands.value(next++, 4, lane));
    if (instr.has(Mod::block_scale)) {
      t.a_scales = operands.address(next++, lane);
      t.b_scales = operands.address(next++, lane);
    } else if (operands.kind(next) == OperandKind::vector) {
      for (int e = 0; e < (pair ? 8 : 4); ++e)
        t.kept[static_cast<std::size_t>(e)] = static_cast<std::uint32_t>(operands.value(next, 4, lane, e));
      ++next;
    }
    t.adds = operands.predicate(next, lane);
    if (next + 1 < operands.count()) {
      if (weights) {
        t.zero_columns = operands.value(next + 1, 8, lane);
      } else {
        t.scale_d = static_cast<int>(operands.number(next + 1));
      }
    }
    return check_and_issue(exec, op, lane, std::move(t),
                           [&](const TensorOp& u) { return use_of_product(exec.launch, exec.cta, u); });
  });
}

// [address], descriptor
Flow issue_tensor_copy(Exec& exec, const Op& op, LaneMask lanes) {
  if (!agrees_on_group(exec, op)) return Flow::stopped;
  if (ctas_of(exec.launch, exec.cta, exec.program().instr(op).has(Mod::cta_group_2)).empty())
    return group_of_one(exec, op);
  return for_each_issuer(lanes, [&](int lane) {
    TensorOp t;
    t.op = new_operation(exec, op, lane, AsyncKind::tcgen05);
    t.d = static_cast<std::uint32_t>(lane_address(exec.registers, op, 0, lane));
    t.a = lane_value(exec, op.at[1], 8, lane);
    return check_and_issue(exec, op, lane, std::move(t),
                           [&](const TensorOp& u) { return use_of_copy(exec.launch, exec.cta, u); });
  });
}

// [mbarrier] {, mask of ranks}: arrives once the lane's operations before it are complete.
Flow commit_tensor_ops(Exec& exec, const Op& op, LaneMask lanes) {
  if (!agrees_on_group(exec, op)) return Flow::stopped;
  const Instr& instr = exec.program().instr(op);
  const Space space = space_of(instr);
  return for_each_issuer(lanes, [&](int lane) {
    const std::uint64_t address = lane_address(exec.registers, op, 0, lane);
    TensorOp t;
    t.op = new_operation(exec, op, lane, AsyncKind::tcgen05);
    if (!instr.has(Mod::multicast_cluster)) {
      const MbarrierAt at = find_mbarrier_at(exec, op, lane, space, address, true);
      if (at.object == nullptr) return exec.launch.status == LaunchStatus::running;
      t.barriers.push_back(shared_address(static_cast<std::uint64_t>(at.cta->cluster_rank), at.offset));
    } else {
      const std::optional<std::uint32_t> mask = multicast_mask(exec, op, lane, op.at[1]);
      if (!mask) return exec.launch.status == LaunchStatus::running;
      for (std::uint32_t left = *mask; left != 0; left &= left - 1) {
        const auto rank = static_cast<std::uint64_t>(std::countr_zero(left));
        const MbarrierAt at =
            find_mbarrier_at(exec, op, lane, Space::shared, shared_address(rank, offset_of(address)), true);
        if (at.object == nullptr) return exec.launch.status == LaunchStatus::running;
        t.barriers.push_back(shared_address(rank, at.offset));
      }
    }
    t.op.mbarrier = t.barriers.front();
    if (exec.launch.monitor != nullptr) exec.launch.monitor->tensor_commit(exec, lane, t.op.number, t.barriers);
    issue_tensor_op(exec, std::move(t));
    return exec.launch.status == LaunchStatus::running;
  });
}

}  // namespace

void perform_tensor_op(Launch& launch, Cta& cta) {
  const TensorOp t = std::move(cta.async.tensor.front());
  cta.async.tensor.pop_front();
  if (!t.barriers.empty()) {
    for (const std::uint64_t barrier : t.barriers) {
      if (Cta* const at = cta_of_rank(launch, cta, rank_of(barrier)))
        arrive_by_engine(launch, *at, offset_of(barrier), t.op);
    }
  } else if (launch.program->instr(launch.program->ops[static_cast<std::size_t>(t.op.pc)]).opcode ==
             Opcode::tcgen05_cp) {
    perform_tensor_copy(launch, cta, t);
  } else {
    perform_product(launch, cta, t);
  }
  if (launch.monitor != nullptr) launch.monitor->async_done(launch, cta, t.op);
  event(launch, cta);
}

MachineHandler find_tensor_engine(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::tcgen05_mma:
    case Opcode::tcgen05_mma_ws:
    case Opcode::tcgen05_mma_sp:
    case Opcode::tcgen05_mma_ws_sp:
      return issue_product;
    case Opcode::tcgen05_cp:
      return issue_tensor_copy;
    case Opcode::tcgen05_commit:
      return commit_tensor_ops;
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx
