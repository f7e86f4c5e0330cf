// Loads, stores, addresses. PTX ISA, "Data Movement and Conversion Instructions".
#include "core/ptx/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kForms[] = {
    // 16 bytes a lane at most; 32 from sm_100 on
    {Opcode::ld, "ld", "<load-order>? <space>? <load-cache>? <hint>* v2|v4? <memory32>", "=~T*v A b64@L2::cache_hint"},
    {Opcode::ld, "ld", "<load-order>? <space>? <load-cache>? <hint>* v2? <memory64>", "=T*v A b64@L2::cache_hint"},
    {Opcode::ld, "ld", "<load-order>? <space>? <load-cache>? <hint>* b128", "=T A b64@L2::cache_hint"},
    {Opcode::ld, "ld", "<load-order>? <space>? <load-cache>? <hint>* v8 b32|u32|s32|f32", "=T*v A b64@L2::cache_hint",
     100},
    {Opcode::ld, "ld", "<load-order>? <space>? <load-cache>? <hint>* v4 <memory64>", "=T*v A b64@L2::cache_hint", 100},
    {Opcode::ld, "ld", "acquire|relaxed <scope> <space>? <hint>* v2|v4? <memory32>", "=~T*v A b64@L2::cache_hint"},
    {Opcode::ld, "ld", "acquire|relaxed <scope> <space>? <hint>* v2? <memory64>", "=T*v A b64@L2::cache_hint"},
    {Opcode::ld, "ld", "acquire|relaxed <scope> <space>? <hint>* b128", "=T A b64@L2::cache_hint"},
    {Opcode::ld, "ld", "mmio relaxed sys global? <memory32>|<memory64>", "=~T A"},
    {Opcode::ld, "ld", "global nc <load-cache>? <hint>* v2|v4? <memory32>", "=~T*v A b64@L2::cache_hint"},
    {Opcode::ld, "ld", "global nc <load-cache>? <hint>* v2? <memory64>", "=T*v A b64@L2::cache_hint"},
    {Opcode::ld, "ld", "global nc <load-cache>? <hint>* b128", "=T A b64@L2::cache_hint"},
    {Opcode::ld, "ld", "global nc <load-cache>? <hint>* v8 b32|u32|s32|f32", "=T*v A b64@L2::cache_hint", 100},
    {Opcode::ld, "ld", "global nc <load-cache>? <hint>* v4 <memory64>", "=T*v A b64@L2::cache_hint", 100},
    {Opcode::st, "st", "<store-order>? <space>? <store-cache>? <hint>* v2|v4? <memory32>", "A ~T*v b64@L2::cache_hint"},
    {Opcode::st, "st", "<store-order>? <space>? <store-cache>? <hint>* v2? <memory64>", "A T*v b64@L2::cache_hint"},
    {Opcode::st, "st", "<store-order>? <space>? <store-cache>? <hint>* b128", "A T b64@L2::cache_hint"},
    {Opcode::st, "st", "<store-order>? <space>? <store-cache>? <hint>* v8 b32|u32|s32|f32", "A T*v b64@L2::cache_hint",
     100},
    {Opcode::st, "st", "<store-order>? <space>? <store-cache>? <hint>* v4 <memory64>", "A T*v b64@L2::cache_hint", 100},
    {Opcode::st, "st", "release|relaxed <scope> <space>? <hint>* v2|v4? <memory32>", "A ~T*v b64@L2::cache_hint"},
    {Opcode::st, "st", "release|relaxed <scope> <space>? <hint>* v2? <memory64>", "A T*v b64@L2::cache_hint"},
    {Opcode::st, "st", "release|relaxed <scope> <space>? <hint>* b128", "A T b64@L2::cache_hint"},
    {Opcode::st, "st", "mmio relaxed sys global? <memory32>|<memory64>", "A ~T"},
    {Opcode::ldu, "ldu", "global? v2|v4? <memory32>", "=~T*v A"},
    {Opcode::ldu, "ldu", "global? v2? <memory64>", "=T*v A"},

    {Opcode::cvta, "cvta", "<window> u32|u64", "=T T"},
    {Opcode::cvta, "cvta", "to <window> u32|u64", "=T T"},
    {Opcode::isspacep, "isspacep", "<window>", "=pred u64/u32"},
    {Opcode::mapa, "mapa", "shared::cluster? u32|u64", "=T T u32"},
    {Opcode::getctarank, "getctarank", "shared::cluster? u32|u64", "=u32 T"},
    {Opcode::alloca, "alloca", "u32|u64", "=T T #u32?"},
    {Opcode::stacksave, "stacksave", "u32|u64", "=T"},
    {Opcode::stackrestore, "stackrestore", "u32|u64", "T"},

    // no effect here
    {Opcode::prefetch, "prefetch", "global|local? L1|L2", "A"},
    {Opcode::prefetch, "prefetch", "global L2::evict_last|L2::evict_normal", "A"},
    {Opcode::prefetch_tensormap, "prefetch", "param|const? tensormap", "A"},
    {Opcode::prefetchu, "prefetchu", "L1", "A"},
    {Opcode::applypriority, "applypriority", "global? L2::evict_normal", "A #u32"},
    {Opcode::discard, "discard", "global? L2", "A #u32"},
    {Opcode::createpolicy, "createpolicy", "fractional <L2-first> <L2-second>? b64", "=b64 f32?"},
    {Opcode::createpolicy, "createpolicy", "range global? <L2-first> <L2-second>? b64", "=b64 A:global u32 u32"},
    {Opcode::createpolicy, "createpolicy", "cvt L2 b64", "=b64 b64"},
};

}  // namespace

std::span<const Form> memory_forms() {
  return kForms;
}

}  // namespace kvscope::ptx
