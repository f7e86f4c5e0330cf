// Loads, stores, addresses. PTX ISA, "Data Movement and Conversion Instructions".
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kMemoryForms[] = {
    // at most 16 bytes per lane; 32 from sm_100
    {"ld", "weak? <space>? <load-cache>? {memory}", "=~T*v A"},
    {"ld", "weak? global? <load-cache>|<L1-eviction>? <prefetch-size>? L2::cache_hint? {memory}", "=~T*v A policy"},
    {"ld", "volatile global? <prefetch-size>? {memory}", "=~T*v A"},
    {"ld", "volatile <shared> {memory}", "=~T*v A"},
    {"ld", "acquire|relaxed <scope> <ordered>? {memory}", "=~T*v A"},
    {"ld", "acquire|relaxed <scope> global? <L1-eviction>? <prefetch-size>? L2::cache_hint? {memory}",
     "=~T*v A policy"},
    {"ld", "mmio relaxed sys global? <memory32>|<memory64>", "=~T A"},
    {"ld", "global nc <nc-cache>|<L1-eviction>? <prefetch-size>? L2::cache_hint? {memory}", "=~T*v A policy"},
    {"ld",
     "weak? global <load-cache>|<L1-eviction>? <L2-eviction>? <prefetch-size>? L2::cache_hint? {memory-of-32-bytes}",
     "=~T*v A policy", 100},
    {"ld",
     "acquire|relaxed <scope> global <L1-eviction>? <L2-eviction>? <prefetch-size>? L2::cache_hint? "
     "{memory-of-32-bytes}",
     "=~T*v A policy", 100},
    {"ld", "global nc <nc-cache>|<L1-eviction>? <L2-eviction>? <prefetch-size>? L2::cache_hint? {memory-of-32-bytes}",
     "=~T*v A policy", 100},
    {"st", "weak? <storable>? <store-cache>? {memory}", "A ~T*v"},
    {"st", "weak? global? <store-cache>|<L1-eviction>? L2::cache_hint? {memory}", "A ~T*v policy"},
    {"st", "volatile <ordered>? {memory}", "A ~T*v"},
    {"st", "release|relaxed <scope> <ordered>? {memory}", "A ~T*v"},
    {"st", "release|relaxed <scope> global? <L1-eviction>? L2::cache_hint? {memory}", "A ~T*v policy"},
    {"st", "mmio relaxed sys global? <memory32>|<memory64>", "A ~T"},
    {"st", "weak? global <store-cache>|<L1-eviction>? <L2-eviction>? L2::cache_hint? {memory-of-32-bytes}",
     "A ~T*v policy", 100},
    {"st", "release|relaxed <scope> global <L1-eviction>? <L2-eviction>? L2::cache_hint? {memory-of-32-bytes}",
     "A ~T*v policy", 100},
    {"ldu", "global? v2|v4? <memory32>", "=~T*v A"},
    {"ldu", "global? v2? <memory64>", "=~T*v A"},
    {"cvta", "<window> u32|u64", "=T T"},
    {"cvta", "to <window> u32|u64", "=T T"},
    {"isspacep", "<window>", "=pred u64/u32"},
    {"mapa", "shared::cluster? u32|u64", "=T T u32"},
    {"getctarank", "shared::cluster? u32|u64", "=u32 T"},
    {"alloca", "u32|u64", "=T T #u32?"},
    {"stacksave", "u32|u64", "=T"},
    {"stackrestore", "u32|u64", "T"},
    // no effect in this machine
    {"prefetch", "global|local? L1|L2", "A"},
    {"prefetch", "global? L2::evict_last|L2::evict_normal", "A"},
    {"prefetch.tensormap", "", "A"},
    {"prefetch.param.tensormap", "", "A"},
    {"prefetch.const.tensormap", "", "A"},
    {"prefetchu", "L1", "A"},
    {"applypriority", "global? L2::evict_normal", "A #u32"},
    // the size, and the value, which must be 0
    {"st.bulk", "weak? shared::cta?", "A u64 #u32", 100},
    {"discard", "global? L2", "A #u32"},
    {"createpolicy", "fractional <L2-first> <L2-second>? b64", "=b64 f32?"},
    {"createpolicy", "range global? <L2-first> <L2-second>? b64", "=b64 A:global u32 u32"},
    {"createpolicy", "cvt L2 b64", "=b64 b64"},
};

}  // namespace

std::span<const Form> memory_forms() {
  return kMemoryForms;
}

}  // namespace kvscope::ptx
