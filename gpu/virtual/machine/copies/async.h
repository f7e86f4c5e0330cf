// Asynchronous operations of a CTA that are still in flight. An operation is stored here from its issue until the
// schedule (LaunchOptions::policy) performs it: late (when no other progress is possible, or at the wait), early (at
// issue), or at random.
//
//   cp.async            one list per thread: open copies, then groups; late: performed at the wait that retires them
//   bulk and tensor     one queue per CTA; late: when no lane group of the CTA can continue, in issue order; stores
//                       also at the wait of their group; at random: each row of a box is a separate operation
//   wgmma               one list per warp; late: at the wait, those of all four warps together
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/machine/copies/copy_map.h"
#include "gpu/virtual/machine/copies/tensor_box.h"
#include "gpu/virtual/machine/matrix/wgmma_operands.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

// One operation as sizes and addresses, without pointers. The kind determines which fields are used.
struct PendingOp {
  AsyncOp op;
  std::vector<ByteRange> reads;   // filled in only if there is a monitor
  std::vector<ByteRange> writes;  // likewise
  std::uint64_t shared = 0;       // shared address of the tile: destination of loads, source of stores
  std::uint64_t other = 0;        // device address, or the shared address at the other end
  std::int64_t bytes = 0;
  std::optional<std::uint32_t> multicast;  // bit r: to rank r of the cluster; std::nullopt: to the rank of `shared`
  bool gather = false;                     // a tensor copy of four rows
  bool reduces = false;                    // new = op(old, bytes), as the instruction specifies
  std::uint16_t instr = 0;                 // Program::instrs: operation and type of a reduction
  CopyMap map;
  Coordinates at;
  std::array<std::uint64_t, 4> values{};  // values of st.async and red.async

  // The ranks whose shared memory it accesses, as bits.
  [[nodiscard]] std::uint32_t ranks() const { return multicast ? *multicast : 1U << rank_of(shared); }
};

// A thread's bulk stores as operation numbers: the open ones, then the committed groups, oldest first.
struct ThreadGroups {
  std::vector<std::uint64_t> open;
  std::deque<std::vector<std::uint64_t>> groups;  // oldest first
  AsyncOp last;                                   // issued; number 0: none
  std::uint64_t read = 0;                         // the last one whose source read has been waited for
};

// One thread's cp.async of at most 16 bytes.
struct CpAsyncCopy {
  std::uint64_t number = 0;
  std::uint64_t source = 0;  // device address
  std::uint32_t target = 0;  // shared address
  std::int32_t pc = -1;
  std::uint8_t bytes = 0;  // written
  std::uint8_t read = 0;   // of these read from memory; the rest are zeros
  bool performed = false;
};
// A thread's copies in issue order: those of the oldest group first, open ones last.
struct ThreadCopies {
  std::vector<CpAsyncCopy> copies;
  std::vector<std::int32_t> groups;  // copies in each committed group
  std::int32_t grouped = 0;          // copies in all of them
  std::uint64_t arrived = 0;         // number of the last copy that an arrival has claimed
};
// cp.async.mbarrier.arrive: arrives when the thread's copies up to `last` are complete.
struct CpAsyncArrival {
  AsyncOp op;
  std::uint64_t last = 0;  // number of the last copy before it
};

// A warp's wgmma operations that are not yet performed. The accumulators stay in their registers.
struct WgmmaOp {
  AsyncOp op;
  std::uint64_t a = 0, b = 0;           // descriptors; `a` if the operand is in shared memory
  std::vector<std::byte> a_values;      // otherwise the registers at the time of issue
  std::vector<std::uint32_t> metadata;  // of a sparse A, at the time of issue: [lanes]
  bool scale_d = true;
  std::int32_t activation = 0;  // owner of the registers: Warp::activations, and `entered` of that activation
  std::uint64_t entered = 0;
  bool performed = false;  // policy early: performed at issue; its wait still orders later accesses
};
struct WarpProducts {
  std::vector<WgmmaOp> ops;          // oldest group first, open ones last
  std::vector<std::int32_t> groups;  // operations in each committed group
  std::int32_t grouped = 0;
  // While the warp is at a wait that another warp of its warpgroup has performed: the number after that of the last
  // product that it covers; 0: none.
  std::optional<std::uint64_t> completed;
};

// An operation of the tensor core (tcgen05.mma, cp), or a commit, which arrives at its barriers after them.
struct TensorOp {
  AsyncOp op;
  std::uint64_t a = 0, b = 0;  // descriptors in shared memory; cp: `a`
  std::uint32_t d = 0;         // addresses in tensor memory
  std::uint32_t a_tensor = 0;  // of A, if it is there
  std::uint32_t a_scales = 0, b_scales = 0;
  std::uint32_t description = 0;   // instruction descriptor
  std::uint32_t metadata = 0;      // address of a sparse A's
  std::uint64_t zero_columns = 0;  // .ws: descriptor of the columns of B that count as zero
  bool a_in_tensor = false, adds = false;
  int scale_d = 0;                      // D is divided by 2^scale_d first
  std::array<std::uint32_t, 8> kept{};  // bit i: lane i of D stays as it is; the odd CTA's lanes from bit 128 on
  std::vector<std::uint64_t> barriers;  // of a commit: shared addresses with ranks; empty: another operation
};

// The tensor map read last, and its bytes: kernels reuse a few maps many times.
struct MapCache {
  bool filled = false;
  std::array<std::byte, kMapRecordBytes> record{};
  CopyMap map;
};

struct AsyncState {
  std::deque<PendingOp> queue;          // not yet performed, by number
  std::vector<ThreadCopies> cp_async;   // [threads]; may be empty
  std::deque<CpAsyncArrival> arrivals;  // pending arrivals
  std::vector<ThreadGroups> bulk;       // [threads]; may be empty
  std::vector<WarpProducts> wgmma;      // [warps]; may be empty
  WgmmaOperands operands;               // of products
  std::deque<TensorOp> tensor;          // not yet performed, by number; performed in this order
  MapCache map;
  std::int64_t pushed = 0;  // at least in_flight(): counted up by each entry, set to in_flight() when that is counted
  std::uint64_t barriers_begin = ~std::uint64_t{0};  // bounds of the offsets of live mbarriers
  std::uint64_t barriers_end = 0;
};

// --- used by the handlers of copies
// -----------------------------------------------------------------------------------

// A new operation of a lane, with its number; issue() reports it to monitors.
[[nodiscard]] AsyncOp new_operation(Exec& exec, const Op& op, int lane, AsyncKind kind);
// Entries of all lists: copies, groups, arrivals and products that no wait has retired.
[[nodiscard]] std::int64_t in_flight(const AsyncState& async);
// Passes a copy to its engine: it is queued, or performed now (policy early).
void issue(Exec& exec, PendingOp op);
// The same for a part of a copy; the caller has already called copy_issued for the whole.
void issue_part(Exec& exec, PendingOp op);
// Calls run(device address, offset in the shared window, bytes) for at most 8 bytes at a time of a tensor load that come
// from memory: the swizzle keeps them together. Fill is omitted. Precondition: the copy has been issued.
void each_loaded_run(const PendingOp& copy, const std::function<void(std::uint64_t, std::uint64_t, int)>& run);
// Performs the operation: moves the bytes and credits the barrier. Each kind is defined in its own file.
void perform(Launch& launch, Cta& cta, const PendingOp& op);
// Performs the queued operations with these numbers.
void perform_all(Launch& launch, Cta& cta, const std::vector<std::uint64_t>& numbers);

// cp_async.cpp. `last`: performs all copies of the thread up to this number.
void perform_copies(Launch& launch, Cta& cta, std::int32_t thread, std::uint64_t last);
// Performs one cp.async out of order: the pick-th of the queued ones. For a seeded schedule.
void perform_one_copy(Launch& launch, Cta& cta, std::uint64_t pick);
[[nodiscard]] std::uint64_t waiting_copies(const Cta& cta);

[[nodiscard]] MachineHandler find_cp_async(const Instr& instr);
[[nodiscard]] MachineHandler find_bulk_copy(const Instr& instr);    // cp.async.bulk, cp.reduce, st.async, red.async
[[nodiscard]] MachineHandler find_tensor_copy(const Instr& instr);  // and prefetches, tensormap.*
[[nodiscard]] MachineHandler find_fence(const Instr& instr);
[[nodiscard]] MachineHandler find_cluster_launch(const Instr& instr);  // clusterlaunchcontrol

// The implementations of perform() for each kind.
void perform_bulk(Launch& launch, Cta& cta, const PendingOp& op);
void perform_tensor(Launch& launch, Cta& cta, const PendingOp& op);
// The 16-byte chunks of a tensor copy in row order; for a gather, of its four rows. `row` counts through all rows.
[[nodiscard]] std::vector<CopyChunk> chunks_of(const PendingOp& op);
// A bulk store of a thread has been issued: adds it to the open group.
void add_to_group(Cta& cta, const AsyncOp& store);

}  // namespace kvscope::ptx
