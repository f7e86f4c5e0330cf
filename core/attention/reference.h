// The golden reference: attention in double on the stored values, the same bytes on every compiler, machine and run.
// Stored values are used unchanged: f16, bf16 and fp8 elements are exact doubles, a quantized one is element * scale in
// double. The error of quantization itself is not part of the reference.
//
// The order of every operation, for one query row over its visible keys first .. last - 1 (mask.h):
//   1. score  dot(q, k) as eight sums, sum j over dims j, j + 8, j + 16, ... rising, rows padded with zeros to a
//             multiple of eight, folded ((0+4)+(2+6)) + ((1+5)+(3+7)); then * scale; cap * tanh(score / cap);
//             + slope * (key - query)
//   2. m      the largest score, and the sink's logit where there is one
//   3. e_t    portable_exp(score_t - m);  their sum as eight sums, sum j over keys first + j, first + j + 8, ...,
//             folded the same way; then + portable_exp(sink - m)
//   4. o      sum over keys, rising, of e_t * v_t from +0; divided once by the sum of 3. a1 and a2 in the same way, the
//             square root of a2 last
//   5. lse    m + portable_log(sum of 3); in base two times the double nearest log2(e)
// The other terms of the bounds (result.h) sum over keys, rising; `running` looks at the ends of the blocks of 64 keys
// that V is read in, which start at the first key that any query of the block of queries sees.
// No fused multiply-add is used. The list contains neither page size nor the order of physical pages, so neither can
// change a bit. A NaN of any kind is returned as the positive quiet NaN.
//
// A row without a visible key gives o = a1 = a2 = smax = 0 and the lse selected by options.empty_row, sinks or not.
// Example: q = 1, scale 1, keys {0, ln 2} as doubles, values {0, 3}: weights 1/3 and 2/3, o = 2, lse = ln 3, a2 = 2.
//
// reference_output() computes o and lse alone, with the same bits.
//
// Throws the errors of check_problem (problem_checks.h). Memory: 8 bytes per visible key for each head of one query; a
// few queries at a time while that stays under 8 MB.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/attention/problem.h"
#include "core/attention/result.h"

namespace kvscope::attention {

[[nodiscard]] Result reference(const Problem& problem);
[[nodiscard]] Output reference_output(const Problem& problem);

// The instructions of the inner loops. The result does not depend on them: `reference` uses the widest available.
enum class InstructionSet : std::uint8_t { baseline, avx2, avx512 };
[[nodiscard]] std::string_view name(InstructionSet set);
[[nodiscard]] std::vector<InstructionSet> available_instruction_sets();  // baseline first, the widest last

// UnsupportedError when this machine or build does not have `set`.
[[nodiscard]] Result reference(const Problem& problem, InstructionSet set);
[[nodiscard]] Output reference_output(const Problem& problem, InstructionSet set);

}  // namespace kvscope::attention
