// Finds accesses of tensor memory that do not wait for an operation on the same cells, and missing fences around a
// synchronization of threads.
//
//   first      second               needs, between them
//   mma, cp    mma, same thread     nothing: the tensor core performs them in order
//   mma, cp    ld, st, dealloc      tcgen05.commit, a wait for its mbarrier, fence::after_thread_sync
//   ld, st     any, same warp       tcgen05.wait::ld, tcgen05.wait::st; two ld need nothing
//   ld, st     any, another warp    the wait, fence::before_thread_sync, a barrier, fence::after_thread_sync
//
// TENSOR_ORDER: the wait or the synchronization is missing. TENSOR_FENCE: only the fence is. A warp's access is
// ordered once any of its lanes has synchronized, as ld and st are instructions of the whole warp. What happens before
// what: happens_before.h.
//
//   tcgen05.mma [d], ...;  tcgen05.commit [full];                   tcgen05.ld {..}, [d]
//     without a wait for `full`: TENSOR_ORDER tcgen05.ld reads columns 0 to 7 of tensor memory before tcgen05.mma on
//     them is
//     known to be complete
//
// This is a monitor. Modules without tcgen05 cost nothing.
// Source: PTX ISA 9.0, "Memory Consistency Model for 5th generation of TensorCore operations".
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gpu/virtual/check/happens_before.h"
#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

class TensorChecker final : public OrderMonitor {
 public:
  explicit TensorChecker(bool collectives_order = false) : OrderMonitor(collectives_order) {}

  [[nodiscard]] std::unique_ptr<Monitor> fork(std::int64_t) override {
    return std::make_unique<TensorChecker>(collectives_order());
  }
  [[nodiscard]] bool wants_accesses() const override { return false; }
  [[nodiscard]] OperationEvents wants_operations() const override { return {false, false, false, false}; }
  void launch_begins(Launch& launch) override;
  void cta_begins(Launch& launch, const Cta& cta) override;
  void cta_ends(Launch& launch, const Cta& cta) override;
  void tensor_access(const Exec& exec, const Op& op, const TensorAccess& access) override;
  void tensor_wait(const Exec& exec, const Op& op, bool stores) override;
  void tensor_fence(const Exec& exec, const Op& op, LaneMask lanes, bool before) override;
  void tensor_freed(const Exec& exec, const Op& op, std::int64_t column, std::uint64_t columns) override;

 private:
  // The last access of an actor to a region.
  struct Mark {
    TensorRegion region;
    bool write = false;
    bool engine = false;  // of the tensor core; otherwise of a warp
    ActorKey actor = 0;   // the engine, or the warp's lane 0
    Step step = 0;        // of a warp: when it was waited for
    std::int32_t pc = -1;
    std::int32_t thread = 0;  // the issuer, or the warp's lane 0
    bool waited = false;      // of a warp: by tcgen05.wait
    bool fenced = false;      // of a warp: by fence::before_thread_sync after the wait
  };
  struct State {
    std::shared_ptr<HappensBefore> order;  // of its cluster
    std::vector<Mark> marks;               // on its tensor memory
    std::vector<Known> after;  // [warps] what the warp had acquired at its last fence::after_thread_sync; null: none
  };

  [[nodiscard]] HappensBefore* order_of(const Cta& cta) override;
  void look(const Exec& exec, const Op& op, const TensorAccess& access, const TensorRegion& region);
  void tell(const Exec& exec, const Op& op, int lane, const Mark& before, const TensorRegion& region, bool write,
            bool fence);

  bool uses_tensor_memory_ = false;
  std::map<std::int32_t, State> ctas_;  // by Cta::index
};

}  // namespace kvscope::ptx
