// The loops of lane_loops.h by instruction set: lane_loops.cpp defines one of these per compilation.
#pragma once

#include "gpu/virtual/machine/memory/lane_loops.h"

namespace kvscope::ptx::lanes {

namespace baseline {
extern const LaneLoops kLoops;
}
namespace avx2 {
extern const LaneLoops kLoops;
}
namespace avx512 {
extern const LaneLoops kLoops;
}

}  // namespace kvscope::ptx::lanes
