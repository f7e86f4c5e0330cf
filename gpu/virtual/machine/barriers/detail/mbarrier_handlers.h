// Mbarrier objects as operands of instructions and targets of engines: lookup by offset, checks, reports, waits.
#pragma once

#include <cstdint>
#include <string>

#include "gpu/virtual/machine/barriers/mbarrier.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// Whether a live object is in [from, to) of shared memory. Fast when the range is far from all objects.
[[nodiscard]] inline bool touches_mbarriers(const Cta& cta, std::uint64_t from, std::uint64_t to) {
  return offset_of(from) < cta.async.barriers_end && offset_of(to - 1) >= cta.async.barriers_begin;
}
// Reports ordinary accesses of lanes to a live object. The accesses are performed in any case.
// Returns false if the report ended the launch.
[[nodiscard]] bool report_touched(Exec& exec, const Op& op, LaneMask lanes, const LaneAddresses& addresses,
                                  const AccessRequest& request);

// An engine has written bytes: credits them, and wakes the waiting threads when the phase completes. `op` did it.
void complete_tx(Launch& launch, Cta& cta, std::uint64_t offset, std::int64_t bytes, const AsyncOp& op);
// For reports about bytes: who announced how many in this phase, and which copies have landed, a line each, oldest first.
//   announced  256 bytes by thread 0 at decode.cu:12
//   landed     272 bytes of tensor load issued by thread 0 at decode.cu:14
[[nodiscard]] std::string announced_and_landed(const Launch& launch, const Mbarrier& b);
// An arrival made by an engine (cp.async.mbarrier.arrive), or by a thread of another CTA.
void arrive_by_engine(Launch& launch, Cta& cta, std::uint64_t offset, const AsyncOp& op);

// The object that a lane's instruction names, in its own CTA or, if `remote`, in any CTA of the cluster. Null: a fault
// was reported.
struct MbarrierAt {
  Mbarrier* object = nullptr;
  Cta* cta = nullptr;
  std::uint64_t offset = 0;
};
[[nodiscard]] MbarrierAt find_mbarrier_at(Exec& exec, const Op& op, int lane, Space space, std::uint64_t address,
                                          bool remote);

}  // namespace kvscope::ptx
