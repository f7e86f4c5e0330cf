#include "gpu/virtual/machine/memory/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>

#include "gpu/virtual/machine/barriers/detail/mbarrier_handlers.h"
#include "gpu/virtual/machine/memory/lane_loops.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"

namespace kvscope::ptx {
namespace {

// A range of memory that may contain several lanes' accesses: addresses [start, start + size) are at `bytes`.
struct Region {
  std::byte* bytes = nullptr;
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  bool parted = false;  // device memory of a part of a launch: open_global() has the bytes of each access
  [[nodiscard]] bool exists() const { return bytes != nullptr || parted; }
};

// An access to device memory that is inside of an allocation. A load does not write to what it gets.
std::byte* open_global(Exec& exec, AccessKind kind, std::uint64_t address, std::uint64_t bytes) {
  const auto count = static_cast<std::int64_t>(bytes);
  DeviceMemory& memory = *exec.launch.memory;
  return kind == AccessKind::load ? const_cast<std::byte*>(memory.at(address, count))
                                  : memory.writable_at(address, count);
}

Region region_of(Exec& exec, const AccessRequest& request, Space space, std::uint64_t address) {
  switch (space) {
    case Space::global:
    case Space::constant: {
      const Allocation* a = exec.launch.memory->find(address);
      if (a == nullptr || a->freed || space_of(a->address) != space) return {};
      if (exec.launch.memory->is_part()) return {nullptr, a->address, a->size, true};
      return {exec.launch.memory->writable_at(a->address, 0), a->address, a->size};
    }
    case Space::shared: {
      Cta* cta = &exec.cta;
      const std::uint64_t rank = rank_of(address);
      if (rank != static_cast<std::uint64_t>(cta->cluster_rank)) {
        if (request.own_cta) return {};
        cta = cta_of_rank(exec.launch, *cta, rank);
        if (cta == nullptr || cta->state == CtaState::done) return {};
      }
      return {cta->shared.data(), shared_address(rank, kSharedBase), cta->shared.size()};
    }
    case Space::param: {
      auto& params = exec.launch.config.params;
      return {params.data(), 0, params.size()};
    }
    default:
      return {};  // separate for each lane
  }
}

// Parameters of calls can be written, the kernel's own cannot.
bool may_store(Space space, std::uint64_t address) {
  return space != Space::constant && (space != Space::param || address >= kBodyParams);
}

// Memory that is separate for each lane: local, and the parameters of functions.
bool is_lanes_own(Space space, std::uint64_t address) {
  return space == Space::local || (space == Space::param && address >= kBodyParams);
}
std::span<std::byte> lanes_own(Exec& exec, Space space, int lane) {
  const auto i = static_cast<std::size_t>(lane);
  if (space == Space::local) return exec.warp.local[i];
  auto& activation = exec.warp.activations[static_cast<std::size_t>(exec.lane_group.activation)];
  const std::size_t each = activation.params.size() / kLanes;
  return std::span(activation.params).subspan(i * each, each);
}

// --- faults of a lane ------------------------------------------------------------------------------------------------

std::string_view verb(AccessKind kind) {
  return kind == AccessKind::load ? "read" : kind == AccessKind::store ? "write" : "atomic";
}

struct Wrong {
  ReportKind kind = ReportKind::out_of_bounds;
  std::string message;
  std::string hint;
};

constexpr std::uint64_t kNullPage = 4096;  // [bytes] from address 0: a null pointer, or a member access through one

// The array nearest to an address far from all arrays: the base of an index that was -1 and became 0xffffffff.
std::string nearest_array(const Allocation* a, std::uint64_t address) {
  if (a == nullptr) return {};
  return address < a->address
             ? fmt::format("the nearest array is '{}' (size {}), {} bytes after this address", a->name, a->size,
                           a->address - address)
             : fmt::format("the nearest array is '{}' (size {}), which ends {} bytes before this address", a->name,
                           a->size, address - a->end());
}

Wrong wrong_global(const Exec& exec, Space space, std::uint64_t address, std::int64_t bytes) {
  const DeviceMemory& memory = *exec.launch.memory;
  const Space really = space_of(address);
  if (really != space && really != Space::global) {
    return {ReportKind::bad_window,
            fmt::format("{} bytes at 0x{:x}, which is an address of {} and not of {}", bytes, address, name(really),
                        name(space)),
            "use a generic access, or convert the address with cvta.to"};
  }
  const ReportAddress at = name_address(exec.launch, space, address, bytes);
  const Allocation* a = memory.find(address);
  if (a == nullptr) a = memory.nearest(address);
  if (address < kNullPage) {
    return {ReportKind::out_of_bounds, fmt::format("{} bytes at 0x{:x}", bytes, address),
            "a null pointer, or a small offset from one"};
  }
  if (at.symbol.empty() || a == nullptr) {
    return {ReportKind::out_of_bounds, fmt::format("{} bytes at 0x{:x}, where nothing is allocated", bytes, address),
            nearest_array(a, address)};
  }
  if (a->freed && address >= a->address && address < a->end()) {
    return {ReportKind::use_after_free, fmt::format("{} bytes at {}, which has been freed", bytes, place_name(at)), {}};
  }
  return {ReportKind::out_of_bounds, fmt::format("{} bytes at {} (size {})", bytes, place_name(at), a->size), {}};
}

Wrong wrong_shared(Exec& exec, bool own_cta, std::uint64_t address, std::int64_t bytes) {
  const std::uint64_t rank = rank_of(address);
  const auto own = static_cast<std::uint64_t>(exec.cta.cluster_rank);
  const std::int64_t ranks = cluster_size(exec.launch);
  if (rank != own && rank >= static_cast<std::uint64_t>(ranks)) {
    return {ReportKind::bad_window,
            fmt::format("{} bytes at shared 0x{:08x}: rank {} of a cluster of {}", bytes, address, rank, ranks),
            {}};
  }
  if (rank != own && own_cta) {
    return {ReportKind::bad_window,
            fmt::format("{} bytes at shared 0x{:08x}: memory of rank {}, and this CTA is rank {}", bytes, address, rank,
                        own),
            "say .shared::cluster to reach another CTA"};
  }
  Cta* cta = rank == own ? &exec.cta : cta_of_rank(exec.launch, exec.cta, rank);
  if (cta == nullptr || cta->state == CtaState::done) {
    return {ReportKind::dsmem_after_exit,
            fmt::format("{} bytes at shared 0x{:08x}: the CTA of rank {} has exited", bytes, address, rank),
            "end the kernel with a cluster barrier: barrier.cluster.arrive, barrier.cluster.wait"};
  }
  const std::uint64_t end = kSharedBase + cta->shared.size();
  return {ReportKind::out_of_bounds,
          fmt::format("{} bytes at shared 0x{:05x}: the CTA has 0x{:05x} to 0x{:05x} (size {})", bytes,
                      offset_of(address), kSharedBase, end, cta->shared.size()),
          offset_of(address) < kSharedBase && address != 0 ? "the first 1024 bytes are reserved by the system" : ""};
}

// An empty message: no fault.
Wrong misaligned(const Exec& exec, Space space, std::uint64_t address, std::int64_t bytes, std::int64_t align) {
  const ReportAddress at = name_address(exec.launch, space, address, bytes);
  const std::string symbol = at.symbol.empty() ? "" : fmt::format(" ({})", place_name(at));
  const std::string where = space == Space::shared ? fmt::format("shared 0x{:05x}", address)
                            : space == Space::local || space == Space::param
                                ? fmt::format("{} {}", name(space), address)
                                : fmt::format("0x{:x}", address);
  return {ReportKind::misaligned,
          fmt::format("{}-byte access at {}{}: not a multiple of {}", bytes, where, symbol, align),
          {}};
}

Flow tell(Exec& exec, const Op& op, int lane, AccessKind kind, Space space, std::uint64_t address, std::int64_t bytes,
          Wrong wrong) {
  return fault(exec, op, lane, wrong.kind, std::move(wrong.message), std::move(wrong.hint),
               name_address(exec.launch, space, address, bytes), verb(kind));
}

// The lane's bytes, or null and the fault. Precondition: `space` is not generic.
std::byte* lane_bytes(Exec& exec, const LaneRequest& request, Space space, int lane, std::uint64_t& address,
                      Wrong& wrong) {
  const auto count = static_cast<std::uint64_t>(request.bytes);
  if (request.kind != AccessKind::load && !may_store(space, address)) {
    wrong = {
        ReportKind::bad_window,
        fmt::format("{} of {} bytes to {}, which kernels only read", verb(request.kind), request.bytes, name(space)),
        {}};
    return nullptr;
  }
  if (request.kind == AccessKind::atomic && is_lanes_own(space, address)) {
    wrong = {ReportKind::bad_window,
             fmt::format("atomic of {} bytes in {}, which no two threads share", request.bytes, name(space)),
             {}};
    return nullptr;
  }
  std::byte* found = nullptr;
  bool parted = false;
  if (is_lanes_own(space, address)) {
    const std::span<std::byte> own = lanes_own(exec, space, lane);
    const std::uint64_t from = space == Space::param ? address - kBodyParams : address;
    if (from <= own.size() && count <= own.size() - from) {
      found = own.data() + from;
    } else {
      wrong = {ReportKind::out_of_bounds,
               fmt::format("{} bytes at {} {}: the thread has {} bytes", request.bytes, name(space), from, own.size()),
               {}};
      return nullptr;
    }
  } else {
    const AccessRequest shape{.space = space, .kind = request.kind, .own_cta = request.own_cta};
    const Region region = region_of(exec, shape, space, address);
    if (region.exists() && address - region.start <= region.size && count <= region.size - (address - region.start)) {
      parted = region.parted;
      if (!parted) found = region.bytes + (address - region.start);
    } else {
      wrong = space == Space::shared  ? wrong_shared(exec, request.own_cta, address, request.bytes)
              : space == Space::param ? Wrong{ReportKind::out_of_bounds,
                                              fmt::format("{} bytes at param {}: the parameters have {} bytes",
                                                          request.bytes, address, region.size),
                                              {}}
                                      : wrong_global(exec, space, address, request.bytes);
      return nullptr;
    }
  }
  if ((address & static_cast<std::uint64_t>(request.align - 1)) != 0) {
    wrong = misaligned(exec, space, address, request.bytes, request.align);
    return nullptr;
  }
  return parted ? open_global(exec, request.kind, address, count) : found;
}

// A constant's 32-bit address is the low half of its generic one.
std::uint64_t in_space(Space space, std::uint64_t address) {
  return space == Space::constant && address < kWindowBytes ? kConstWindow + address : address;
}

bool reach_lane_by_lane(Exec& exec, const Op& op, const AccessRequest& request, LaneAddresses& addresses, LaneMask part,
                        Reach& out) {
  const LaneRequest one{out.space, request.kind, request.bytes, request.bytes, request.own_cta, request.mbarrier};
  bool told = false;
  out.lanes = 0;
  out.one = out.filled = false;
  out.contiguous = nullptr;
  for (LaneMask rest = part; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    auto& address = addresses.at[static_cast<std::size_t>(lane)];
    Wrong wrong;
    std::byte* const at = lane_bytes(exec, one, out.space, lane, address, wrong);
    out.lane[static_cast<std::size_t>(lane)] = at;
    if (at != nullptr) {
      out.lanes |= LaneMask{1} << lane;
    } else if (!told) {
      told = true;
      if (tell(exec, op, lane, request.kind, out.space, address, request.bytes, std::move(wrong)) == Flow::stopped) {
        return false;
      }
    }
  }
  return true;
}

// Whether accesses of `count` bytes in one window are near live mbarriers of the CTA; false positives are possible.
bool may_touch_mbarriers(const Cta& cta, const LaneAddresses& addresses, std::uint64_t count) {
  const AsyncState& async = cta.async;
  if (async.barriers_end == 0) return false;
  const auto& at = addresses.at;
  const std::uint64_t rank = rank_of(at[0]);
  if (rank != static_cast<std::uint64_t>(cta.cluster_rank)) {
    const auto [low, high] = std::minmax_element(at.begin(), at.end());
    return touches_mbarriers(cta, *low, *high + count);
  }
  // An access meets the range of the objects if it begins after its begin - count, and before its end.
  const std::uint64_t from = async.barriers_begin + 1 - count;
  return lane_loops().any_within(at.data(), shared_address(rank, from), async.barriers_end - 1 - from);
}

// The bytes of lanes in device memory of a part of a launch. Lanes that do not take part have an address of one that does.
void open_lanes(Exec& exec, const AccessRequest& request, const LaneAddresses& addresses, bool unit, Reach& out) {
  const auto count = static_cast<std::uint64_t>(request.bytes);
  out.contiguous = unit ? open_global(exec, request.kind, addresses.at[0], kLanes * count) : nullptr;
  if (unit) return;
  for (std::size_t i = 0; i < kLanes; ++i) out.lane[i] = open_global(exec, request.kind, addresses.at[i], count);
}

}  // namespace

void operand_addresses(const Exec& exec, const Op& op, int operand, LaneAddresses& out) {
  const auto offset = static_cast<std::uint64_t>(address_offset(op, operand));
  const std::uint32_t reg = op.at[static_cast<std::size_t>(operand)];
  if (reg == kNoRegister) {
    out.at.fill(offset);
  } else if (width_of(op, operand) == 8) {
    lane_loops().add64(register_of<std::uint64_t>(exec, reg), offset, out.at.data());
  } else {
    lane_loops().add32(register_of<std::uint32_t>(exec, reg), offset, out.at.data());
  }
}

bool reach(Exec& exec, const Op& op, const AccessRequest& request, LaneAddresses& addresses, LaneMask& left,
           Reach& out) {
  LaneMask part = left;
  out.space = request.space;
  auto& a = addresses.at;
  if (request.space == Space::generic) {
    out.space = space_of(a[static_cast<std::size_t>(std::countr_zero(left))]);
    const std::uint64_t window = out.space == Space::constant ? 0 : window_of(out.space);
    part = 0;
    const std::uint64_t high = a[static_cast<std::size_t>(std::countr_zero(left))] >> 32;
    if (out.space == Space::global) {
      for (std::size_t i = 0; i < kLanes; ++i) part |= static_cast<LaneMask>(!is_in_window(a[i])) << i;
    } else {
      for (std::size_t i = 0; i < kLanes; ++i) part |= static_cast<LaneMask>(a[i] >> 32 == high) << i;
    }
    part &= left;
    if (window != 0) {
      for (LaneMask rest = part; rest != 0; rest &= rest - 1)
        a[static_cast<std::size_t>(std::countr_zero(rest))] -= window;
    }
  } else if (request.space == Space::constant) {
    for (auto& address : a) address = in_space(Space::constant, address);
  }
  left &= ~part;

  // Lane-private memory is never contiguous between lanes.
  if (is_lanes_own(out.space, a[static_cast<std::size_t>(std::countr_zero(part))])) {
    return reach_lane_by_lane(exec, op, request, addresses, part, out);
  }

  // Lanes outside this part get the address of one inside. Lanes of other parts keep theirs: `addresses` changes only if
  // there are none.
  const LaneLoops& loops = lane_loops();
  LaneAddresses copy;
  LaneAddresses* mine = &addresses;
  if (part != kAllLanes) {
    if (left != 0) mine = &copy;
    loops.fill(a.data(), part, mine->at.data());
  }
  const std::uint64_t* const at = mine->at.data();
  const auto count = static_cast<std::uint64_t>(request.bytes);
  const LanePattern pattern = loops.pattern(at, count);
  const bool unit = pattern.from_row == 0, one = pattern.from_one == 0;
  const Region region = region_of(exec, request, out.space, at[0]);
  if (!region.exists() || ((at[0] | pattern.from_one) & (count - 1)) != 0 || region.size < count ||
      (request.kind != AccessKind::load && !may_store(out.space, at[0]))) [[unlikely]] {
    return reach_lane_by_lane(exec, op, request, addresses, part, out);
  }
  const std::uint64_t first = at[0] - region.start, last = region.size - count;
  const std::uint64_t beyond = unit ? (kLanes - 1) * count : 0;  // from the first lane to the last
  const bool inside = unit || one ? first <= last && beyond <= last - first
                                  : loops.locate(at, region.start, last, region.bytes, out.lane.data());
  if (!inside) [[unlikely]]
    return reach_lane_by_lane(exec, op, request, addresses, part, out);
  out.lanes = part;
  out.one = one;
  out.filled = mine == &addresses;
  if (region.parted) {
    open_lanes(exec, request, *mine, unit, out);
    return true;
  }
  std::byte* const bytes = region.bytes + first;
  out.contiguous = unit ? bytes : nullptr;
  if (one) out.lane.fill(bytes);
  if (out.space == Space::shared && !request.mbarrier && may_touch_mbarriers(exec.cta, *mine, count)) [[unlikely]] {
    return report_touched(exec, op, part, addresses, request);
  }
  return true;
}

std::byte* reach_lane(Exec& exec, const Op& op, int lane, const LaneRequest& request, Space& space,
                      std::uint64_t& address) {
  space = request.space;
  if (space == Space::generic) {
    space = space_of(address);
    address = from_generic(space, address);
  }
  address = in_space(space, address);
  Wrong wrong;
  std::byte* const at = lane_bytes(exec, request, space, lane, address, wrong);
  if (at == nullptr) tell(exec, op, lane, request.kind, space, address, request.bytes, std::move(wrong));
  return at;
}

std::int64_t cluster_size(const Launch& launch) {
  const auto& c = launch.config.cluster;
  return c[0] > 0 ? c[0] * c[1] * c[2] : 1;
}

const Cta* cta_of_rank(const Launch& launch, const Cta& cta, std::uint64_t rank) {
  if (rank == static_cast<std::uint64_t>(cta.cluster_rank)) return &cta;
  const auto& c = launch.config.cluster;
  for (const Cta& other : launch.ctas) {
    if (static_cast<std::uint64_t>(other.cluster_rank) != rank) continue;
    bool same = c[0] > 0;
    for (std::size_t i = 0; i < 3 && same; ++i) same = other.at[i] / c[i] == cta.at[i] / c[i];
    if (same) return &other;
  }
  return nullptr;
}

Cta* cta_of_rank(Launch& launch, Cta& cta, std::uint64_t rank) {
  return const_cast<Cta*>(cta_of_rank(std::as_const(launch), std::as_const(cta), rank));
}

}  // namespace kvscope::ptx
