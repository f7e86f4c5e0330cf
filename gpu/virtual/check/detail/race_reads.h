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
#pragma once

#include <algorithm>
#include <array>
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

  // `low`, `high`: offsets of the first and the last byte.
  void add(std::uint64_t low, std::uint64_t high) {
    const std::uint64_t last = std::min(high / kBytes, kCount - 1);
    for (std::uint64_t r = std::min(low / kBytes, kCount - 1); r <= last; ++r)
      bits_[r / 64] |= std::uint64_t{1} << r % 64;
  }
  void add(const Regions& other) {
    for (std::size_t i = 0; i < bits_.size(); ++i) bits_[i] |= other.bits_[i];
  }
  [[nodiscard]] bool meets(const Regions& other) const {
    std::uint64_t common = 0;
    for (std::size_t i = 0; i < bits_.size(); ++i) common |= bits_[i] & other.bits_[i];
    return common != 0;
  }

 private:
  static constexpr std::uint64_t kCount = 256;
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
    LaneMask lanes = 0;
    std::int16_t bytes = 0;   // per lane, at most 16
    std::uint16_t meets = 0;  // Mark::meets
    bool strong = false;
    LaneOffsets offsets;  // of all lanes (lane_offsets.h)
  };

  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] bool full() const { return count_ == kMost || segments_.size() == kMostSegments; }
  // The number that the next read gets.
  [[nodiscard]] std::uint64_t now() const { return next_; }
  // The place of the next read. keep() adds it after it has been filled in, unless it repeats one.
  [[nodiscard]] Read& room() {
    if (count_ == reads_.size()) reads_.resize(std::clamp<std::size_t>(2 * count_, 16, kMost));
    return reads_[count_];
  }
  void keep(ActorKey warp, Step step, const Known* known);

  [[nodiscard]] bool meet(const Regions& regions) const { return count_ != 0 && all_.meets(regions); }
  // Whether `known` covers all reads that meet the regions.
  [[nodiscard]] bool over(const Regions& regions, const Clock& known) const;

  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] bool crowded() const { return count_ > kMost / 2 || segments_.size() > kMostSegments / 2; }
  [[nodiscard]] const Read& read(std::size_t i) const { return reads_[i]; }
  [[nodiscard]] const Segment& segment_of(const Read& read) const { return segments_[read.segment]; }
  // Drops the reads that `over` covers: no thread can race with them any more.
  void forget(const Clock& over);
  void clear();

 private:
  static constexpr std::size_t kMost = 2048, kMostSegments = 256, kPlaces = 2048;
  // The last read of these places, if the current segment has one; otherwise null. Its entry of places_ is then the next read's.
  [[nodiscard]] Read* repeated(const Read& read);
  std::uint64_t next_ = 1;
  std::size_t count_ = 0;  // of reads_
  std::vector<Read> reads_;
  std::vector<Segment> segments_;
  Regions all_;
  std::array<std::uint16_t, kPlaces> places_{};  // by a hash: a read, which may be gone
};

}  // namespace kvscope::ptx
