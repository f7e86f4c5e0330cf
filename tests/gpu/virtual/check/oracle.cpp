#include "tests/gpu/virtual/check/oracle.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx::test {
namespace {

template <class Body>
void each_thread(const Exec& exec, LaneMask lanes, Body body) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0) body(static_cast<std::size_t>(exec.warp.index * kLanes + lane), lane);
  }
}

}  // namespace

Oracle::Oracle(std::int64_t threads, Space space)
    : threads_(static_cast<std::size_t>(threads + kLanes - 1) / kLanes * kLanes),
      space_(space),
      clocks_(threads_, Clock(2 * threads_)),
      fenced_(threads_),
      pending_(threads_),
      met_(threads_),
      copies_(threads_) {
  for (std::size_t t = 0; t < threads_; ++t) clocks_[t][t] = 1;
}

void Oracle::join(Clock& to, const Clock& from) {
  if (to.empty()) to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

Oracle::Object& Oracle::object(std::uint64_t address) {
  Object& o = objects_[address];
  o.collecting.resize(2 * threads_);
  o.done.resize(2 * threads_);
  return o;
}

void Oracle::look(std::size_t thread, std::uint64_t address, std::int64_t bytes, const Touch& now, bool write) {
  for (std::uint64_t at = address; at < address + static_cast<std::uint64_t>(bytes); ++at) {
    Byte& byte = bytes_[at];
    const auto against = [&](const std::vector<Touch>& all, const char* kind, bool only_last) {
      for (const Touch& before : all) {
        if (before.actor == now.actor || (before.strong && now.strong)) continue;
        if (clocks_[thread][before.actor] >= before.stamp) continue;
        if ((write || now.strong) && !met_[thread].empty() && met_[thread][before.actor] >= before.stamp) continue;
        races_.insert({kind, before.pc, now.pc});
        if (!only_last || &before == &all.back()) certain_.insert({kind, before.pc, now.pc});
      }
    };
    against(byte.writes, write ? "RACE_WW" : "RACE_WR", true);
    if (write) against(byte.reads, "RACE_RW", false);
  }
}

void Oracle::keep(std::uint64_t address, std::int64_t bytes, const Touch& now, bool write) {
  for (std::uint64_t at = address; at < address + static_cast<std::uint64_t>(bytes); ++at) {
    Byte& byte = bytes_[at];
    if (!write) {
      byte.reads.push_back(now);
      continue;
    }
    if (!byte.writes.empty() && byte.writes.back().instruction != now.instruction) byte.writes.clear();
    byte.writes.push_back(now);
    byte.reads.clear();
  }
}

void Oracle::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  if (access.space != space_) return;
  ++instructions_;
  const bool strong = access.kind == AccessKind::atomic || access.order != Order::weak;
  const bool writes = access.kind != AccessKind::load;
  const auto now = [&](std::size_t t) { return Touch{t, clocks_[t][t], pc_of(exec, op), strong, instructions_}; };
  each_thread(exec, access.lanes, [&](std::size_t t, int lane) {
    tick(t);
    look(t, access.addresses[static_cast<std::size_t>(lane)], access.bytes, now(t), writes);
  });
  each_thread(exec, access.lanes, [&](std::size_t t, int lane) {
    const std::uint64_t address = access.addresses[static_cast<std::size_t>(lane)];
    keep(address, access.bytes, now(t), writes);
    const bool acquires = access.order == Order::acquire || access.order == Order::acq_rel;
    const bool releases = access.order == Order::release || access.order == Order::acq_rel;
    if (access.kind != AccessKind::store && strong && flags_.count(address) != 0) {
      join(acquires ? clocks_[t] : pending_[t], flags_[address]);
    }
    if (access.kind == AccessKind::load) return;
    Clock published = access.kind == AccessKind::atomic ? flags_[address] : Clock{};
    if (releases) {
      join(published, clocks_[t]);
    } else if (strong && !fenced_[t].empty()) {
      join(published, fenced_[t]);
    }
    if (published.empty()) {
      flags_.erase(address);
    } else {
      flags_[address] = published;
    }
  });
}

void Oracle::fence(const Exec& exec, LaneMask lanes, Order, Scope) {
  each_thread(exec, lanes, [&](std::size_t t, int) {
    if (!pending_[t].empty()) join(clocks_[t], pending_[t]);
    pending_[t].clear();
    if (!met_[t].empty()) join(clocks_[t], met_[t]);
    met_[t].clear();
    fenced_[t] = clocks_[t];
  });
}

// What the thread has seen by relaxed reads, or met at barriers, without a fence since.
void Oracle::hand_on(std::size_t thread, Clock& to) const {
  if (space_ != Space::global) return;
  if (!pending_[thread].empty()) join(to, pending_[thread]);
  if (!met_[thread].empty()) join(to, met_[thread]);
}

void Oracle::barrier_arrive(const Exec& exec, int barrier, LaneMask lanes, bool) {
  each_thread(exec, lanes, [&](std::size_t t, int) {
    join(barriers_[barrier], clocks_[t]);
    hand_on(t, pending_at_[barrier]);
  });
}

void Oracle::barrier_done(Launch&, const Cta&, int barrier, std::span<const LaneMask>,
                          std::span<const LaneMask> waiting) {
  for (std::size_t t = 0; t < threads_; ++t) {
    if ((waiting[t / kLanes] >> t % kLanes & 1) == 0) continue;
    join(clocks_[t], barriers_[barrier]);
    if (!pending_at_[barrier].empty()) join(met_[t], pending_at_[barrier]);
  }
  barriers_.erase(barrier);
  pending_at_.erase(barrier);
}

void Oracle::cluster_arrive(const Exec& exec, LaneMask lanes, Order order) {
  each_thread(exec, lanes, [&](std::size_t t, int) {
    const Clock& published = order == Order::relaxed ? fenced_[t] : clocks_[t];
    if (!published.empty()) join(cluster_collecting_, published);
  });
}

void Oracle::cluster_done(Launch&, const Cta&) {
  cluster_done_ = std::exchange(cluster_collecting_, {});
}

void Oracle::cluster_wait(const Exec& exec, LaneMask lanes, Order) {
  if (cluster_done_.empty()) return;
  each_thread(exec, lanes, [&](std::size_t t, int) { join(clocks_[t], cluster_done_); });
}

void Oracle::warp_barrier(const Exec& exec, LaneMask lanes) {
  Clock all, pending;
  each_thread(exec, lanes, [&](std::size_t t, int) {
    join(all, clocks_[t]);
    hand_on(t, pending);
  });
  each_thread(exec, lanes, [&](std::size_t t, int) {
    join(clocks_[t], all);
    if (!pending.empty()) join(met_[t], pending);
  });
}

void Oracle::mbarrier(Launch&, const Cta&, const Exec* exec, LaneMask lanes, MbarrierEvent event, std::uint64_t address,
                      std::int64_t, Order order, Scope) {
  Object& o = object(address);
  if (event == MbarrierEvent::phase_done) {
    o.done = o.collecting;
  } else if (event == MbarrierEvent::arrive && exec == nullptr && !o.copies.empty()) {
    std::uint32_t& at = o.collecting[threads_ + o.copies.front().first];
    at = std::max(at, o.copies.front().second);
    o.copies.pop_front();
  } else if (exec != nullptr && event == MbarrierEvent::arrive) {
    each_thread(*exec, lanes, [&](std::size_t t, int) {
      if (order != Order::relaxed) join(o.collecting, clocks_[t]);
      if (order == Order::relaxed && !fenced_[t].empty()) join(o.collecting, fenced_[t]);
    });
  } else if (exec != nullptr && event == MbarrierEvent::wait_true) {
    each_thread(*exec, lanes,
                [&](std::size_t t, int) { join(order == Order::relaxed ? pending_[t] : clocks_[t], o.done); });
  }
}

void Oracle::async_issue(const Exec&, const AsyncOp& op, std::span<const ByteRange>,
                         std::span<const ByteRange> writes) {
  const auto t = static_cast<std::size_t>(op.thread);
  const auto stamp = static_cast<std::uint32_t>(copies_[t].size() + 1);
  copies_[t].emplace_back(op.number, stamp);
  for (const ByteRange& range : writes) {
    const Touch now{threads_ + t, stamp, op.pc, false, ++instructions_};
    look(t, range.address, range.bytes, now, true);
    keep(range.address, range.bytes, now, true);
  }
}

void Oracle::group_wait(const Exec& exec, AsyncKind, LaneMask lanes, bool,
                        std::span<const std::uint64_t, kLanes> last) {
  each_thread(exec, lanes, [&](std::size_t t, int lane) {
    for (const auto& [number, stamp] : copies_[t]) {
      if (number < last[static_cast<std::size_t>(lane)])
        clocks_[t][threads_ + t] = std::max(clocks_[t][threads_ + t], stamp);
    }
  });
}

void Oracle::cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) {
  each_thread(exec, lanes, [&](std::size_t t, int) {
    object(mbarrier).copies.emplace_back(t, static_cast<std::uint32_t>(copies_[t].size()));
  });
}

}  // namespace kvscope::ptx::test
