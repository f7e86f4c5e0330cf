#include "gpu/virtual/check/detail/race_reads.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "gpu/virtual/check/detail/race_cluster.h"
#include "gpu/virtual/machine/memory/windows.h"

namespace kvscope::ptx {

PendingReads::Read* PendingReads::repeated(const Read& read) {
  const auto part = [&](std::size_t lane, std::uint32_t factor) {
    return static_cast<std::uint32_t>(read.offsets[lane]) * factor;
  };
  std::uint32_t hash = part(0, 0x9e3779b1) ^ read.lanes * 0xd3a2646c;
  if (!read.one) hash ^= part(1, 0x85ebca77) ^ part(8, 0xc2b2ae3d) ^ part(18, 0x27d4eb2f) ^ part(31, 0x165667b1);
  if (places_.empty()) places_.resize(kPlaces);
  std::uint16_t& place = places_[hash >> 19];
  static_assert(kPlaces == 1u << (32 - 19) && kMost <= 0xffff);
  const std::size_t at = place;
  place = static_cast<std::uint16_t>(count_);
  if (at >= count_) return nullptr;
  Read& before = reads_[at];
  if (before.segment != segments_.size() - 1 || before.lanes != read.lanes || before.bytes != read.bytes ||
      before.strong != read.strong || before.one != read.one || before.offsets[0] != read.offsets[0] ||
      (!read.one && before.offsets != read.offsets))
    return nullptr;
  place = static_cast<std::uint16_t>(at);
  return &before;
}

void PendingReads::merge(std::uint16_t to, std::uint16_t from) {
  Group &into = groups_[to - 1u], &other = groups_[from - 1u];
  std::uint32_t a = into.first, b = other.first;
  std::uint32_t* link = &into.first;
  while (a != 0 && b != 0) {
    std::uint32_t& least = a < b ? a : b;
    *link = least;
    link = &reads_[least - 1].next;
    least = *link;
  }
  *link = a != 0 ? a : b;
  into.last = std::max(into.last, other.last);
  into.regions.add(other.regions);
  other.regions.each([&](std::size_t r) { group_of_[r] = to; });
}

void PendingReads::add_to_group(std::size_t index) {
  Read& read = reads_[index];
  const auto number = static_cast<std::uint32_t>(index + 1);
  read.next = 0;
  ++live_;
  // The bytes of one lane are in one chunk, and therefore in one region.
  const std::size_t begin = Regions::of(static_cast<std::uint64_t>(read.extent.low));
  const std::size_t end = Regions::of(static_cast<std::uint64_t>(read.extent.high)) + 1;
  std::uint16_t mine = group_of_[begin];
  if (mine != 0 && end == begin + 1) [[likely]] {
    Group& group = groups_[mine - 1u];
    reads_[group.last - 1].next = number;
    group.last = number;
    return;
  }
  bool alone = mine != 0;  // all regions are the group's
  for (std::size_t r = begin + 1; r < end; ++r) {
    alone = alone && group_of_[r] == mine;
    if (group_of_[r] == 0 || group_of_[r] == mine) continue;
    if (mine == 0) {
      mine = group_of_[r];
    } else {
      merge(mine, group_of_[r]);
    }
  }
  if (mine == 0) {
    mine = static_cast<std::uint16_t>(begin + 1);
    if (groups_.empty()) groups_.resize(Regions::kCount);
    groups_[begin] = {};
  }
  Group& group = groups_[mine - 1u];
  if (!alone) {
    group.regions.add(begin * Regions::kBytes, (end - 1) * Regions::kBytes);
    std::fill(group_of_.begin() + static_cast<std::ptrdiff_t>(begin),
              group_of_.begin() + static_cast<std::ptrdiff_t>(end), mine);
    all_.add(group.regions);
  }
  (group.last != 0 ? reads_[group.last - 1].next : group.first) = number;
  group.last = number;
}

void PendingReads::keep(ActorKey warp, Step step, const Known* known) {
  if (segments_.empty() || segments_.back().warp != warp || segments_.back().step != step ||
      segments_.back().known.get() != (known != nullptr ? known->get() : nullptr)) {
    segments_.push_back({warp, step, known != nullptr ? *known : nullptr, {}});
  }
  if (Read* before = repeated(reads_[count_])) {
    before->number = next_++;
    before->pc = reads_[count_].pc;
    before->meets = reads_[count_].meets;
    return;
  }
  Read& read = reads_[count_++];
  read.number = next_++;
  read.segment = static_cast<std::uint32_t>(segments_.size() - 1);
  segments_.back().regions.add(static_cast<std::uint64_t>(read.extent.low),
                               static_cast<std::uint64_t>(read.extent.high));
  add_to_group(count_ - 1);
}

std::size_t PendingReads::count_of(const Regions& regions, std::size_t most) const {
  std::size_t count = 0;
  std::uint16_t last = 0;
  regions.each([&](std::size_t r) {
    if (group_of_[r] == 0 || group_of_[r] == last) return;
    last = group_of_[r];
    for (std::uint32_t at = groups_[last - 1u].first; at != 0 && count < most; at = reads_[at - 1].next) ++count;
  });
  return count;
}

Regions PendingReads::in_groups_of(const Regions& regions) const {
  Regions out;
  regions.each([&](std::size_t r) {
    if (group_of_[r] != 0) out.add(groups_[group_of_[r] - 1u].regions);
  });
  return out;
}

bool PendingReads::over(const Regions& regions, const Known& known) {
  const auto is_over = [&](const Segment& s) { return known->ordered.covers_warp(s.warp, s.step); };
  if (over_ != known) {
    over_ = known;
    over_end_ = 0;
  }
  while (over_end_ < segments_.size() && is_over(segments_[over_end_])) ++over_end_;
  return std::all_of(segments_.begin() + static_cast<std::ptrdiff_t>(over_end_), segments_.end(),
                     [&](const Segment& s) { return is_over(s) || !s.regions.meets(regions); });
}

void PendingReads::forget(const Clock& over) {
  constexpr std::uint32_t kGone = ~std::uint32_t{0};
  std::vector<std::uint32_t> to(segments_.size(), kGone);
  std::uint32_t kept = 0;
  all_ = {};
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    if (over.covers_warp(segments_[s].warp, segments_[s].step)) continue;
    to[s] = kept;
    if (kept != s) segments_[kept] = std::move(segments_[s]);
    ++kept;
  }
  over_end_ = 0;
  const std::size_t before = count_;
  count_ = live_ = 0;
  group_of_.fill(0);
  for (std::size_t i = 0; i < before; ++i) {
    if (reads_[i].lanes == 0 || to[reads_[i].segment] == kGone) continue;
    if (count_ != i) reads_[count_] = reads_[i];
    reads_[count_].segment = to[reads_[count_].segment];
    add_to_group(count_++);
  }
  segments_.resize(kept);
}

void PendingReads::clear() {
  count_ = live_ = 0;
  over_ = nullptr;
  over_end_ = 0;
  segments_.clear();
  all_ = {};
  group_of_.fill(0);
}

// The clocks of lanes, each distinct one once.
class RaceChecker::LaneViews {
 public:
  LaneViews(const Toucher& who, LaneMask lanes) {
    if (who.known != nullptr) {
      views_[count_++] = who.known;
      return;
    }
    for (LaneMask left = lanes; left != 0; left &= left - 1) {
      const Clock* view = &who.warp.ordered(std::countr_zero(left));
      if (count_ > 0 && views_[count_ - 1] == view) continue;
      if (count_ == views_.size()) {  // too many to check each
        count_ = 0;
        return;
      }
      views_[count_++] = view;
    }
  }
  // Whether all of them cover the mark; false means that each lane has to be checked.
  [[nodiscard]] bool cover(const Mark& mark) const {
    return count_ > 0 && std::all_of(views_.begin(), views_.begin() + static_cast<std::ptrdiff_t>(count_),
                                     [&](const Clock* view) { return covers(view, mark); });
  }

 private:
  std::array<const Clock*, 4> views_;
  std::size_t count_ = 0;
};

// Whether all writes so far are ordered before all lanes of the warp, or are outside of these offsets; false means that the chunks have
// to be looked at.
bool RaceChecker::behind_past(Cluster& cluster, const WarpViews& warp, const Clock* known, Shadow& shadow,
                              LaneExtent extent) {
  static constexpr std::uint64_t kFew = 8;
  // What a lane has acquired only grows: these writes were ordered before it earlier, and still are.
  Cluster::PastBehind& behind = cluster.behind(warp.cta(), static_cast<std::size_t>(warp.index()));
  const std::uint64_t end = shadow.past_end();
  if (behind.end == end) return true;
  if (behind.tried != known || behind.tried_end != end) {
    if (shadow.past_is_long()) shadow.forget_past(cluster.order.known_to_all());
    behind.end = std::max(behind.end, shadow.past_begin());
    while (behind.end < end && shadow.past(behind.end).is_before(*known)) ++behind.end;
    behind.tried = known;
    behind.tried_end = end;
  }
  if (end - behind.end > kFew) return false;
  const auto low = static_cast<std::uint32_t>(extent.low / kChunkBytes);
  const auto high = static_cast<std::uint32_t>(extent.high / kChunkBytes);
  for (std::uint64_t i = behind.end; i < end; ++i) {
    const Shadow::Past& one = shadow.past(i);
    if (one.low <= high && low <= one.high && !one.is_before(*known)) return false;
  }
  return true;
}

// Whether the last writes of these bytes are all ordered before the toucher; false means that each has to be checked.
bool RaceChecker::behind_writes(const Toucher& who, LaneMask lanes, const Shadow& shadow, const LaneOffsets& offsets,
                                bool in_one_chunk) {
  const std::uint32_t* const last = shadow.last().data();
  const auto at = [&](std::size_t i) { return last[static_cast<std::size_t>(offsets[i]) / kChunkBytes] >> 1; };
  const Shadow::Writer first = at(0);
  std::uint32_t others = 0;
  if (!in_one_chunk) {
    for (std::size_t i = 0; i < kLanes; ++i) others |= at(i) ^ first;
  }
  const LaneViews views(who, lanes);
  Shadow::Writer good = Shadow::kNobody;
  for (std::size_t i = 0; i < kLanes; ++i) {
    const Shadow::Writer writer = at(i);
    if (writer != good && writer != Shadow::kNobody) {
      if (writer == Shadow::kSeveral || !views.cover(shadow.mark_of(writer))) return false;
      good = writer;
    }
    if (others == 0) break;
  }
  return true;
}

// A read of the CTA's own memory that is ordered after all earlier writes. Returns false if it is not, or if that is not plain.
bool RaceChecker::read_behind(Cluster& cluster, WarpViews& warp, const WarpAccess& access, std::int32_t pc, Step step,
                              bool strong) {
  const std::size_t lane = static_cast<std::size_t>(std::countr_zero(access.lanes)), rank = warp.cta();
  const int bytes = access.matrix_rows ? 16 : access.bytes;
  if (!cluster.shadows[rank] || bytes > kChunkBytes || !warp.uniform() || options_.strict_war_proxy) return false;
  Shadow& shadow = *cluster.shadows[rank];
  PendingReads& pending = cluster.pending[rank];
  if (pending.full()) return false;
  PendingReads::Read& read = pending.room();
  const std::uint64_t first = shared_address(rank, shadow.first_address());
  std::uint64_t bits = access.addresses[lane] - first;
  if (access.one) {
    read.offsets[0] = static_cast<std::int32_t>(bits);
    read.extent = {read.offsets[0], read.offsets[0]};
  } else {
    bits = lane_offsets(first, access.addresses, access.lanes, read.offsets);
    read.extent = lane_loops().extent(read.offsets.data());
  }
  const Known& known = warp.known(static_cast<int>(lane));
  if (bits >= shadow.limit() || !behind_past(cluster, warp, &known->ordered, shadow, read.extent)) return false;
  read.pc = pc;
  read.lanes = access.lanes;
  read.bytes = static_cast<std::int16_t>(bytes);
  read.strong = strong;
  read.meets = warp.meets();
  read.one = access.one;
  pending.keep(warp.lane0(), step, &known);
  return true;
}

void RaceChecker::touch_reads(Toucher& who, const Mark& like, int bytes, const WarpAccess& access) {
  Cluster& cluster = who.cluster;
  const LaneMask lanes = access.lanes;
  if (stays_in_rows(who, like, bytes, lanes, access.addresses)) return;
  const std::uint64_t lead = access.addresses[static_cast<std::size_t>(who.lane)], rank = rank_of(lead);
  if (rank < cluster.shadows.size() && cluster.shadows[rank] && bytes <= kChunkBytes && !options_.strict_war_proxy) {
    Shadow& shadow = *cluster.shadows[rank];
    PendingReads& pending = cluster.pending[rank];
    if (pending.full()) {
      pending.forget(cluster.order.known_to_all());
      if (pending.crowded()) settle(cluster, rank, Regions::all());
    }
    PendingReads::Read& read = pending.room();
    const std::uint64_t first = shared_address(rank, shadow.first_address());
    std::uint64_t bits = lead - first;
    std::uint32_t differing = 0;
    if (access.one) {
      read.offsets[0] = static_cast<std::int32_t>(bits);
    } else {
      bits = lane_offsets(first, access.addresses, lanes, read.offsets);
      differing = differing_bits(read.offsets);
    }
    if (bits < shadow.limit()) {
      read.extent = {read.offsets[0], read.offsets[0]};
      if (differing >= static_cast<std::uint32_t>(kChunkBytes)) read.extent = lane_loops().extent(read.offsets.data());
      if (!cluster.rows[rank].empty()) {
        Regions regions;
        regions.add(static_cast<std::uint64_t>(read.extent.low), static_cast<std::uint64_t>(read.extent.high));
        leave_rows(cluster, rank, regions);
      }
      if (!behind_writes(who, lanes, shadow, read.offsets, differing < static_cast<std::uint32_t>(kChunkBytes))) {
        each_piece(cluster, like, bytes, lanes, access.addresses, [&](const Piece& piece) { check_all(who, piece); });
      }
      read.pc = like.pc;
      read.lanes = lanes;
      read.bytes = static_cast<std::int16_t>(bytes);
      read.strong = like.strong;
      read.meets = like.meets;
      read.one = access.one;
      pending.keep(like.actor, like.step, who.known != nullptr ? &who.warp.known(who.lane) : nullptr);
      return;
    }
  }
  // The lanes access several windows, or more than a chunk each.
  for (std::size_t r = 0; r < cluster.pending.size(); ++r) {
    leave_rows(cluster, r, Regions::all());
    settle(cluster, r, Regions::all());
  }
  each_piece(cluster, like, bytes, lanes, access.addresses, [&](const Piece& piece) {
    check_all(who, piece);
    add_read(who.known, piece);
  });
}

// Makes marks of the pending reads of these regions, and of all that are in a group with them, that another thread could still race
// with.
void RaceChecker::settle(Cluster& cluster, std::size_t rank, const Regions& regions) {
  static constexpr std::size_t kWorthAsking = 16;
  PendingReads& pending = cluster.pending[rank];
  if (pending.empty()) return;
  Shadow& shadow = *cluster.shadows[rank];
  const std::uint64_t base = shared_address(rank, shadow.first_address());
  if (pending.count_of(regions, kWorthAsking) >= kWorthAsking) pending.forget(cluster.order.known_to_all());
  if (!pending.meet(regions)) return;
  leave_rows(cluster, rank, pending.in_groups_of(regions));  // earlier writes
  pending.take(regions, [&](const PendingReads::Read& read, const PendingReads::Segment& segment) {
    const Clock* known = segment.known != nullptr ? &segment.known->ordered : nullptr;
    std::array<std::uint64_t, kLanes> addresses;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      addresses[lane] = base + static_cast<std::uint64_t>(read.offsets[read.one ? 0 : lane]);
    }
    const Mark like{
        .actor = segment.warp, .step = segment.step, .pc = read.pc, .meets = read.meets, .strong = read.strong};
    each_piece(cluster, like, read.bytes, read.lanes, addresses, [&](const Piece& piece) {
      if (shadow.written_at(piece.chunk) <= read.number) add_read(known, piece);
    });
  });
}

// Called before an engine touches these regions, or lanes write them. `whole`: only whole chunks are written, so earlier reads are
// redundant afterwards.
void RaceChecker::meet_reads(const Toucher& who, std::size_t rank, const Regions& regions, bool whole) {
  leave_rows(who.cluster, rank, regions);
  PendingReads& pending = who.cluster.pending[rank];
  if (!pending.meet(regions)) return;
  if (!whole || who.known == nullptr || !pending.over(regions, who.warp.known(who.lane)))
    settle(who.cluster, rank, regions);
}

// Drops earlier reads of these bytes that happened before this one: an access ordered after this read is ordered after
// them.
void RaceChecker::forget_older_reads(const Clock* known, const Piece& piece) {
  for (Mark& before : piece.shadow->marks(piece.chunk)) {
    if (before.write || (before.bytes & ~piece.mark.bytes) != 0 || (piece.mark.strong && !before.strong)) continue;
    if (covers(known, before)) before.bytes = 0;
  }
  piece.shadow->drop_empty(piece.chunk);
}

// `known`: what all readers had acquired; null: they had different views.
void RaceChecker::add_read(const Clock* known, const Piece& piece) {
  if (Mark* before = piece.shadow->replaced_read(piece.chunk, piece.mark)) {
    *before = piece.mark;
    return;
  }
  if (piece.shadow->crowded(piece.chunk)) forget_older_reads(known, piece);
  piece.shadow->read(piece.chunk, piece.mark);
}

}  // namespace kvscope::ptx
