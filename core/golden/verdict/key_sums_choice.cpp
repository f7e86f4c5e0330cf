#include "core/golden/verdict/detail/key_sums.h"

namespace kvscope::golden {

const KeySums& key_sums(attention::InstructionSet set) {
  switch (set) {
#if defined(KVSCOPE_AVX2)
    case attention::InstructionSet::avx2:
      return *avx2::key_sums();
#endif
#if defined(KVSCOPE_AVX512)
    case attention::InstructionSet::avx512:
      return *avx512::key_sums();
#endif
    default:
      return *baseline::key_sums();
  }
}

const KeySums& key_sums() {
  static const KeySums& kWidest = key_sums(attention::available_instruction_sets().back());
  return kWidest;
}

}  // namespace kvscope::golden
