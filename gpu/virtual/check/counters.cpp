#include "gpu/virtual/check/counters.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {
namespace {

std::int32_t pc_of(const Program& program, const Op& op) {
  return static_cast<std::int32_t>(&op - program.ops.data());
}

std::size_t degree_class(int worst) {
  return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(worst - 1)));
}

InstructionClass class_of_access(const Instr& instr) {
  if (instr.has(Mod::shared) || instr.has(Mod::shared_cta) || instr.has(Mod::shared_cluster))
    return InstructionClass::shared_memory;
  if (instr.has(Mod::global)) return InstructionClass::global_memory;
  return InstructionClass::other_memory;
}

bool is_floating(const Instr& instr) {
  return instr.type_count > 0 && class_of(instr.type()) == TypeClass::floating;
}

}  // namespace

std::string_view name(InstructionClass c) {
  static constexpr std::array<std::string_view, kInstructionClasses> kNames = {
      "integer",       "floating point", "convert", "move",    "predicate", "control", "warp", "shared memory",
      "global memory", "other memory",   "atomic",  "barrier", "copy",      "matrix",  "other"};
  return kNames[static_cast<std::size_t>(c)];
}

InstructionClass class_of(const Instr& instr) {
  using enum Opcode;
  switch (instr.opcode) {
    case cvt:
    case cvt_pack:
      return InstructionClass::convert;
    case mov:
    case selp:
    case slct:
    case prmt:
    case cvta:
    case isspacep:
    case mapa:
    case getctarank:
      return InstructionClass::move;
    case setp:
    case testp:
      return InstructionClass::predicate;
    case bra:
    case brx:
    case call:
    case ret:
    case exit:
    case trap:
    case brkpt:
    case nanosleep:
    case griddepcontrol:
    case pmevent:
    case setmaxnreg:
      return InstructionClass::control;
    case shfl:
    case vote:
    case match:
    case redux:
    case elect:
    case activemask:
    case bar_warp_sync:
      return InstructionClass::warp;
    case ld:
    case st:
    case st_bulk:
    case ldu:
      return class_of_access(instr);
    case atom:
    case red:
      return InstructionClass::atomic;
    case bar_sync:
    case bar_arrive:
    case bar_red:
    case membar:
    case fence:
    case barrier_cluster_arrive:
    case barrier_cluster_wait:
    case mbarrier_init:
    case mbarrier_inval:
    case mbarrier_arrive:
    case mbarrier_arrive_drop:
    case mbarrier_expect_tx:
    case mbarrier_complete_tx:
    case mbarrier_test_wait:
    case mbarrier_try_wait:
    case mbarrier_pending_count:
      return InstructionClass::barrier;
    case cp_async:
    case cp_async_commit_group:
    case cp_async_wait_group:
    case cp_async_wait_all:
    case cp_async_mbarrier_arrive:
    case cp_async_bulk:
    case cp_async_bulk_commit_group:
    case cp_async_bulk_wait_group:
    case cp_async_bulk_tensor:
    case cp_async_bulk_prefetch:
    case cp_async_bulk_prefetch_tensor:
    case cp_reduce_async_bulk:
    case cp_reduce_async_bulk_tensor:
    case st_async:
    case red_async:
    case tensormap_replace:
    case tensormap_cp_fenceproxy:
      return InstructionClass::copy;
    case mma:
    case wmma_mma:
    case wgmma_fence:
    case wgmma_mma_async:
    case wgmma_commit_group:
    case wgmma_wait_group:
    case tcgen05_alloc:
    case tcgen05_dealloc:
    case tcgen05_relinquish_alloc_permit:
    case tcgen05_ld:
    case tcgen05_st:
    case tcgen05_wait_ld:
    case tcgen05_wait_st:
    case tcgen05_cp:
    case tcgen05_mma:
    case tcgen05_mma_ws:
    case tcgen05_mma_sp:
    case tcgen05_mma_ws_sp:
    case tcgen05_commit:
    case tcgen05_fence_before:
    case tcgen05_fence_after:
    case movmatrix:
      return InstructionClass::matrix;
    case ldmatrix:
    case stmatrix:
      return InstructionClass::shared_memory;
    case wmma_load:
    case wmma_store:
      return InstructionClass::other_memory;
    case add:
    case sub:
    case mul:
    case mad:
    case min:
    case max:
    case abs:
    case neg:
    case div:
    case set:
      return is_floating(instr) ? InstructionClass::floating : InstructionClass::integer;
    case fma:
    case rcp:
    case sqrt:
    case rsqrt:
    case ex2:
    case lg2:
    case sin:
    case cos:
    case tanh:
    case copysign:
      return InstructionClass::floating;
    case prefetch:
    case prefetchu:
    case prefetch_tensormap:
    case applypriority:
    case createpolicy:
    case discard:
    case alloca:
    case stacksave:
    case stackrestore:
    case unsupported:
      return InstructionClass::other;
    default:
      return InstructionClass::integer;
  }
}

OpCounts& OpCounts::operator+=(const OpCounts& other) {
  runs += other.runs;
  lanes += other.lanes;
  divergent += other.divergent;
  splits += other.splits;
  waits += other.waits;
  wavefronts += other.wavefronts;
  ideal_wavefronts += other.ideal_wavefronts;
  for (std::size_t i = 0; i < degrees.size(); ++i) degrees[i] += other.degrees[i];
  requests += other.requests;
  sectors += other.sectors;
  ideal_sectors += other.ideal_sectors;
  lines += other.lines;
  copies += other.copies;
  copied_bytes += other.copied_bytes;
  credited += other.credited;
  return *this;
}

OpCounts Counters::total() const {
  OpCounts sum;
  for (const OpCounts& counts : ops_) sum += counts;
  return sum;
}

std::array<std::int64_t, kInstructionClasses> Counters::by_class() const {
  std::array<std::int64_t, kInstructionClasses> out{};
  for (std::size_t pc = 0; pc < ops_.size(); ++pc) {
    out[static_cast<std::size_t>(class_of(program_.instr(program_.ops[pc])))] += ops_[pc].runs;
  }
  return out;
}

std::vector<LineCounts> Counters::by_line() const {
  std::vector<LineCounts> out;
  std::map<std::string, std::size_t, std::less<>> places;
  for (std::size_t pc = 0; pc < ops_.size(); ++pc) {
    if (ops_[pc].runs == 0) continue;
    std::string source = program_.source_text(static_cast<std::int32_t>(pc));
    const auto [place, fresh] = places.try_emplace(source, out.size());
    if (fresh) out.push_back({std::move(source), {}});
    out[place->second].counts += ops_[pc];
  }
  return out;
}

void Counters::split(const Exec& exec, LaneMask, std::int32_t) {
  at(exec.lane_group.pc).splits += 1;
}

void Counters::park(const Exec&, const Op& op) {
  at(pc_of(program_, op)).waits += 1;
}

void Counters::count_shared(OpCounts& counts, std::span<const std::uint64_t, kLanes> addresses, LaneMask lanes,
                            int bytes, bool atomic) {
  const Wavefronts cost = shapes_.cost(addresses, lanes, bytes, atomic);
  if (cost.ideal == 0) return;
  counts.wavefronts += cost.wavefronts;
  counts.ideal_wavefronts += cost.ideal;
  counts.degrees[degree_class(cost.worst)] += 1;
}

void Counters::access(const Exec&, const Op& op, const WarpAccess& access) {
  OpCounts& counts = at(pc_of(program_, op));
  if (access.space == Space::shared) {
    if (access.kind != AccessKind::atomic &&
        ((access.row && access.bytes <= 16) || (access.one && access.bytes <= 4))) {
      // Each group of lanes accesses 32 words in a row, or all lanes the same one.
      const int groups = std::max(1, access.bytes / 4);
      counts.wavefronts += groups;
      counts.ideal_wavefronts += groups;
      counts.degrees[degree_class(1)] += 1;
      return;
    }
    count_shared(counts, access.addresses, access.lanes, access.matrix_rows ? 16 : access.bytes,
                 access.kind == AccessKind::atomic);
    return;
  }
  if (access.space != Space::global && access.space != Space::local) return;
  const Sectors cost = access.space == Space::local ? local_sectors(access.addresses, access.lanes, access.bytes)
                       : access.row ? range_sectors(access.addresses[0], std::int64_t{kLanes} * access.bytes)
                                    : global_sectors(access.addresses, access.at_least(), access.bytes);
  counts.requests += 1;
  counts.sectors += cost.sectors;
  counts.ideal_sectors += cost.ideal;
  counts.lines += cost.lines;
}

void Counters::async_issue(const Exec& exec, const AsyncOp& op, ByteRanges reads, ByteRanges writes) {
  OpCounts& counts = at(op.pc);
  counts.copies += 1;
  counts.credited += op.bytes;
  if (op.kind == AsyncKind::cp_async) {
    if (gathered_.step != exec.launch.step || gathered_.pc != op.pc) {
      count_gathered();
      gathered_ = {.step = exec.launch.step, .pc = op.pc};
    }
    const auto lane = static_cast<std::size_t>(op.thread % kLanes);
    for (const ByteRange& range : writes) {
      gathered_.shared[lane] = range.address;
      gathered_.bytes = static_cast<int>(range.bytes);
      gathered_.lanes |= LaneMask{1} << lane;
    }
    for (const ByteRange& range : reads) {
      if (range.bytes == 0) continue;
      gathered_.global[lane] = range.address;
      gathered_.reading |= LaneMask{1} << lane;
      counts.copied_bytes += range.bytes;
    }
    return;
  }
  for (const ByteRanges ranges : {reads, writes}) {
    for (const ByteRange& range : ranges) {
      if (range.space != Space::global) continue;
      const Sectors cost = range_sectors(range.address, range.bytes);
      counts.copied_bytes += range.bytes;
      counts.sectors += cost.sectors;
      counts.ideal_sectors += cost.ideal;
      counts.lines += cost.lines;
    }
  }
}

void Counters::count_gathered() {
  if (gathered_.lanes == 0) return;
  OpCounts& counts = at(gathered_.pc);
  // The destination is written like a store of 16 bytes per lane.
  count_shared(counts, gathered_.shared, gathered_.lanes, gathered_.bytes, false);
  if (gathered_.reading != 0) {
    const Sectors cost = global_sectors(gathered_.global, gathered_.reading, gathered_.bytes);
    counts.requests += 1;
    counts.sectors += cost.sectors;
    counts.ideal_sectors += cost.ideal;
    counts.lines += cost.lines;
  }
  gathered_ = {};
}

void Counters::join(Monitor& part) {
  const std::vector<OpCounts>& others = static_cast<Counters&>(part).ops_;
  for (std::size_t pc = 0; pc < ops_.size(); ++pc) ops_[pc] += others[pc];
}

void Counters::launch_ends(Launch& launch) {
  count_gathered();
  const std::vector<RunCounts::Of> counts = launch.run_counts.by_op();
  for (std::size_t pc = 0; pc < counts.size(); ++pc) {
    ops_[pc].runs += counts[pc].runs;
    ops_[pc].lanes += counts[pc].lanes;
    ops_[pc].divergent += counts[pc].divergent;
  }
}

}  // namespace kvscope::ptx
