// barrier.cluster.arrive and .wait: all threads of all CTAs of a cluster. A CTA outside clusters is a cluster by
// itself.
//
//   arrive      the lane is counted; a second arrive before the wait is an error
//   wait        passes when every thread of the cluster that has not exited has arrived
//
// Source: PTX ISA, "barrier.cluster".
#pragma once

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

[[nodiscard]] MachineHandler find_cluster_barrier(const Instr& instr);
// A lane has exited: the barrier no longer waits for it.
void look_again_at_cluster_barrier(Launch& launch, Cta& cta);

}  // namespace kvscope::ptx
