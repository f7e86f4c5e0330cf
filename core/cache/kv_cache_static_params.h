// The fixed sizes of a cache type: the number of K/V heads and their length. In the Mojo kernels these are compile-time
// parameters; here they are plain numbers fixed at construction, so that one build serves every model.
//
// Example: Llama-3.1 8B is {8, 128}; DeepSeek-V3 is {1, 576, true}: one slot serves as K and as V.
#pragma once

#include <cstdint>
#include <type_traits>

namespace kvscope {

struct KVCacheStaticParams {
  std::int64_t num_heads = 0;  // H
  std::int64_t head_size = 0;  // D [elements]
  bool is_mla = false;         // one slot in the pool's second axis instead of two
  friend bool operator==(const KVCacheStaticParams&, const KVCacheStaticParams&) = default;
};
static_assert(std::is_trivially_copyable_v<KVCacheStaticParams>);

}  // namespace kvscope
