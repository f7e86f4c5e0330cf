#include "core/staging/lds/lds_params.h"

#include <algorithm>
#include <optional>

#include "core/base/checked.h"
#include "core/base/dtype.h"
#include "core/base/errors.h"
#include "core/staging/lane_registers.h"
#include "core/staging/lds/lds_index.h"
#include "core/staging/lds/lds_swizzle.h"

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

// The swizzle of K; V has none.
std::optional<Swizzle> swizzle_of(LdsSwizzle swizzle, const MmaShape& shape) {
  switch (swizzle) {
    case LdsSwizzle::shipped:
      return usual_swizzle(LdsKernel::decode, true, shape.M);
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

// 64 bytes of elements, or the instruction's K if that is larger.
std::int64_t strip_of(const MmaShape& shape, DType dtype) {
  return std::max(shape.K, 64 / size_of(dtype));
}

// The number of strips in registers at a time: all of them, or the largest divisor of their number that fits a lane. At
// least one; LdsStaging rejects a strip that does not fit.
void fit_registers(KVBufferParams& p) {
  if (p.depth < 1) return;
  const std::int64_t along = p.transpose ? p.depth : p.WN, across = p.transpose ? p.WN : p.depth;
  const std::int64_t strips = ceil_div(along, p.BK);
  const std::int64_t fragment_bytes = p.mma_shape.K * p.mma_shape.N / kWaveLanes * size_of(p.dtype);
  const std::int64_t of_strip = ceil_div(across, p.mma_shape.N) * ceil_div(p.BK, p.mma_shape.K) * fragment_bytes / 4;
  std::int64_t held = strips;
  while (held > 1 && (strips % held != 0 || held * of_strip > kLaneRegisters)) --held;
  if (held == strips) return;
  (p.transpose ? p.reg_chunk_depth : p.reg_chunk_keys) = held * p.BK;
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
  p.depth = (is_k ? scenario.model.head_size : scenario.model.value_size) - chosen.head_dim_offset;
  p.cache_depth = chosen.cache_depth > 0 ? chosen.cache_depth : scenario.model.head_size;
  p.head_dim_offset = chosen.head_dim_offset;
  p.full_kv = chosen.full_kv;
  if (chosen.smem_depth > 0) p.smem_depth = chosen.smem_depth;
  p.kv_num_heads = scenario.model.kv_heads;
  p.transpose = is_k;
  p.k_group = p.mma_shape == MmaShape{32, 32, 8} ? 2 : 1;
  if (is_k && chosen.reg_chunk_depth > 0) {
    p.reg_chunk_depth = chosen.reg_chunk_depth;
  } else {
    fit_registers(p);
  }
  return p;
}

}  // namespace kvscope
