#include "gpu/virtual/machine/matrix/wgmma.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <numeric>
#include <type_traits>

#include "gpu/virtual/isa/sparse_metadata.h"
#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/detail/handlers.h"
#include "gpu/virtual/machine/matrix/detail/sparse_operand.h"
#include "gpu/virtual/machine/matrix/detail/warpgroup.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/warp/detail/control.h"
#include "gpu/virtual/machine/warp/scheduler.h"
#include "gpu/virtual/semantics/matrix_product.h"

namespace kvscope::ptx {
namespace {

constexpr int kWarpRows = 16;  // rows of D per warp

// Registers of A, 32 lanes each, consecutive -> [16][ks].
template <class T>
void read_a_registers(const std::byte* values, Type type, int registers, int ks, T* to) {
  const int per = 32 / bits(type);
  const int run = 4 * per;  // elements of a row that one register of four lanes holds
  std::array<T, kLanes * 32> some;
  for (int r = 0; r < registers; ++r) {
    decode_elements(type, values + r * kLanes * 4, kLanes * per, some.data());
    for (int g = 0; g < kLanes / 4; ++g)
      std::copy_n(some.data() + g * run, run, to + (g + 8 * (r % 2)) * ks + run * (r / 2));
  }
}

// D's registers of 32 bits <-> [16][n]: eight columns of a row are the pairs of four lanes of two registers.
template <class T>
struct Lanes4 {
  typedef T type __attribute__((vector_size(16)));
};
template <class T, class Move>
void for_each_pair_of_registers(const Exec& exec, const Op& op, int n, T* d, const Move& move) {
  for (int i = 0; i < n / 2; i += 2) {
    std::byte* const even = exec.registers + op.list[i];
    std::byte* const odd = exec.registers + op.list[i + 1];
    T* row = d + (8 * (i / 2 % 2)) * n + 8 * (i / 4);
    for (int g = 0; g < kLanes / 4; ++g, row += n) move(even + 16 * g, odd + 16 * g, row);
  }
}
template <class T>
void read_d(const Exec& exec, const Op& op, int n, T* d) {
  for_each_pair_of_registers(exec, op, n, d, [](const std::byte* even, const std::byte* odd, T* row) {
    typename Lanes4<T>::type e, o;
    std::memcpy(&e, even, sizeof e);
    std::memcpy(&o, odd, sizeof o);
    const auto low = __builtin_shufflevector(e, o, 0, 4, 1, 5), high = __builtin_shufflevector(e, o, 2, 6, 3, 7);
    std::memcpy(row, &low, sizeof low);
    std::memcpy(row + 4, &high, sizeof high);
  });
}
template <class T>
void write_d(Exec& exec, const Op& op, int n, T* d) {
  for_each_pair_of_registers(exec, op, n, d, [](std::byte* even, std::byte* odd, const T* row) {
    typename Lanes4<T>::type low, high;
    std::memcpy(&low, row, sizeof low);
    std::memcpy(&high, row + 4, sizeof high);
    const auto e = __builtin_shufflevector(low, high, 0, 2, 4, 6), o = __builtin_shufflevector(low, high, 1, 3, 5, 7);
    std::memcpy(even, &e, sizeof e);
    std::memcpy(odd, &o, sizeof o);
  });
}

// D's registers of two f16 <-> [16][n].
template <class Visit>
void for_each_half(int n, const Visit& visit) {  // visit(register, byte of the lanes' words, index in D)
  for (int i = 0; i < n / 4; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const int row = lane / 4 + 8 * (i % 2), column = 8 * (i / 2) + 2 * (lane % 4);
      for (int half = 0; half < 2; ++half) visit(i, 4 * lane + 2 * half, row * n + column + half);
    }
  }
}
void read_halves(const Exec& exec, const Op& op, int n, float* d) {
  for_each_half(n, [&](int i, int byte, int at) {
    std::uint16_t h;
    std::memcpy(&h, exec.registers + op.list[i] + byte, sizeof h);
    d[at] = float_of_f16_bits(h);
  });
}
void write_halves(Exec& exec, const Op& op, int n, const float* d) {
  for_each_half(n, [&](int i, int byte, int at) {
    const std::uint16_t h = f16_bits_of(d[at]);
    std::memcpy(exec.registers + op.list[i] + byte, &h, sizeof h);
  });
}

std::int32_t constant(const Exec& exec, const Op& op, int at, std::int32_t without) {
  if (at < 0) return without;
  return register_of<std::int32_t>(exec, op.list[at])[0];
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
  p.sparse = is_sparse(instr);
  return {instr, shape, p};
}

// Whether D is added to in its registers.
bool is_in_fragments(const Product& p) {
  return p.product.sum == SumMode::seq && p.product.d == Type::f32 && !p.product.sparse;
}

// The operand in shared memory; A: nullptr if it is in registers.
WgmmaOperand* a_operand(Exec& exec, const Op& op, const Product& p, std::uint64_t descriptor) {
  if (p.shape.a_registers > 0) return nullptr;
  const bool mn_major = constant(exec, op, p.shape.trans_a_at, 0) != 0;
  const int first = kWarpRows * (exec.warp.index % kGroupWarps);
  const OperandOrder order = is_in_fragments(p) ? OperandOrder::columns : OperandOrder::rows;
  return &exec.cta.async.operands.at({descriptor, p.product.a, mn_major, order, first, kWarpRows, p.shape.a_k},
                                     exec.cta);
}
WgmmaOperand& b_operand(Exec& exec, const Op& op, const Product& p, std::uint64_t descriptor) {
  const bool mn_major = constant(exec, op, p.shape.trans_b_at, 0) != 0;
  const OperandOrder order = is_in_fragments(p) ? OperandOrder::quads : OperandOrder::columns;
  return exec.cta.async.operands.at({descriptor, p.product.b, mn_major, order, 0, p.shape.n, p.shape.k}, exec.cta);
}

constexpr int kMostColumns = 256, kMostSteps = 256;  // n; k of b1

// Registers of A, 32 lanes each, consecutive -> [ks][16].
void read_a_columns(const std::byte* values, Type type, int registers, float* to) {
  const int per = 32 / bits(type);
  const int run = 4 * per;  // elements of a row that one register of four lanes holds
  std::array<float, kLanes * 4> some;
  for (int r = 0; r < registers; ++r) {
    decode_elements(type, values + r * kLanes * 4, kLanes * per, some.data());
    float* const column = to + run * (r / 2) * kWarpRows + 8 * (r % 2);
    for (int i = 0; i < run; ++i) {
      for (int g = 0; g < kLanes / 4; ++g) column[i * kWarpRows + g] = some[static_cast<std::size_t>(g * run + i)];
    }
  }
}

void multiply_fragments(Exec& exec, const Op& op, const Product& p, const WgmmaOp& w, WgmmaOperand* a,
                        WgmmaOperand& b) {
  const int sign = constant(exec, op, p.shape.imm_a_at, 1) * constant(exec, op, p.shape.imm_b_at, 1);
  const std::uint64_t moment = exec.cta.async.operands.moment();
  const Simd simd = exec.program().options.simd;
  const int count = kWarpRows * p.shape.k;
  FragmentProduct product{.n = p.shape.n, .k = p.shape.k, .d = op.list, .adds = w.scale_d};
  std::array<float, kWarpRows * 32> own;  // A from registers, or with the other sign
  if (a == nullptr) {
    read_a_columns(w.a_values.data(), p.product.a, p.shape.a_registers, own.data());
    product.a = own.data();
    product.exact_products = have_exact_products(own.data(), count, simd);
  } else {
    product.a = a->numbers<float>(exec.cta, moment).data();
    product.exact_products = a->exact_products();
  }
  if (sign < 0) {
    std::transform(product.a, product.a + count, own.data(), std::negate<float>());
    product.a = own.data();
  }
  product.b = b.numbers<float>(exec.cta, moment).data();
  product.exact_products = product.exact_products && b.exact_products();
  multiply_add_fragments(product, exec.registers, simd);
}

template <class T>
void multiply(Exec& exec, const Op& op, const Product& p, const WgmmaOp& w, WgmmaOperand* a_shared, WgmmaOperand& b) {
  const std::uint64_t moment = exec.cta.async.operands.moment();
  const int n = p.shape.n, a_k = p.shape.a_k,
            sign = constant(exec, op, p.shape.imm_a_at, 1) * constant(exec, op, p.shape.imm_b_at, 1);
  std::array<T, kWarpRows * kMostSteps> own;  // A from registers, or with the other sign
  const T* a = own.data();
  if (a_shared == nullptr) {
    read_a_registers(w.a_values.data(), p.product.a, p.shape.a_registers, a_k, own.data());
  } else {
    a = a_shared->numbers<T>(exec.cta, moment).data();
  }
  if (sign < 0) std::transform(a, a + kWarpRows * a_k, own.data(), std::negate<T>()), a = own.data();
  std::array<T, kWarpRows * kMostColumns> d;
  if (!w.scale_d) std::fill_n(d.data(), kWarpRows * n, T{0});
  std::vector<std::uint16_t> columns;
  if (p.product.sparse) {
    columns.resize(static_cast<std::size_t>(kWarpRows * a_k));
    metadata_columns(bits(p.product.a), p.shape.k, constant(exec, op, p.shape.selector_at, 0), w.metadata.data(),
                     columns.data());
  }
  const bool halves = p.product.d == Type::f16;
  const T* const numbers_b = b.numbers<T>(exec.cta, moment).data();
  if constexpr (std::is_same_v<T, float>) {
    if (w.scale_d) halves ? read_halves(exec, op, n, d.data()) : read_d(exec, op, n, d.data());
    const Simd simd = exec.program().options.simd;
    p.product.sparse ? multiply_add_sparse(p.product, a, columns.data(), numbers_b, d.data(), simd)
                     : multiply_add(p.product, a, numbers_b, d.data(), simd);
    if (halves) return write_halves(exec, op, n, d.data());
  } else {
    if (w.scale_d) read_d(exec, op, n, d.data());
    p.product.sparse ? multiply_add_sparse(p.product, a, columns.data(), numbers_b, d.data())
                     : multiply_add(p.product, a, numbers_b, d.data());
  }
  write_d(exec, op, n, d.data());
}

// --- the instructions ------------------------------------------------------------------------------------------------

WarpProducts& products_of(Exec& exec) {
  auto& all = exec.cta.async.wgmma;
  if (all.empty()) all.resize(exec.cta.warps.size());
  return all[static_cast<std::size_t>(exec.warp.index)];
}

// Shared bytes of the operands, for monitors.
std::vector<ByteRange> ranges_of(const Exec& exec, const WgmmaOperand* a, const WgmmaOperand& b) {
  std::vector<std::uint64_t> offsets = b.offsets();
  if (a != nullptr) {
    offsets.clear();
    std::set_union(a->offsets().begin(), a->offsets().end(), b.offsets().begin(), b.offsets().end(),
                   std::back_inserter(offsets));
  }
  std::vector<ByteRange> ranges;
  const auto rank = static_cast<std::uint64_t>(exec.cta.cluster_rank);
  for (const std::uint64_t offset : offsets) {
    const std::uint64_t address = shared_address(rank, offset);
    if (!ranges.empty() && ranges.back().address + static_cast<std::uint64_t>(ranges.back().bytes) == address) {
      ranges.back().bytes += kWgmmaChunkBytes;
    } else {
      ranges.push_back({Space::shared, address, kWgmmaChunkBytes});
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
  exec.cta.async.operands.trim();
  WgmmaOperand* const a = a_operand(exec, op, p, w.a);
  WgmmaOperand& b = b_operand(exec, op, p, w.b);
  Monitor* const monitor = exec.launch.monitor;
  if (monitor != nullptr) monitor->async_moves(exec.launch, exec.cta, w.op, ranges_of(exec, a, b), {});
  if (p.product.d == Type::s32) {
    multiply<std::int32_t>(exec, op, p, w, a, b);
  } else if (is_in_fragments(p)) {
    multiply_fragments(exec, op, p, w, a, b);
  } else {
    multiply<float>(exec, op, p, w, a, b);
  }
  if (monitor != nullptr) monitor->async_done(exec.launch, exec.cta, w.op);
}

// The operands that must be equal in all 128 threads; without the first one, if A is in registers.
std::array<GroupValue, 3> common_values(const Op& op, const WgmmaShape& shape) {
  return {{{"descriptor of A", op.list[shape.a_at], 8},
           {"descriptor of B", op.list[shape.b_at], 8},
           {"scale of D", op.list[shape.scale_d_at], shape.scale_is_predicate ? 0 : 4}}};
}

Flow mma_async(Exec& exec, const Op& op, LaneMask lanes) {
  const Product p = product_of(exec, op);
  const auto common = common_values(op, p.shape);
  const auto values = std::span(common).subspan(p.shape.a_registers == 0 ? 0 : 1);
  if (const auto flow = meet_warpgroup(exec, op, lanes, values)) return *flow;
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
  if (p.product.sparse) {
    if (const auto wrong = invalid_metadata(exec, op, p.shape.metadata_at, p.shape.selector_at))
      return fault(exec, op, wrong->lane, ReportKind::product_arg, wrong->message, wrong->hint);
    w.metadata.resize(kLanes);
    std::memcpy(w.metadata.data(), exec.registers + op.list[p.shape.metadata_at], kLanes * sizeof w.metadata[0]);
  }
  std::uint32_t scale = 0;
  std::memcpy(&scale, exec.registers + op.list[p.shape.scale_d_at], sizeof scale);
  w.scale_d = p.shape.scale_is_predicate
                  ? ((op.negated >> (p.product.sparse ? 5 : 3) & 1) != 0 ? (~scale & 1) : (scale & 1)) != 0
                  : scale != 0;
  try {
    exec.cta.async.operands.trim();
    const WgmmaOperand* const a = a_operand(exec, op, p, w.a);
    const WgmmaOperand& b = b_operand(exec, op, p, w.b);
    const auto outside = a != nullptr && a->outside() ? a->outside() : b.outside();
    if (outside) {
      std::uint64_t address = shared_address(static_cast<std::uint64_t>(exec.cta.cluster_rank), *outside);
      Space space = Space::shared;
      static_cast<void>(reach_lane(
          exec, op, 0, {Space::shared, AccessKind::load, kWgmmaChunkBytes, kWgmmaChunkBytes, true}, space, address));
      return exec.launch.status == LaunchStatus::failed ? Flow::stopped : Flow::next;
    }
    if (exec.launch.monitor != nullptr) exec.launch.monitor->async_issue(exec, w.op, ranges_of(exec, a, b), {});
  } catch (const std::exception& e) {
    return fault(exec, op, 0, ReportKind::unsupported, e.what());
  }
  if (exec.launch.config.options.policy == Policy::early) {
    exec.cta.async.operands.next_moment();
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

// Performs and removes the warp's products of all groups but the `most` newest. The number after the last one's; 0: none.
std::uint64_t complete_groups(Exec& exec, std::uint64_t most) {
  WarpProducts& mine = products_of(exec);
  if (mine.groups.size() <= most) return 0;
  const auto end = mine.groups.begin() + static_cast<std::ptrdiff_t>(mine.groups.size() - most);
  const std::int32_t count = std::accumulate(mine.groups.begin(), end, 0);
  std::uint64_t behind = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    const WgmmaOp& w = mine.ops[static_cast<std::size_t>(i)];
    behind = w.op.number + 1;
    if (!w.performed) perform_product(exec, w);
  }
  mine.ops.erase(mine.ops.begin(), mine.ops.begin() + count);
  mine.groups.erase(mine.groups.begin(), end);
  mine.grouped -= count;
  return behind;
}

// A group belongs to the warpgroup. The first warp that continues completes the products of all four: then each of them
// may overwrite what the others' products have read.
Flow wait_wgmma_group(Exec& exec, const Op& op, LaneMask lanes) {
  if (const auto flow = meet_warpgroup(exec, op, lanes)) return *flow;
  WarpProducts& mine = products_of(exec);
  if (!mine.completed) {
    const std::uint64_t most = lane_value(exec, op.at[0], width_of(op, 0), 0);
    std::vector<Exec> warps = met_warps(exec);
    std::uint64_t behind = 0;
    exec.cta.async.operands.next_moment();  // products write registers only
    for (Exec& warp : warps) behind = std::max(behind, complete_groups(warp, most));
    for (Exec& warp : warps) products_of(warp).completed = behind;
  }
  std::array<std::uint64_t, kLanes> last;
  last.fill(*mine.completed);
  mine.completed.reset();
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
  s.a_k = s.k;
  const Operand* scale = &operands[3];
  if (is_sparse(instr)) {
    s.metadata_at = s.b_at + 1;
    s.selector_at = s.b_at + 2;
    s.scale_d_at = s.b_at + 3;
    s.a_k = s.k / 2;
    scale = &operands[5];
  }
  s.scale_is_predicate =
      scale->kind != OperandKind::reg || function.registers[static_cast<std::size_t>(scale->index)].type == Type::pred;
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
