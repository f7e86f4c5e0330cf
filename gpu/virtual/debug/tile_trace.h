// A kernel's tiles as the events that the model records of its own (core/staging/staging_events.h), so that the two
// can be held against each other event by event (core/trace/diff.h).
//
//   tile_opened | barrier_expects, box_copied..., barrier_completed | fragment_read...    tensor and bulk copies
//   tile_opened | lds_copied... and wave_waited of every warp       | fragment_read...    cp.async
//   with lanes: chunk_landed after its copy, lane_read after its read
//
// A tile is what one phase of an arrival barrier brings, or what the threads of the CTA commit as their n-th group of
// cp.async. A read belongs to the tile whose copy wrote the bytes last, and to none when a thread has stored over them;
// bytes in the middle of a tile that it has no copy for are its own all the same. Events of a tile stand together and
// in the order above, and tiles in the order of their first copies, so the trace of a kernel is the same under every
// schedule. What happened when is in event_list.h.
//
//   event             what it takes from the kernel
//   barrier_expects   expect_tx, in the order of arrivals; phases are counted from the tile's
//   box_copied        the instruction, in the order of issue; sub_tile: which box of its column it is. A bulk copy is a
//                     box whose row is the source's byte in its allocation
//   lds_copied        a cp.async of a warp; stage: which of the places that tiles begin at
//   fragment_read     a shared load of a warp, ldmatrix or another; registers are counted over the tile, as it reads
//   chunk_landed      pool: bytes from the start of the allocation. Of cp.async row and column are -1: only the kernel
//                     knows them
//
// What no instruction says, such as the sequence that a tile is of, is the person's to say: one TileNote a tile.
// Products that read shared memory by themselves (wgmma) leave no fragment_read.
// Example: 64 x 128 bf16 keys by 8 boxes of 16 x 64: 8 box_copied of 2048 bytes, 16384 expected.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/trace/recorder.h"
#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

// What stands in tile_opened, and how coordinates are read. Left out: what the copies show, else 0.
struct TileNote {
  using Number = std::optional<std::int64_t>;
  Number step{}, seq{}, layer{}, value{}, first_token{};
  Number head{};                   // a map with an axis of heads says it itself
  Number rows{};                   // left out: as many as the boxes bring
  Number tokens{};                 // left out: rows
  Number columns{};                // left out: up to the last one that a box brings
  Number bytes{};                  // left out: up to the last one that a copy brings
  Number shared{};                 // where its byte 0 is; left out: where the lowest copy begins
  Number column{};                 // of the map: the tile's first; left out: 0
  Number row_axis{}, head_axis{};  // of the map; left out: the last, and 1 of three or more
};

struct TileTraceOptions {
  std::int32_t cta = 0;              // linear; whose tiles
  std::int32_t warp = -1;            // whose reads; -1: every warp's
  bool lanes = false;                // chunk_landed and lane_read too
  std::vector<TileNote> notes = {};  // of the first tile, the second, ...; further ones have none
};

class TileTrace final : public Monitor {
 public:
  explicit TileTrace(trace::Recorder& recorder, TileTraceOptions options = {});  // the recorder outlives this
  ~TileTrace() override;

  [[nodiscard]] std::int64_t tiles() const { return recorded_; }  // so far

  void launch_ends(Launch& launch) override;
  void cta_ends(Launch& launch, const Cta& cta) override;
  void access(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void stored(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                std::uint64_t address, std::int64_t amount, Order order, Scope scope) override;
  void copy_issued(const Exec& exec, const PendingOp& copy) override;
  void async_issue(const Exec& exec, const AsyncOp& op, std::span<const ByteRange> reads,
                   std::span<const ByteRange> writes) override;
  void group_commit(const Exec& exec, AsyncKind kind, LaneMask lanes) override;
  void group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool reads_only,
                  std::span<const std::uint64_t, kLanes> last) override;
  void cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) override;

 private:
  struct Tile;
  struct WarpCopy;
  using Phase = std::pair<std::uint64_t, std::int64_t>;  // of an mbarrier: offset, phase

  [[nodiscard]] bool is_watched(const Exec& exec) const;
  Tile& open(bool tma);
  Tile& first_copy(Tile& tile);
  Tile& of_phase(const Phase& phase);
  Tile& of_group(std::int32_t group);
  [[nodiscard]] Tile* find(std::int64_t number);
  [[nodiscard]] const TileNote& note_of(const Tile& tile) const;
  void take_bytes(std::uint64_t offset, std::int64_t bytes, std::int64_t tile);
  [[nodiscard]] std::int64_t owner_of(std::uint64_t offset) const;
  std::int32_t& commits_of(const Exec& exec, int lane);
  void record_done();
  void record(const Tile& tile);
  void record_boxes(const Tile& tile, std::int64_t base);
  void record_warp_copies(const Tile& tile, std::int64_t base);
  void record_reads(const Tile& tile, std::int64_t base);
  void record_all();

  trace::Recorder& recorder_;
  TileTraceOptions options_;
  std::deque<Tile> tiles_;  // opened and not yet recorded, in the order of first copies
  std::int64_t opened_ = 0, filled_ = 0, recorded_ = 0;
  std::map<Phase, std::int64_t> phases_;         // number of the tile that it brings
  std::map<std::int32_t, std::int64_t> groups_;  // likewise of a group of cp.async
  // [16 bytes of shared memory] tile whose copy wrote them last; -1: none; -2 - t: tile t's, and then a thread's store.
  std::vector<std::int64_t> owners_;
  std::vector<std::int32_t> commits_;                  // [threads] groups committed
  std::map<std::int32_t, std::deque<WarpCopy>> busy_;  // by warp: cp.async not yet waited for
  std::vector<std::int64_t> stages_;                   // where tiles of cp.async begin, in order of appearance
};

}  // namespace kvscope::ptx
