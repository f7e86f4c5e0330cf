// Happens-before of one CTA's accesses to shared memory, or to global memory, by brute force: every clock has a number for each thread and for each thread's copies; every thread
// and every object has a clock; every byte has its last write and all reads since. A monitor of the same launch as the
// checker, with which it shares no code.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx::test {

class Oracle final : public Monitor {
 public:
  explicit Oracle(std::int64_t threads, Space space = Space::shared);

  // (kind: "RACE_WW", pc before, pc now)
  using Race = std::tuple<std::string, std::int32_t, std::int32_t>;
  [[nodiscard]] const std::set<Race>& races() const { return races_; }
  // The races with the last of the lanes that stored to one byte in one instruction. Collisions of these lanes are reported
  // separately, by the machine.
  [[nodiscard]] const std::set<Race>& certain() const { return certain_; }

  void access(const Exec& exec, const Op& op, const WarpAccess& access) override;
  void barrier_arrive(const Exec& exec, int barrier, LaneMask lanes, bool waits) override;
  void barrier_done(Launch& launch, const Cta& cta, int barrier, std::span<const LaneMask> arrived,
                    std::span<const LaneMask> waiting) override;
  void cluster_arrive(const Exec& exec, LaneMask lanes, Order order) override;
  void cluster_done(Launch& launch, const Cta& cta) override;
  void cluster_wait(const Exec& exec, LaneMask lanes, Order order) override;
  void warp_barrier(const Exec& exec, LaneMask lanes) override;
  void mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                std::uint64_t address, std::int64_t amount, Order order, Scope scope) override;
  void fence(const Exec& exec, LaneMask lanes, Order order, Scope scope) override;
  void async_issue(const Exec& exec, const AsyncOp& op, std::span<const ByteRange> reads,
                   std::span<const ByteRange> writes) override;
  void group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool reads_only,
                  std::span<const std::uint64_t, kLanes> last) override;
  void cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) override;

 private:
  using Clock = std::vector<std::uint32_t>;  // [threads], then [their copies]
  struct Touch {
    std::size_t actor = 0;
    std::uint32_t stamp = 0;
    std::int32_t pc = -1;
    bool strong = false;
    std::uint64_t instruction = 0;
  };
  struct Byte {
    std::vector<Touch> writes;  // of one instruction
    std::vector<Touch> reads;
  };
  struct Object {
    Clock collecting, done;
    std::deque<std::pair<std::size_t, std::uint32_t>> copies;
  };
  void look(std::size_t thread, std::uint64_t address, std::int64_t bytes, const Touch& now, bool write);
  void keep(std::uint64_t address, std::int64_t bytes, const Touch& now, bool write);
  void tick(std::size_t thread) { ++clocks_[thread][thread]; }
  static void join(Clock& to, const Clock& from);
  void hand_on(std::size_t thread, Clock& to) const;
  [[nodiscard]] Object& object(std::uint64_t address);

  std::size_t threads_;
  Space space_;
  std::vector<Clock> clocks_;            // [threads]
  std::vector<Clock> fenced_, pending_;  // [threads]; empty: none
  // Of global memory: what others had pending that a thread has met at a barrier. Orders its writes and strong reads, and at its next
  // fence everything.
  std::vector<Clock> met_;                                                    // [threads]; empty: none
  std::vector<std::vector<std::pair<std::uint64_t, std::uint32_t>>> copies_;  // [threads] number -> stamp
  std::map<int, Clock> barriers_, pending_at_;                                // by barrier
  Clock cluster_collecting_, cluster_done_;                                   // empty: nothing
  std::map<std::uint64_t, Object> objects_;
  std::map<std::uint64_t, Clock> flags_;
  std::map<std::uint64_t, Byte> bytes_;
  std::set<Race> races_, certain_;
  std::uint64_t instructions_ = 0;
};

}  // namespace kvscope::ptx::test
