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
  const std::uint32_t hash = part(0, 0x9e3779b1) ^ part(1, 0x85ebca77) ^ part(8, 0xc2b2ae3d) ^ part(18, 0x27d4eb2f) ^
                             part(31, 0x165667b1) ^ read.lanes * 0xd3a2646c;
  std::uint16_t& place = places_[hash >> 21];
  static_assert(kPlaces == 1u << (32 - 21));
  const std::size_t at = place;
  place = static_cast<std::uint16_t>(count_);
  if (at >= count_) return nullptr;
  Read& before = reads_[at];
  if (before.segment != segments_.size() - 1 || before.lanes != read.lanes || before.bytes != read.bytes ||
      before.strong != read.strong || before.offsets != read.offsets)
    return nullptr;
  place = static_cast<std::uint16_t>(at);
  return &before;
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
  std::int32_t low = read.offsets[0], high = low;
  if (differing_bits(read.offsets) >= Regions::kBytes) {
    for (const std::int32_t offset : read.offsets) {
      low = std::min(low, offset);
      high = std::max(high, offset);
    }
  }
  // The bytes of one lane are in one chunk, and therefore in one region.
  segments_.back().regions.add(static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high));
  all_.add(segments_.back().regions);
}

bool PendingReads::over(const Regions& regions, const Clock& known) const {
  return std::all_of(segments_.begin(), segments_.end(),
                     [&](const Segment& s) { return known.covers_warp(s.warp, s.step) || !s.regions.meets(regions); });
}

void PendingReads::forget(const Clock& over) {
  constexpr std::uint32_t kGone = ~std::uint32_t{0};
  std::vector<std::uint32_t> to(segments_.size(), kGone);
  std::uint32_t kept = 0;
  all_ = {};
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    if (over.covers_warp(segments_[s].warp, segments_[s].step)) continue;
    all_.add(segments_[s].regions);
    to[s] = kept;
    if (kept != s) segments_[kept] = std::move(segments_[s]);
    ++kept;
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    if (to[reads_[i].segment] == kGone) continue;
    if (count != i) reads_[count] = reads_[i];
    reads_[count].segment = to[reads_[count].segment];
    ++count;
  }
  count_ = count;
  segments_.resize(kept);
}

void PendingReads::clear() {
  count_ = 0;
  segments_.clear();
  all_ = {};
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

// Whether the last writes of these bytes are all ordered before the toucher; false means that each has to be checked.
bool RaceChecker::behind_writes(const Toucher& who, LaneMask lanes, const Shadow& shadow, const LaneOffsets& offsets) {
  const std::uint32_t* const last = shadow.last().data();
  const auto at = [&](std::size_t i) { return last[static_cast<std::size_t>(offsets[i]) / kChunkBytes] >> 1; };
  const Shadow::Writer first = at(0);
  std::uint32_t others = 0;
  if (differing_bits(offsets) >= kChunkBytes) {
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

void RaceChecker::touch_reads(Toucher& who, const Mark& like, int bytes, LaneMask lanes,
                              std::span<const std::uint64_t, kLanes> addresses) {
  Cluster& cluster = who.cluster;
  const std::uint64_t rank = rank_of(addresses[static_cast<std::size_t>(who.lane)]);
  if (rank < cluster.shadows.size() && cluster.shadows[rank] && bytes <= kChunkBytes && !options_.strict_war_proxy) {
    Shadow& shadow = *cluster.shadows[rank];
    PendingReads& pending = cluster.pending[rank];
    if (pending.full()) {
      pending.forget(cluster.order.known_to_all());
      if (pending.crowded()) settle(cluster, rank);
    }
    PendingReads::Read& read = pending.room();
    const std::uint64_t first = shared_address(rank, shadow.first_address());
    if (lane_offsets(first, addresses, lanes, read.offsets) < shadow.limit()) {
      if (!behind_writes(who, lanes, shadow, read.offsets)) {
        each_piece(cluster, like, bytes, lanes, addresses, [&](const Piece& piece) { check_all(who, piece); });
      }
      read.pc = like.pc;
      read.lanes = lanes;
      read.bytes = static_cast<std::int16_t>(bytes);
      read.strong = like.strong;
      read.meets = like.meets;
      pending.keep(like.actor, like.step, who.known != nullptr ? &who.warp.known(who.lane) : nullptr);
      return;
    }
  }
  // The lanes access several windows, or more than a chunk each.
  for (std::size_t r = 0; r < cluster.pending.size(); ++r) settle(cluster, r);
  each_piece(cluster, like, bytes, lanes, addresses, [&](const Piece& piece) {
    check_all(who, piece);
    add_read(who.known, piece);
  });
}

// Makes marks of the pending reads that another thread could still race with.
void RaceChecker::settle(Cluster& cluster, std::size_t rank) {
  static constexpr std::size_t kWorthAsking = 16;
  PendingReads& pending = cluster.pending[rank];
  if (pending.empty()) return;
  Shadow& shadow = *cluster.shadows[rank];
  const std::uint64_t base = shared_address(rank, shadow.first_address());
  if (pending.size() >= kWorthAsking) pending.forget(cluster.order.known_to_all());
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const PendingReads::Read& read = pending.read(i);
    const PendingReads::Segment& segment = pending.segment_of(read);
    const Clock* known = segment.known != nullptr ? &segment.known->ordered : nullptr;
    std::array<std::uint64_t, kLanes> addresses;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      addresses[lane] = base + static_cast<std::uint64_t>(read.offsets[lane]);
    }
    const Mark like{
        .actor = segment.warp, .step = segment.step, .pc = read.pc, .meets = read.meets, .strong = read.strong};
    each_piece(cluster, like, read.bytes, read.lanes, addresses, [&](const Piece& piece) {
      if (shadow.written_at(piece.chunk) <= read.number) add_read(known, piece);
    });
  }
  pending.clear();
}

// Called before these regions are written. `whole`: only whole chunks are, so earlier reads are redundant afterwards.
void RaceChecker::meet_reads(const Toucher& who, std::size_t rank, const Regions& regions, bool whole) {
  const PendingReads& pending = who.cluster.pending[rank];
  if (!pending.meet(regions)) return;
  if (!whole || who.known == nullptr || !pending.over(regions, *who.known)) settle(who.cluster, rank);
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
