// How often each op ran, counted by the inner loop itself: lanes that continue at the next op are one sequence, which is added at
// its two ends. A call for each instruction (Monitor::instruction) would take most of an instruction's time.
//
//   ops 3 to 7 by 32 lanes, then 3 to 5 by 20 of them     runs of op 3: 2, of op 6: 1; lanes of op 5: 52
//
// An instruction that was parked and is executed again counts once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvscope::ptx {

class RunCounts {
 public:
  struct Of {
    std::int64_t runs = 0;
    std::int64_t lanes = 0;      // that took part
    std::int64_t divergent = 0;  // runs with fewer lanes than the warp has live ones
  };

  void start(std::size_t ops) { ends_.assign(ops + 1, {}), left_out_.assign(ops, 0); }
  [[nodiscard]] bool started() const { return !left_out_.empty(); }

  // Ops [begin, end) ran, by the same lanes.
  void add(std::int32_t begin, std::int32_t end, std::int64_t lanes, bool divergent) {
    Of& first = ends_[static_cast<std::size_t>(begin)];
    Of& behind = ends_[static_cast<std::size_t>(end)];
    ++first.runs, first.lanes += lanes, first.divergent += divergent;
    --behind.runs, behind.lanes -= lanes, behind.divergent -= divergent;
  }
  // The guard of an op has left out some of them.
  void leave_out(std::int32_t op, std::int64_t lanes) { left_out_[static_cast<std::size_t>(op)] += lanes; }

  [[nodiscard]] std::vector<Of> by_op() const {
    std::vector<Of> all(left_out_.size());
    Of now;
    for (std::size_t i = 0; i < all.size(); ++i) {
      now.runs += ends_[i].runs, now.lanes += ends_[i].lanes, now.divergent += ends_[i].divergent;
      all[i] = now;
      all[i].lanes -= left_out_[i];
    }
    return all;
  }

 private:
  std::vector<Of> ends_;  // [ops + 1] differences of each op and the one before it
  std::vector<std::int64_t> left_out_;
};

}  // namespace kvscope::ptx
