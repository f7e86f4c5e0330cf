#include "core/staging/lds/lds_params.h"

#include <algorithm>
#include <optional>

#include "core/base/dtype.h"
#include "core/base/errors.h"

namespace kvscope {
namespace {

MmaShape shape_of(LdsMma mma, DType dtype) {
  switch (mma) {
    case LdsMma::shipped:
      return size_of(dtype) == 1 ? MmaShape{32, 32, 64} : MmaShape{32, 32, 16};
    case LdsMma::m32x32x8:
      return {32, 32, 8};
    case LdsMma::m32x32x16:
      return {32, 32, 16};
    case LdsMma::m16x16x32:
      return {16, 16, 32};
    case LdsMma::m32x32x64:
      return {32, 32, 64};
    case LdsMma::m16x16x128:
      return {16, 16, 128};
  }
  KVSCOPE_ASSERT(false);
}

// Of K; V is read without one.
std::optional<Swizzle> swizzle_of(LdsSwizzle swizzle, const MmaShape& shape) {
  switch (swizzle) {
    case LdsSwizzle::shipped:
      return shape.M == 16 ? Swizzle(3, 0, 3) : Swizzle(3, 0, 4);
    case LdsSwizzle::none:
      return std::nullopt;
    case LdsSwizzle::s304:
      return Swizzle(3, 0, 4);
    case LdsSwizzle::s303:
      return Swizzle(3, 0, 3);
    case LdsSwizzle::s203:
      return Swizzle(2, 0, 3);
    case LdsSwizzle::s202:
      return Swizzle(2, 0, 2);
  }
  KVSCOPE_ASSERT(false);
}

// 64 bytes of elements, but what the instruction takes along K when that is more.
std::int64_t strip_of(const MmaShape& shape, DType dtype) {
  return std::max(shape.K, 64 / size_of(dtype));
}

}  // namespace

KVBufferParams lds_params(const Scenario& scenario, KOrV kv) {
  const LdsGeometry& chosen = scenario.lds;
  const DType dtype = scenario.cache.dtype;
  const bool is_k = kv == KOrV::k;
  KVBufferParams p;
  p.dtype = dtype;
  p.mma_shape = shape_of(chosen.mma, dtype);
  if (is_k) p.swizzle = swizzle_of(chosen.swizzle, p.mma_shape);
  p.BN = chosen.BN > 0 ? chosen.BN : scenario.model.head_size > 256 ? 32 : 64;
  p.WN = is_k && chosen.WN > 0 ? chosen.WN : p.BN;  // V's register tile covers all keys
  p.BK = chosen.BK > 0 ? chosen.BK : strip_of(p.mma_shape, dtype);
  p.num_threads = chosen.threads;
  p.depth = is_k ? scenario.model.head_size : scenario.model.value_size;
  p.cache_depth = scenario.model.head_size;
  p.kv_num_heads = scenario.model.kv_heads;
  p.transpose = is_k;
  p.k_group = p.mma_shape == MmaShape{32, 32, 8} ? 2 : 1;
  return p;
}

}  // namespace kvscope
