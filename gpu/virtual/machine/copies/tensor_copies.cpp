// cp.async.bulk.tensor and its relatives: boxes of a tensor between global and shared memory, by a tensor map. Where
// every byte goes is core/tma's business; here the operands are read and held to the rules, and the bytes moved.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/tma/box_copy.h"
#include "core/tma/box_plan.h"
#include "core/tma/box_rows.h"
#include "core/tma/tensor_map_record.h"
#include "gpu/virtual/machine/barriers/mbarrier_handlers.h"
#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/copies/tensor_boxes.h"
#include "gpu/virtual/machine/copies/tensormap_edit.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/reduction.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/program/address_operand.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

int rank_of(const Instr& instr) {
  return instr.has(Mod::d1) ? 1 : instr.has(Mod::d2) ? 2 : instr.has(Mod::d3) ? 3 : instr.has(Mod::d4) ? 4 : 5;
}

// The map as a copy's window is measured by: of a gather the box has four rows.
TensorMap window_map(const PendingOp& p) {
  TensorMap map = p.map;
  if (p.gather) map.box[1] = kGatherRows;
  return map;
}

// --- operands --------------------------------------------------------------------------------------------------------

// The 128 bytes at a map operand, read as ours; nothing: reported.
std::optional<TensorMap> read_map(Exec& exec, const Op& op, int operand, int lane) {
  std::uint64_t address = lane_address(exec.registers, op, operand, lane);
  // A parameter by its name has no generic address.
  const Space said = op.at[static_cast<std::size_t>(operand)] == kNoRegister ? Space::param : Space::generic;
  Space space = said;
  const LaneRequest request{said, AccessKind::load, static_cast<std::int64_t>(kTensorMapBytes), 64};
  const std::byte* const bytes = reach_lane(exec, op, lane, request, space, address);
  if (bytes == nullptr) return std::nullopt;
  MapCache& cache = exec.cta.async.map;
  if (cache.filled && std::memcmp(cache.record.data(), bytes, kTensorMapBytes) == 0) return cache.map;
  try {
    cache.map = decode_tensor_map("tensor map", std::span(bytes, kTensorMapBytes));
    std::memcpy(cache.record.data(), bytes, kTensorMapBytes);
    cache.filled = true;
    return cache.map;
  } catch (const InputError& e) {
    const ReportAddress at = name_address(exec.launch, space, address, static_cast<std::int64_t>(kTensorMapBytes));
    const bool ours = std::memcmp(bytes, "kvsc-map", 8) == 0;
    fault(exec, op, lane, ReportKind::tma_arg,
          ours ? e.what() : fmt::format("the 128 bytes at {} are not a tensor map of this machine", place_name(at)),
          ours ? "" : "encode it with this machine's encode_tensor_map: a driver's own map cannot be read", at);
    return std::nullopt;
  }
}

TmaCoord read_coordinates(const Exec& exec, const Op& op, std::size_t first, int count, int lane) {
  TmaCoord at;
  at.rank = count;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t reg = op.list[first + static_cast<std::size_t>(i)];
    at.at[static_cast<std::size_t>(i)] = register_of<std::int32_t>(exec, reg)[lane];
  }
  return at;
}

// Every rule that a copy's arguments must keep; false: reported.
bool check_arguments(Exec& exec, const Op& op, int lane, const PendingOp& p, BoxDirection direction) {
  const Instr& instr = exec.program().instr(op);
  const BoxSwitches switches = switches_of(exec.launch);
  std::string wrong;
  try {
    if (rank_of(instr) != p.map.rank) {
      wrong = fmt::format("{}.{}d with a tensor map of rank {}", name(instr.opcode), rank_of(instr), p.map.rank);
    } else if (p.gather && (p.map.rank != 2 || p.map.box[1] != 1)) {
      wrong = fmt::format("tile::gather4 with a box of {} rows: its box is one row, {{w, 1}}", p.map.box[1]);
    } else {
      require_box_copyable(p.map, direction, switches);
      const auto bytes = static_cast<std::int64_t>(kSharedBase + exec.cta.shared.size());
      require_box_start(window_map(p), pieces_of(p, switches).front().at,
                        static_cast<std::int64_t>(offset_of(p.shared)), bytes, direction, switches);
      if (offset_of(p.shared) < kSharedBase) {
        wrong = fmt::format("shared 0x{:05x}: the first 1024 bytes are the system's", offset_of(p.shared));
      }
    }
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  if (wrong.empty()) return true;
  fault(exec, op, lane, ReportKind::tma_arg, std::move(wrong));
  return false;
}

// The device bytes that a copy touches, row by row; all inside one allocation each, or reported.
bool check_global(Exec& exec, const Op& op, int lane, PendingOp& p, AccessKind kind) {
  const BoxSwitches switches = switches_of(exec.launch);
  for (const BoxPiece& piece : pieces_of(p, switches)) {
    const auto rows = box_rows(p.map, piece.at, piece.shared, switches);
    if (rows && (rows->data == 0 || exec.launch.memory->at(rows->base, rows->hull_bytes) != nullptr)) continue;
    try {
      for (const BoxChunk& chunk : box_chunks(p.map, piece.at, piece.shared, switches)) {
        if (chunk.filled() || exec.launch.memory->at(chunk.global, chunk.data_bytes) != nullptr) continue;
        std::uint64_t address = chunk.global;
        Space space = Space::global;
        const LaneRequest request{Space::global, kind, chunk.data_bytes, 1};
        return reach_lane(exec, op, lane, request, space, address) != nullptr;
      }
    } catch (const IllegalAddress& e) {
      fault(exec, op, lane, ReportKind::out_of_bounds, e.what());
      return false;
    }
  }
  return true;
}

// The address of each row's data inside the tensor, in the order of memory.
template <class Body>
void each_row(const BoxRows& rows, const Body& body) {
  if (rows.data == 0) return;
  std::array<std::int64_t, kTmaMaxRank> at = rows.first;
  for (;;) {
    std::uint64_t address = rows.base;
    for (std::size_t d = 1; d < at.size(); ++d) {
      address += static_cast<std::uint64_t>((at[d] - rows.first[d]) * rows.step[d]);
    }
    body(address);
    std::size_t d = 1;
    while (d < at.size() && ++at[d] == rows.end[d]) at[d] = rows.first[d], ++d;
    if (d == at.size()) return;
  }
}

// What who watches is told: memory by rows, shared memory as one window when nothing in it stays.
void add_ranges(const Launch& launch, const PendingOp& p, std::vector<ByteRange>& global,
                std::vector<ByteRange>& shared, std::uint64_t rank) {
  const BoxSwitches switches = switches_of(launch);
  const auto add = [](std::vector<ByteRange>& to, Space space, std::uint64_t address, std::int64_t bytes) {
    if (!to.empty() && to.back().space == space &&
        to.back().address + static_cast<std::uint64_t>(to.back().bytes) == address) {
      to.back().bytes += bytes;
    } else {
      to.push_back({space, address, bytes});
    }
  };
  for (const BoxPiece& piece : pieces_of(p, switches)) {
    const BoxShape shape = box_shape(p.map, switches);
    const bool whole = shape.inner == shape.pitch;
    const auto at = [&](std::int64_t offset) { return shared_address(rank, static_cast<std::uint64_t>(offset)); };
    if (whole) add(shared, Space::shared, at(piece.shared), shape.window_bytes);
    if (const auto rows = box_rows(p.map, piece.at, piece.shared, switches); whole && rows) {
      each_row(*rows, [&](std::uint64_t row) { add(global, Space::global, row, rows->data); });
      continue;
    }
    for (const BoxChunk& chunk : box_chunks(p.map, piece.at, piece.shared, switches)) {
      if (!chunk.filled()) add(global, Space::global, chunk.global, chunk.data_bytes);
      if (!whole) add(shared, Space::shared, at(chunk.shared), 16);
    }
  }
}

void note_all_fill(Exec& exec, const Op& op, int lane, const PendingOp& p) {
  const BoxSwitches switches = switches_of(exec.launch);
  for (const BoxPiece& piece : pieces_of(p, switches)) {
    const auto rows = box_rows(p.map, piece.at, piece.shared, switches);
    if (!rows || rows->data > 0) return;
  }
  std::string at;
  for (int i = 0; i < p.at.rank; ++i)
    at += fmt::format("{}{}", i > 0 ? ", " : "", p.at.at[static_cast<std::size_t>(i)]);
  fault(exec, op, lane, ReportKind::tma_all_fill,
        fmt::format("the whole box at {{{}}} is outside the tensor: nothing but fill arrives", at),
        "coordinates go fastest dimension first, as in the map");
}

// --- issue -----------------------------------------------------------------------------------------------------------

void add_all_ranges(const Launch& launch, PendingOp& p) {
  if (launch.monitor == nullptr) return;
  if (p.op.kind != AsyncKind::tensor_load) {
    add_ranges(launch, p, p.writes, p.reads, ptx::rank_of(p.shared));
  } else if (p.cta_mask == 0) {
    add_ranges(launch, p, p.reads, p.writes, ptx::rank_of(p.shared));
  } else {
    for (std::uint32_t ranks = p.cta_mask; ranks != 0; ranks &= ranks - 1) {
      p.reads.clear();
      add_ranges(launch, p, p.reads, p.writes, static_cast<std::uint64_t>(std::countr_zero(ranks)));
    }
  }
}

// Under a seed each row of the destination is an operation of its own, and credits its bytes alone: who counts on a box
// that comes whole is found out.
void issue_box(Exec& exec, const Op& op, int lane, PendingOp p) {
  const bool stores = p.op.kind != AsyncKind::tensor_load;
  if (exec.launch.config.options.policy != Policy::seeded) {
    add_all_ranges(exec.launch, p);
    if (stores) add_to_group(exec, op, lane, p.op.number);
    issue(exec, std::move(p));
    return;
  }
  if (exec.launch.monitor != nullptr) exec.launch.monitor->copy_issued(exec, p);
  std::vector<PendingOp> rows = rows_of(p, switches_of(exec.launch));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) rows[i].op.number = exec.launch.next_async++;
    add_all_ranges(exec.launch, rows[i]);
    if (stores) add_to_group(exec, op, lane, rows[i].op.number);
    issue_part(exec, std::move(rows[i]));
  }
}

// [dst], [map, {c}], [m] {, mask} {, policy}
Flow load_tensor(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  const bool own = !instr.has(Mod::shared_cluster), gather = instr.has(Mod::tile_gather4);
  const int count = gather ? 1 + kGatherRows : rank_of(instr);
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    PendingOp p;
    p.shared = lane_address(exec.registers, op, 0, lane);
    p.gather = gather;
    p.at = read_coordinates(exec, op, 2, count, lane);
    const auto map = read_map(exec, op, 1, lane);
    if (map) p.map = *map;
    std::uint64_t to = p.shared;
    Space space = Space::shared;
    const LaneRequest whose{Space::shared, AccessKind::store, 0, 1, own};
    bool good = map && check_arguments(exec, op, lane, p, BoxDirection::load) &&
                reach_lane(exec, op, lane, whose, space, to) != nullptr &&
                check_global(exec, op, lane, p, AccessKind::load);
    const std::uint64_t barrier = lane_address(exec.registers, op, 2, lane);
    MbarrierAt at;
    if (good) at = find_mbarrier_at(exec, op, lane, Space::shared, barrier, !own);
    if (at.object == nullptr) {
      if (exec.launch.status == LaunchStatus::failed) return Flow::stopped;
      continue;
    }
    p.op = new_operation(exec, op, lane, AsyncKind::tensor_load);
    p.op.mbarrier = barrier;
    p.op.bytes = p.bytes = box_shape(window_map(p), switches_of(exec.launch)).tx_bytes;
    if (instr.has(Mod::multicast_cluster)) p.cta_mask = static_cast<std::uint32_t>(lane_value(exec, op.at[3], 2, lane));
    ++at.object->copies;
    at.object->copied_bytes += p.bytes;
    note_all_fill(exec, op, lane, p);
    issue_box(exec, op, lane, std::move(p));
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
    p.at = read_coordinates(exec, op, 1, rank_of(instr), lane);
    const auto map = read_map(exec, op, 0, lane);
    if (map) p.map = *map;
    p.instr = op.instr;
    p.reduces = reduces;
    std::uint64_t from = p.shared;
    Space space = Space::shared;
    const LaneRequest whose{Space::shared, AccessKind::load, 0, 1, true};
    bool good = map && check_arguments(exec, op, lane, p, BoxDirection::store) &&
                reach_lane(exec, op, lane, whose, space, from) != nullptr &&
                check_global(exec, op, lane, p, AccessKind::store);
    if (good && reduces && find_reduce(reduce_op(instr), element_type(p.map.data_type)) == nullptr) {
      fault(exec, op, lane, ReportKind::tma_arg,
            fmt::format("no such reduction of {}", kvscope::name(p.map.data_type)));
      good = false;
    }
    if (!good) {
      if (exec.launch.status == LaunchStatus::failed) return Flow::stopped;
      continue;
    }
    p.op = new_operation(exec, op, lane, reduces ? AsyncKind::tensor_reduce : AsyncKind::tensor_store);
    p.bytes = box_shape(p.map, switches_of(exec.launch)).tx_bytes;
    issue_box(exec, op, lane, std::move(p));
  }
  return exec.launch.status == LaunchStatus::failed ? Flow::stopped : Flow::next;
}

// [map, {c}]: held to the rules of a load, and nothing else.
Flow prefetch_tensor(Exec& exec, const Op& op, LaneMask lanes) {
  const Instr& instr = exec.program().instr(op);
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const auto map = read_map(exec, op, 0, lane);
    if (map) {
      try {
        prefetch_box(*map, read_coordinates(exec, op, 1, rank_of(instr), lane), switches_of(exec.launch));
      } catch (const std::exception& e) {
        fault(exec, op, lane, ReportKind::tma_arg, e.what());
      }
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

// --- the bytes -------------------------------------------------------------------------------------------------------

bool load_chunks(const Launch& launch, const PendingOp& p, const BoxPiece& piece, const BoxSwitches& switches,
                 Cta& to) {
  const BoxBytes fill = box_fill(p.map, switches);
  for (const BoxChunk& chunk : box_chunks(p.map, piece.at, piece.shared, switches)) {
    BoxBytes bytes = fill;
    if (!chunk.filled()) {
      const std::byte* from = launch.memory->at(chunk.global, chunk.data_bytes);
      if (from == nullptr) return false;
      std::memcpy(bytes.data(), from, static_cast<std::size_t>(chunk.data_bytes));
    }
    if (chunk.halves_swapped) std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 8);
    std::byte* at = shared_at(to, static_cast<std::uint64_t>(chunk.shared), 16);
    if (at == nullptr) return false;
    std::memcpy(at, bytes.data(), bytes.size());
  }
  return true;
}

bool load_piece(const Launch& launch, const PendingOp& p, const BoxPiece& piece, const BoxSwitches& switches, Cta& to) {
  if (const auto rows = box_rows(p.map, piece.at, piece.shared, switches)) {
    std::byte* window = shared_at(to, static_cast<std::uint64_t>(piece.shared), rows->shape.window_bytes);
    const std::byte* from = rows->data > 0 ? launch.memory->at(rows->base, rows->hull_bytes) : nullptr;
    if (window != nullptr && (from != nullptr || rows->data == 0)) {
      load_rows(*rows, std::span(from, from != nullptr ? static_cast<std::size_t>(rows->hull_bytes) : 0),
                box_fill(p.map, switches), std::span(window, static_cast<std::size_t>(rows->shape.window_bytes)));
      return true;
    }
  }
  return load_chunks(launch, p, piece, switches, to);
}

// Chunk by chunk; a row that ends inside a chunk is written to the chunk's end, as far as memory goes.
bool store_piece(const Launch& launch, const PendingOp& p, const BoxPiece& piece, const BoxSwitches& switches,
                 Cta& from) {
  const Instr& instr = launch.program->decoded.instrs[p.instr];
  const Type type = element_type(p.map.data_type);
  const Reduce reduce = p.reduces ? find_reduce(reduce_op(instr), type) : nullptr;
  if (reduce == nullptr) {
    if (const auto rows = box_rows(p.map, piece.at, piece.shared, switches)) {
      if (rows->data == 0) return true;
      const std::int64_t row_bytes = round_up(rows->data, 16), over = row_bytes - rows->data;
      std::byte* to = launch.memory->at(rows->base, rows->hull_bytes + over);
      const std::byte* window = shared_at(from, static_cast<std::uint64_t>(piece.shared), rows->shape.window_bytes);
      if (to != nullptr && window != nullptr) {
        store_rows(*rows, std::span(window, static_cast<std::size_t>(rows->shape.window_bytes)), row_bytes,
                   std::span(to, static_cast<std::size_t>(rows->hull_bytes + over)));
        return true;
      }
    }
  }
  for (const BoxChunk& chunk : box_chunks(p.map, piece.at, piece.shared, switches)) {
    if (chunk.filled()) continue;
    const std::byte* bytes = shared_at(from, static_cast<std::uint64_t>(chunk.shared), 16);
    std::int64_t count = reduce == nullptr ? 16 : chunk.data_bytes;
    std::byte* to = launch.memory->at(chunk.global, count);
    if (to == nullptr) to = launch.memory->at(chunk.global, count = chunk.data_bytes);
    if (to == nullptr || bytes == nullptr) return false;
    if (reduce == nullptr) {
      std::memcpy(to, bytes, static_cast<std::size_t>(count));
      continue;
    }
    const auto size = size_of(p.map.data_type);
    for (std::int64_t b = 0; b < count; b += size) reduce(to + b, bytes + b, nullptr, true);
  }
  return true;
}

}  // namespace

void perform_tensor(Launch& launch, Cta& cta, const PendingOp& p) {
  const BoxSwitches switches = switches_of(launch);
  const bool loads = p.op.kind == AsyncKind::tensor_load;
  const std::uint32_t ranks = p.cta_mask != 0 ? p.cta_mask : 1U << ptx::rank_of(p.shared);
  bool whole = true;
  for (std::uint32_t rest = ranks; rest != 0; rest &= rest - 1) {
    const auto rank = static_cast<std::uint64_t>(std::countr_zero(rest));
    Cta* const target = cta_of_rank(launch, cta, rank);
    if (target == nullptr || (target->state == CtaState::done && target != &cta)) {
      engine_fault(launch, cta, p.op, ReportKind::dsmem_after_exit,
                   fmt::format("{} bytes for the CTA of rank {}, which has exited", p.bytes, rank),
                   "end the kernel with a cluster barrier: barrier.cluster.arrive, barrier.cluster.wait");
      continue;
    }
    for (const BoxPiece& piece : pieces_of(p, switches)) {
      whole = (loads ? load_piece(launch, p, piece, switches, *target)
                     : store_piece(launch, p, piece, switches, *target)) &&
              whole;
    }
  }
  if (!whole) {
    engine_fault(launch, cta, p.op, ReportKind::use_after_free, "memory of the tensor has been freed since the issue");
  }
  if (launch.monitor != nullptr) launch.monitor->async_done(launch, cta, p.op);
  if (!loads) return;
  for (std::uint32_t rest = ranks; rest != 0; rest &= rest - 1) {
    Cta* const target = cta_of_rank(launch, cta, static_cast<std::uint64_t>(std::countr_zero(rest)));
    if (target != nullptr && (target->state != CtaState::done || target == &cta)) {
      complete_tx(launch, *target, offset_of(p.op.mbarrier), p.op.bytes, p.op);
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
