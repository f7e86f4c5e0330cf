#include <array>

#include "gpu/virtual/semantics/detail/op_families.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {
namespace {

using namespace semantics;
#if defined(__x86_64__)
constexpr std::array kLoopFamilies{baseline::kFamilies, avx2::kFamilies, avx512::kFamilies};  // by Simd
#else
constexpr std::array kLoopFamilies{baseline::kFamilies};
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
  for (const Family family : kLoopFamilies[static_cast<std::size_t>(simd)]) {
    if (const OpHandler handler = family(query)) return handler;
  }
  for (const Family family : kCompiledOnce) {
    if (const OpHandler handler = family(query)) return handler;
  }
  return nullptr;
}

}  // namespace kvscope::ptx
