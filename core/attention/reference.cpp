#include "core/attention/reference.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "core/attention/detail/query_block.h"
#include "core/attention/detail/query_blocks.h"
#include "core/attention/detail/reference_kernels.h"
#include "core/attention/problem_checks.h"
#include "core/base/errors.h"
#include "core/layout/filled.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kvscope::attention {
namespace {

#if defined(__x86_64__)
// clang 14 does not have the name "f16c" in __builtin_cpu_supports.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

// Bits of the significand with the leading one; more than a double's for types that are not exact in it.
int significand_bits(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 53;
    case DType::f32:
      return 24;
    case DType::f16:
      return 11;
    case DType::bf16:
      return 8;
    default:
      return bits(dtype);  // of 8 bits, some are the sign and the exponent; integers use all
  }
}

Result run(const Problem& problem, const ReferenceKernels& kernels, Terms terms) {
  check_problem(problem);
  Result result = empty_result(problem, terms);
  QueryBlock<double> block(problem, kernels, terms, result);
  each_query_block(problem, [&](std::int64_t sequence, std::int64_t first, std::int64_t last, std::int64_t origin) {
    block.run(sequence, first, last, origin);
  });
  return result;
}

Output output_alone(Result result) {
  const xt::xtensor<double, 2> exact = filled(0.0, result.lse.shape(0), result.lse.shape(1));
  return {std::move(result.o), std::move(result.lse), exact, exact, false};
}

}  // namespace

// Exponents of f32 are far from a double's limits.
bool products_are_exact(const Problem& p) {
  const int k_bits = significand_bits(p.k.dtype) + (p.k.scales != nullptr ? significand_bits(p.k.scale_dtype) : 0);
  return significand_bits(p.q_dtype) + k_bits <= 53;
}

Result empty_result(const Problem& p, Terms terms) {
  const auto row = [&] { return filled(0.0, p.total_queries(), p.query_heads); };
  const auto row_of = [&](std::int64_t count) { return filled(0.0, p.total_queries(), p.query_heads, count); };
  if (terms == Terms::left_out) {
    Result result;
    result.o = row_of(p.v.head_size);
    result.lse = row();
    return result;
  }
  return {.o = row_of(p.v.head_size),
          .lse = row(),
          .a1 = row_of(p.v.head_size),
          .a2 = row_of(p.v.head_size),
          .smax = row(),
          .running = row_of(p.v.head_size),
          .keys = row(),
          .p2 = row(),
          .clump = row_of(kClumpTypes),
          .repeats = row(),
          .faint = row_of(kFaintTerms),
          .lost = row_of(kLostTerms),
          .partial_sums = filled(1.0, p.total_queries(), p.query_heads, kPartialTerms),
          .row_sum_cut = row_of(kClumpTypes),
          .largest_value = filled(-1.0, p.total_queries(), p.query_heads)};
}

void LargestLanes::raise(float x) {
  bits[0] = std::max(bits[0], std::bit_cast<std::int32_t>(x));
}

double LargestLanes::value() const {
  const auto largest = static_cast<double>(std::bit_cast<float>(*std::ranges::max_element(bits)));
  return largest < std::numeric_limits<double>::infinity() ? largest : std::numeric_limits<double>::infinity();
}

const ReferenceKernels* reference_kernels(InstructionSet set) {
  switch (set) {
    case InstructionSet::baseline:
      return baseline::reference_kernels();
#if defined(KVSCOPE_AVX2)
    case InstructionSet::avx2:
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 && has_f16c()
                 ? avx2::reference_kernels()
                 : nullptr;
#endif
#if defined(KVSCOPE_AVX512)
    case InstructionSet::avx512:
      return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0
                 ? avx512::reference_kernels()
                 : nullptr;
#endif
    default:
      return nullptr;
  }
}

std::string_view name(InstructionSet set) {
  switch (set) {
    case InstructionSet::baseline:
      return "baseline";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
  }
  return "?";
}

std::vector<InstructionSet> available_instruction_sets() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    if (reference_kernels(set) != nullptr) sets.push_back(set);
  }
  return sets;
}

const ReferenceKernels& available_kernels(InstructionSet set) {
  const ReferenceKernels* kernels = reference_kernels(set);
  if (kernels == nullptr) {
    throw UnsupportedError("reference with " + std::string(name(set)) +
                           " instructions: not in this build or not on this machine; leave the choice out");
  }
  return *kernels;
}

const ReferenceKernels& widest_kernels() {
  static const ReferenceKernels& kWidest = *reference_kernels(available_instruction_sets().back());
  return kWidest;
}

Result reference(const Problem& problem, InstructionSet set) {
  return run(problem, available_kernels(set), Terms::computed);
}
Result reference(const Problem& problem) {
  return run(problem, widest_kernels(), Terms::computed);
}

Output reference_output(const Problem& problem, InstructionSet set) {
  return output_alone(run(problem, available_kernels(set), Terms::left_out));
}
Output reference_output(const Problem& problem) {
  return output_alone(run(problem, widest_kernels(), Terms::left_out));
}

}  // namespace kvscope::attention
