#include <cmath>

#include "core/base/errors.h"
#include "core/golden/verdict/detail/verdict_loops.h"

namespace kvscope::golden {

bool is_output_type(DType type) {
  return type == DType::f64 || type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

NumberType number_type(DType type) {
  KVSCOPE_ASSERT(is_output_type(type));
  NumberType result;
  result.step = attention::step_of(type);
  const double spacing = 2 * result.step.unit;  // of the numbers between 1 and 2
  result.largest = (2 - spacing) * (2 / result.step.smallest);
  if (type == DType::f64) return result;
  result.per_smallest = 1 / (result.step.smallest * spacing);
  const int kept_bits = -std::ilogb(spacing);
  result.dropped_bits = 52 - kept_bits;
  // The smallest normal number has the exponent field 1, that is the pattern 1 << kept_bits.
  result.offset = (std::int64_t{std::ilogb(result.step.smallest)} + 1022) << kept_bits;
  return result;
}

const VerdictLoops& verdict_loops(attention::InstructionSet set) {
  switch (set) {
#if defined(KVSCOPE_AVX2)
    case attention::InstructionSet::avx2:
      return *avx2::verdict_loops();
#endif
#if defined(KVSCOPE_AVX512)
    case attention::InstructionSet::avx512:
      return *avx512::verdict_loops();
#endif
    default:
      return *baseline::verdict_loops();
  }
}

const VerdictLoops& verdict_loops() {
  static const VerdictLoops& kWidest = verdict_loops(attention::available_instruction_sets().back());
  return kWidest;
}

}  // namespace kvscope::golden
