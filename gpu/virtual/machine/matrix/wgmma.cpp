#include "gpu/virtual/machine/matrix/wgmma.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <type_traits>

#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/detail/handlers.h"
#include "gpu/virtual/machine/matrix/detail/warpgroup.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/warp/detail/control.h"
#include "gpu/virtual/machine/warp/scheduler.h"
#include "gpu/virtual/semantics/matrix_product.h"

namespace kvscope::ptx {
namespace {

constexpr int kWarpRows = 16;        // rows of D per warp
constexpr std::int64_t kChunk = 16;  // [bytes]

// A matrix operand as numbers, row-major.
template <class T>
using Numbers = std::vector<T>;

// Bytes of shared memory -> [mns][ks] of numbers; false: some chunk is outside shared memory.
template <class T>
bool read_operand(Cta& cta, const std::vector<WgmmaChunk>& chunks, Type type, bool mn_major, int ks, int mn_from,
                  Numbers<T>& to) {
  const int per_chunk = static_cast<int>(kChunk) * 8 / bits(type);
  std::vector<T> some(static_cast<std::size_t>(per_chunk));
  for (const WgmmaChunk& c : chunks) {
    const std::byte* from = shared_at(cta, c.offset, kChunk);
    if (from == nullptr) return false;
    decode_elements(type, from, per_chunk, some.data());
    for (int e = 0; e < per_chunk; ++e) {
      const int mn = c.mn - mn_from + (mn_major ? e : 0), k = c.k + (mn_major ? 0 : e);
      to[static_cast<std::size_t>(mn * ks + k)] = some[static_cast<std::size_t>(e)];
    }
  }
  return true;
}

// Registers of A, 32 lanes each, consecutive -> [16][ks].
template <class T>
void read_a_registers(const std::byte* values, Type type, int registers, int ks, Numbers<T>& to) {
  const int per = 32 / bits(type);
  std::vector<T> some(static_cast<std::size_t>(kLanes * per));
  for (int r = 0; r < registers; ++r) {
    decode_elements(type, values + r * kLanes * 4, kLanes * per, some.data());
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int e = 0; e < per; ++e) {
        const int row = lane / 4 + 8 * (r % 2), k = lane % 4 * per + e + 4 * per * (r / 2);
        to[static_cast<std::size_t>(row * ks + k)] = some[static_cast<std::size_t>(lane * per + e)];
      }
    }
  }
}

// D's registers <-> [16][n]; an f16 register holds two columns.
template <class Visit>
void for_each_d(int n, Type type, const Visit& visit) {  // visit(register, lane, half, index in D)
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < n / 2; ++i) {
      const int row = lane / 4 + 8 * (i / 2 % 2), column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
      if (type == Type::f16) {
        visit(i / 2, lane, i % 2, row * n + column);
      } else {
        visit(i, lane, 0, row * n + column);
      }
    }
  }
}

template <class T>
void read_d(const Exec& exec, const Op& op, int n, Type type, Numbers<T>& d) {
  for_each_d(n, type, [&](int i, int lane, int half, int at) {
    const std::byte* from = exec.registers + op.list[i] + lane * 4;
    if (type == Type::f16) {
      std::uint16_t h;
      std::memcpy(&h, from + 2 * half, sizeof h);
      d[static_cast<std::size_t>(at)] = static_cast<T>(float_of_f16_bits(h));
    } else {
      std::memcpy(&d[static_cast<std::size_t>(at)], from, 4);
    }
  });
}
template <class T>
void write_d(Exec& exec, const Op& op, int n, Type type, const Numbers<T>& d) {
  for_each_d(n, type, [&](int i, int lane, int half, int at) {
    std::byte* to = exec.registers + op.list[i] + lane * 4;
    if (type == Type::f16) {
      const std::uint16_t h = f16_bits_of(static_cast<float>(d[static_cast<std::size_t>(at)]));
      std::memcpy(to + 2 * half, &h, sizeof h);
    } else {
      std::memcpy(to, &d[static_cast<std::size_t>(at)], 4);
    }
  });
}

std::int32_t constant(const Exec& exec, const Op& op, int at, std::int32_t without) {
  if (at < 0) return without;
  return register_of<std::int32_t>(exec, op.list[at])[0];
}

template <class T>
void negate(Numbers<T>& numbers) {
  for (T& x : numbers) x = -x;
}

struct Product {
  const Instr& instr;
  WgmmaShape shape;
  MatrixProduct product;
};
Product product_of(const Exec& exec, const Op& op) {
  const Instr& instr = exec.program().instr(op);
  const WgmmaShape shape = wgmma_shape(exec, op);
  MatrixProduct p;
  p.m = kWarpRows;
  p.n = shape.n;
  p.k = shape.k;
  p.d = instr.type(0);
  p.a = instr.type(1);
  p.b = instr.type(2);
  p.sum = exec.program().options.sum;
  p.saturate = instr.has(Mod::satfinite);
  p.both = p.a == Type::b1;
  return {instr, shape, p};
}

std::vector<WgmmaChunk> a_chunks(const Exec& exec, const Op& op, const Product& p, const WgmmaOp& w) {
  if (p.shape.a_registers > 0) return {};
  const bool mn_major = constant(exec, op, p.shape.trans_a_at, 0) != 0;
  return wgmma_chunks(w.a, mn_major, bits(p.product.a), kWarpRows * (exec.warp.index % kGroupWarps), kWarpRows,
                      p.shape.k);
}
std::vector<WgmmaChunk> b_chunks(const Exec& exec, const Op& op, const Product& p, const WgmmaOp& w) {
  const bool mn_major = constant(exec, op, p.shape.trans_b_at, 0) != 0;
  return wgmma_chunks(w.b, mn_major, bits(p.product.b), 0, p.shape.n, p.shape.k);
}

template <class T>
bool multiply(Exec& exec, const Op& op, const Product& p, const WgmmaOp& w) {
  const int n = p.shape.n, k = p.shape.k, warp = exec.warp.index % kGroupWarps;
  const auto size = [](int x, int y) { return static_cast<std::size_t>(x) * static_cast<std::size_t>(y); };
  Numbers<T> a(size(kWarpRows, k)), b_columns(size(n, k)), b(size(k, n)), d(size(kWarpRows, n));
  if (p.shape.a_registers > 0) {
    read_a_registers(w.a_values.data(), p.product.a, p.shape.a_registers, k, a);
  } else if (!read_operand(exec.cta, a_chunks(exec, op, p, w), p.product.a,
                           constant(exec, op, p.shape.trans_a_at, 0) != 0, k, kWarpRows * warp, a)) {
    return false;
  }
  if (!read_operand(exec.cta, b_chunks(exec, op, p, w), p.product.b, constant(exec, op, p.shape.trans_b_at, 0) != 0, k,
                    0, b_columns)) {
    return false;
  }
  for (int column = 0; column < n; ++column) {
    for (int i = 0; i < k; ++i)
      b[size(i, n) + static_cast<std::size_t>(column)] = b_columns[size(column, k) + static_cast<std::size_t>(i)];
  }
  if (constant(exec, op, p.shape.imm_a_at, 1) < 0) negate(a);
  if (constant(exec, op, p.shape.imm_b_at, 1) < 0) negate(b);
  if (w.scale_d) read_d(exec, op, n, p.product.d, d);
  if constexpr (std::is_same_v<T, float>) {
    multiply_add(p.product, a.data(), b.data(), d.data(), exec.program().options.simd);
  } else {
    multiply_add(p.product, a.data(), b.data(), d.data());
  }
  write_d(exec, op, n, p.product.d, d);
  return true;
}

// --- the instructions ------------------------------------------------------------------------------------------------

WarpProducts& products_of(Exec& exec) {
  auto& all = exec.cta.async.wgmma;
  if (all.empty()) all.resize(exec.cta.warps.size());
  return all[static_cast<std::size_t>(exec.warp.index)];
}

// Shared bytes of the operands, for monitors.
std::vector<ByteRange> ranges_of(const Exec& exec, const Op& op, const Product& p, const WgmmaOp& w) {
  std::vector<std::uint64_t> offsets;
  for (const auto& chunks : {a_chunks(exec, op, p, w), b_chunks(exec, op, p, w)}) {
    for (const WgmmaChunk& c : chunks) offsets.push_back(c.offset);
  }
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  std::vector<ByteRange> ranges;
  const auto rank = static_cast<std::uint64_t>(exec.cta.cluster_rank);
  for (const std::uint64_t offset : offsets) {
    const std::uint64_t address = shared_address(rank, offset);
    if (!ranges.empty() && ranges.back().address + static_cast<std::uint64_t>(ranges.back().bytes) == address) {
      ranges.back().bytes += kChunk;
    } else {
      ranges.push_back({Space::shared, address, kChunk});
    }
  }
  return ranges;
}

// The registers of a product whose issuing function has since called this one: its activation still exists.
std::byte* registers_of_product(Exec& exec, const WgmmaOp& w) {
  for (std::int32_t i = exec.lane_group.activation; i >= 0;) {
    Activation& a = exec.warp.activations[static_cast<std::size_t>(i)];
    if (i == w.activation && a.entered == w.entered) return a.registers.data();
    i = a.caller;
  }
  return nullptr;
}

void perform_product(Exec& now, const WgmmaOp& w) {
  const Op& op = now.program().ops[static_cast<std::size_t>(w.op.pc)];
  Exec exec{now.launch, now.cta, now.warp, now.lane_group, registers_of_product(now, w)};
  if (exec.registers == nullptr) {
    fault(now, op, 0, ReportKind::reg_in_flight,
          "the function that issued this product has returned, and its registers are gone",
          "wgmma.wait_group comes before the function returns");
    if (now.launch.monitor != nullptr) now.launch.monitor->async_done(now.launch, now.cta, w.op);
    return;
  }
  const Product p = product_of(exec, op);
  std::vector<ByteRange> reads;
  Monitor* const monitor = exec.launch.monitor;
  if (monitor != nullptr) {
    reads = ranges_of(exec, op, p, w);
    monitor->async_moves(exec.launch, exec.cta, w.op, reads, {});
  }
  const bool integers = p.product.d == Type::s32;
  static_cast<void>(integers ? multiply<std::int32_t>(exec, op, p, w) : multiply<float>(exec, op, p, w));
  if (monitor != nullptr) monitor->async_done(exec.launch, exec.cta, w.op);
}

// The operands that must be equal in all 128 threads.
std::vector<GroupValue> common_values(const Op& op, const WgmmaShape& shape) {
  std::vector<GroupValue> values;
  if (shape.a_registers == 0) values.push_back({"descriptor of A", op.list[shape.a_at], 8});
  values.push_back({"descriptor of B", op.list[shape.b_at], 8});
  values.push_back({"scale of D", op.list[shape.scale_d_at], shape.scale_is_predicate ? 0 : 4});
  return values;
}

Flow mma_async(Exec& exec, const Op& op, LaneMask lanes) {
  const Product p = product_of(exec, op);
  if (const auto flow = meet_warpgroup(exec, op, lanes, common_values(op, p.shape))) return *flow;
  WgmmaOp w;
  w.op = new_operation(exec, op, 0, AsyncKind::wgmma);
  w.activation = exec.lane_group.activation;
  w.entered = exec.warp.activations[static_cast<std::size_t>(w.activation)].entered;
  w.b = register_of<std::uint64_t>(exec, op.list[p.shape.b_at])[0];
  if (p.shape.a_registers == 0) {
    w.a = register_of<std::uint64_t>(exec, op.list[p.shape.a_at])[0];
  } else {
    w.a_values.resize(static_cast<std::size_t>(p.shape.a_registers) * kLanes * 4);
    for (int r = 0; r < p.shape.a_registers; ++r) {
      std::memcpy(w.a_values.data() + r * kLanes * 4, exec.registers + op.list[p.shape.a_at + r], kLanes * 4);
    }
  }
  std::uint32_t scale = 0;
  std::memcpy(&scale, exec.registers + op.list[p.shape.scale_d_at], sizeof scale);
  w.scale_d = p.shape.scale_is_predicate ? ((op.negated >> 3 & 1) != 0 ? (~scale & 1) : (scale & 1)) != 0 : scale != 0;
  try {
    for (const auto& chunks : {a_chunks(exec, op, p, w), b_chunks(exec, op, p, w)}) {
      for (const WgmmaChunk& c : chunks) {
        std::uint64_t address = shared_address(static_cast<std::uint64_t>(exec.cta.cluster_rank), c.offset);
        Space space = Space::shared;
        const LaneRequest request{Space::shared, AccessKind::load, kChunk, kChunk, true};
        if (shared_at(exec.cta, c.offset, kChunk) != nullptr) continue;
        static_cast<void>(reach_lane(exec, op, 0, request, space, address));
        return exec.launch.status == LaunchStatus::failed ? Flow::stopped : Flow::next;
      }
    }
    if (exec.launch.monitor != nullptr) {
      exec.launch.monitor->async_issue(exec, w.op, ranges_of(exec, op, p, w), {});
    }
  } catch (const std::exception& e) {
    return fault(exec, op, 0, ReportKind::unsupported, e.what());
  }
  if (exec.launch.config.options.policy == Policy::early) {
    perform_product(exec, w);
    w.performed = true;
  }
  products_of(exec).ops.push_back(std::move(w));
  ++exec.cta.async.pushed;
  return Flow::next;
}

Flow wgmma_fence(Exec& exec, const Op& op, LaneMask lanes) {
  return meet_warpgroup(exec, op, lanes).value_or(Flow::next);
}

Flow commit_wgmma(Exec& exec, const Op& op, LaneMask lanes) {
  if (const auto flow = meet_warpgroup(exec, op, lanes)) return *flow;
  WarpProducts& mine = products_of(exec);
  const auto count = static_cast<std::int32_t>(mine.ops.size());
  mine.groups.push_back(count - mine.grouped);
  ++exec.cta.async.pushed;
  mine.grouped = count;
  if (exec.launch.monitor != nullptr) exec.launch.monitor->group_commit(exec, AsyncKind::wgmma, lanes);
  return Flow::next;
}

Flow wait_wgmma_group(Exec& exec, const Op& op, LaneMask lanes) {
  if (const auto flow = meet_warpgroup(exec, op, lanes)) return *flow;
  const std::uint64_t most = lane_value(exec, op.at[0], width_of(op, 0), 0);
  WarpProducts& mine = products_of(exec);
  std::array<std::uint64_t, kLanes> last{};
  if (mine.groups.size() > most) {
    const std::size_t groups = mine.groups.size() - most;
    std::int32_t count = 0;
    for (std::size_t g = 0; g < groups; ++g) count += mine.groups[g];
    for (std::int32_t i = 0; i < count; ++i) {
      const WgmmaOp& w = mine.ops[static_cast<std::size_t>(i)];
      last.fill(w.op.number + 1);
      if (!w.performed) perform_product(exec, w);
    }
    mine.ops.erase(mine.ops.begin(), mine.ops.begin() + count);
    mine.groups.erase(mine.groups.begin(), mine.groups.begin() + static_cast<std::ptrdiff_t>(groups));
    mine.grouped -= count;
  }
  if (exec.launch.monitor != nullptr) exec.launch.monitor->group_wait(exec, AsyncKind::wgmma, lanes, false, last);
  return Flow::next;
}

}  // namespace

WgmmaShape wgmma_shape(const Exec& exec, const Op& op) {
  const Instr& instr = exec.program().instr(op);
  const OpSource& source = exec.program().sources[static_cast<std::size_t>(op.source)];
  const Function& function = exec.program().module->functions[static_cast<std::size_t>(source.function)];
  const auto operands = function.operands_of(function.body[static_cast<std::size_t>(source.statement)]);
  WgmmaShape s;
  s.n = instr.shape.n;
  s.k = instr.shape.k;
  s.d_registers = static_cast<int>(operands[0].count);
  s.a_registers = operands[1].kind == OperandKind::vector ? static_cast<int>(operands[1].count) : 0;
  s.a_at = s.d_registers;
  s.b_at = s.a_at + std::max(1, s.a_registers);
  s.scale_d_at = s.b_at + 1;
  s.scale_is_predicate = operands[3].kind != OperandKind::reg ||
                         function.registers[static_cast<std::size_t>(operands[3].index)].type == Type::pred;
  const int immediates = op.count - s.scale_d_at - 1;
  if (immediates >= 2) s.imm_a_at = s.scale_d_at + 1, s.imm_b_at = s.scale_d_at + 2;
  if (immediates == 3) s.trans_b_at = s.scale_d_at + 3;
  if (immediates == 4) s.trans_a_at = s.scale_d_at + 3, s.trans_b_at = s.scale_d_at + 4;
  return s;
}

MachineHandler find_warpgroup(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::wgmma_mma_async:
      return mma_async;
    case Opcode::wgmma_fence:
      return wgmma_fence;
    case Opcode::wgmma_commit_group:
      return commit_wgmma;
    case Opcode::wgmma_wait_group:
      return wait_wgmma_group;
    case Opcode::setmaxnreg:
      return run_setmaxnreg;
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx
