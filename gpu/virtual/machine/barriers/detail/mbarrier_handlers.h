// Mbarrier objects as instructions and engines meet them: found by their offset, checked, reported, waited for.
#pragma once

#include <cstdint>

#include "gpu/virtual/machine/barriers/mbarrier.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// Whether a live object stands in [from, to) of shared memory: a cheap no for what is nowhere near one.
[[nodiscard]] inline bool touches_mbarriers(const Cta& cta, std::uint64_t from, std::uint64_t to) {
  return offset_of(from) < cta.async.barriers_end && offset_of(to - 1) >= cta.async.barriers_begin;
}
// Reports ordinary accesses of lanes to a live object, if any of them is one; they happen all the same.
// False: the report ended the launch.
[[nodiscard]] bool report_touched(Exec& exec, const Op& op, LaneMask lanes, const LaneAddresses& addresses,
                                  const AccessRequest& request);

// Bytes of an engine have landed. Wakes who waits when the phase ends. `number` and so on: the operation that did it.
void complete_tx(Launch& launch, Cta& cta, std::uint64_t offset, std::int64_t bytes, const AsyncOp& op);
// An arrival that an engine makes (cp.async.mbarrier.arrive), or a thread's from afar.
void arrive_by_engine(Launch& launch, Cta& cta, std::uint64_t offset, const AsyncOp& op);

// The object that a lane's instruction names, in its own CTA or, when `remote`, in any of the cluster; null: reported.
struct MbarrierAt {
  Mbarrier* object = nullptr;
  Cta* cta = nullptr;
  std::uint64_t offset = 0;
};
[[nodiscard]] MbarrierAt find_mbarrier_at(Exec& exec, const Op& op, int lane, Space space, std::uint64_t address,
                                          bool remote);

}  // namespace kvscope::ptx
