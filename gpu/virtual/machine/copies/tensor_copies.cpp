// cp.async.bulk.tensor and related instructions: boxes of a tensor between global and shared memory, by a tensor map.
// This file reads and checks the operands; tensor_box.h computes addresses, box_bytes.h moves the bytes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "core/base/errors.h"
#include "gpu/virtual/machine/barriers/detail/mbarrier_handlers.h"
#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/copies/copy_map.h"
#include "gpu/virtual/machine/copies/detail/box_bytes.h"
#include "gpu/virtual/machine/copies/detail/copy_targets.h"
#include "gpu/virtual/machine/copies/detail/tensor_boxes.h"
#include "gpu/virtual/machine/copies/detail/tensormap_edit.h"
#include "gpu/virtual/machine/copies/tensor_box.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/detail/reduction.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

int tensor_rank(const Instr& instr) {
  return instr.has(Mod::d1) ? 1 : instr.has(Mod::d2) ? 2 : instr.has(Mod::d3) ? 3 : instr.has(Mod::d4) ? 4 : 5;
}

int target_of(const Exec& exec) {
  return exec.launch.program->module->target;
}

// The coordinates of the instruction: a column and four rows, or one for each dimension.
bool takes_rows(const Instr& instr) {
  return instr.has(Mod::tile_gather4) || instr.has(Mod::tile_scatter4);
}
int coordinates_of(const Instr& instr) {
  return takes_rows(instr) ? 1 + static_cast<int>(kGatherRows) : tensor_rank(instr);
}
// Why the map's boxes are not the rows of a gather or scatter; "": they are.
std::string rows_fault(const Instr& instr, const CopyMap& map) {
  if (!takes_rows(instr) || (map.rank == 2 && map.box[1] == 1)) return "";
  const std::string_view name = instr.has(Mod::tile_gather4) ? "gather4" : "scatter4";
  if (map.rank != 2)
    return fmt::format("tile::{} with a tensor map of rank {}: its map has two dimensions", name, map.rank);
  return fmt::format("tile::{} with a box of {} rows: its box is one row, {{w, 1}}", name, map.box[1]);
}

// The bytes of all boxes of the copy.
std::int64_t bytes_of(const PendingOp& p) {
  return box_size(p.map).bytes() * (p.gather ? static_cast<std::int64_t>(kGatherRows) : 1);
}

// --- operands --------------------------------------------------------------------------------------------------------

// The tensor map at a map operand; std::nullopt: it cannot be read, and the fault is reported.
std::optional<CopyMap> read_map(Exec& exec, const Op& op, int operand, int lane) {
  std::uint64_t address = lane_address(exec.registers, op, operand, lane);
  // A parameter given by name has no generic address.
  const Space said = op.at[static_cast<std::size_t>(operand)] == kNoRegister ? Space::param : Space::generic;
  Space space = said;
  const LaneRequest request{said, AccessKind::load, static_cast<std::int64_t>(kMapRecordBytes), 64};
  const std::byte* const bytes = reach_lane(exec, op, lane, request, space, address);
  if (bytes == nullptr) return std::nullopt;
  MapCache& cache = exec.cta.async.map;
  if (cache.filled && std::memcmp(cache.record.data(), bytes, kMapRecordBytes) == 0) return cache.map;
  try {
    cache.map = read_copy_map(std::span<const std::byte, kMapRecordBytes>(bytes, kMapRecordBytes));
    std::memcpy(cache.record.data(), bytes, kMapRecordBytes);
    cache.filled = true;
    return cache.map;
  } catch (const InputError& e) {
    const ReportAddress at = name_address(exec.launch, space, address, static_cast<std::int64_t>(kMapRecordBytes));
    const bool ours = std::memcmp(bytes, kMapMagic.data(), kMapMagic.size()) == 0;
    fault(exec, op, lane, ReportKind::tma_arg,
          ours ? e.what() : fmt::format("the 128 bytes at {} are not a tensor map of this machine", place_name(at)),
          ours ? "" : "encode it with this machine's encode_tensor_map: a driver's own map cannot be read", at);
    return std::nullopt;
  }
}

Coordinates read_coordinates(const Exec& exec, const Op& op, std::size_t first, int count, int lane) {
  Coordinates at;
  at.count = count;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t reg = op.list[first + static_cast<std::size_t>(i)];
    at.at[static_cast<std::size_t>(i)] = register_of<std::int32_t>(exec, reg)[lane];
  }
  return at;
}

// Checks the rules for a copy's arguments. False: a fault was reported.
bool check_arguments(Exec& exec, const Op& op, int lane, const PendingOp& p, CopyDirection direction) {
  const Instr& instr = exec.program().instr(op);
  std::string wrong;
  if (tensor_rank(instr) != p.map.rank) {
    wrong = fmt::format("{}.{}d with a tensor map of rank {}", name(instr.opcode), tensor_rank(instr), p.map.rank);
  } else if (wrong = rows_fault(instr, p.map); wrong.empty()) {
    wrong = map_fault(p.map, direction, target_of(exec));
    const auto offset = static_cast<std::int64_t>(offset_of(p.shared));
    if (wrong.empty()) {
      const std::int64_t window = box_size(p.map).window() * (p.gather ? static_cast<std::int64_t>(kGatherRows) : 1);
      const auto bytes = static_cast<std::int64_t>(kSharedBase + exec.cta.shared.size());
      const BoxPieces pieces = pieces_of(p);
      for (const BoxPiece* piece = pieces.begin(); piece != pieces.end() && wrong.empty(); ++piece) {
        wrong = start_fault(p.map, piece->at, offset, window, bytes, direction);
        if (wrong.empty() || !p.gather || direction == CopyDirection::load || piece->at.at[1] >= 0) continue;
        const std::ptrdiff_t row = piece - pieces.begin();
        wrong = fmt::format("row {} of the four, coordinate {} of the instruction: {}", row, row + 1, wrong);
      }
    }
    if (wrong.empty() && offset_of(p.shared) < kSharedBase) {
      wrong = fmt::format("shared 0x{:05x}: the first 1024 bytes are reserved by the system", offset);
    }
  }
  if (wrong.empty()) return true;
  fault(exec, op, lane, ReportKind::tma_arg, std::move(wrong));
  return false;
}

// Checks that each row of the copy is inside one allocation. False: a fault was reported.
bool check_global(Exec& exec, const Op& op, int lane, const PendingOp& p, AccessKind kind) {
  try {
    for (const BoxPiece& piece : pieces_of(p)) {
      const TensorBox box = tensor_box(p.map, piece.at, piece.shared);
      if (!box.has_data() || exec.launch.memory->contains(box.lowest, box.hull)) continue;
      bool good = true;
      box.each_row([&](const BoxRow& row) {
        good = good && (!row.inside || each_chunk(box, row, p.map.element_bytes(), [&](const CopyChunk& chunk) {
                 if (chunk.filled() || exec.launch.memory->contains(chunk.global, chunk.data_bytes)) return true;
                 std::uint64_t address = chunk.global;
                 Space space = Space::global;
                 const LaneRequest request{Space::global, kind, chunk.data_bytes, 1};
                 return reach_lane(exec, op, lane, request, space, address) != nullptr;
               }));
      });
      if (!good) return false;
    }
  } catch (const IllegalAddress& e) {
    fault(exec, op, lane, ReportKind::out_of_bounds, e.what());
    return false;
  }
  return true;
}

// Ranges for monitors: memory by rows, shared memory as one window if the box accesses all of it. A store reads only the
// bytes of positions inside the tensor: runs of 8 bytes, the smallest that a swizzle moves.
void add_ranges(const PendingOp& p, std::vector<ByteRange>& global, std::vector<ByteRange>& shared,
                std::uint64_t rank) {
  constexpr std::int64_t kTogether = 8;
  const auto add = [](std::vector<ByteRange>& to, Space space, std::uint64_t address, std::int64_t bytes) {
    if (!to.empty() && to.back().space == space &&
        to.back().address + static_cast<std::uint64_t>(to.back().bytes) == address) {
      to.back().bytes += bytes;
    } else {
      to.push_back({space, address, bytes});
    }
  };
  const bool loads = p.op.kind == AsyncKind::tensor_load;
  const auto at = [&](std::int64_t offset) { return shared_address(rank, static_cast<std::uint64_t>(offset)); };
  for (const BoxPiece& piece : pieces_of(p)) {
    const TensorBox box = tensor_box(p.map, piece.at, piece.shared);
    const bool whole = box.size.inner == box.size.pitch;
    const bool whole_rows = whole && box.begin == 0 && box.end == box.size.inner;
    if (whole && loads) add(shared, Space::shared, at(piece.shared), box.size.window());
    box.each_row([&](const BoxRow& row) {
      if (row.inside) add(global, Space::global, row.global, box.end - box.begin);
      if (loads && !whole) {
        static_cast<void>(each_chunk(box, row, p.map.element_bytes(), [&](const CopyChunk& chunk) {
          add(shared, Space::shared, at(chunk.shared), kCopyChunk);
          return true;
        }));
      }
      if (loads || !row.inside) return;
      if (whole_rows) return add(shared, Space::shared, at(row.shared), box.size.pitch);
      const auto change = static_cast<std::int64_t>(box.swizzle.change(static_cast<std::uint64_t>(row.shared)));
      for (std::int64_t c = box.begin; c < box.end; c += kTogether)
        add(shared, Space::shared, at((row.shared + c) ^ change), std::min(kTogether, box.end - c));
    });
  }
}

void note_all_fill(Exec& exec, const Op& op, int lane, const PendingOp& p) {
  for (const BoxPiece& piece : pieces_of(p)) {
    if (tensor_box(p.map, piece.at, piece.shared).has_data()) return;
  }
  std::string at;
  for (int i = 0; i < p.at.count; ++i)
    at += fmt::format("{}{}", i > 0 ? ", " : "", p.at.at[static_cast<std::size_t>(i)]);
  fault(exec, op, lane, ReportKind::tma_all_fill,
        fmt::format("the whole box at {{{}}} is outside the tensor: only fill is loaded", at),
        "coordinates go fastest dimension first, as in the map");
}

// Whether two rows in shared memory contain the same data.
bool same_data(Exec& exec, const PendingOp& p, const BoxPiece& one, const BoxPiece& other) {
  const auto data_of = [&](const BoxPiece& piece) {
    std::vector<std::byte> data;
    const TensorBox box = tensor_box(p.map, piece.at, piece.shared);
    box.each_row([&](const BoxRow& row) {
      static_cast<void>(each_chunk(box, row, p.map.element_bytes(), [&](const CopyChunk& chunk) {
        const std::byte* const from = shared_at(exec.cta, static_cast<std::uint64_t>(chunk.shared), kCopyChunk);
        if (from != nullptr) data.insert(data.end(), from, from + chunk.data_bytes);
        return true;
      }));
    });
    return data;
  };
  return data_of(one) == data_of(other);
}

// scatter4: two rows of shared memory for one row of the tensor.
void note_equal_rows(Exec& exec, const Op& op, int lane, const PendingOp& p) {
  if (!p.gather) return;
  const BoxPieces pieces = pieces_of(p);
  for (const BoxPiece* one = pieces.begin(); one != pieces.end(); ++one) {
    for (const BoxPiece* other = one + 1; other != pieces.end(); ++other) {
      if (one->at.at[1] != other->at.at[1] || !tensor_box(p.map, one->at, one->shared).has_data() ||
          same_data(exec, p, *one, *other))
        continue;
      static_cast<void>(
          fault(exec, op, lane, ReportKind::tma_arg,
                fmt::format("rows {} and {} of shared memory are both stored to row {} of the tensor, and differ",
                            one - pieces.begin(), other - pieces.begin(), one->at.at[1]),
                "PTX does not order the rows of one copy: give each row of the tensor at most once"));
      return;
    }
  }
}

// --- issue -----------------------------------------------------------------------------------------------------------

void add_all_ranges(const Launch& launch, PendingOp& p) {
  if (launch.monitor == nullptr) return;
  if (p.op.kind != AsyncKind::tensor_load) return add_ranges(p, p.writes, p.reads, rank_of(p.shared));
  for (std::uint32_t rest = p.ranks(); rest != 0; rest &= rest - 1) {
    p.reads.clear();
    add_ranges(p, p.reads, p.writes, static_cast<std::uint64_t>(std::countr_zero(rest)));
  }
}

// Under a seed each row of the destination is a separate operation that credits only its bytes. This exposes kernels
// that rely on a box landing as a whole.
void issue_box(Exec& exec, PendingOp p) {
  const bool stores = p.op.kind != AsyncKind::tensor_load;
  if (exec.launch.config.options.policy != Policy::seeded) {
    add_all_ranges(exec.launch, p);
    if (stores) add_to_group(exec.cta, p.op);
    issue(exec, std::move(p));
    return;
  }
  if (exec.launch.monitor != nullptr) exec.launch.monitor->copy_issued(exec, p);
  std::vector<PendingOp> rows = rows_of(p);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) rows[i].op.number = exec.launch.next_async++;
    add_all_ranges(exec.launch, rows[i]);
    if (stores) add_to_group(exec.cta, rows[i].op);
    issue_part(exec, std::move(rows[i]));
  }
}

// [dst], [map, {c}], [m] {, mask} {, policy}
Flow load_tensor(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  const bool own = !instr.has(Mod::shared_cluster);
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    PendingOp p;
    p.shared = lane_address(exec.registers, op, 0, lane);
    p.gather = takes_rows(instr);
    p.at = read_coordinates(exec, op, 2, coordinates_of(instr), lane);
    const auto map = read_map(exec, op, 1, lane);
    if (map) p.map = *map;
    std::uint64_t to = p.shared;
    Space space = Space::shared;
    const LaneRequest whose{Space::shared, AccessKind::store, 0, 1, own};
    bool good = map && check_arguments(exec, op, lane, p, CopyDirection::load) &&
                reach_lane(exec, op, lane, whose, space, to) != nullptr &&
                check_global(exec, op, lane, p, AccessKind::load);
    if (good && instr.has(Mod::multicast_cluster)) {
      p.multicast = multicast_mask(exec, op, lane, op.at[3]);
      good = p.multicast.has_value();
    }
    const std::uint64_t barrier = lane_address(exec.registers, op, 2, lane);
    MbarrierAt at;
    const bool of_pair = instr.has(Mod::cta_group_2);
    if (good) at = find_mbarrier_at(exec, op, lane, Space::shared, barrier, !own || of_pair);
    if (at.object == nullptr) {
      if (exec.launch.status == LaunchStatus::failed) return Flow::stopped;
      continue;
    }
    p.op = new_operation(exec, op, lane, AsyncKind::tensor_load);
    p.op.mbarrier = barrier;
    p.op.bytes = p.bytes = bytes_of(p);
    ++at.object->copies;
    at.object->copied_bytes += p.bytes;
    note_all_fill(exec, op, lane, p);
    issue_box(exec, std::move(p));
  }
  return exec.launch.status == LaunchStatus::failed ? Flow::stopped : Flow::next;
}

// [map, {c}], [src]
Flow store_tensor(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  const bool reduces = instr.opcode == Opcode::cp_reduce_async_bulk_tensor;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    PendingOp p;
    p.shared = lane_address(exec.registers, op, 1, lane);
    p.gather = takes_rows(instr);
    p.at = read_coordinates(exec, op, 1, coordinates_of(instr), lane);
    const auto map = read_map(exec, op, 0, lane);
    if (map) p.map = *map;
    p.instr = op.instr;
    p.reduces = reduces;
    std::uint64_t from = p.shared;
    Space space = Space::shared;
    const LaneRequest whose{Space::shared, AccessKind::load, 0, 1, true};
    bool good = map && check_arguments(exec, op, lane, p, CopyDirection::store) &&
                reach_lane(exec, op, lane, whose, space, from) != nullptr &&
                check_global(exec, op, lane, p, AccessKind::store);
    if (good && reduces && find_reduce(reduce_op(instr), p.map.element().reduced) == nullptr) {
      fault(exec, op, lane, ReportKind::tma_arg, fmt::format("no such reduction of {}", p.map.element().name));
      good = false;
    }
    if (!good) {
      if (exec.launch.status == LaunchStatus::failed) return Flow::stopped;
      continue;
    }
    note_equal_rows(exec, op, lane, p);
    p.op = new_operation(exec, op, lane, reduces ? AsyncKind::tensor_reduce : AsyncKind::tensor_store);
    p.bytes = bytes_of(p);
    issue_box(exec, std::move(p));
  }
  return exec.launch.status == LaunchStatus::failed ? Flow::stopped : Flow::next;
}

// [map, {c}]: checks the rules of a load, with no further effect.
Flow prefetch_tensor(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto map = read_map(exec, op, 0, lane);
    if (map) {
      std::string wrong = rows_fault(instr, *map);
      if (wrong.empty()) wrong = map_fault(*map, CopyDirection::load, target_of(exec));
      if (wrong.empty()) {
        const std::int64_t window = box_size(*map).window();
        PendingOp p;
        p.map = *map;
        p.gather = takes_rows(instr);
        p.at = read_coordinates(exec, op, 1, coordinates_of(instr), lane);
        wrong = start_fault(*map, pieces_of(p).begin()->at, 0, window, window, CopyDirection::load);
      }
      if (!wrong.empty()) fault(exec, op, lane, ReportKind::tma_arg, std::move(wrong));
    }
    if (exec.launch.status == LaunchStatus::failed) return Flow::stopped;
  }
  return Flow::next;
}

Flow prefetch_map(Exec& exec, const Op& op, LaneMask lanes) {
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    static_cast<void>(read_map(exec, op, 0, std::countr_zero(rest)));
    if (exec.launch.status == LaunchStatus::failed) return Flow::stopped;
  }
  return Flow::next;
}

// --- performing ------------------------------------------------------------------------------------------------------

bool move_piece(const Launch& launch, const PendingOp& p, const BoxPiece& piece, Cta& cta) {
  const TensorBox box = tensor_box(p.map, piece.at, piece.shared);
  std::byte* const window = shared_at(cta, static_cast<std::uint64_t>(piece.shared), box.size.window());
  if (window == nullptr) return false;
  if (p.op.kind == AsyncKind::tensor_load) return load_bytes(p.map, box, *launch.memory, window);
  const Instr& instr = launch.program->decoded.instrs[p.instr];
  const Reduce reduce = p.reduces ? find_reduce(reduce_op(instr), p.map.element().reduced) : nullptr;
  if (reduce != nullptr) return reduce_bytes(p.map, box, *launch.memory, window, reduce);
  return store_bytes(p.map, box, *launch.memory, window);
}

const Instr& instr_of_copy(const Launch& launch, const PendingOp& p) {
  return launch.program->instr(launch.program->ops[static_cast<std::size_t>(p.op.pc)]);
}

}  // namespace

void perform_tensor(Launch& launch, Cta& cta, const PendingOp& p) {
  const bool loads = p.op.kind == AsyncKind::tensor_load;
  const std::vector<Cta*> targets = live_targets(launch, cta, p);
  bool whole = true;
  for (Cta* const target : targets) {
    for (const BoxPiece& piece : pieces_of(p)) whole = move_piece(launch, p, piece, *target) && whole;
  }
  if (!whole) {
    engine_fault(launch, cta, p.op, ReportKind::use_after_free, "memory of the tensor has been freed since the issue");
  }
  if (launch.monitor != nullptr) launch.monitor->async_done(launch, cta, p.op);
  if (!loads) return;
  // .cta_group::2: of each pair that receives bytes, the CTA of the barrier's parity.
  const bool of_pair = instr_of_copy(launch, p).has(Mod::cta_group_2);
  for (Cta* const target : targets) {
    auto rank = static_cast<std::uint64_t>(target->cluster_rank);
    if (of_pair) rank = (rank & ~std::uint64_t{1}) | (rank_of(p.op.mbarrier) & 1);
    Cta* const counts = cta_of_rank(launch, cta, rank);
    if (counts != nullptr && (counts->state != CtaState::done || counts == &cta)) {
      complete_tx(launch, *counts, offset_of(p.op.mbarrier), p.op.bytes, p.op);
    }
  }
}

MachineHandler find_tensor_copy(const Instr& instr) {
  switch (instr.opcode) {
    case Opcode::cp_async_bulk_tensor:
      return instr.has(Mod::bulk_group) ? store_tensor : load_tensor;
    case Opcode::cp_reduce_async_bulk_tensor:
      return store_tensor;
    case Opcode::cp_async_bulk_prefetch_tensor:
      return prefetch_tensor;
    case Opcode::prefetch_tensormap:
      return prefetch_map;
    case Opcode::tensormap_replace:
    case Opcode::tensormap_cp_fenceproxy:
      return find_tensormap_edit(instr);
    default:
      return nullptr;
  }
}

}  // namespace kvscope::ptx
