// What the engines of a CTA have still to do. An operation waits here from its issue until the schedule lets it happen
// (LaunchOptions::policy): late (when nobody else can go on, or at its wait), early (at issue), or at random.
//
//   cp.async            a list for each thread: open copies, then groups; late: they move at the wait that retires them
//   bulk and tensor     one queue a CTA; late: when no lane group of the CTA can go on, in the order of issue; stores
//                       also at the wait of their group; at random: each row of a box is an operation of its own
//   wgmma               a list for each warp; late: at its wait
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/machine/copies/copy_map.h"
#include "gpu/virtual/machine/copies/tensor_box.h"
#include "gpu/virtual/machine/monitor.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

// What moves, kept as sizes and addresses: no pointers. Which fields count is the kind's business.
struct PendingOp {
  AsyncOp op;
  std::vector<ByteRange> reads;   // filled in when somebody watches
  std::vector<ByteRange> writes;  // likewise
  std::uint64_t shared = 0;       // shared address of the tile: destination of loads, source of stores
  std::uint64_t other = 0;        // device address, or the shared address at the other end
  std::int64_t bytes = 0;
  std::uint32_t cta_mask = 0;  // multicast: ranks of the cluster; 0: its own
  bool gather = false;         // a tensor copy of four rows
  bool reduces = false;        // new = op(old, bytes), as the instruction says
  std::uint16_t instr = 0;     // Program::instrs: what a reduction does, and to which type
  CopyMap map;
  Coordinates at;
  std::array<std::uint64_t, 4> values{};  // of st.async and red.async
};

// A thread's bulk stores: open ones, then groups in the order in which they were committed; operation numbers.
struct ThreadGroups {
  std::vector<std::uint64_t> open;
  std::deque<std::vector<std::uint64_t>> groups;  // oldest first
  std::uint64_t read = 0;                         // the last one whose source has been waited for
  std::int32_t last_pc = -1;                      // of the last one issued
};

// One thread's cp.async of at most 16 bytes.
struct CpAsyncCopy {
  std::uint64_t number = 0;
  std::uint64_t source = 0;  // device address
  std::uint32_t target = 0;  // shared address
  std::int32_t pc = -1;
  std::uint8_t bytes = 0;  // written
  std::uint8_t read = 0;   // of these from memory, the rest zeros
  bool performed = false;
};
// Its copies in the order of issue: those of the oldest group first, open ones last.
struct ThreadCopies {
  std::vector<CpAsyncCopy> copies;
  std::vector<std::int32_t> groups;  // copies in each committed group
  std::int32_t grouped = 0;          // copies in all of them
  std::uint64_t arrived = 0;         // number of the last copy that an arrival has taken from here
};
// cp.async.mbarrier.arrive: an arrival when the first `copies` of the thread are done.
struct CpAsyncArrival {
  AsyncOp op;
  std::uint64_t last = 0;  // number of the last copy before it
};

// A warp's wgmma: operations not yet performed. The accumulators stay in their registers.
struct WgmmaOp {
  AsyncOp op;
  std::uint64_t a = 0, b = 0;       // descriptors; a: when the operand is in shared memory
  std::vector<std::byte> a_values;  // else the registers as they were at the issue
  bool scale_d = true;
  std::int32_t activation = 0;  // whose registers: Warp::activations, and which life of it
  std::uint64_t entered = 0;
  bool performed = false;  // policy early: at the issue; its wait still orders who comes after
};
struct WarpProducts {
  std::vector<WgmmaOp> ops;          // oldest group first, open ones last
  std::vector<std::int32_t> groups;  // operations in each committed group
  std::int32_t grouped = 0;
};

// The tensor map that was read last, and its bytes: kernels use few of them, over and over.
struct MapCache {
  bool filled = false;
  std::array<std::byte, kMapRecordBytes> record{};
  CopyMap map;
};

struct AsyncState {
  std::deque<PendingOp> queue;          // not yet performed, by number
  std::vector<ThreadCopies> cp_async;   // [threads], or empty
  std::deque<CpAsyncArrival> arrivals;  // not yet made
  std::vector<ThreadGroups> bulk;       // [threads], or empty
  std::vector<WarpProducts> wgmma;      // [warps], or empty
  MapCache map;
  std::uint64_t barriers_begin = ~std::uint64_t{0};  // hull of the live mbarriers' offsets
  std::uint64_t barriers_end = 0;
};

// --- for the handlers of copies --------------------------------------------------------------------------------------

// A new operation of a lane: numbered, and told to who watches by issue().
[[nodiscard]] AsyncOp new_operation(Exec& exec, const Op& op, int lane, AsyncKind kind);
// Hands a copy to its engine: it waits in the queue, or happens now (policy early).
void issue(Exec& exec, PendingOp op);
// The same for an operation of a copy that has been told of: copy_issued is the caller's.
void issue_part(Exec& exec, PendingOp op);
// The operation happens: bytes move, and the barrier is credited. Defined by what it is (see the files).
void perform(Launch& launch, Cta& cta, const PendingOp& op);
// Performs the operations of these numbers that still wait.
void perform_all(Launch& launch, Cta& cta, const std::vector<std::uint64_t>& numbers);

// cp_async.cpp. `last`: all copies of the thread up to this number.
void perform_copies(Launch& launch, Cta& cta, std::int32_t thread, std::uint64_t last);
// Lets one cp.async happen out of turn: the pick-th of those that wait. For a seeded schedule.
void perform_one_copy(Launch& launch, Cta& cta, std::uint64_t pick);
[[nodiscard]] std::uint64_t waiting_copies(const Cta& cta);

[[nodiscard]] MachineHandler find_cp_async(const Instr& instr);
[[nodiscard]] MachineHandler find_bulk_copy(const Instr& instr);    // cp.async.bulk, cp.reduce, st.async, red.async
[[nodiscard]] MachineHandler find_tensor_copy(const Instr& instr);  // and prefetches, tensormap.*
[[nodiscard]] MachineHandler find_fence(const Instr& instr);

// Their part of perform().
void perform_bulk(Launch& launch, Cta& cta, const PendingOp& op);
void perform_tensor(Launch& launch, Cta& cta, const PendingOp& op);
// The 16-byte chunks of a tensor copy in the order of rows; of a gather, of its four rows. `row` counts them all.
[[nodiscard]] std::vector<CopyChunk> chunks_of(const PendingOp& op);
// A thread's bulk store is issued: it belongs to the open group.
void add_to_group(Exec& exec, const Op& op, int lane, std::uint64_t number);

}  // namespace kvscope::ptx
