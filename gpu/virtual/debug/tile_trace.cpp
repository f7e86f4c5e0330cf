#include "gpu/virtual/debug/tile_trace.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "gpu/virtual/check/wavefronts.h"
#include "gpu/virtual/debug/detail/kernel_tile.h"
#include "gpu/virtual/machine/copies/tensor_box.h"
#include "gpu/virtual/machine/matrix/wgmma.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/warp/residents.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kChunk = 16;  // [bytes]
constexpr std::int64_t kRegister = 4;
constexpr int kRowsOfProduct = 64;  // of A, over the four warps
constexpr int kRowsOfMatrix = 8;    // of ldmatrix: each matrix fills one register of every lane

std::int64_t first_of_allocation(const Launch& launch, std::uint64_t address) {
  const Allocation* in = launch.memory->find(address);
  return in == nullptr ? kNotKnown : static_cast<std::int64_t>(address - in->address);
}

}  // namespace

TileTrace::TileTrace(trace::Recorder& recorder, TileTraceOptions options)
    : recorder_(recorder), options_(std::move(options)) {}
TileTrace::~TileTrace() = default;

// --- tile lookup -----------------------------------------------------------------------------------------------------

bool TileTrace::is_watched(const Exec& exec) const {
  return exec.cta.index == options_.cta;
}

TileTrace::Tile& TileTrace::open(bool tma) {
  record_done();
  tiles_.emplace_back();
  tiles_.back().number = opened_++;
  tiles_.back().tma = tma;
  return tiles_.back();
}

// Bytes may be announced long before their copies are issued: the first copy determines which tile comes next.
TileTrace::Tile& TileTrace::first_copy(Tile& tile) {
  if (tile.place >= 0) return tile;
  tile.place = filled_++;
  const std::int64_t number = tile.number;
  const auto at = std::find_if(tiles_.begin(), tiles_.end(), [&](const Tile& t) { return t.number == number; });
  std::rotate(at, at + 1, tiles_.end());
  return tiles_.back();
}

TileTrace::Tile* TileTrace::find(std::int64_t number) {
  const auto at = std::find_if(tiles_.begin(), tiles_.end(), [&](const Tile& tile) { return tile.number == number; });
  return at == tiles_.end() ? nullptr : &*at;
}

TileTrace::Tile& TileTrace::of_phase(const Phase& phase) {
  const auto known = phases_.find(phase);
  if (known != phases_.end()) {
    if (Tile* tile = find(known->second)) return *tile;
  }
  Tile& tile = open(true);
  phases_[phase] = tile.number;
  return tile;
}

TileTrace::Tile& TileTrace::of_group(std::int32_t group) {
  const auto known = groups_.find(group);
  if (known != groups_.end()) {
    if (Tile* tile = find(known->second)) return *tile;
  }
  Tile& tile = open(false);
  groups_[group] = tile.number;
  return tile;
}

const TileNote& TileTrace::note_of(const Tile& tile) const {
  static const TileNote kNone;
  const auto i = static_cast<std::size_t>(tile.place);
  return tile.place >= 0 && i < options_.notes.size() ? options_.notes[i] : kNone;
}

// Assigns the chunks of [offset, offset + bytes) to this tile only; -1: a thread has overwritten them.
void TileTrace::take_bytes(std::uint64_t offset, std::int64_t bytes, std::int64_t tile) {
  const auto from = static_cast<std::size_t>(offset / kChunk);
  const auto end = static_cast<std::size_t>((offset + static_cast<std::uint64_t>(bytes) + kChunk - 1) / kChunk);
  if (tile >= 0 && owners_.size() < end) owners_.resize(end, -1);
  Tile* const now = tile >= 0 ? find(tile) : nullptr;
  for (std::size_t i = from; i < std::min(end, owners_.size()); ++i) {
    const std::int64_t before = owners_[i];
    if (before == tile || (tile < 0 && before < 0)) continue;
    if (Tile* had = before >= 0 ? find(before) : nullptr) --had->owned;
    owners_[i] = tile >= 0 ? tile : -2 - before;
    if (now == nullptr) continue;
    ++now->owned;
    if (before >= 0) now->took.insert(before);
  }
}

std::int64_t TileTrace::owner_of(std::uint64_t offset) const {
  const auto i = static_cast<std::size_t>(offset / kChunk);
  const std::int64_t now = i < owners_.size() ? owners_[i] : -1, last = now < -1 ? -2 - now : now;
  const bool gone = std::none_of(tiles_.begin(), tiles_.end(), [&](const Tile& t) { return t.number == last; });
  const auto at = static_cast<std::int64_t>(offset);
  // Tiles that replaced that one and wrote fewer bytes.
  for (auto tile = tiles_.rbegin(); tile != tiles_.rend(); ++tile) {
    const TileNote& note = note_of(*tile);
    const std::int64_t first = note.shared.value_or(tile->first);
    const bool inside = at >= first && at < (note.bytes ? first + *note.bytes : tile->end);
    if (inside && tile->number > last && (gone || tile->took.contains(last))) return tile->number;
  }
  return std::max<std::int64_t>(now, -1);
}

// --- barriers and boxes ----------------------------------------------------------------------------------------------

void TileTrace::mbarrier(Launch&, const Cta& cta, const Exec*, LaneMask, MbarrierEvent event, std::uint64_t address,
                         std::int64_t amount, Order, Scope) {
  if (cta.index != options_.cta) return;
  const std::uint64_t offset = offset_of(address);
  if (event == MbarrierEvent::expect_tx) {
    const auto object = cta.mbarriers.find(offset);
    if (object != cta.mbarriers.end()) of_phase({offset, object->second.phase}).expects.push_back(amount);
  } else if (event == MbarrierEvent::phase_done) {
    const Phase phase{offset, amount};
    for (Tile& tile : tiles_) {
      const auto known = phases_.find(phase);
      const bool its = tile.phase == phase || (known != phases_.end() && known->second == tile.number);
      if (its) tile.completed = true;
    }
  }
}

void TileTrace::copy_issued(const Exec& exec, const PendingOp& copy) {
  const bool tensor = copy.op.kind == AsyncKind::tensor_load;
  if (!tensor && copy.op.kind != AsyncKind::bulk_load) return;
  const Cta* to = find_cta(exec.launch, options_.cta);
  if (to == nullptr || cluster_of(exec.launch, *to) != cluster_of(exec.launch, exec.cta)) return;
  if ((copy.ranks() >> to->cluster_rank & 1) == 0) return;
  const std::uint64_t barrier = offset_of(copy.op.mbarrier), offset = offset_of(copy.shared);
  const auto object = to->mbarriers.find(barrier);
  Tile& tile = first_copy(of_phase({barrier, object == to->mbarriers.end() ? 0 : object->second.phase}));
  const TileNote& note = note_of(tile);

  LandedBox box;
  box.event.copy = static_cast<std::int64_t>(tile.boxes.size());
  box.event.shared = static_cast<std::int64_t>(offset);
  box.event.bytes = copy.bytes;
  if (tensor) {
    if (!tile.map) tile.map = copy.map, tile.gather = copy.gather;
    const auto axis = [&](std::size_t i) { return std::int64_t{copy.at.at[i]}; };
    const std::size_t row_axis = row_axis_of(copy.map, note);
    box.event.column = axis(0) - note.column.value_or(0);
    box.event.row = axis(row_axis);
    if (const auto head_axis = head_axis_of(copy.map, note)) box.head = axis(*head_axis);
    const auto map_row = [&](const CopyChunk& chunk) {
      if (chunk.filled() || row_axis == 0 || copy.map.strides[row_axis] == 0) return kNotKnown;
      return static_cast<std::int64_t>((chunk.global - copy.map.base) / copy.map.strides[row_axis]);
    };
    for (const CopyChunk& chunk : chunks_of(copy)) {
      box.event.filled += kChunk - chunk.data_bytes;
      box.rows = std::max(box.rows, chunk.row + 1);
      box.window = std::max(box.window, chunk.shared + kChunk - box.event.shared);
      if (!options_.lanes) continue;
      box.chunks.push_back({chunk.row, chunk.column,
                            chunk.filled() ? kNotKnown : first_of_allocation(exec.launch, chunk.global), chunk.shared,
                            map_row(chunk)});
    }
    box.width = copy.map.box[0];
  } else {
    box.event.row = first_of_allocation(exec.launch, copy.other);
    box.window = copy.bytes;
    box.rows = 1;
    for (std::int64_t at = 0; options_.lanes && at < copy.bytes; at += kChunk) {
      box.chunks.push_back({0, 0, box.event.row + at, box.event.shared + at});
    }
  }
  box.event.sub_tile = std::count_if(tile.boxes.begin(), tile.boxes.end(),
                                     [&](const LandedBox& other) { return other.event.column == box.event.column; });
  tile.first = std::min(tile.first, box.event.shared);
  tile.end = std::max(tile.end, box.event.shared + box.window);
  const std::int64_t window = box.window;
  tile.boxes.push_back(std::move(box));
  take_bytes(offset, window, tile.number);
}

// --- cp.async --------------------------------------------------------------------------------------------------------

std::int32_t& TileTrace::commits_of(const Exec& exec, int lane) {
  if (commits_.empty()) commits_.resize(exec.cta.warps.size() * kLanes);
  return commits_[static_cast<std::size_t>(thread_of(exec, lane))];
}

void TileTrace::async_issue(const Exec& exec, const AsyncOp& op, std::span<const ByteRange> reads,
                            std::span<const ByteRange> writes) {
  if (op.kind == AsyncKind::wgmma && is_watched(exec)) {
    return operand_read(exec, exec.program().ops[static_cast<std::size_t>(op.pc)]);
  }
  if (op.kind != AsyncKind::cp_async || !is_watched(exec) || writes.empty()) return;
  const int lane = op.thread % kLanes;
  const std::int32_t warp = exec.warp.index;
  std::deque<WarpCopy>& busy = busy_[warp];
  if (busy.empty() || busy.back().step != exec.launch.step) {
    Tile& opened = first_copy(of_group(commits_of(exec, lane)));
    busy.push_back({exec.launch.step, opened.number, 0, {}});
    opened.copies[warp].push_back({exec.launch.step, 0, {}});
  }
  WarpCopy& copy = busy.back();
  copy.lanes |= LaneMask{1} << lane;
  copy.numbers[static_cast<std::size_t>(lane)] = op.number;
  Tile* tile = find(copy.tile);
  if (tile == nullptr) return;
  Tile::Copy& of_tile = tile->copies[warp].back();
  const std::uint64_t offset = offset_of(writes[0].address);
  const auto at = static_cast<std::int64_t>(offset);
  if (reads.empty()) ++of_tile.zero_lanes;
  of_tile.chunks.push_back(
      {kNotKnown, kNotKnown, reads.empty() ? kNotKnown : first_of_allocation(exec.launch, reads[0].address), at});
  tile->first = std::min(tile->first, at);
  tile->end = std::max(tile->end, at + writes[0].bytes);
  take_bytes(offset, writes[0].bytes, tile->number);
}

void TileTrace::group_commit(const Exec& exec, AsyncKind kind, LaneMask lanes) {
  if (kind != AsyncKind::cp_async || !is_watched(exec)) return;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) ++commits_of(exec, std::countr_zero(rest));
}

void TileTrace::group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool,
                           std::span<const std::uint64_t, kLanes> last) {
  if (kind != AsyncKind::cp_async || !is_watched(exec)) return;
  std::deque<WarpCopy>& busy = busy_[exec.warp.index];
  if (busy.empty()) return;
  const auto before = static_cast<std::int64_t>(busy.size());
  std::int64_t of = busy.front().tile;
  // A copy has been waited for when all of its lanes have waited.
  while (!busy.empty()) {
    WarpCopy& copy = busy.front();
    for (LaneMask rest = copy.lanes & lanes; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(rest));
      if (copy.numbers[i] < last[i]) copy.lanes &= ~(LaneMask{1} << i);
    }
    if (copy.lanes != 0) break;
    of = copy.tile;
    busy.pop_front();
  }
  if (Tile* tile = find(of)) {
    tile->waits[exec.warp.index].push_back({exec.warp.index, before, static_cast<std::int64_t>(busy.size())});
  }
}

// The barrier counts the copies that a thread has issued so far, as if they were a group.
void TileTrace::cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) {
  if (!is_watched(exec)) return;
  const std::uint64_t offset = offset_of(mbarrier);
  const auto object = exec.cta.mbarriers.find(offset);
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    std::int32_t& commits = commits_of(exec, std::countr_zero(rest));
    const auto group = groups_.find(commits);
    Tile* tile = group == groups_.end() ? nullptr : find(group->second);
    if (tile != nullptr && object != exec.cta.mbarriers.end()) tile->phase = Phase{offset, object->second.phase};
    ++commits;
  }
  std::deque<WarpCopy>& busy = busy_[exec.warp.index];
  for (WarpCopy& copy : busy) copy.lanes &= ~lanes;
  std::erase_if(busy, [](const WarpCopy& copy) { return copy.lanes == 0; });
}

// --- reads -----------------------------------------------------------------------------------------------------------

void TileTrace::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  if (tiles_.empty() || access.space != Space::shared || access.kind != AccessKind::load || !is_watched(exec)) return;
  std::int64_t number = -1;
  for (LaneMask rest = access.lanes; rest != 0 && number < 0; rest &= rest - 1) {
    const std::uint64_t address = access.addresses[static_cast<std::size_t>(std::countr_zero(rest))];
    if (rank_of(address) == static_cast<std::uint64_t>(exec.cta.cluster_rank)) number = owner_of(offset_of(address));
  }
  Tile* tile = number < 0 ? nullptr : find(number);
  if (tile == nullptr || (options_.warp >= 0 && options_.warp != exec.warp.index)) return;
  const Wavefronts cost = shared_wavefronts(access.addresses, access.lanes, access.bytes);
  TileReader read;
  read.warp = exec.warp.index;
  read.registers = access.matrix_rows ? (std::popcount(access.lanes) + kRowsOfMatrix - 1) / kRowsOfMatrix
                                      : std::max<std::int64_t>(1, access.bytes / kRegister);
  read.cycles = cost.wavefronts;
  read.conflicts = cost.wavefronts - cost.ideal;
  read.form = read_form(exec.program().instr(op), access);
  for (LaneMask rest = options_.lanes ? access.lanes : 0; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    read.lanes.emplace_back(lane,
                            static_cast<std::int64_t>(offset_of(access.addresses[static_cast<std::size_t>(lane)])));
  }
  tile->reads.push_back(std::move(read));
}

// All four warps of a warpgroup issue the product; the first of them stands for the group.
void TileTrace::operand_read(const Exec& exec, const Op& op) {
  if (tiles_.empty() || exec.warp.index % 4 != 0 || (options_.warp >= 0 && options_.warp != exec.warp.index)) return;
  const WgmmaShape shape = wgmma_shape(exec, op);
  const Instr& instr = exec.program().instr(op);
  const auto number = [&](int at) { return register_of<std::int32_t>(exec, op.list[at])[0]; };
  const auto descriptor = [&](int at) { return register_of<std::uint64_t>(exec, op.list[at])[0]; };
  const auto mn_major = [&](int at) { return at >= 0 && number(at) != 0; };
  if (shape.a_registers == 0) {
    take_operand(exec, 0, descriptor(shape.a_at), mn_major(shape.trans_a_at), bits(instr.type(1)), kRowsOfProduct,
                 shape.k);
  }
  take_operand(exec, 1, descriptor(shape.b_at), mn_major(shape.trans_b_at), bits(instr.type(2)), shape.n, shape.k);
}

void TileTrace::take_operand(const Exec& exec, std::int64_t operand, std::uint64_t descriptor, bool mn_major,
                             int element_bits, int lines, int depth) {
  const std::vector<WgmmaChunk> chunks = wgmma_chunks(descriptor, mn_major, element_bits, 0, lines, depth);
  Tile* const tile = chunks.empty() ? nullptr : find(owner_of(chunks.front().offset));
  if (tile == nullptr) return;
  TileReader read;
  read.warp = exec.warp.index;
  read.form = {trace::ReadInstruction::wgmma, kChunk};
  read.operand = operand_geometry(descriptor);
  read.operand->wave = exec.warp.index;
  read.operand->operand = operand;
  read.operand->mn_major = mn_major;
  read.operand->lines = lines;
  read.operand->depth = depth;
  for (const WgmmaChunk& chunk : chunks) {
    if (!options_.lanes) break;
    read.chunks.push_back({0, chunk.mn, chunk.k, static_cast<std::int64_t>(chunk.offset)});
  }
  tile->reads.push_back(std::move(read));
}

// Bytes that a thread stores no longer belong to a copy.
void TileTrace::stored(const Exec& exec, const Op&, const WarpAccess& access) {
  if (tiles_.empty() || access.space != Space::shared) return;
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const std::uint64_t address = access.addresses[static_cast<std::size_t>(std::countr_zero(rest))];
    const Cta* to = find_cta(exec.launch, options_.cta);
    const bool here = to != nullptr && cluster_of(exec.launch, *to) == cluster_of(exec.launch, exec.cta) &&
                      rank_of(address) == static_cast<std::uint64_t>(to->cluster_rank);
    if (here) take_bytes(offset_of(address), access.bytes, -1);
  }
}

// --- output ----------------------------------------------------------------------------------------------------------

void TileTrace::cta_ends(Launch&, const Cta& cta) {
  if (cta.index == options_.cta) record_all();
}

void TileTrace::launch_ends(Launch&) {
  record_all();
}

void TileTrace::record_all() {
  for (const Tile& tile : tiles_) record(tile);
  tiles_.clear();
  phases_.clear();
  groups_.clear();
  owners_.clear();
  commits_.clear();
  busy_.clear();
}

// Records tiles that cannot be read any more, because other tiles own all of their bytes.
void TileTrace::record_done() {
  while (!tiles_.empty() && tiles_.front().owned == 0 && (!tiles_.front().empty() || tiles_.front().completed)) {
    record(tiles_.front());
    const std::int64_t number = tiles_.front().number;
    tiles_.pop_front();
    std::erase_if(phases_, [&](const auto& of) { return of.second == number; });
    std::erase_if(groups_, [&](const auto& of) { return of.second == number; });
  }
}

}  // namespace kvscope::ptx
