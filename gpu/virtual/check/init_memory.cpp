// The values in memory.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "gpu/virtual/check/init_checker.h"
#include "gpu/virtual/check/lane_offsets.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {
namespace {

constexpr int kRowBytes = 16;       // of ldmatrix and stmatrix
constexpr std::uint64_t kWord = 4;  // [bytes] with one origin

std::uint64_t low_bits(std::int64_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// The registers of a vector operand.
const std::uint32_t* vector_at(const Op& op, int first) {
  return op.list != nullptr ? op.list + first : op.at.data() + first;
}

// The byte of row k, of a lane group's matrix m, that is byte `at` of a register's 32 lanes: ldmatrix and stmatrix.
struct RowByte {
  int row = 0, byte = 0;
};
RowByte row_byte(bool transposed, int at) {
  if (!transposed) return {at / kRowBytes, at % kRowBytes};
  const int lane = at / 4, half = at % 4 / 2;
  return {2 * (lane % 4) + half, 2 * (lane / 4) + at % 2};
}

}  // namespace

// --- between launches ------------------------------------------------------------------------------------------------

InitChecker::Global* InitChecker::global_of(const DeviceMemory& memory, std::uint64_t address) {
  if (!options_.global && global_.empty() && (whole_ == nullptr || whole_->global_.empty())) return nullptr;
  const Allocation* a = memory.find(address);
  if (a == nullptr) return nullptr;
  if (const auto place = global_.find(a->address); place != global_.end()) return &place->second;
  if (whole_ != nullptr) {
    if (const auto place = whole_->global_.find(a->address); place != whole_->global_.end())
      return &global_.emplace(a->address, place->second).first->second;
  }
  if (!options_.global || a->initialized) return nullptr;
  return &global_.try_emplace(a->address, Global{UndefinedBytes(a->address, a->size, true)}).first->second;
}

void InitChecker::host_wrote(const DeviceMemory& memory, std::uint64_t address, std::int64_t bytes) {
  if (bytes <= 0 || !memory.contains(address, bytes)) return;
  if (Global* g = global_of(memory, address)) g->bytes.define(address, bytes);
}

void InitChecker::host_copied(const DeviceMemory& memory, std::uint64_t to, std::uint64_t from, std::int64_t bytes) {
  if (bytes <= 0 || !memory.contains(to, bytes) || !memory.contains(from, bytes)) return;
  Global* const target = global_of(memory, to);
  if (target == nullptr) return;
  Global* const source = global_of(memory, from);
  if (source == nullptr || source->bytes.first(from, bytes) < 0) return target->bytes.define(to, bytes);
  for (std::int64_t i = 0; i < bytes; i += 64) {
    const std::int64_t count = std::min<std::int64_t>(64, bytes - i);
    const auto at = static_cast<std::uint64_t>(i);
    target->bytes.assign(to + at, count, source->bytes.mask(from + at, count));
  }
}

std::int64_t InitChecker::host_missing(const DeviceMemory& memory, std::uint64_t address, std::int64_t bytes) {
  if (bytes <= 0 || !memory.contains(address, bytes)) return -1;
  const Global* const g = global_of(memory, address);
  return g == nullptr ? -1 : g->bytes.first(address, bytes);
}

void InitChecker::launch_begins(Launch&) {
  shared_.clear();
  last_cta_ = nullptr;
  warps_.clear();
  active_ = 0;
  has_local_ = false;
  origins_.assign(1, Origin{});
  stored_.clear();
  effects_.clear();
  // Between launches the host may have written the discarded bytes again: these allocations count as written.
  if (std::exchange(discards_everywhere_, false))
    std::erase_if(global_, [](const auto& place) { return place.second.everywhere; });
}

void InitChecker::cta_begins(Launch& launch, const Cta& cta) {
  last_cta_ = nullptr;
  if (options_.shared) shared_.insert_or_assign(cta.index, UndefinedBytes(kSharedBase, cta.shared.size(), true));
  if (!wants_instructions()) return;
  const std::int64_t bytes = launch.program->functions[static_cast<std::size_t>(launch.function)].local_bytes;
  for (const Warp& warp : cta.warps) {
    WarpState& state = warp_of(cta, warp);
    state.active = true;
    ++active_;
    if (!options_.local || bytes == 0) continue;
    has_local_ = true;
    state.local.fill(UndefinedBytes(0, static_cast<std::uint64_t>(bytes), true));
  }
}

void InitChecker::cta_ends(Launch&, const Cta& cta) {
  last_cta_ = nullptr;
  shared_.erase(cta.index);
  const auto found = warps_.find(cta.index);
  if (found == warps_.end()) return;
  active_ -= std::count_if(found->second.begin(), found->second.end(), [](const WarpState& w) { return w.active; });
  warps_.erase(found);
}

// --- parts of a launch -----------------------------------------------------------------------------------------------

std::unique_ptr<Monitor> InitChecker::fork(std::int64_t) {
  auto part = std::make_unique<InitChecker>(options_);
  part->whole_ = this;
  return part;
}

// Parts that are joined made no report, and their kernel has no discard: they have only defined bytes of global memory.
void InitChecker::join(Monitor& monitor) {
  for (auto& [address, theirs] : static_cast<InitChecker&>(monitor).global_) {
    const auto [place, fresh] = global_.try_emplace(address, theirs);
    if (fresh) continue;
    std::vector<std::uint64_t>& words = place->second.bytes.words();
    const std::vector<std::uint64_t>& others = theirs.bytes.words();
    for (std::size_t i = 0; i < words.size(); ++i) words[i] &= others[i];
  }
}

// --- places ----------------------------------------------------------------------------------------------------------

UndefinedBytes* InitChecker::shared_of(const Launch& launch, const Cta& cta, std::uint64_t address) {
  const Cta* owner = rank_of(address) == static_cast<std::uint64_t>(cta.cluster_rank)
                         ? &cta
                         : cta_of_rank(launch, cta, rank_of(address));
  if (owner == nullptr) return nullptr;
  if (owner == last_cta_) return last_;
  const auto place = shared_.find(owner->index);
  last_cta_ = owner;
  last_ = place == shared_.end() ? nullptr : &place->second;
  return last_;
}

InitChecker::Bytes InitChecker::bytes_of(const Exec& exec, Space space, std::uint64_t address, int lane) {
  if (space == Space::shared) return {shared_of(exec.launch, exec.cta, address), offset_of(address)};
  if (space == Space::global) {
    Global* const g = global_of(*exec.launch.memory, address);
    return {g == nullptr ? nullptr : &g->bytes, address};
  }
  if (space == Space::local && has_local_) {
    return {&warp_of(exec.cta, exec.warp).local[static_cast<std::size_t>(lane)], address};
  }
  return {nullptr, address};
}

std::uint64_t InitChecker::place_of(const Launch& launch, const Cta& cta, std::int32_t thread, Space space,
                                    std::uint64_t address) const {
  constexpr std::uint64_t kShared = std::uint64_t{1} << 62, kLocal = std::uint64_t{1} << 63;
  const auto number = [](std::int32_t n) { return static_cast<std::uint64_t>(n); };
  if (space == Space::shared) {
    const Cta* const owner =
        rank_of(address) == number(cta.cluster_rank) ? &cta : cta_of_rank(launch, cta, rank_of(address));
    return kShared | number(owner == nullptr ? 0 : owner->index) << 24 | offset_of(address) / kWord;
  }
  if (space == Space::local) return kLocal | (number(cta.index) << 10 | number(thread)) << 20 | address / kWord;
  return address / kWord;
}

std::uint32_t InitChecker::origin_at(const Exec& exec, const Op& op, Space space, std::uint64_t address, int lane,
                                     std::int64_t bytes) {
  if (!stored_.empty()) {
    const auto found = stored_.find(place_of(exec.launch, exec.cta, thread_of(exec, lane), space, address));
    if (found != stored_.end()) return found->second;
  }
  const Global* const g = space == Space::global ? global_of(*exec.launch.memory, address) : nullptr;
  return add_origin({.pc = pc_of(exec, op),
                     .warp = exec.warp.index,
                     .lane = lane,
                     .space = space,
                     .address = address,
                     .bytes = bytes,
                     .discarded = g != nullptr && g->discarded});
}

void InitChecker::mark_bytes(const Exec& exec, Space space, std::uint64_t address, int lane, std::int64_t bytes,
                             std::uint64_t undefined, std::uint32_t origin) {
  Bytes to = bytes_of(exec, space, address, lane);
  if (to.bytes == nullptr) {
    if (undefined == 0) return;
    if (space == Space::shared) {
      const Cta* const owner = cta_of_rank(exec.launch, exec.cta, rank_of(address));
      if (owner == nullptr) return;
      shared_.try_emplace(owner->index, UndefinedBytes(kSharedBase, owner->shared.size(), false));
      last_cta_ = nullptr;
    } else {
      has_local_ = true;
    }
    to = bytes_of(exec, space, address, lane);
  }
  if (space == Space::local && undefined != 0) to.bytes->grow(address + static_cast<std::uint64_t>(bytes));
  to.bytes->assign(to.at, bytes, undefined);
  for (; undefined != 0; undefined &= undefined - 1) {
    const std::uint64_t byte = address + static_cast<std::uint64_t>(std::countr_zero(undefined));
    stored_[place_of(exec.launch, exec.cta, thread_of(exec, lane), space, byte)] = origin;
  }
}

// Local bytes of a function or of alloca that begin again.
void InitChecker::mark_local(const Exec& exec, WarpState& warp, int lane, std::uint64_t from, std::int64_t bytes) {
  if (bytes == 0) return;
  has_local_ = true;
  UndefinedBytes& local = warp.local[static_cast<std::size_t>(lane)];
  const std::uint64_t end = from + static_cast<std::uint64_t>(bytes);
  local.grow(end);
  local.mark(from, bytes);
  for (std::uint64_t at = from; at < end && !stored_.empty(); at += kWord)
    stored_.erase(place_of(exec.launch, exec.cta, thread_of(exec, lane), Space::local, at));
}

void InitChecker::mark_alloca(const Exec& exec, const Op& op, WarpState& warp, LaneMask lanes) {
  const Activation& a = exec.warp.activations[static_cast<std::size_t>(exec.lane_group.activation)];
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const auto end = static_cast<std::uint64_t>(a.local_end[static_cast<std::size_t>(lane)]);
    const std::uint64_t size = lane_value(exec, op.at[1], width_of(op, 1), lane);
    constexpr auto kMost = static_cast<std::uint64_t>(kMostLocal);
    const std::uint64_t said = op.at[2] != kNoRegister ? lane_value(exec, op.at[2], width_of(op, 2), lane) : 8;
    const std::uint64_t align = std::clamp<std::uint64_t>(said, 1, kMost + 1);
    const std::uint64_t from = (end + align - 1) / align * align;
    // The machine reports what does not fit.
    if (from <= kMost && size <= kMost - from) mark_local(exec, warp, lane, from, static_cast<std::int64_t>(size));
  }
}

// --- accesses --------------------------------------------------------------------------------------------------------

bool InitChecker::is_quick(const Exec& exec, const WarpAccess& access) {
  const std::uint64_t first = shared_address(static_cast<std::uint64_t>(exec.cta.cluster_rank), kSharedBase);
  UndefinedBytes* const bytes = shared_of(exec.launch, exec.cta, first);
  LaneOffsets offsets;
  if (bytes == nullptr || access.bytes > 16) return false;
  std::uint64_t* const words = bytes->words().data();
  if (lane_offsets(first, access.addresses, access.lanes, offsets) >= bytes->words().size() * 64) return false;
  std::uint64_t all = words[static_cast<std::size_t>(offsets[0]) / 64];
  if (differing_bits(offsets) >= 64) {
    for (const std::int32_t offset : offsets) all |= words[static_cast<std::size_t>(offset) / 64];
  }
  if (all == 0) return true;
  // An aligned access is in one word.
  const std::uint64_t ones = low_bits(access.bytes);
  const auto word = [&](std::int32_t offset) -> std::uint64_t& { return words[static_cast<std::size_t>(offset) / 64]; };
  if (access.kind != AccessKind::store) {
    std::uint64_t undefined = 0;
    for (const std::int32_t offset : offsets) undefined |= word(offset) >> (offset & 63);
    return (undefined & ones) == 0;
  }
  for (const std::int32_t offset : offsets) word(offset) &= ~(ones << (offset & 63));
  return true;
}

void InitChecker::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  if (active_ == 0 && access.space == Space::shared && access.kind != AccessKind::atomic && &exec.cta == last_cta_ &&
      exec.launch.config.cluster[0] == 0) {  // without clusters every address is in the CTA's own window
    if (last_ == nullptr || last_->all_defined()) return;
  }
  if (active_warp(exec) == nullptr) {
    const bool kept = access.space == Space::shared   ? options_.shared || !shared_.empty()
                      : access.space == Space::global ? options_.global || !global_.empty() || whole_ != nullptr
                      : access.space == Space::local  ? has_local_
                                                      : false;
    if (!kept || (access.space == Space::shared && is_quick(exec, access))) return;
  }
  if (access.kind == AccessKind::store) return store(exec, op, access);
  LaneBytes undefined{};
  std::optional<std::uint32_t> origin;
  if (access.space == Space::param) origin = read_params(exec, warp_of(exec.cta, exec.warp), access, undefined);
  for (LaneMask left = access.space == Space::param ? 0 : access.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const auto i = static_cast<std::size_t>(lane);
    const Bytes from = bytes_of(exec, access.space, access.addresses[i], lane);
    if (from.bytes == nullptr) continue;
    undefined[i] = from.bytes->mask(from.at, access.bytes);
    if (undefined[i] == 0 || origin) continue;
    const int first = std::countr_zero(undefined[i]);
    origin = origin_at(exec, op, access.space, access.addresses[i] + static_cast<std::uint64_t>(first), lane,
                       access.bytes - first);
  }
  if (access.kind == AccessKind::atomic) return atomic(exec, op, access, undefined, origin);
  if (origin) load(exec, op, access, undefined, *origin);
}

// Some bytes are undefined. Results that are defined have already been marked so.
void InitChecker::load(const Exec& exec, const Op& op, const WarpAccess& access, const LaneBytes& undefined,
                       std::uint32_t origin) {
  const Instr& instr = exec.program().instr(op);
  WarpState& warp = warp_of(exec.cta, exec.warp);
  activate(exec, warp);
  if (instr.opcode == Opcode::ldmatrix || instr.opcode == Opcode::wmma_load) {
    for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(left));
      warp.rows[i] |= static_cast<std::uint16_t>(undefined[i]);
    }
    if (!warp.rows_origin) warp.rows_origin = origin;
    return;
  }
  if (instr.opcode != Opcode::ld && instr.opcode != Opcode::ldu) {
    for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      const auto i = static_cast<std::size_t>(lane);
      if (undefined[i] == 0) continue;
      tell(exec, op, lane, LaneMask{1} << lane, origin, "is an operand of this instruction");
      mark_bytes(exec, access.space, access.addresses[i], lane, access.bytes, 0, 0);
    }
    return deactivate_if_clean(exec, warp);
  }
  UndefinedRegisters& registers = registers_of(exec, warp);
  const int memory = bits(instr.type()) / 8, reg = std::max({width_of(op, 0), memory, 2});
  const bool is_signed = class_of(instr.type()) == TypeClass::signed_integer;
  const std::uint32_t* const to = vector_at(op, 0);
  for (int e = 0; e < (op.list == nullptr ? 1 : instr.vector); ++e) {
    if (to[e] == kNoRegister) continue;
    std::array<std::byte, std::size_t{16} * kLanes> bytes{};
    for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
      const int lane = std::countr_zero(left);
      const std::uint64_t mask = undefined[static_cast<std::size_t>(lane)] >> (e * memory);
      for (int i = 0; i < reg; ++i) {
        const int from = i < memory ? i : is_signed ? memory - 1 : 64;  // above: the sign, or zeros
        if (from < 64 && (mask >> from & 1) != 0) bytes[static_cast<std::size_t>(lane * reg + i)] = std::byte{0xff};
      }
    }
    registers.assign({to[e], static_cast<std::uint8_t>(reg)}, access.lanes, bytes.data(), origin);
  }
  deactivate_if_clean(exec, warp);
}

void InitChecker::take_rows(const Exec& exec, const Op& op, WarpState& warp) {
  UndefinedRegisters& registers = registers_of(exec, warp);
  const Instr& instr = exec.program().instr(op);
  const UndefinedEffects& e = effects_of(exec.program(), pc_of(exec, op));
  const std::uint32_t origin = warp.rows_origin.value_or(0);
  if (instr.opcode == Opcode::wmma_load) {  // which element of the tile a register holds is not followed
    for (const RegisterAt w : e.writes) {
      registers.define(w, kAllLanes);
      if (warp.rows_origin) registers.mark(w, kAllLanes, origin);
    }
  } else {
    const int matrices = instr.has(Mod::x4) ? 4 : instr.has(Mod::x2) ? 2 : 1;
    for (int m = 0; m < matrices; ++m) {
      const std::uint32_t reg = vector_at(op, 0)[m];
      if (reg == kNoRegister) continue;
      std::array<std::byte, std::size_t{4} * kLanes> bytes{};
      for (int at = 0; at < 4 * kLanes; ++at) {
        const RowByte from = row_byte(instr.has(Mod::trans), at);
        if ((warp.rows[static_cast<std::size_t>(8 * m + from.row)] >> from.byte & 1) != 0)
          bytes[static_cast<std::size_t>(at)] = std::byte{0xff};
      }
      registers.assign({reg, 4}, kAllLanes, bytes.data(), origin);
    }
  }
  warp.rows = {};
  warp.rows_origin.reset();
}

void InitChecker::store(const Exec& exec, const Op& op, const WarpAccess& access) {
  const Instr& instr = exec.program().instr(op);
  LaneBytes undefined{};
  std::uint32_t origin = 0;
  WarpState* const warp = active_warp(exec);
  if (warp == nullptr) return write_bytes(exec, op, access, undefined, origin);
  UndefinedRegisters& registers = registers_of(exec, *warp);
  const UndefinedEffects& e = effects_of(exec.program(), pc_of(exec, op));
  const auto take = [&](std::uint32_t reg) {
    name_unwritten(exec, op, registers, reg, access.lanes);
    if (origin == 0 && registers.lanes(reg) != 0) origin = registers.origin(reg);
  };
  if (instr.opcode == Opcode::stmatrix) {
    for (int m = 0; m < (instr.has(Mod::x4) ? 4 : instr.has(Mod::x2) ? 2 : 1); ++m) {
      const std::uint32_t reg = vector_at(op, 1)[m];
      take(reg);
      for (int at = 0; at < 4 * kLanes; ++at) {
        const RowByte to = row_byte(instr.has(Mod::trans), at);
        if (registers.bits(reg)[at] != std::byte{0})
          undefined[static_cast<std::size_t>(8 * m + to.row)] |= std::uint64_t{1} << to.byte;
      }
    }
  } else if (instr.opcode == Opcode::st) {
    const std::uint32_t* const from = vector_at(op, 1);
    const int memory = bits(instr.type()) / 8, reg = width_of(op, 1);
    for (int v = 0; v < (op.list == nullptr ? 1 : instr.vector); ++v) {
      take(from[v]);
      for (LaneMask left = registers.lanes(from[v]) & access.lanes; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        for (int i = 0; i < memory; ++i) {
          if (registers.bits(from[v])[lane * reg + i] != std::byte{0})
            undefined[static_cast<std::size_t>(lane)] |= std::uint64_t{1} << (v * memory + i);
        }
      }
    }
  } else {  // wmma.store: which element of the tile a register holds is not followed
    LaneMask any = 0;
    for (const RegisterAt r : e.reads) {
      take(r.reg);
      any |= registers.lanes(r.reg);
    }
    if (any != 0) undefined.fill(low_bits(access.bytes));
  }
  if (access.space == Space::param) return write_params(exec, *warp, access, undefined, origin);
  write_bytes(exec, op, access, undefined, origin);
  if (access.space != Space::global) return;
  for (const RegisterAt r : e.reads) registers.define(r, access.matrix_rows ? kAllLanes : access.lanes);
  deactivate_if_clean(exec, *warp);
}

// In global memory undefined bytes are reported; elsewhere they are followed.
void InitChecker::write_bytes(const Exec& exec, const Op& op, const WarpAccess& access, const LaneBytes& undefined,
                              std::uint32_t origin) {
  const bool is_output = access.space == Space::global;
  LaneMask told = 0;
  for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const auto i = static_cast<std::size_t>(lane);
    if (undefined[i] != 0 && is_output) told |= LaneMask{1} << lane;
    mark_bytes(exec, access.space, access.addresses[i], lane, access.bytes, is_output ? 0 : undefined[i], origin);
  }
  if (told != 0) tell(exec, op, std::countr_zero(told), told, origin, "is stored to global memory");
}

// The memory's new bytes depend on its old ones, except for an exchange. The result is the old bytes.
void InitChecker::atomic(const Exec& exec, const Op& op, const WarpAccess& access, const LaneBytes& undefined,
                         std::optional<std::uint32_t> origin) {
  WarpState* warp = active_warp(exec);
  if (warp == nullptr && !origin) return write_bytes(exec, op, access, undefined, 0);
  if (warp == nullptr) warp = &warp_of(exec.cta, exec.warp);
  activate(exec, *warp);
  UndefinedRegisters& registers = registers_of(exec, *warp);
  const UndefinedEffects& e = effects_of(exec.program(), pc_of(exec, op));
  const bool exchanges = exec.program().instr(op).has(Mod::exch);
  LaneMask operands = 0, old = 0;
  for (const RegisterAt r : e.reads) {
    name_unwritten(exec, op, registers, r.reg, access.lanes);
    const LaneMask found = registers.lanes(r.reg) & access.lanes;
    if (!origin && found != 0) origin = registers.origin(r.reg);
    operands |= found;
  }
  LaneBytes after{};
  for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(left));
    if (undefined[i] != 0) old |= LaneMask{1} << i;
    const bool is_undefined = (operands >> i & 1) != 0 || (undefined[i] != 0 && !exchanges);
    if (is_undefined) after[i] = low_bits(access.bytes);
  }
  write_bytes(exec, op, access, after, origin.value_or(0));
  if (access.space == Space::global) {
    for (const RegisterAt r : e.reads) registers.define(r, access.lanes);
    if (!exchanges) old = 0;  // reported
  }
  for (const RegisterAt w : e.writes) {
    registers.define(w, access.lanes);
    if (old != 0) registers.mark(w, old, *origin);
  }
  deactivate_if_clean(exec, *warp);
}

void InitChecker::discarded(const Exec& exec, const Op&, const WarpAccess& access) {
  if (access.space != Space::global) return;
  for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
    const std::uint64_t address = access.addresses[static_cast<std::size_t>(std::countr_zero(left))];
    const Allocation* a = exec.launch.memory->find(address);
    if (a == nullptr) continue;
    const auto [place, fresh] = global_.try_emplace(a->address);
    Global& g = place->second;
    // Without InitOptions::global, writes were not recorded: every byte counts as written.
    if (fresh) {
      g.everywhere = a->initialized || !options_.global;
      discards_everywhere_ = discards_everywhere_ || g.everywhere;
      g.bytes = UndefinedBytes(a->address, a->size, !g.everywhere);
    }
    g.bytes.mark(address, access.bytes);
    g.discarded = true;
  }
}

// --- engines ---------------------------------------------------------------------------------------------------------

void InitChecker::async_issue(const Exec& exec, const AsyncOp& async, ByteRanges reads, ByteRanges writes) {
  const Op& op = exec.program().ops[static_cast<std::size_t>(async.pc)];
  if (async.kind == AsyncKind::wgmma) return product_of_warpgroup(exec, op, async, reads);
  const bool to_global =
      std::any_of(writes.begin(), writes.end(), [](const ByteRange& w) { return w.space == Space::global; });
  if (!to_global) return;
  for (const ByteRange& range : reads) {
    UndefinedBytes* const from =
        range.space == Space::shared ? shared_of(exec.launch, exec.cta, range.address) : nullptr;
    const std::int64_t first = from == nullptr ? -1 : from->first(offset_of(range.address), range.bytes);
    if (first < 0) continue;
    const int lane = async.thread % kLanes;
    const std::uint32_t origin = origin_at(exec, op, Space::shared, range.address + static_cast<std::uint64_t>(first),
                                           lane, range.bytes - first);
    tell(exec, op, lane, LaneMask{1} << lane, origin, "is copied to global memory");
    from->define(offset_of(range.address), range.bytes);
  }
}

void InitChecker::async_moves(Launch& launch, const Cta& cta, const AsyncOp& async, ByteRanges reads,
                              ByteRanges writes) {
  const auto bytes_at = [&](const ByteRange& range) -> Bytes {
    if (range.space == Space::shared) return {shared_of(launch, cta, range.address), offset_of(range.address)};
    Global* const g = global_of(*launch.memory, range.address);
    return {g == nullptr ? nullptr : &g->bytes, range.address};
  };
  const bool adds = async.kind == AsyncKind::bulk_reduce || async.kind == AsyncKind::red_async;
  const bool linear = reads.size() == 1 && async.kind != AsyncKind::tensor_load;  // of those: box_moves
  const ByteRange* const source = linear ? &reads[0] : nullptr;
  Bytes from = source == nullptr ? Bytes{} : bytes_at(*source);
  if (from.bytes != nullptr && from.bytes->first(from.at, source->bytes) < 0) from.bytes = nullptr;
  for (const ByteRange& range : writes) {
    Bytes to = bytes_at(range);
    if (from.bytes == nullptr || range.space == Space::global) {
      if (to.bytes != nullptr && !(adds && range.space == Space::shared)) to.bytes->define(to.at, range.bytes);
      continue;
    }
    if (to.bytes == nullptr) {
      const Cta* const owner = cta_of_rank(launch, cta, rank_of(range.address));
      if (owner == nullptr) continue;
      shared_.try_emplace(owner->index, UndefinedBytes(kSharedBase, owner->shared.size(), false));
      last_cta_ = nullptr;
      to = bytes_at(range);
    }
    copy_bytes(launch, cta, async, *source, from, range, to, adds);
  }
}

// Byte i of the range written is byte i of the range read; bytes past those read are zeros.
void InitChecker::copy_bytes(const Launch& launch, const Cta& cta, const AsyncOp& async, const ByteRange& read,
                             const Bytes& from, const ByteRange& written, const Bytes& to, bool adds) {
  std::optional<std::uint32_t> origin;
  for (std::int64_t i = 0; i < written.bytes; i += 32) {
    const std::int64_t count = std::min<std::int64_t>(32, written.bytes - i);
    const auto at = static_cast<std::uint64_t>(i);
    const std::int64_t there = std::clamp<std::int64_t>(read.bytes - i, 0, count);
    std::uint64_t undefined = there == 0 ? 0 : from.bytes->mask(from.at + at, there);
    if (adds) undefined |= to.bytes->mask(to.at + at, count);
    to.bytes->assign(to.at + at, count, undefined);
    for (; undefined != 0; undefined &= undefined - 1) {
      const std::uint64_t byte = at + static_cast<std::uint64_t>(std::countr_zero(undefined));
      if (!origin) {
        const auto known = stored_.find(place_of(launch, cta, async.thread, read.space, read.address + byte));
        origin = known != stored_.end() ? known->second
                                        : add_origin({.pc = async.pc,
                                                      .warp = async.thread / kLanes,
                                                      .lane = async.thread % kLanes,
                                                      .space = read.space,
                                                      .address = read.address + byte,
                                                      .bytes = read.bytes - static_cast<std::int64_t>(byte)});
      }
      stored_[place_of(launch, cta, async.thread, Space::shared, written.address + byte)] = *origin;
    }
  }
}

// The eight bytes of an mbarrier object belong to the machine, whether the object is live or not.
void InitChecker::mbarrier(Launch& launch, const Cta& cta, const Exec*, LaneMask, MbarrierEvent event,
                           std::uint64_t address, std::int64_t, Order, Scope) {
  if (event != MbarrierEvent::init) return;
  if (UndefinedBytes* const bytes = shared_of(launch, cta, address)) bytes->define(offset_of(address), 8);
}

}  // namespace kvscope::ptx
