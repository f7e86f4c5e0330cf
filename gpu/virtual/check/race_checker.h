// Finds races in shared memory, and ordinary writes that an engine reads or overwrites without a proxy fence.
//
// Two accesses of a common byte by different actors, at least one of them a write, are a race unless one happened before
// the other. happens_before.h lists what orders them. Nothing else does: lanes of a warp that execute together are not
// ordered, and neither a shuffle nor an mma orders anything (RaceOptions::collectives_order changes that). A race of two
// lanes of a warp that have met at such an instruction in between is a warning, all other races are errors. The write of a
// copy engine counts from its issue on: a read before the arrival barrier completes is a race even if the bytes have not
// moved yet.
//
// Not found: fences whose scope is too small; races in global memory (global_races.h).
// Source: PTX ISA, "Memory Consistency Model" and "Async Proxy".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "gpu/virtual/check/happens_before.h"
#include "gpu/virtual/check/lane_offsets.h"
#include "gpu/virtual/check/shadow.h"
#include "gpu/virtual/machine/diagnosis/report.h"
#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

class PendingReads;
class Regions;

enum class SameValue : std::uint8_t { note, error, ignore };

struct RaceOptions {
  bool races = true;
  bool proxy = true;
  bool collectives_order = false;          // a shuffle, vote, ldmatrix or mma orders its lanes
  SameValue same_value = SameValue::note;  // two unordered writes of equal bytes
  bool strict_war_proxy = false;           // ordinary reads before an engine's write need a proxy fence as well
  bool init_fence = true;                  // mbarrier.init needs a fence or a barrier before a copy completes on it
};

class RaceChecker final : public OrderMonitor {
 public:
  explicit RaceChecker(RaceOptions options = {});
  ~RaceChecker() override;

  [[nodiscard]] std::unique_ptr<Monitor> fork(std::int64_t) override { return std::make_unique<RaceChecker>(options_); }
  [[nodiscard]] OperationEvents wants_operations() const override { return {true, true, false, false}; }
  void launch_begins(Launch& launch) override;
  void cta_begins(Launch& launch, const Cta& cta) override;
  void cta_ends(Launch& launch, const Cta& cta) override;
  void access(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void stored(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                std::uint64_t address, std::int64_t amount, Order order, Scope scope) override;
  void proxy_fence(const Exec& exec, LaneMask lanes, Space space) override;
  void copies_issue(const Exec& exec, const LaneCopies& copies) override;
  void async_issue(const Exec& exec, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override;
  void async_moves(Launch& launch, const Cta& cta, const AsyncOp& op, ByteRanges reads, ByteRanges writes) override;
  void launch_ends(Launch& launch) override;

 private:
  struct Cluster;
  struct Toucher;
  class LaneViews;
  // A mark that is about to be made.
  struct Piece {
    Shadow* shadow;
    std::uint64_t chunk;    // in `shadow`: an address of the chunk
    std::uint64_t address;  // the same with the rank
    Mark mark;
  };
  // A write over an unordered write: only a note if the bytes are equal.
  struct Suspect {
    std::uint64_t address = 0;  // of the chunk, with the rank
    ChunkBytes bytes = 0;       // in common
    Mark before, now;
    int other = 0, lane = 0;
    std::array<std::byte, kChunkBytes> old{};
  };

  [[nodiscard]] HappensBefore* order_of(const Cta& cta) override;
  [[nodiscard]] Cluster* of(const Cta& cta);

  template <class Body>  // called with a Piece
  static void each_piece(Cluster& cluster, const Mark& like, int bytes, LaneMask lanes,
                         std::span<const std::uint64_t, kLanes> addresses, Body body);
  void touch_writes(Toucher& who, const Mark& like, int bytes, LaneMask lanes,
                    std::span<const std::uint64_t, kLanes> addresses);
  void touch_write(Toucher& who, const Mark& mark, std::uint64_t address);
  void write_pieces(Toucher& who);
  [[nodiscard]] LaneMask write_far_lanes(Toucher& who, const Mark& like, int bytes, LaneMask lanes,
                                         std::span<const std::uint64_t, kLanes> addresses);
  [[nodiscard]] bool read_behind(Cluster& cluster, WarpViews& warp, const WarpAccess& access, std::int32_t pc,
                                 Step step, bool strong);
  void touch_reads(Toucher& who, const Mark& like, int bytes, const WarpAccess& access);
  static void settle(Cluster& cluster, std::size_t rank, const Regions& regions);
  static void meet_reads(const Toucher& who, std::size_t rank, const Regions& regions, bool whole);
  [[nodiscard]] bool stays_in_rows(Toucher& who, const Mark& like, int bytes, LaneMask lanes,
                                   std::span<const std::uint64_t, kLanes> addresses);
  template <class Leave>
  static void leave_rows(Cluster& cluster, std::size_t rank, Leave leave);
  static void leave_rows(Cluster& cluster, std::size_t rank, const Regions& regions);
  void touch_ranges(Toucher& who, const Mark& like, ByteRanges ranges);
  void touch_range(Toucher& who, const Mark& like, Shadow& shadow, const ByteRange& range);
  void check_all(Toucher& who, const Piece& piece);
  [[nodiscard]] static bool behind_past(Cluster& cluster, const WarpViews& warp, const Clock* known, Shadow& shadow,
                                        LaneExtent extent);
  [[nodiscard]] static bool behind_writes(const Toucher& who, LaneMask lanes, const Shadow& shadow,
                                          const LaneOffsets& offsets, bool in_one_chunk);
  static void add_read(const Clock* known, const Piece& piece);
  static void forget_older_reads(const Clock* known, const Piece& piece);
  void touch_object(Toucher& who, MbarrierEvent event, LaneMask lanes, std::uint64_t address);
  void check(Toucher& who, const Piece& piece, const Mark& before, ChunkBytes common);
  void check_proxy(Toucher& who, const Piece& piece, const Mark& before);
  [[nodiscard]] static bool covers(const Clock* known, const Mark& before);
  [[nodiscard]] static bool covered(Toucher& who, const Mark& before);
  [[nodiscard]] bool needs_fence(const Toucher& who, const Mark& before, const Mark& mark) const;

  [[nodiscard]] bool told(ReportKind kind, Severity severity, const Mark& before, const Mark& now);
  // Of a race, where two lanes of one warp have executed a shuffle or an mma together in between; -1: nowhere.
  [[nodiscard]] static std::int32_t meeting(const WarpViews& warp, const Mark& before, int other, const Mark& now,
                                            int lane);
  void conflict(Toucher& who, std::uint64_t address, const Mark& before, const Mark& now, int lane, int other);
  void missing_fence(Toucher& who, std::uint64_t address, const Mark& before, const Mark& now, int other,
                     std::string_view message);
  [[nodiscard]] Report race(const Exec& exec, const Cluster& cluster, ReportKind kind, std::uint64_t address,
                            const Mark& before, int other, const Mark& now, int lane) const;
  [[nodiscard]] ReportParty party(const Exec& exec, const Cluster& cluster, const Mark& mark, int lane) const;

  RaceOptions options_;
  std::int32_t warps_ = 1;                                     // of a CTA
  std::map<std::int32_t, std::shared_ptr<Cluster>> clusters_;  // by CTA
  std::int32_t last_cta_ = -1;                                 // the last CTA that of() found
  Cluster* last_cluster_ = nullptr;
  std::vector<std::tuple<ReportKind, Severity, std::int32_t, std::int32_t>> told_;
  std::vector<Suspect> suspects_;
  std::vector<Piece> pieces_;
  std::vector<PendingReads> spare_;  // of CTAs that have ended
};

}  // namespace kvscope::ptx
