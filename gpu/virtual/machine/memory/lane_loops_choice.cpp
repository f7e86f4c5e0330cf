#include "gpu/virtual/machine/memory/detail/lane_loop_sets.h"

namespace kvscope::ptx {

const LaneLoops& lane_loops(Simd simd) {
#if defined(KVSCOPE_AVX512)
  if (simd == Simd::avx512) return lanes::avx512::kLoops;
#endif
#if defined(KVSCOPE_AVX2)
  if (simd == Simd::avx2) return lanes::avx2::kLoops;
#endif
  static_cast<void>(simd);
  return lanes::baseline::kLoops;
}

const LaneLoops& lane_loops() {
  static const LaneLoops& kWidest = lane_loops(best_simd());
  return kWidest;
}

}  // namespace kvscope::ptx
