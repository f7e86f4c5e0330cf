// The interface of observers of a launch: race and fence checkers, counters, the event recorder, a debugger. The
// machine reports its actions in execution order. A monitor may add reports (Launch::reports) and set
// Launch::watch_changed. It changes nothing else.
// Without a monitor, a launch pays one null test per access.
//
// Actors. Each reader or writer of memory is an actor of its CTA: its threads (0 .. threads - 1), and asynchronous
// engines, numbered after them: one cp.async engine per thread, one load engine per mbarrier, one bulk-store engine per
// thread, one wgmma engine per warpgroup, one tensor core per issuing thread. Engines are identified by AsyncOp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "gpu/virtual/machine/tensor/tensor_memory.h"
#include "gpu/virtual/semantics/op.h"
#include "gpu/virtual/text/types.h"

namespace kvscope::ptx {

struct Exec;
struct Launch;
struct Cta;
struct Warp;
struct Report;
struct PendingOp;  // async.h

enum class AccessKind : std::uint8_t { load, store, atomic };
enum class Scope : std::uint8_t { none, cta, cluster, gpu, sys };
enum class Order : std::uint8_t { weak, volatile_, relaxed, acquire, release, acq_rel, sc };

// One memory instruction of a lane group: the same number of bytes in each lane. `addresses` are in `space`: offsets
// with the rank for shared, device addresses for global, offsets in the lane's memory for local and param.
struct WarpAccess {
  AccessKind kind = AccessKind::load;
  Space space = Space::global;
  std::int32_t bytes = 4;  // per lane, whole vector
  LaneMask lanes = 0;
  std::span<const std::uint64_t, kLanes> addresses;
  Order order = Order::weak;
  Scope scope = Scope::none;
  bool read_only = false;  // ld.global.nc
  // ldmatrix and stmatrix: each address names 16 bytes that are distributed over lanes; null for other instructions.
  bool matrix_rows = false;
  bool one = false;     // all lanes at one address; false: perhaps not
  bool row = false;     // all 32 lanes, contiguous from lane 0 on; false: perhaps not
  bool filled = false;  // `addresses` of lanes outside `lanes` is that of the first lane inside; false: perhaps not

  // `lanes`, or all where the others only repeat one of them.
  [[nodiscard]] LaneMask at_least() const { return filled ? kAllLanes : lanes; }
};

enum class AsyncKind : std::uint8_t {
  cp_async,
  bulk_load,
  bulk_store,
  bulk_reduce,
  tensor_load,
  tensor_store,
  tensor_reduce,
  shared_to_cluster,
  st_async,
  red_async,
  wgmma,
  tcgen05,  // mma, cp: operations of the tensor core on tensor memory
};
[[nodiscard]] std::string_view name(AsyncKind kind);  // "cp.async", "tensor load"

// [address, address + bytes) of a space, read or written by an engine.
struct ByteRange {
  Space space = Space::shared;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

using ByteRanges = std::span<const ByteRange>;
using LaneMasks = std::span<const LaneMask>;                      // [warps of the CTA]
using OperationNumbers = std::span<const std::uint64_t, kLanes>;  // [lanes]

// An operation issued to an engine; its number is unique in the launch and ascends in issue order.
struct AsyncOp {
  std::uint64_t number = 0;
  AsyncKind kind = AsyncKind::cp_async;
  std::int32_t cta = 0;     // linear, of the issuer
  std::int32_t thread = 0;  // of the issuer, in its CTA
  std::int32_t pc = -1;
  std::uint64_t mbarrier = 0;  // shared address of the barrier it completes on; 0: it belongs to a group
  std::int64_t bytes = 0;      // credited to that barrier
};

// The copies that the lanes of one cp.async issue, one each. Lanes outside `lanes` have no meaning in the arrays.
struct LaneCopies {
  LaneMask lanes = 0;
  std::int32_t pc = -1;
  std::uint64_t first = 0;  // number of the lowest lane's operation; those of the other lanes follow
  std::int64_t bytes = 0;   // written by each lane
  std::span<const std::uint64_t, kLanes> sources;  // global addresses
  std::span<const std::uint64_t, kLanes> targets;  // shared addresses
  std::span<const std::int64_t, kLanes> reads;     // bytes; the rest are zeros
};

// Cells of the tensor memory of CTA `cta`. `operation`: the tensor core accesses them, for AsyncOp::number; 0: the
// warp does.
struct TensorAccess {
  AccessKind kind = AccessKind::load;
  std::int32_t cta = 0;
  std::span<const TensorRegion> regions;
  std::uint64_t operation = 0;
  int lane = 0;  // the issuer of the operation
};

// wait_false: a wait has tested the object, and its phase is not complete.
enum class MbarrierEvent : std::uint8_t {
  init,
  inval,
  arrive,
  expect_tx,
  complete_tx,
  phase_done,
  wait_true,
  wait_false
};

// All functions do nothing by default. `exec` identifies the lane group; the affected lanes are `lanes`.
class Monitor {
 public:
  virtual ~Monitor() = default;

  // Several threads (launch_parts.h). fork: a new monitor for some of a launch's CTAs, one of `parts`; it receives the events
  // of these CTAs, from launch_begins to launch_ends, while other threads run the other parts and this monitor does not
  // change. Null: this monitor needs all events in the order of one thread. join: adds what a part has found, which is no
  // report; parts are joined in the order of their CTAs.
  [[nodiscard]] virtual std::unique_ptr<Monitor> fork(std::int64_t /*parts*/) { return nullptr; }
  virtual void join(Monitor& /*part: from fork*/) {}

  // Called once: whether this monitor needs the calls that are costly.
  [[nodiscard]] virtual bool wants_instructions() const { return false; }
  // Whether this monitor needs them for one warp. Called each time that the warp gets its turn; a monitor whose answer
  // changes during the turn sets Launch::watch_changed, which ends the turn after the current instruction.
  [[nodiscard]] virtual bool wants_instructions_of(const Cta&, const Warp&) const { return wants_instructions(); }

  // Whether access() does anything, and which of async_issue(), async_moves() and async_done() do; `lane_moves`: async_moves() of cp.async,
  // which comes once per lane. The answers never change.
  struct OperationEvents {
    bool issue = true, moves = true, done = true, lane_moves = true;
  };
  [[nodiscard]] virtual bool wants_accesses() const { return true; }
  [[nodiscard]] virtual OperationEvents wants_operations() const { return {}; }

  // Whether this monitor reads Launch::run_counts at the end of the launch. Asked after launch_begins.
  [[nodiscard]] virtual bool wants_run_counts() const { return false; }

  virtual void launch_begins(Launch&) {}
  virtual void launch_ends(Launch&) {}
  virtual void cta_begins(Launch&, const Cta&) {}
  virtual void cta_ends(Launch&, const Cta&) {}
  virtual void cta_suspended(Launch&, const Cta&) {}

  virtual void instruction(const Exec&, const Op&, LaneMask) {}
  // An instruction that was parked is executed again; its first attempt was already reported.
  virtual void retried(const Exec&, const Op&, LaneMask) {}
  virtual void split(const Exec&, LaneMask /*taken*/, std::int32_t /*pc*/) {}
  virtual void merge(const Exec&, LaneMask /*joined*/) {}
  virtual void park(const Exec&, const Op&) {}
  virtual void resume(const Exec&) {}
  virtual void exit(const Exec&, LaneMask) {}

  // Called before the access: the monitor sees the old bytes.
  virtual void access(const Exec&, const Op&, const WarpAccess&) {}
  // A store or atomic is complete: the monitor sees the new bytes.
  virtual void stored(const Exec&, const Op&, const WarpAccess&) {}
  // The previous contents of these bytes are lost: discard.
  virtual void discarded(const Exec&, const Op&, const WarpAccess&) {}

  // A named barrier is complete: `arrived` and `waited` are bit masks of threads, one per warp.
  virtual void barrier_arrive(const Exec&, int /*barrier*/, LaneMask /*lanes*/, bool /*waits*/) {}
  virtual void barrier_done(Launch&, const Cta&, int /*barrier*/, LaneMasks /*arrived*/, LaneMasks /*waiting*/) {}
  virtual void cluster_arrive(const Exec&, LaneMask, Order) {}
  // A phase of the barrier of this CTA's cluster is complete: its threads have arrived, and none has arrived again.
  virtual void cluster_done(Launch&, const Cta&) {}
  virtual void cluster_wait(const Exec&, LaneMask, Order) {}
  virtual void warp_barrier(const Exec&, LaneMask /*all lanes of the mask*/) {}  // bar.warp.sync
  virtual void collective(const Exec&, const Op&, LaneMask) {}                   // shfl, vote, ldmatrix, mma ...

  // `exec` is null if an engine performs the operation (complete_tx, and the phase that it completes).
  virtual void mbarrier(Launch&, const Cta&, const Exec*, LaneMask, MbarrierEvent, std::uint64_t /*address*/,
                        std::int64_t /*count or bytes*/, Order, Scope) {}

  virtual void fence(const Exec&, LaneMask, Order, Scope) {}
  virtual void proxy_fence(const Exec&, LaneMask, Space /*generic: all*/) {}

  // An instruction issues a bulk or tensor copy: its map, coordinates, shared address and bytes. Called before the
  // operations that the copy consists of are issued; their numbers begin with this one.
  virtual void copy_issued(const Exec&, const PendingOp&) {}
  virtual void async_issue(const Exec&, const AsyncOp&, ByteRanges /*reads*/, ByteRanges /*writes*/) {}
  // The lanes of an instruction issue a cp.async each. Unless a monitor overrides it, it gets async_issue for each of them.
  virtual void copies_issue(const Exec& exec, const LaneCopies& copies);
  // The bytes move: called before and after.
  virtual void async_moves(Launch&, const Cta&, const AsyncOp&, ByteRanges /*reads*/, ByteRanges /*writes*/) {}
  // After async_moves of a tensor load, or of a part of one: the copy, for each_loaded_run (async.h).
  virtual void box_moves(Launch&, const Cta&, const PendingOp&) {}
  virtual void async_done(Launch&, const Cta&, const AsyncOp&) {}
  virtual void group_commit(const Exec&, AsyncKind, LaneMask) {}
  // The copies of these lanes up to `last` (per lane operation number + 1; 0: none) are ordered before later accesses.
  virtual void group_wait(const Exec&, AsyncKind, LaneMask, bool /*reads only*/, OperationNumbers /*last*/) {}
  // cp.async.mbarrier.arrive: the lane's copies so far are ordered before the completion of the phase.
  virtual void cp_async_arrive(const Exec&, LaneMask, std::uint64_t /*mbarrier*/) {}

  // Tensor memory. An access is told before it is performed, one of the tensor core when it is issued.
  virtual void tensor_access(const Exec&, const Op&, const TensorAccess&) {}
  virtual void tensor_wait(const Exec&, const Op&, bool /*for stores; otherwise for loads*/) {}
  virtual void tensor_fence(const Exec&, const Op&, LaneMask, bool /*before_thread_sync; otherwise after*/) {}
  virtual void tensor_freed(const Exec&, const Op&, std::int64_t /*column*/, std::uint64_t /*columns*/) {}
  // tcgen05.commit: the lane's operations with lower numbers are ordered before the completion of a phase of each of
  // these barriers: shared addresses with their ranks.
  virtual void tensor_commit(const Exec&, int /*lane*/, std::uint64_t /*number*/, std::span<const std::uint64_t>) {}

  virtual void printed(const Exec&, std::string_view) {}
  virtual void reported(Launch&, const Report&) {}
};

}  // namespace kvscope::ptx
