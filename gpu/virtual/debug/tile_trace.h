// Records a kernel's tiles as the events that the model records for its own tiles (core/staging/staging_events.h), so
// that core/trace/diff.h can compare the two event by event.
//
//   tile_opened | barrier_expects, box_copied..., barrier_completed | fragment_read...    tensor and bulk copies
//   tile_opened | lds_copied... and wave_waited of every warp       | fragment_read...    cp.async
//   with lanes: the tile's geometry (tile_geometry.h) after tile_opened, chunk_landed after each copy, lane_read and
//   register_filled after each read
//
// A tile is the data of one phase of an arrival barrier, or of the n-th cp.async group that the threads of the CTA
// commit. A read belongs to the tile whose copy last wrote the bytes. It belongs to no tile if a thread has overwritten
// them. Bytes inside a tile that none of its copies wrote also belong to it. The events of one tile are adjacent and in
// the order above, and tiles are in the order of their first copies. The trace of a kernel is therefore the same under
// every schedule. For the order in time, see event_list.h.
//
//   event             how it is derived from the kernel
//   barrier_expects   expect_tx, in the order of arrivals; phases are counted from the tile's phase
//   box_copied        the instruction, in issue order; sub_tile: the index of the box in its column. A bulk copy is a
//                     box whose row is the byte offset of the source in its allocation
//   lds_copied        a cp.async of a warp; stage: the index among the addresses at which tiles begin
//   fragment_read     a shared load of a warp, ldmatrix or another; registers are numbered through the tile
//   chunk_landed      pool: byte offset from the start of the allocation. For cp.async, row and column are -1, because
//                     only the kernel's source defines them
//
//   operand_read      an operand that wgmma reads from shared memory, once for the four warps; with lanes operand_chunk
//
// The caller supplies what no instruction contains, such as the tile's sequence: one TileNote per tile.
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

// The fields of tile_opened, and how to interpret coordinates. A field left out is derived from the copies, or is 0.
struct TileNote {
  using Number = std::optional<std::int64_t>;
  Number step{}, seq{}, layer{}, value{}, first_token{};
  Number head{};                   // a map with a head axis supplies it
  Number rows{};                   // default: the number of rows that the boxes copy
  Number tokens{};                 // default: rows
  Number columns{};                // default: up to the last column that a box copies
  Number bytes{};                  // default: up to the last byte that a copy writes
  Number shared{};                 // address of byte 0; default: the lowest copy destination
  Number column{};                 // first column in the map; default: 0
  Number row_axis{}, head_axis{};  // of the map; defaults: the last, and 1 of three or more
  // The pool behind the map, for tile_memory and tile_page: all three or none.
  Number page_size{};  // [tokens] of a block
  Number layers{};     // of the pool
  Number kinds{};      // 2: K and V, 1: one tensor (MLA)
};

struct TileTraceOptions {
  std::int32_t cta = 0;              // linear; the CTA that owns the tiles
  std::int32_t warp = -1;            // record this warp's reads; -1: all warps
  bool lanes = false;                // also record chunk_landed and lane_read
  std::vector<TileNote> notes = {};  // of the first tile, the second, ...; later tiles have none
};

class TileTrace final : public Monitor {
 public:
  explicit TileTrace(trace::Recorder& recorder, TileTraceOptions options = {});  // the recorder outlives this
  ~TileTrace() override;

  [[nodiscard]] std::int64_t tiles() const { return recorded_; }  // recorded so far

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
  void operand_read(const Exec& exec, const Op& op);
  void take_operand(const Exec& exec, std::int64_t operand, std::uint64_t descriptor, bool mn_major, int element_bits,
                    int lines, int depth);
  std::int64_t stage_of(const Tile& tile);
  [[nodiscard]] static std::optional<trace::TileShared> shared_of(const Tile& tile, const trace::TileOpened& opened,
                                                                  std::int64_t base);
  void record_geometry(const Tile& tile, const trace::TileOpened& opened, std::int64_t base, std::int64_t stage);
  void record_pool(const Tile& tile, const trace::TileOpened& opened);
  void record_fragments(const Tile& tile);
  void record_boxes(const Tile& tile, std::int64_t base);
  void record_warp_copies(const Tile& tile, std::int64_t base, std::int64_t stage);
  void record_reads(const Tile& tile, const trace::TileOpened& opened, std::int64_t base);
  void record_all();

  trace::Recorder& recorder_;
  TileTraceOptions options_;
  std::deque<Tile> tiles_;  // opened and not yet recorded, in the order of first copies
  std::int64_t opened_ = 0, filled_ = 0, recorded_ = 0;
  std::map<Phase, std::int64_t> phases_;         // number of the tile that the phase fills
  std::map<std::int32_t, std::int64_t> groups_;  // likewise for a cp.async group
  // [16 bytes of shared memory] tile whose copy wrote them last; -1: none; -2 - t: tile t, then overwritten by a
  // thread.
  std::vector<std::int64_t> owners_;
  std::vector<std::int32_t> commits_;                  // [threads] groups committed
  std::map<std::int32_t, std::deque<WarpCopy>> busy_;  // by warp: cp.async in flight
  std::vector<std::int64_t> stages_;                   // addresses where cp.async tiles begin, in order of appearance
};

}  // namespace kvscope::ptx
