// What the engines of a CTA have still to do. An operation waits here from its issue until the schedule lets it happen
// (LaunchOptions::policy): late (when nobody else can go on, or its wait), early (at issue), or at random.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "core/ptx/machine/monitor.h"

namespace kvscope::ptx {

// Kept as what is needed to carry it out: sizes and addresses, no pointers.
struct PendingOp {
  AsyncOp op;
  std::vector<ByteRange> reads;
  std::vector<ByteRange> writes;
  std::vector<std::byte> operands;  // of its kind: a tensor map and coordinates, registers of wgmma, ...
  std::uint32_t cta_mask = 0;       // multicast: ranks of the cluster; 0: its own
  bool performed = false;
};

// A thread's cp.async copies or bulk stores: open ones, then groups in the order in which they were committed.
struct ThreadGroups {
  std::vector<std::uint64_t> open;                // operation numbers
  std::deque<std::vector<std::uint64_t>> groups;  // oldest first
};

struct AsyncState {
  std::deque<PendingOp> queue;                    // not yet performed, or not yet waited for; by number
  std::map<std::int32_t, ThreadGroups> cp_async;  // by thread
  std::map<std::int32_t, ThreadGroups> bulk;      // by thread
  std::map<std::int32_t, ThreadGroups> wgmma;     // by warp
};

}  // namespace kvscope::ptx
