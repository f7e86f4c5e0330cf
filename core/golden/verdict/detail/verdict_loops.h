// The loops of a comparison over the elements of a tensor, once per instruction set, with equal results.
// Held by tests/core/golden/verdict/verdict_loops_test.cpp, element by element against convert.h and measures.h.
#pragma once

#include <cstdint>

#include "core/attention/bounds.h"
#include "core/attention/reference.h"

namespace kvscope::golden {

inline constexpr std::int64_t kBlock = 256;  // most elements of one call: a block and its results fit in the L1 cache

[[nodiscard]] bool is_output_type(DType type);  // f64, f32, f16 or bf16

// The numbers of such a type.
struct NumberType {
  attention::StepOfType step;
  double largest = 0;
  double per_smallest = 0;  // 1 / the smallest subnormal number; not used for f64
  int dropped_bits = 0;     // of a double's fraction; 0: f64
  std::int64_t offset = 0;  // a normal number's pattern is its bits >> dropped_bits, less offset
};
[[nodiscard]] NumberType number_type(DType type);

// `finite`: whether all elements are, as doubles and rounded to the type. Otherwise the other results are not valid.
struct MeasuredBlock {
  bool finite = false;
  double max_abs = 0;         // |candidate - golden|
  std::uint64_t max_ulp = 0;  // Measures::max_ulp
  // The addends of the sums of measures.h.
  double error2[kBlock], golden2[kBlock], cross[kBlock], both2[kBlock];
};

// Terms of RowEvidence for each element, with excess and boundary in deviations: group_tests.h.
struct EvidenceBlock {
  bool usable = false;            // false: a variance past the range of these loops
  double excess2[kBlock];         // excess^2
  double visible[kBlock];         // the share of the element that can show an error
  std::int32_t boundary[kBlock];  // boundary * kTailSteps, cut off, at most kTailEntries - 1
};
inline constexpr std::int32_t kTailSteps = 32, kTailEntries = 10 * kTailSteps;

struct VerdictLoops {
  // `candidate` holds values of `type`.
  void (*measure)(const NumberType& type, const double* candidate, const double* golden, std::int64_t count,
                  MeasuredBlock* block);
  // For finite values; `type` is that of the output, `deviations` of attention::Rounding.
  void (*weigh)(const NumberType& type, double deviations, const double* candidate, const double* golden,
                const double* systematic, const double* variance, std::int64_t count, EvidenceBlock* block);
  // Whether an error exceeds `share` of the allowed error, or is not a number.
  bool (*exceeds)(const double* candidate, const double* golden, const double* allowed, double share,
                  std::int64_t count);
  // Whether all elements are finite numbers of `type`.
  bool (*all_of_type)(const NumberType& type, const double* x, std::int64_t count);
};

namespace baseline {
[[nodiscard]] const VerdictLoops* verdict_loops();
}
#if defined(__x86_64__)
namespace avx2 {
[[nodiscard]] const VerdictLoops* verdict_loops();
}
namespace avx512 {
[[nodiscard]] const VerdictLoops* verdict_loops();
}
#endif
[[nodiscard]] const VerdictLoops& verdict_loops(attention::InstructionSet set);  // one that is available
[[nodiscard]] const VerdictLoops& verdict_loops();                               // the widest of this machine

}  // namespace kvscope::golden
