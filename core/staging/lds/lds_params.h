// The KVBuffer parameters of a scenario's LDS path: those of the shipped attention kernels for its cache, overridden by
// the scenario's `lds` fields.
//
//   cache type      instruction  BK               swizzle of K   V
//   bf16, f16       32x32x16     32 elements      (3,0,4)        none
//   e4m3, e5m2      32x32x64     64 elements      (3,0,4)        none
//   BN 64 tokens, 32 for heads of more than 256 elements: two stages of K and V must fit 160 KiB
//
// The columns from head_dim_offset to the end of the head are staged (V: to the end of the values), as one tile per
// stage, or block by block without full_kv. Registers hold all strips. If a lane's 255 registers are too few, they hold
// the largest equal part (reg_chunk_depth of K, reg_chunk_keys of V). Example: bf16 V of 256 columns, BN 128: 4 strips
// of 64 registers, so 2 at a time.
//
// An instruction of 16 rows uses (3,0,3) for K, as decode kernels do, and BK of 32 or 128 elements. WN is BN.
// Any other type, or a head that is not whole strips, gives parameters that break a rule of KVBufferConfig; this
// function does not check them.
#pragma once

#include "core/base/index.h"
#include "core/scenario/scenario.h"
#include "core/staging/lds/kv_buffer_config.h"

namespace kvscope {

// Example: Llama 3 8B in bf16 (8 KV heads of 128), K: 32x32x16, BN 64, WN 64, BK 32, depth 128, (3,0,4).
[[nodiscard]] KVBufferParams lds_params(const Scenario& scenario, KOrV kv);

}  // namespace kvscope
