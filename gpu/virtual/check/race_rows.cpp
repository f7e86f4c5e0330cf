#include "gpu/virtual/check/detail/race_rows.h"

#include <algorithm>
#include <bit>

#include "gpu/virtual/check/detail/race_cluster.h"
#include "gpu/virtual/machine/memory/windows.h"

namespace kvscope::ptx {

void LaneRows::grow(Rows& rows, std::int32_t first, std::int32_t bytes) {
  if (first < rows.low) {
    rows.cells.insert(rows.cells.begin(), static_cast<std::size_t>((rows.low - first) / kCellBytes), Cell{});
    rows.low = first;
  }
  rows.high = std::max(rows.high, first + bytes);
  rows.cells.resize(static_cast<std::size_t>((rows.high - rows.low) / kCellBytes));
  rows.regions.add(static_cast<std::uint64_t>(rows.low), static_cast<std::uint64_t>(rows.end() - 1));
}

void LaneRows::keep(Rows& rows, Touch touch) {
  touch.order = next_++;
  Cell* const begin = rows.cells_at(touch.first);
  for (Cell* cell = begin; cell != begin + touch.bytes / kCellBytes; ++cell) {
    if (touch.write) cell->read = {};
    (touch.write ? cell->write : cell->read) = touch;
  }
}

std::vector<LaneRows::Left> LaneRows::in_order(const Rows& rows) {
  static constexpr std::uint32_t kCell = (1u << kCellBytes) - 1;
  std::vector<Left> out;
  std::int32_t at = rows.low;
  for (const Cell& cell : rows.cells) {
    for (const Touch* touch : {&cell.write, &cell.read}) {
      if (touch->order != 0) out.emplace_back(touch, kCell << (at - touch->first));
    }
    at += kCellBytes;
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Left& a, const Left& b) { return a.first->order < b.first->order; });
  std::size_t kept = 0;
  for (const Left& one : out) {
    if (kept != 0 && out[kept - 1].first->order == one.first->order) {
      out[kept - 1].second |= one.second;
    } else {
      out[kept++] = one;
    }
  }
  out.resize(kept);
  return out;
}

// Makes marks of the accesses of these rows.
template <class Leave>
void RaceChecker::leave_rows(Cluster& cluster, std::size_t rank, Leave leave) {
  Shadow& shadow = *cluster.shadows[rank];
  cluster.rows[rank].take(leave, [&](const LaneRows::Rows& rows, const LaneRows::Touch& touch, std::uint32_t left) {
    Mark mark{.actor = rows.warp, .step = touch.step, .pc = touch.pc, .meets = touch.meets, .write = touch.write};
    mark.shift = static_cast<std::uint8_t>(std::countr_zero(static_cast<unsigned>(touch.bytes)));
    for (int lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t offset =
          shadow.first_address() + static_cast<std::uint64_t>(touch.first + lane * rows.stride);
      mark.lanes = LaneMask{1} << lane;
      mark.first = static_cast<std::uint8_t>(offset % kChunkBytes);
      mark.bytes = static_cast<ChunkBytes>(left << mark.first);
      if (touch.write) {
        shadow.write_noted(offset, mark);
      } else {
        add_read(&touch.known->ordered, {&shadow, offset, shared_address(rank, offset), mark});
      }
    }
  });
}

// The same for rows that may have bytes of these regions.
void RaceChecker::leave_rows(Cluster& cluster, std::size_t rank, const Regions& regions) {
  if (cluster.rows[rank].empty()) return;
  leave_rows(cluster, rank, [&](const LaneRows::Rows& rows) { return rows.regions.meets(regions); });
}

// Keeps an access of the CTA's memory in which each lane stays in one row, if all lanes of the warp share a view and earlier accesses of
// these bytes by others are ordered before it. Otherwise returns false: the access has to be checked.
bool RaceChecker::stays_in_rows(Toucher& who, const Mark& like, int bytes, LaneMask lanes,
                                std::span<const std::uint64_t, kLanes> addresses) {
  static constexpr std::uint64_t kMostStride = 4096;
  const std::uint64_t stride = addresses[1] - addresses[0];
  if (lanes != kAllLanes || like.strong || (bytes != 4 && bytes != 8) || who.known == nullptr ||
      stride < static_cast<std::uint64_t>(kChunkBytes) || stride > kMostStride || options_.strict_war_proxy ||
      (addresses[0] | stride) % static_cast<std::uint64_t>(bytes) != 0 ||
      lane_loops().pattern(addresses.data(), stride).from_row != 0)
    return false;
  Cluster& cluster = who.cluster;
  const std::uint64_t rank = rank_of(addresses[0]), offset = offset_of(addresses[0]);
  if (rank != who.warp.cta() || rank_of(addresses[kLanes - 1]) != rank || !cluster.shadows[rank]) return false;
  Shadow& shadow = *cluster.shadows[rank];
  if (!shadow.holds(offset) || !shadow.holds(offset_of(addresses[kLanes - 1]))) return false;
  const auto first = static_cast<std::int32_t>(offset - shadow.first_address()),
             step = static_cast<std::int32_t>(stride);
  LaneRows& all = cluster.rows[rank];

  LaneRows::Rows* rows = all.find(like.actor, step, first, bytes);
  if (rows == nullptr || first < rows->low || first + bytes > rows->high) {
    const std::int32_t low = rows == nullptr ? first : std::min(first, rows->low);
    const std::int32_t end =
        (rows == nullptr ? first + bytes : std::max(first + bytes, rows->high)) + (kLanes - 1) * step;
    const auto is_in_the_way = [&](const LaneRows::Rows& other) {
      const bool same = other.warp == like.actor && other.stride == step && other.fits(first, bytes);
      return !same && other.low < end && low < other.end();
    };
    leave_rows(cluster, rank, is_in_the_way);
    rows = all.find(like.actor, step, first, bytes);
    if (rows == nullptr) rows = &all.add(like.actor, step, first);
    LaneRows::grow(*rows, first, bytes);
  }
  if (cluster.pending[rank].meet(rows->regions)) {  // by earlier reads: marks are made in the order of execution
    settle(cluster, rank, rows->regions);
    rows = all.find(like.actor, step, first, bytes);
    if (rows == nullptr) return false;  // there are marks now
  }
  LaneRows::Cell* const cell = rows->cells_at(first);
  for (int i = 0; i < bytes / LaneRows::kCellBytes; ++i) {
    if (cell[i].clear) continue;
    cell[i].clear = shadow.is_clear_of(like, LaneRows::kCellBytes, first + i * LaneRows::kCellBytes, step,
                                       [&](const Mark& before) { return covered(who, before); });
    if (!cell[i].clear) return false;
  }
  all.keep(*rows, {.first = first,
                   .bytes = bytes,
                   .step = like.step,
                   .pc = like.pc,
                   .meets = like.meets,
                   .write = like.write,
                   .known = like.write ? nullptr : who.warp.known(who.lane)});
  if (like.write)
    shadow.note(like, static_cast<std::size_t>(first) / kChunkBytes,
                static_cast<std::size_t>(first + (kLanes - 1) * step) / kChunkBytes);
  return true;
}

}  // namespace kvscope::ptx
