#include "gpu/virtual/machine/program/detail/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/errors.h"
#include "gpu/virtual/machine/detail/handlers.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/program/detail/liveness.h"
#include "gpu/virtual/machine/warp/detail/builtins.h"
#include "gpu/virtual/machine/warp/detail/calls.h"
#include "gpu/virtual/machine/warp/detail/control.h"

namespace kvscope::ptx {
namespace {

// Modifiers that order_of and scope_of (memory/detail/load_store.h) look at, and .nc.
bool is_ordinary(const Instr& instr) {
  constexpr Mod kSpecial[] = {Mod::volatile_, Mod::acq_rel, Mod::acquire, Mod::release, Mod::sc,
                              Mod::relaxed,   Mod::mmio,    Mod::cta,     Mod::cluster, Mod::gpu,
                              Mod::gl,        Mod::sys,     Mod::nc};
  return std::none_of(std::begin(kSpecial), std::end(kSpecial), [&](Mod mod) { return instr.has(mod); });
}

MachineHandler find_machine_handler(const Instr& instr) {
  for (const auto find : {find_memory, find_control, find_warp_exchange, find_named_barrier, find_atomic, find_mbarrier,
                          find_copy, find_warpgroup, find_tensor}) {
    if (const MachineHandler handler = find(instr)) return handler;
  }
  return nullptr;
}

bool is_aligned_matrix(const Instr& instr) {
  return instr.opcode == Opcode::mma || instr.opcode == Opcode::wmma_mma || instr.opcode == Opcode::movmatrix;
}

bool is_integer_division(const Instr& instr) {
  return (instr.opcode == Opcode::div || instr.opcode == Opcode::rem) && class_of(instr.type()) != TypeClass::floating;
}

bool uses_carry(const Instr& instr) {
  return instr.has(Mod::cc) || instr.opcode == Opcode::addc || instr.opcode == Opcode::subc ||
         instr.opcode == Opcode::madc;
}

std::uint16_t width_code(std::uint8_t bytes) {
  std::uint16_t code = 0;
  while (bytes > 1) ++code, bytes = static_cast<std::uint8_t>(bytes >> 1);
  return code;
}

class Lowering {
 public:
  Lowering(std::int32_t index, const ProgramOptions& options, Program& program)
      : index_(index),
        options_(options),
        program_(program),
        module_(*program.module),
        function_(module_.functions[static_cast<std::size_t>(index)]),
        code_(program.functions[static_cast<std::size_t>(index)]),
        registers_(make_registers()) {
    for (const UnsupportedStatement& u : program.decoded.unsupported) {
      if (u.function == index) rejected_.insert(u.statement);
    }
  }

  void run() {
    code_.first_op = static_cast<std::int32_t>(program_.ops.size());
    code_.ops = static_cast<std::int32_t>(function_.body.size()) + 1;
    for (std::size_t i = 0; i < function_.body.size(); ++i) statement(static_cast<std::int32_t>(i));
    close();
    registers_.finish();
  }

 private:
  FunctionRegisters make_registers() {
    std::vector<bool> used(function_.registers.size());
    for (const Statement& s : function_.body) {
      if (s.guard >= 0) used[static_cast<std::size_t>(s.guard)] = true;
    }
    for (const Operand& o : function_.operands) {
      if (o.kind == OperandKind::reg) used[static_cast<std::size_t>(o.index)] = true;
    }
    std::vector<std::int32_t> same_place;
    if (options_.registers_by_liveness) {
      Liveness live = find_liveness(program_, index_);
      same_place = std::move(live.place);
      alive_ = std::move(live.alive);
    }
    FunctionRegisters registers(function_, used, same_place, code_);
    const auto first = static_cast<std::int32_t>(program_.ops.size());
    for (std::size_t r = 0; r < alive_.size(); ++r) {
      for (auto [from, to] : alive_[r]) code_.registers[r].alive.emplace_back(first + from, first + to);
    }
    return registers;
  }

  void statement(std::int32_t number) {
    const Statement& s = function_.body[static_cast<std::size_t>(number)];
    const auto instr_index = static_cast<std::size_t>(
        program_.decoded.of[static_cast<std::size_t>(index_)][static_cast<std::size_t>(number)]);
    const Instr& instr = program_.decoded.instrs[instr_index];
    Op op;
    op.instr = static_cast<std::uint16_t>(instr_index);
    op.source = static_cast<std::int32_t>(program_.ops.size());
    if (s.guard >= 0) {
      op.guard = registers_.of_register(s.guard);
      if (s.guard_negated) op.flags |= kGuardNegated;
    }
    if (is_ordinary(instr)) op.flags |= kOrdinary;
    program_.sources.push_back({index_, number});
    const std::string rejection = fill(op, s, instr);
    if (!rejection.empty()) reject(op, number, rejection);
    program_.ops.push_back(op);
  }

  // Completes the op; returns why it is not supported, or "".
  std::string fill(Op& op, const Statement& s, const Instr& instr) {
    if (instr.opcode == Opcode::unsupported || !instr.unsupported.empty() || is_rejected(s)) return "is not modeled";
    const auto operands = function_.operands_of(s);
    switch (instr.opcode) {
      case Opcode::bra:
        return branch(op, s, instr);
      case Opcode::brx:
        return indexed_branch(op, s);
      case Opcode::call:
        return call(op, s);
      default:
        break;
    }
    const OperandRegisters at = operand_registers(
        module_, function_, s, operand_rules(instr, static_cast<int>(operands.size())), program_, registers_);
    if (!at.rejection.empty()) return at.rejection;
    place(op, at, instr);
    const auto product = program_.fused.find({index_, static_cast<std::int32_t>(&s - function_.body.data())});
    if (product != program_.fused.end()) return fuse(op, s, instr, product->second);
    return choose(op, at, s, instr);
  }

  // The registers of the sum's op are replaced by the product's factors and the other summand.
  std::string fuse(Op& op, const Statement& sum, const Instr& instr, std::int32_t product) {
    const Statement& p = function_.body[static_cast<std::size_t>(product)];
    const Instr& product_instr = program_.decoded.at(index_, product);
    const OperandRegisters factors =
        operand_registers(module_, function_, p, operand_rules(product_instr, 3), program_, registers_);
    if (!factors.rejection.empty()) return factors.rejection;
    const auto operands = function_.operands_of(sum);
    const std::int32_t dead = function_.operands_of(p)[0].index;
    const bool product_first = operands[1].kind == OperandKind::reg && operands[1].index == dead;
    const std::uint32_t other = op.at[product_first ? 2 : 1];
    op.at[1] = factors.flat[1].reg, op.at[2] = factors.flat[2].reg, op.at[3] = other;
    op.widths = static_cast<std::uint16_t>(op.widths | width_code(4) << 9);
    OpRequest request{.instr = &instr, .register_bytes = {4, 4, 4, 4}, .sum = options_.sum};
    request.fused = instr.opcode == Opcode::add ? Fused::plus : product_first ? Fused::minus : Fused::subtracted;
    op.compute = find_op_handler(request, options_.simd);
    return op.compute != nullptr ? "" : "is not modeled when it is fused with a product";
  }

  void place(Op& op, const OperandRegisters& at, const Instr& instr) {
    const auto set = [&op](std::size_t i, OperandRegisters::Place p) {
      op.at[i] = p.reg;
      op.widths = static_cast<std::uint16_t>(op.widths | width_code(p.bytes) << (3 * i));
    };
    for (std::size_t i = 0; i < at.first.size(); ++i) {
      const auto from = static_cast<std::size_t>(at.first[i]);
      if (at.first[i] >= 0 && from < at.flat.size()) set(i, at.flat[from]);
      if (at.offsets[i] != 0) op.target = static_cast<std::int32_t>(at.offsets[i]);
    }
    if (at.addresses > 0 && std::all_of(at.offsets.begin(), at.offsets.end(), [](auto o) { return o == 0; })) {
      op.target = 0;
    }
    if (uses_carry(instr)) {
      op.at[4] = registers_.carry();
    } else {
      set(4, at.second);
    }
    op.negated = at.negated;
    if (at.uniform_address) op.flags |= kUniformAddress;
    if (!at.lists) return;
    auto list = std::make_unique<std::vector<std::uint32_t>>();
    // d before p; the carry is not written.
    for (std::size_t i = 0; i < at.flat.size(); ++i) {
      list->push_back(at.flat[i].reg);
      if (i == 0 && at.has_second) list->push_back(at.second.reg);
    }
    op.count = static_cast<std::uint16_t>(list->size());
    for (const std::int64_t o : at.offsets) list->push_back(static_cast<std::uint32_t>(static_cast<std::int32_t>(o)));
    op.list = list->data();
    program_.lists.push_back(std::move(list));
  }

  std::string choose(Op& op, const OperandRegisters& at, const Statement& s, const Instr& instr) {
    OpRequest request{.instr = &instr, .register_bytes = {}, .sum = options_.sum};
    request.results = static_cast<std::uint8_t>(at.first[1] > 0 ? at.first[1] : 0);
    if (op.list != nullptr) {
      std::vector<std::uint8_t> bytes;
      for (std::size_t i = 0; i < at.flat.size(); ++i) {
        bytes.push_back(at.flat[i].bytes);
        if (i == 0 && at.has_second) bytes.push_back(at.second.bytes);
      }
      for (std::size_t i = 0; i < std::min<std::size_t>(5, bytes.size()); ++i) request.register_bytes[i] = bytes[i];
    } else {
      for (int i = 0; i < 5; ++i)
        request.register_bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(width_of(op, i));
    }
    op.compute = find_op_handler(request, options_.simd);
    if (op.compute != nullptr) {
      if (is_aligned_matrix(instr)) op.machine = is_sparse(instr) ? run_sparse_aligned : run_aligned;
      if (is_integer_division(instr) && divisor_may_be_zero(s)) op.machine = run_division;
      if (reads_clock(s)) op.machine = run_clock;
      return "";
    }
    op.machine = find_machine_handler(instr);
    return op.machine != nullptr ? "" : "is not modeled with these operands";
  }

  [[nodiscard]] bool divisor_may_be_zero(const Statement& s) const {
    const auto operands = function_.operands_of(s);
    return operands.size() != 3 || operands[2].kind != OperandKind::integer || operands[2].value == 0;
  }

  [[nodiscard]] bool reads_clock(const Statement& s) const {
    const auto is_clock = [](const Operand& o) {
      return o.kind == OperandKind::special && is_running(static_cast<SpecialRegister>(o.index));
    };
    for (const Operand& o : function_.operands_of(s)) {
      if (is_clock(o)) return true;
      if (o.kind != OperandKind::vector) continue;
      const auto elements = function_.elements_of(o);
      if (std::any_of(elements.begin(), elements.end(), is_clock)) return true;
    }
    return false;
  }

  // The pc of a statement of this function; after the last one, of the closing ret.
  [[nodiscard]] std::int32_t op_of(std::int32_t statement_index) const { return code_.first_op + statement_index; }

  std::string branch(Op& op, const Statement& s, const Instr& instr) {
    const auto operands = function_.operands_of(s);
    if (operands.empty() || operands.back().kind != OperandKind::label) return "a branch without a label";
    op.target = op_of(operands.back().index);
    if (op.target <= op.source) op.flags |= kBackward;
    if (instr.has(Mod::uni) && s.guard >= 0) {
      op.machine = run_uniform_branch;
    } else {
      op.flags |= kBranch;
    }
    return "";
  }

  std::string indexed_branch(Op& op, const Statement& s) {
    const auto operands = function_.operands_of(s);
    if (operands.size() != 2 || operands[0].kind != OperandKind::reg || operands[1].kind != OperandKind::table) {
      return "a branch by index without a register and a table";
    }
    op.at[0] = registers_.of_register(operands[0].index);
    auto list = std::make_unique<std::vector<std::uint32_t>>();
    for (const std::int32_t t : function_.tables[static_cast<std::size_t>(operands[1].index)].targets) {
      list->push_back(static_cast<std::uint32_t>(op_of(t)));
    }
    op.count = static_cast<std::uint16_t>(list->size());
    op.list = list->data();
    program_.lists.push_back(std::move(list));
    op.machine = run_indexed_branch;
    return "";
  }

  // call (results), function, (arguments), prototype: everything except the function is optional.
  std::string call(Op& op, const Statement& s) {
    CallSite site;
    const Operand* before = nullptr;
    bool found = false;
    std::string rejection;
    for (const Operand& o : function_.operands_of(s)) {
      if (o.kind == OperandKind::function) {
        site.function = o.index;
        const Function& callee = module_.functions[static_cast<std::size_t>(o.index)];
        if (!callee.defined) site.builtin = builtin_of(callee.name);
        found = true;
      } else if (o.kind == OperandKind::reg) {
        site.callee = registers_.of_register(o.index);
        found = true;
      } else if (o.kind == OperandKind::list && !found) {
        before = &o;
      } else if (o.kind == OperandKind::list) {
        rejection = values(o, site.arguments);
      }
    }
    if (!found) return "a call of nothing";
    if (before != nullptr && rejection.empty()) rejection = values(*before, site.results);
    if (!rejection.empty()) return rejection;
    op.target = static_cast<std::int32_t>(program_.calls.size());
    op.machine = run_call;
    program_.calls.push_back(std::move(site));
    return "";
  }

  std::string values(const Operand& list, std::vector<CallValue>& to) {
    for (const Operand& e : function_.elements_of(list)) {
      CallValue v;
      switch (e.kind) {
        case OperandKind::variable:
          v.param = program_.placements[static_cast<std::size_t>(e.index)];
          v.bytes = module_.variables[static_cast<std::size_t>(e.index)].bytes;
          if (v.param < kBodyParams) return "a value that is no parameter of a call";
          break;
        case OperandKind::reg:
          v.reg = registers_.of_register(e.index);
          v.bytes = register_bytes_of(function_.registers[static_cast<std::size_t>(e.index)].type);
          if (v.bytes == 0) return "a predicate passed to a call";
          break;
        case OperandKind::integer:
          v.reg = registers_.constant(static_cast<std::uint64_t>(e.value), 8);
          v.bytes = 8;
          break;
        case OperandKind::float_bits:
        case OperandKind::double_bits:
          v.bytes = e.kind == OperandKind::float_bits ? 4 : 8;
          v.reg = registers_.constant(static_cast<std::uint64_t>(e.value), static_cast<int>(v.bytes));
          break;
        case OperandKind::sink:
          break;
        default:
          return "a value of a call that is neither a parameter, a register nor a number";
      }
      to.push_back(v);
    }
    return "";
  }

  [[nodiscard]] bool is_rejected(const Statement& s) const {
    return rejected_.contains(static_cast<std::int32_t>(&s - function_.body.data()));
  }

  // Replaces the op by a trap that reports the reason. Those of decode are already in its list.
  void reject(Op& op, std::int32_t number, const std::string& why) {
    const Op guarded = op;
    op = Op{};
    op.instr = guarded.instr, op.source = guarded.source, op.guard = guarded.guard;
    op.flags = guarded.flags & kGuardNegated;
    op.machine = run_unsupported;
    if (!is_rejected(function_.body[static_cast<std::size_t>(number)])) {
      program_.decoded.unsupported.push_back({index_, number, why});
    }
  }

  // After its last statement a function returns, as with an explicit ret.
  void close() {
    Op op;
    op.source = static_cast<std::int32_t>(program_.ops.size());
    op.instr = program_.closing_ret;
    op.machine = run_ret;
    program_.sources.push_back({index_, static_cast<std::int32_t>(function_.body.size())});
    program_.ops.push_back(op);
  }

  std::int32_t index_;
  const ProgramOptions& options_;
  Program& program_;
  const Module& module_;
  const Function& function_;
  FunctionCode& code_;
  std::vector<std::vector<std::pair<std::int32_t, std::int32_t>>> alive_;
  FunctionRegisters registers_;
  std::set<std::int32_t> rejected_;  // statements that decode marked as unsupported
};

}  // namespace

void lower_function(std::int32_t index, const ProgramOptions& options, Program& program) {
  Lowering(index, options, program).run();
}

}  // namespace kvscope::ptx
