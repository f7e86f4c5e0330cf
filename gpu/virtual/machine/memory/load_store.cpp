// ld, ldu and st: moves bytes between registers and memory; widens narrow types to their registers and truncates them.
#include "gpu/virtual/machine/memory/detail/load_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/lane_loops.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

struct B128 {
  std::uint64_t low, high;
};
template <int kBytes, bool kSigned>
struct Cell {
  using Type = std::conditional_t<
      kBytes == 1, std::conditional_t<kSigned, std::int8_t, std::uint8_t>,
      std::conditional_t<kBytes == 2, std::conditional_t<kSigned, std::int16_t, std::uint16_t>,
                         std::conditional_t<kBytes == 4, std::conditional_t<kSigned, std::int32_t, std::uint32_t>,
                                            std::conditional_t<kBytes == 8, std::uint64_t, B128>>>>;
};

// --- memory -> a register --------------------------------------------------------------------------------------------

template <int kMem, int kReg, bool kSigned>
void load_register(const Reach& r, std::byte* values, std::int64_t skip, std::int64_t each) {
  using Mem = typename Cell<kMem, kSigned>::Type;
  using Reg = typename Cell<kReg, kSigned>::Type;
  const auto load_one = [values](int i, const std::byte* from) {
    Mem value;
    std::memcpy(&value, from, kMem);
    if constexpr (kMem == kReg) {
      std::memcpy(values + i * kReg, &value, kReg);
    } else {
      const auto wide = static_cast<Reg>(static_cast<std::conditional_t<kSigned, std::int64_t, std::uint64_t>>(value));
      std::memcpy(values + i * kReg, &wide, kReg);
    }
  };
  if (r.contiguous != nullptr) {
    if constexpr (kMem == kReg) {
      if (each == kMem) {
        std::memcpy(values, r.contiguous, std::size_t{kMem} * kLanes);
        return;
      }
    }
    const std::byte* from = r.contiguous + skip;
    for (int i = 0; i < kLanes; ++i) load_one(i, from + i * each);
  } else if (r.one && r.lanes == kAllLanes) {
    load_one(0, r.lane[0] + skip);
    Reg value;
    std::memcpy(&value, values, kReg);
    for (int i = 1; i < kLanes; ++i) std::memcpy(values + i * kReg, &value, kReg);
  } else if (r.lanes == kAllLanes) {
    for (int i = 0; i < kLanes; ++i) load_one(i, r.lane[static_cast<std::size_t>(i)] + skip);
  } else {
    for (LaneMask rest = r.lanes; rest != 0; rest &= rest - 1) {
      const int i = std::countr_zero(rest);
      load_one(i, r.lane[static_cast<std::size_t>(i)] + skip);
    }
  }
}

using RegisterMove = void (*)(const Reach&, std::byte*, std::int64_t, std::int64_t);

template <bool kSigned>
RegisterMove loader(int mem, int reg) {
  switch (mem * 32 + reg) {
    case 1 * 32 + 2:
      return load_register<1, 2, kSigned>;
    case 1 * 32 + 4:
      return load_register<1, 4, kSigned>;
    case 1 * 32 + 8:
      return load_register<1, 8, kSigned>;
    case 2 * 32 + 2:
      return load_register<2, 2, false>;
    case 2 * 32 + 4:
      return load_register<2, 4, kSigned>;
    case 2 * 32 + 8:
      return load_register<2, 8, kSigned>;
    case 4 * 32 + 4:
      return load_register<4, 4, false>;
    case 4 * 32 + 8:
      return load_register<4, 8, kSigned>;
    case 8 * 32 + 8:
      return load_register<8, 8, false>;
    case 16 * 32 + 16:
      return load_register<16, 16, false>;
    default:
      return nullptr;
  }
}

// --- a register -> memory --------------------------------------------------------------------------------------------

// Returns true if a byte of memory has changed.
template <int kMem>
bool store_register(const Reach& r, const std::byte* values, int reg, std::int64_t skip, std::int64_t each) {
  using Mem = typename Cell<kMem, false>::Type;
  if (r.contiguous != nullptr && each == kMem && reg == kMem) {
    const bool changed = std::memcmp(r.contiguous, values, std::size_t{kMem} * kLanes) != 0;
    std::memcpy(r.contiguous, values, std::size_t{kMem} * kLanes);
    return changed;
  }
  bool changed = false;
  const auto store_one = [&](int i, std::byte* to) {
    Mem value, old;
    std::memcpy(&value, values + i * reg, kMem);
    std::memcpy(&old, to, kMem);
    changed |= std::memcmp(&value, &old, kMem) != 0;
    std::memcpy(to, &value, kMem);
  };
  if (r.contiguous != nullptr) {
    for (int i = 0; i < kLanes; ++i) store_one(i, r.contiguous + skip + i * each);
  } else {
    for (LaneMask rest = r.lanes; rest != 0; rest &= rest - 1) {  // ascending: the highest lane's value remains
      const int i = std::countr_zero(rest);
      store_one(i, r.lane[static_cast<std::size_t>(i)] + skip);
    }
  }
  return changed;
}

bool store_register(int mem, const Reach& r, const std::byte* values, int reg, std::int64_t skip, std::int64_t each) {
  switch (mem) {
    case 1:
      return store_register<1>(r, values, reg, skip, each);
    case 2:
      return store_register<2>(r, values, reg, skip, each);
    case 4:
      return store_register<4>(r, values, reg, skip, each);
    case 8:
      return store_register<8>(r, values, reg, skip, each);
    default:
      return store_register<16>(r, values, reg, skip, each);
  }
}

// Whether two lanes may have the same address; false positives are possible. Addresses are multiples of `bytes`.
bool may_collide(const Reach& r, const LaneAddresses& addresses, std::int32_t bytes) {
  if (r.contiguous != nullptr || (r.lanes & (r.lanes - 1)) == 0) return false;
  if (r.lanes == kAllLanes) {
    const LaneLoops& loops = lane_loops();
    return !loops.apart(addresses.at.data(), 1) && loops.any_equal(addresses.at.data());
  }
  const int shift = std::countr_zero(static_cast<std::uint32_t>(bytes));
  std::array<std::uint64_t, 4> seen{};
  bool twice = false;
  for (LaneMask rest = r.lanes; rest != 0; rest &= rest - 1) {
    const std::uint64_t key = addresses.at[static_cast<std::size_t>(std::countr_zero(rest))] >> shift;
    std::uint64_t& word = seen[key >> 6 & 3];
    const std::uint64_t bit = std::uint64_t{1} << (key & 63);
    twice |= (word & bit) != 0;
    word |= bit;
  }
  return twice;
}

struct Shape {
  Space space;
  bool own_cta;
  int mem;
  bool is_signed;
};

const std::uint32_t* vector_registers(const Op& op, int first) {
  return op.list != nullptr ? op.list + first : op.at.data() + first;
}

// Reports the first lane whose value another lane has overwritten with a different one.
Flow report_collision(Exec& exec, const Op& op, const Shape& shape, const Reach& r, const LaneAddresses& addresses,
                      std::int32_t vector) {
  const std::uint32_t* registers = vector_registers(op, 1);
  const int reg = width_of(op, 1);
  for (LaneMask rest = r.lanes; rest != 0; rest &= rest - 1) {
    const int i = std::countr_zero(rest);
    const auto lane = static_cast<std::size_t>(i);
    for (std::int32_t e = 0; e < vector; ++e) {
      if (std::memcmp(exec.registers + registers[e] + i * reg, r.lane[lane] + e * shape.mem,
                      static_cast<std::size_t>(shape.mem)) == 0) {
        continue;
      }
      int winner = i;
      for (int j = i + 1; j < kLanes; ++j) {
        if ((r.lanes >> j & 1) != 0 && addresses.at[static_cast<std::size_t>(j)] == addresses.at[lane]) winner = j;
      }
      const std::int64_t bytes = std::int64_t{vector} * shape.mem;
      const ReportAddress at = name_address(exec.launch, r.space, addresses.at[lane], bytes);
      return fault(
          exec, op, i, ReportKind::store_collision,
          fmt::format("lanes {} and {} store different bytes to one address: the highest lane's stay", i, winner),
          "let one lane store", at, "write");
    }
  }
  return Flow::next;
}

Flow load(Exec& exec, const Op& op, LaneMask lanes, const Shape& shape) {
  const std::int32_t vector = op.list == nullptr ? 1 : exec.program().instr(op).vector;
  const AccessRequest request{
      .space = shape.space, .kind = AccessKind::load, .bytes = shape.mem * vector, .own_cta = shape.own_cta};
  const std::uint32_t* registers = vector_registers(op, 0);
  const int reg = std::max({width_of(op, 0), shape.mem, 2});  // the width is unknown for a vector that begins with _
  LaneAddresses addresses;
  operand_addresses(exec, op, 1, addresses);
  const RegisterMove move = shape.is_signed ? loader<true>(shape.mem, reg) : loader<false>(shape.mem, reg);
  Reach r;
  LaneMask left = lanes, moved = 0;
  while (left != 0) {
    if (!reach(exec, op, request, addresses, left, r)) return Flow::stopped;
    if (r.lanes == 0) continue;
    if (exec.launch.monitor != nullptr) tell_access(exec, op, request, r, addresses);
    for (std::int32_t e = 0; e < vector; ++e) {
      if (registers[e] != kNoRegister && move != nullptr)
        move(r, exec.registers + registers[e], e * shape.mem, request.bytes);
    }
    moved |= r.lanes;
  }
  if (moved != lanes) [[unlikely]] {
    for (std::int32_t e = 0; e < vector; ++e) {
      for (LaneMask rest = lanes & ~moved; rest != 0 && registers[e] != kNoRegister; rest &= rest - 1) {
        std::memset(exec.registers + registers[e] + std::countr_zero(rest) * reg, 0xff, static_cast<std::size_t>(reg));
      }
    }
  }
  return Flow::next;
}

Flow store(Exec& exec, const Op& op, LaneMask lanes, const Shape& shape) {
  const std::int32_t vector = op.list == nullptr ? 1 : exec.program().instr(op).vector;
  const AccessRequest request{
      .space = shape.space, .kind = AccessKind::store, .bytes = shape.mem * vector, .own_cta = shape.own_cta};
  const std::uint32_t* registers = vector_registers(op, 1);
  const int reg = width_of(op, 1);
  LaneAddresses addresses;
  operand_addresses(exec, op, 0, addresses);
  Reach r;
  LaneMask left = lanes;
  while (left != 0) {
    if (!reach(exec, op, request, addresses, left, r)) return Flow::stopped;
    if (r.lanes == 0) continue;
    if (exec.launch.monitor != nullptr) tell_access(exec, op, request, r, addresses);
    bool changed = false;
    for (std::int32_t e = 0; e < vector; ++e) {
      changed |= store_register(shape.mem, r, exec.registers + registers[e], reg, e * shape.mem, request.bytes);
    }
    if (changed) event(exec);
    if (exec.launch.monitor != nullptr) tell_stored(exec, op, request, r, addresses);
    if (may_collide(r, addresses, request.bytes)) [[unlikely]] {
      if (report_collision(exec, op, shape, r, addresses, vector) == Flow::stopped) return Flow::stopped;
    }
  }
  return Flow::next;
}

// --- selection of the handler ----------------------------------------------------------------------------------------

enum class Where : std::uint8_t { generic, global, local, shared_cta, shared_cluster, constant, param };

constexpr Space space_at(Where where) {
  switch (where) {
    case Where::generic:
      return Space::generic;
    case Where::global:
      return Space::global;
    case Where::local:
      return Space::local;
    case Where::shared_cta:
    case Where::shared_cluster:
      return Space::shared;
    case Where::constant:
      return Space::constant;
    default:
      return Space::param;
  }
}

template <Where kWhere, int kMem, bool kSigned>
Flow run_load(Exec& exec, const Op& op, LaneMask lanes) {
  return load(exec, op, lanes, {space_at(kWhere), kWhere == Where::shared_cta, kMem, kSigned});
}
template <Where kWhere, int kMem>
Flow run_store(Exec& exec, const Op& op, LaneMask lanes) {
  return store(exec, op, lanes, {space_at(kWhere), kWhere == Where::shared_cta, kMem, false});
}

template <Where kWhere, int kMem>
MachineHandler choose(bool is_store, bool is_signed) {
  if (is_store) return run_store<kWhere, kMem>;
  return is_signed ? run_load<kWhere, kMem, true> : run_load<kWhere, kMem, false>;
}

template <Where kWhere>
MachineHandler choose(bool is_store, int mem, bool is_signed) {
  switch (mem) {
    case 1:
      return choose<kWhere, 1>(is_store, is_signed);
    case 2:
      return choose<kWhere, 2>(is_store, is_signed);
    case 4:
      return choose<kWhere, 4>(is_store, is_signed);
    case 8:
      return choose<kWhere, 8>(is_store, false);
    case 16:
      return choose<kWhere, 16>(is_store, false);
    default:
      return nullptr;
  }
}

}  // namespace

Order order_of(const Instr& instr) {
  if (instr.has(Mod::volatile_)) return Order::volatile_;
  if (instr.has(Mod::acq_rel)) return Order::acq_rel;
  if (instr.has(Mod::acquire)) return Order::acquire;
  if (instr.has(Mod::release)) return Order::release;
  if (instr.has(Mod::sc)) return Order::sc;
  if (instr.has(Mod::relaxed) || instr.has(Mod::mmio)) return Order::relaxed;
  return Order::weak;
}

Scope scope_of(const Instr& instr) {
  if (instr.has(Mod::cta)) return Scope::cta;
  if (instr.has(Mod::cluster)) return Scope::cluster;
  if (instr.has(Mod::gpu) || instr.has(Mod::gl)) return Scope::gpu;
  if (instr.has(Mod::sys) || instr.has(Mod::volatile_)) return Scope::sys;
  return Scope::none;
}

namespace {
WarpAccess as_told(const Exec& exec, const Op& op, const AccessRequest& request, const Reach& r,
                   const LaneAddresses& addresses) {
  WarpAccess out{.kind = request.kind,
                 .space = r.space,
                 .bytes = request.bytes,
                 .lanes = r.lanes,
                 .addresses = addresses.at,
                 .matrix_rows = request.matrix_rows,
                 .one = r.one,
                 .row = r.contiguous != nullptr,
                 .filled = r.filled};
  if ((op.flags & kOrdinary) == 0) {
    const Instr& instr = exec.program().instr(op);
    out.order = order_of(instr);
    out.scope = scope_of(instr);
    out.read_only = instr.has(Mod::nc);
  }
  if (request.kind == AccessKind::atomic) {  // defaults of an atomic
    if (out.order == Order::weak) out.order = Order::relaxed;
    if (out.scope == Scope::none) out.scope = Scope::gpu;
  }
  return out;
}
}  // namespace

void tell_access(Exec& exec, const Op& op, const AccessRequest& request, const Reach& r,
                 const LaneAddresses& addresses) {
  exec.launch.monitor->access(exec, op, as_told(exec, op, request, r, addresses));
}
void tell_stored(Exec& exec, const Op& op, const AccessRequest& request, const Reach& r,
                 const LaneAddresses& addresses) {
  exec.launch.monitor->stored(exec, op, as_told(exec, op, request, r, addresses));
}

MachineHandler find_load_store(const Instr& instr) {
  const bool is_store = instr.opcode == Opcode::st;
  if (!is_store && instr.opcode != Opcode::ld && instr.opcode != Opcode::ldu) return nullptr;
  const Type type = instr.type();
  const int mem = bits(type) / 8;
  const bool is_signed = class_of(type) == TypeClass::signed_integer;
  if (instr.has(Mod::shared_cluster)) return choose<Where::shared_cluster>(is_store, mem, is_signed);
  switch (space_of(instr)) {
    case Space::generic:
      return choose<Where::generic>(is_store, mem, is_signed);
    case Space::global:
      return choose<Where::global>(is_store, mem, is_signed);
    case Space::local:
      return choose<Where::local>(is_store, mem, is_signed);
    case Space::shared:
      return choose<Where::shared_cta>(is_store, mem, is_signed);
    case Space::constant:
      return choose<Where::constant>(is_store, mem, is_signed);
    case Space::param:
      return choose<Where::param>(is_store, mem, is_signed);
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx
