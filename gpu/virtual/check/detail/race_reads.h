// Reads of a CTA's shared memory that are ordered after all earlier writes and have no marks yet. Most never need marks:
// a tile is read many times, its readers arrive at a barrier, and the next write is ordered after all of them.
//
//   ldmatrix by warp 1, step 7                  pending: only the addresses of the lanes are recorded
//   a tensor load ordered after that step       nothing to check
//   a store that is not ordered after it        the pending reads get their marks, and the store is checked against them
//
// A read that its warp repeats in the same step, of the same bytes by the same lanes, takes the place of the earlier one, as its
// marks would: a loop that reads a row again and again costs one read.
//
// Reads are numbered in the order of execution. Shadow::written_at tells which of them came before the last write of a
// chunk.
//
// Reads of common kibibytes are one group, so no chunk is read by two groups: a write makes marks of the groups that it meets, and the
// others stay pending.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/virtual/check/clock.h"
#include "gpu/virtual/check/lane_offsets.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

// The set of kibibytes of a window that have been accessed. The last bit also covers everything beyond it.
class Regions {
 public:
  static constexpr std::uint64_t kBytes = 1024;
  static constexpr std::size_t kCount = 256;

  [[nodiscard]] static constexpr std::size_t of(std::uint64_t offset) {
    return static_cast<std::size_t>(std::min<std::uint64_t>(offset / kBytes, kCount - 1));
  }
  [[nodiscard]] static Regions all() {
    Regions out;
    out.bits_.fill(~std::uint64_t{0});
    return out;
  }
  // `low`, `high`: offsets of the first and the last byte.
  void add(std::uint64_t low, std::uint64_t high) {
    const std::size_t last = of(high);
    for (std::size_t r = of(low); r <= last; ++r) bits_[r / 64] |= std::uint64_t{1} << r % 64;
  }
  void add(const Regions& other) {
    for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] |= other.bits_[i];
  }
  [[nodiscard]] bool meets(const Regions& other) const {
    std::uint64_t common = 0;
    for (std::size_t i = 0; i < bits_.size(); ++i) common |= bits_[i] & other.bits_[i];
    return common != 0;
  }
  template <class Body>  // called with the number of each, ascending
  void each(Body body) const {
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      for (std::uint64_t left = bits_[i]; left != 0; left &= left - 1)
        body(i * 64 + static_cast<std::size_t>(std::countr_zero(left)));
    }
  }

 private:
  std::array<std::uint64_t, kCount / 64> bits_{};
};

class PendingReads {
 public:
  // Reads of one warp in one step, with one view.
  struct Segment {
    ActorKey warp = 0;  // its lane 0
    Step step = 0;
    Known known;  // null: the lanes have different views
    Regions regions;
  };
  struct Read {
    std::uint64_t number = 0;
    std::uint32_t segment = 0;
    std::int32_t pc = -1;
    LaneMask lanes = 0;       // 0: it has got its marks
    std::int16_t bytes = 0;   // per lane, at most 16
    std::uint16_t meets = 0;  // Mark::meets
    bool strong = false;
    bool one = false;        // all lanes read at offsets[0]; the others are not filled in
    std::uint32_t next = 0;  // of its group: 1 + the index of the following read; 0: none
    LaneExtent extent;       // of the offsets
    LaneOffsets offsets;     // of all lanes (lane_offsets.h)
  };

  // Forgets everything but its memory, which another CTA can use.
  void reset() {
    clear();
    next_ = 1;
  }
  [[nodiscard]] bool empty() const { return live_ == 0; }
  [[nodiscard]] bool full() const { return count_ == kMost || segments_.size() == kMostSegments; }
  // The number that the next read gets.
  [[nodiscard]] std::uint64_t now() const { return next_; }
  // The place of the next read. keep() adds it after it has been filled in, unless it repeats one.
  [[nodiscard]] Read& room() {
    if (count_ == reads_.size()) reads_.resize(std::clamp<std::size_t>(2 * count_, 16, kMost));
    return reads_[count_];
  }
  void keep(ActorKey warp, Step step, const Known* known);

  [[nodiscard]] bool meet(const Regions& regions) const { return live_ != 0 && all_.meets(regions); }
  // Whether `known` covers all reads that meet the regions.
  [[nodiscard]] bool over(const Regions& regions, const Known& known);

  // All regions of the groups that meet these.
  [[nodiscard]] Regions in_groups_of(const Regions& regions) const;
  // Reads of the groups that meet the regions, at most `most`.
  [[nodiscard]] std::size_t count_of(const Regions& regions, std::size_t most) const;
  [[nodiscard]] bool crowded() const { return live_ > kMost / 2 || segments_.size() > kMostSegments / 2; }
  // Removes these groups, and calls body(read, its segment) for each read of a group in the order of execution.
  template <class Body>
  void take(const Regions& regions, Body body) {
    regions.each([&](std::size_t r) {
      if (group_of_[r] == 0) return;
      const Group group = groups_[group_of_[r] - 1];
      group.regions.each([&](std::size_t one) { group_of_[one] = 0; });
      for (std::uint32_t at = group.first; at != 0; at = reads_[at - 1].next) {
        Read& read = reads_[at - 1];
        body(read, segments_[read.segment]);
        read.lanes = 0;
        --live_;
      }
    });
    if (live_ == 0) clear();
  }
  // Drops the reads that `over` covers: no thread can race with them any more.
  void forget(const Clock& over);

 private:
  static constexpr std::size_t kMost = 8192, kMostSegments = 256, kPlaces = 8192;
  // Its number is 1 + that of one of its regions.
  struct Group {
    Regions regions;
    std::uint32_t first = 0, last = 0;  // 1 + index of a read
  };
  void clear();
  // The last read of these places, if the current segment has one; otherwise null. Its entry of places_ is then the next read's.
  [[nodiscard]] Read* repeated(const Read& read);
  void add_to_group(std::size_t read);
  // Adds the reads of group `from` to those of `to`, in the order of execution.
  void merge(std::uint16_t to, std::uint16_t from);

  std::uint64_t next_ = 1;
  std::size_t count_ = 0;  // of reads_
  std::size_t live_ = 0;   // of those: without marks
  std::vector<Read> reads_;
  std::vector<Segment> segments_;
  // The view of the last question of over(), and how many of the first segments it was found to cover: a warp's writes between two
  // barriers ask with one view.
  Known over_;
  std::size_t over_end_ = 0;
  Regions all_;
  std::array<std::uint16_t, Regions::kCount> group_of_{};  // by region; 0: none
  std::vector<Group> groups_;                              // by number - 1
  std::vector<std::uint16_t> places_;  // [kPlaces] by a hash: a read, which may be gone; empty before the first one
};

}  // namespace kvscope::ptx
