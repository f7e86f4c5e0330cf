// What the engines of a CTA have still to do. An operation waits here from its issue until the schedule lets it happen
// (LaunchOptions::policy): late (when nobody else can go on, or at its wait), early (at issue), or at random.
//
//   cp.async            a list for each thread: open copies, then groups; late: they move at the wait that retires them
//   bulk and tensor     one queue a CTA; late: when no fragment of the CTA can go on, in the order of issue; stores also
//                       at the wait of their group
//   wgmma               a list for each warp; late: at its wait
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/cache/tma_tiles.h"
#include "core/ptx/machine/monitor.h"
#include "core/tma/tensor_map.h"

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
  std::uint16_t instr = 0;     // Program::instrs: what a reduction does, and to which type
  TensorMap map;
  TmaCoord at;
  std::array<std::uint64_t, 4> values{};  // of st.async and red.async
};

// A thread's bulk stores: open ones, then groups in the order in which they were committed; operation numbers.
struct ThreadGroups {
  std::vector<std::uint64_t> open;
  std::deque<std::vector<std::uint64_t>> groups;  // oldest first
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
};
// cp.async.mbarrier.arrive: an arrival when the first `copies` of the thread are done.
struct CpAsyncArrival {
  AsyncOp op;
  std::uint64_t last = 0;  // number of the last copy before it
};

struct AsyncState {
  std::deque<PendingOp> queue;                       // not yet performed, by number
  std::vector<ThreadCopies> cp_async;                // [threads], or empty
  std::deque<CpAsyncArrival> arrivals;               // not yet made
  std::vector<ThreadGroups> bulk;                    // [threads], or empty
  std::uint64_t barriers_begin = ~std::uint64_t{0};  // hull of the live mbarriers' offsets
  std::uint64_t barriers_end = 0;
};

}  // namespace kvscope::ptx
