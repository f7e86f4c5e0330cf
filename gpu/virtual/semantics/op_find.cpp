#include <array>

#include "gpu/virtual/semantics/detail/op_families.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {
namespace {

using namespace semantics;

const std::array<Family, 7>& loop_families(Simd simd) {
#if defined(KVSCOPE_AVX512)
  if (simd == Simd::avx512) return avx512::kFamilies;
#endif
#if defined(KVSCOPE_AVX2)
  if (simd == Simd::avx2) return avx2::kFamilies;
#endif
  static_cast<void>(simd);
  return baseline::kFamilies;
}

constexpr std::array<Family, 8> kCompiledOnce{
    semantics::moves,          semantics::integer_lanewise, semantics::compare_lanewise, semantics::half,
    semantics::float_lanewise, semantics::convert_narrow,   semantics::convert_any,      semantics::matrices};

}  // namespace

Simd best_simd() {
#if defined(__x86_64__)
  static const Simd best = [] {
    __builtin_cpu_init();
#if defined(KVSCOPE_AVX512)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma")) {
      return Simd::avx512;
    }
#endif
#if defined(KVSCOPE_AVX2)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Simd::avx2;
#endif
    return Simd::baseline;
  }();
  return best;
#else
  return Simd::baseline;
#endif
}

OpHandler find_op_handler(const OpRequest& request, Simd simd) {
  const OpQuery query = semantics::query_of(request);
  for (const Family family : loop_families(simd)) {
    if (const OpHandler handler = family(query)) return handler;
  }
  for (const Family family : kCompiledOnce) {
    if (const OpHandler handler = family(query)) return handler;
  }
  return nullptr;
}

}  // namespace kvscope::ptx
