#include <array>

#include "gpu/virtual/semantics/detail/op_families.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {
namespace {

using namespace semantics;
using Family = OpHandler (*)(const OpQuery& query);

#if defined(__x86_64__)
constexpr std::array<std::array<Family, 3>, 7> kCompiledThrice{{
    // Simd::baseline, avx2, avx512
    {baseline::integer_family, avx2::integer_family, avx512::integer_family},
    {baseline::bits_family, avx2::bits_family, avx512::bits_family},
    {baseline::compare_family, avx2::compare_family, avx512::compare_family},
    {baseline::float_family, avx2::float_family, avx512::float_family},
    {baseline::approx_family, avx2::approx_family, avx512::approx_family},
    {baseline::convert_family, avx2::convert_family, avx512::convert_family},
    {baseline::matrix_family, avx2::matrix_family, avx512::matrix_family},
}};
#else
constexpr std::array<std::array<Family, 1>, 7> kCompiledThrice{{
    {baseline::integer_family},
    {baseline::bits_family},
    {baseline::compare_family},
    {baseline::float_family},
    {baseline::approx_family},
    {baseline::convert_family},
    {baseline::matrix_family},
}};
#endif

constexpr std::array<Family, 8> kCompiledOnce{
    semantics::moves,          semantics::integer_lanewise, semantics::compare_lanewise, semantics::half,
    semantics::float_lanewise, semantics::convert_narrow,   semantics::convert_any,      semantics::matrices};

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

OpHandler find_op_handler(const OpRequest& request, Simd simd) {
  const OpQuery query = semantics::query_of(request);
  for (const auto& family : kCompiledThrice) {
    if (const OpHandler handler = family[static_cast<std::size_t>(simd)](query)) return handler;
  }
  for (const Family family : kCompiledOnce) {
    if (const OpHandler handler = family(query)) return handler;
  }
  return nullptr;
}

}  // namespace kvscope::ptx
