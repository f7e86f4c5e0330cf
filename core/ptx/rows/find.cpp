#include <array>

#include "core/ptx/rows/op.h"
#include "core/ptx/rows/subjects.h"

namespace kvscope::ptx {
namespace {

using rows::Ask;
using Subject = RowHandler (*)(const Ask& ask);

constexpr std::array<std::array<Subject, 3>, 7> kCompiledThrice{{
    // Simd::baseline            avx2                avx512
    {rows::integer_baseline, rows::integer_avx2, rows::integer_avx512},
    {rows::bits_baseline, rows::bits_avx2, rows::bits_avx512},
    {rows::compare_baseline, rows::compare_avx2, rows::compare_avx512},
    {rows::float_baseline, rows::float_avx2, rows::float_avx512},
    {rows::convert_baseline, rows::convert_avx2, rows::convert_avx512},
    {rows::approx_baseline, rows::approx_avx2, rows::approx_avx512},
    {rows::matrix_baseline, rows::matrix_avx2, rows::matrix_avx512},
}};

constexpr std::array<Subject, 8> kCompiledOnce{rows::moves,       rows::integer_rare, rows::compare_rare,
                                               rows::half,        rows::float_rare,   rows::convert_narrow,
                                               rows::convert_any, rows::matrices};

}  // namespace

Simd best_simd() {
#if defined(__x86_64__)
  static const Simd best = [] {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Simd::baseline;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
               ? Simd::avx512
               : Simd::avx2;
  }();
  return best;
#else
  return Simd::baseline;
#endif
}

RowHandler find_row_handler(const RowRequest& request, Simd simd) {
  const Ask ask = rows::ask_of(request);
  for (const auto& subject : kCompiledThrice) {
    if (const RowHandler handler = subject[static_cast<std::size_t>(simd)](ask)) return handler;
  }
  for (const Subject subject : kCompiledOnce) {
    if (const RowHandler handler = subject(ask)) return handler;
  }
  return nullptr;
}

}  // namespace kvscope::ptx
