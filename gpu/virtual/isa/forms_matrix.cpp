// Matrices, of a warp and of a warpgroup. Types: D A B C, except wmma.mma of f16, which names D and C.
// PTX ISA, "Warp Level Matrix Instructions", "Asynchronous Warpgroup Level Matrix Instructions".
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kMatrixForms[] = {
    {"mma", "sync aligned m16n8k8|m16n8k16 row/a col/b f16 f16 f16 f16", "=Rd Ra Rb Rc"},
    {"mma", "sync aligned m16n8k8|m16n8k16 row/a col/b f32 f16 f16 f32", "=Rd Ra Rb Rc"},
    {"mma", "sync aligned m16n8k8|m16n8k16 row/a col/b f32 bf16 bf16 f32", "=Rd Ra Rb Rc"},
    {"mma", "sync aligned m16n8k4|m16n8k8 row/a col/b f32 tf32 tf32 f32", "=Rd Ra Rb Rc"},
    {"mma", "sync aligned m16n8k16|m16n8k32 row/a col/b f32 e4m3|e5m2 e4m3|e5m2 f32", "=Rd Ra Rb Rc"},
    {"mma", "sync aligned m16n8k16|m16n8k32 row/a col/b f16 e4m3|e5m2 e4m3|e5m2 f16", "=Rd Ra Rb Rc"},
    {"mma", "sync aligned m8n8k16|m16n8k16|m16n8k32 row/a col/b satfinite? s32 u8|s8 u8|s8 s32", "=Rd Ra Rb Rc"},
    {"mma", "sync aligned m8n8k32|m16n8k32|m16n8k64 row/a col/b satfinite? s32 u4|s4 u4|s4 s32", "=Rd Ra Rb Rc"},
    {"mma", "sync aligned m8n8k128|m16n8k128|m16n8k256 row/a col/b s32 b1 b1 s32 xor|and popc", "=Rd Ra Rb Rc"},
    {"mma", "sync aligned m8n8k4 row/a col/b <rnd>? f64 f64 f64 f64", "=Rd Ra Rb Rc"},
    {"mma", "sync aligned m16n8k4|m16n8k8|m16n8k16 row/a col/b <rnd>? f64 f64 f64 f64", "=Rd Ra Rb Rc", 90},
    // a sparse A: its metadata, and which lanes have it
    {"mma", "<sparse> sync aligned m16n8k16|m16n8k32 row/a col/b f16 f16 f16 f16", "=Rd Ra Rb Rc b32 #u32", 80},
    {"mma", "<sparse> sync aligned m16n8k16|m16n8k32 row/a col/b f32 f16 f16 f32", "=Rd Ra Rb Rc b32 #u32", 80},
    {"mma", "<sparse> sync aligned m16n8k16|m16n8k32 row/a col/b f32 bf16 bf16 f32", "=Rd Ra Rb Rc b32 #u32", 80},
    {"mma", "<sparse> sync aligned m16n8k8|m16n8k16 row/a col/b f32 tf32 tf32 f32", "=Rd Ra Rb Rc b32 #u32", 80},
    {"mma", "<sparse> sync aligned m16n8k64 row/a col/b f32 e4m3|e5m2 e4m3|e5m2 f32", "=Rd Ra Rb Rc b32 #u32", 89},
    {"mma", "<sparse> sync aligned m16n8k32|m16n8k64 row/a col/b satfinite? s32 u8|s8 u8|s8 s32",
     "=Rd Ra Rb Rc b32 #u32", 80},
    {"mma", "<sparse> sync aligned m16n8k64|m16n8k128 row/a col/b satfinite? s32 u4|s4 u4|s4 s32",
     "=Rd Ra Rb Rc b32 #u32", 80},
    // elements of 6 and 4 bits in bytes
    {"mma", "sync aligned m16n8k16 row/a col/b kind::f8f6f4 f32 e4m3|e5m2 e4m3|e5m2 f32", "=Rd Ra Rb Rc", kOnly120a},
    {"mma", "sync aligned m16n8k16 row/a col/b kind::f8f6f4 f16 e4m3|e5m2 e4m3|e5m2 f16", "=Rd Ra Rb Rc", kOnly120a},
    {"mma", "sync aligned m16n8k32 row/a col/b kind::f8f6f4 f32 <up-to-8-bits> <up-to-8-bits> f32", "=Rd Ra Rb Rc",
     kOnly120a},
    {"mma", "sync aligned m16n8k32 row/a col/b kind::f8f6f4 f16 <up-to-8-bits> <up-to-8-bits> f16", "=Rd Ra Rb Rc",
     kOnly120a},
    {"mma", "sp::ordered_metadata sync aligned m16n8k64 row/a col/b kind::f8f6f4 f32 <up-to-8-bits> <up-to-8-bits> f32",
     "=Rd Ra Rb Rc b32 #u32", kOnly120a},
    {"mma", "sp::ordered_metadata sync aligned m16n8k64 row/a col/b kind::f8f6f4 f16 <up-to-8-bits> <up-to-8-bits> f16",
     "=Rd Ra Rb Rc b32 #u32", kOnly120a},
    // block scales of A and of B, each with {byte, lane}
    {"mma",
     "sync aligned m16n8k32 row/a col/b kind::mxf8f6f4 block_scale scale_vec::1X? f32 <up-to-8-bits> <up-to-8-bits> "
     "f32 ue8m0",
     "=Rd Ra Rb Rc b32 u16*p b32 u16*p", kOnly120a},
    {"mma", "sync aligned m16n8k64 row/a col/b kind::mxf4 block_scale scale_vec::2X? f32 e2m1 e2m1 f32 ue8m0",
     "=Rd Ra Rb Rc b32 u16*p b32 u16*p", kOnly120a},
    {"mma", "sync aligned m16n8k64 row/a col/b kind::mxf4nvf4 block_scale scale_vec::2X f32 e2m1 e2m1 f32 ue8m0",
     "=Rd Ra Rb Rc b32 u16*p b32 u16*p", kOnly120a},
    {"mma", "sync aligned m16n8k64 row/a col/b kind::mxf4nvf4 block_scale scale_vec::4X f32 e2m1 e2m1 f32 ue4m3",
     "=Rd Ra Rb Rc b32 u16*p b32 u16*p", kOnly120a},
    {"mma",
     "sp::ordered_metadata sync aligned m16n8k64 row/a col/b kind::mxf8f6f4 block_scale scale_vec::1X? f32 "
     "<up-to-8-bits> <up-to-8-bits> f32 ue8m0",
     "=Rd Ra Rb Rc b32 #u32 b32 u16*p b32 u16*p", kOnly120a},
    {"mma",
     "sp::ordered_metadata sync aligned m16n8k128 row/a col/b kind::mxf4 block_scale scale_vec::2X? f32 e2m1 e2m1 f32 "
     "ue8m0",
     "=Rd Ra Rb Rc b32 #u32 b32 u16*p b32 u16*p", kOnly120a},
    {"mma",
     "sp::ordered_metadata sync aligned m16n8k128 row/a col/b kind::mxf4nvf4 block_scale scale_vec::2X f32 e2m1 e2m1 "
     "f32 ue8m0",
     "=Rd Ra Rb Rc b32 #u32 b32 u16*p b32 u16*p", kOnly120a},
    {"mma",
     "sp::ordered_metadata sync aligned m16n8k128 row/a col/b kind::mxf4nvf4 block_scale scale_vec::4X f32 e2m1 e2m1 "
     "f32 ue4m3",
     "=Rd Ra Rb Rc b32 #u32 b32 u16*p b32 u16*p", kOnly120a},
    {"ldmatrix", "sync aligned m8n8 x1|x2|x4 trans? shared|shared::cta? b16", "=b32*n A"},
    {"stmatrix", "sync aligned m8n8 x1|x2|x4 trans? shared|shared::cta? b16", "A b32*n", 90},
    {"wmma.load", "a|b sync aligned row|col m16n16k16|m32n8k16|m8n32k16 <fragment-space>? f16|bf16|u8|s8",
     "=Ra A u32?"},
    {"wmma.load", "a|b sync aligned row|col m16n16k8 <fragment-space>? tf32", "=Ra A u32?"},
    {"wmma.load", "a|b sync aligned row|col m8n8k4 <fragment-space>? f64", "=Ra A u32?"},
    {"wmma.load", "a sync aligned row m8n8k32 <fragment-space>? u4|s4", "=Ra A u32?"},
    {"wmma.load", "b sync aligned col m8n8k32 <fragment-space>? u4|s4", "=Ra A u32?"},
    {"wmma.load", "a sync aligned row m8n8k128 <fragment-space>? b1", "=Ra A u32?"},
    {"wmma.load", "b sync aligned col m8n8k128 <fragment-space>? b1", "=Ra A u32?"},
    {"wmma.load", "c sync aligned row|col m16n16k16|m32n8k16|m8n32k16 <fragment-space>? f16|f32|s32", "=Rc A u32?"},
    {"wmma.load", "c sync aligned row|col m16n16k8 <fragment-space>? f32", "=Rc A u32?"},
    {"wmma.load", "c sync aligned row|col m8n8k4 <fragment-space>? f64", "=Rc A u32?"},
    {"wmma.load", "c sync aligned row|col m8n8k32|m8n8k128 <fragment-space>? s32", "=Rc A u32?"},
    {"wmma.store", "d sync aligned row|col m16n16k16|m32n8k16|m8n32k16 <fragment-space>? f16|f32|s32", "A Rd u32?"},
    {"wmma.store", "d sync aligned row|col m16n16k8 <fragment-space>? f32", "A Rd u32?"},
    {"wmma.store", "d sync aligned row|col m8n8k4 <fragment-space>? f64", "A Rd u32?"},
    {"wmma.store", "d sync aligned row|col m8n8k32|m8n8k128 <fragment-space>? s32", "A Rd u32?"},
    {"wmma.mma", "sync aligned row/a|col/a row/b|col/b m16n16k16|m32n8k16|m8n32k16 f16|f32 f16|f32", "=Rd Ra Rb Rc"},
    {"wmma.mma", "sync aligned row/a|col/a row/b|col/b m16n16k16|m32n8k16|m8n32k16 f32 bf16 bf16 f32", "=Rd Ra Rb Rc"},
    {"wmma.mma", "sync aligned row/a|col/a row/b|col/b m16n16k16|m32n8k16|m8n32k16 satfinite? s32 u8 u8 s32",
     "=Rd Ra Rb Rc"},
    {"wmma.mma", "sync aligned row/a|col/a row/b|col/b m16n16k16|m32n8k16|m8n32k16 satfinite? s32 s8 s8 s32",
     "=Rd Ra Rb Rc"},
    {"wmma.mma", "sync aligned row/a|col/a row/b|col/b m16n16k8 f32 tf32 tf32 f32", "=Rd Ra Rb Rc"},
    {"wmma.mma", "sync aligned row/a|col/a row/b|col/b m8n8k4 <rnd>? f64 f64 f64 f64", "=Rd Ra Rb Rc"},
    {"wmma.mma", "sync aligned row/a col/b m8n8k32 satfinite? s32 u4 u4 s32", "=Rd Ra Rb Rc"},
    {"wmma.mma", "sync aligned row/a col/b m8n8k32 satfinite? s32 s4 s4 s32", "=Rd Ra Rb Rc"},
    {"wmma.mma", "sync aligned row/a col/b m8n8k128 s32 b1 b1 s32 xor|and popc", "=Rd Ra Rb Rc"},
    // d, a or its descriptor, b's descriptor, scale-d; depending on the type the signs of a and b, then transpositions
    {"wgmma.fence", "sync aligned?", "", kOnly90a},
    {"wgmma.commit_group", "sync aligned?", "", kOnly90a},
    {"wgmma.wait_group", "sync aligned?", "#u32", kOnly90a},
    {"wgmma.mma_async", "sync aligned? m64nNk16 f16|f32 f16 f16", "+Rd Ra/u64 u64 pred/u32 #s32 #s32 #u32? #u32",
     kOnly90a},
    {"wgmma.mma_async", "sync aligned? m64nNk16 f32 bf16 bf16", "+Rd Ra/u64 u64 pred/u32 #s32 #s32 #u32? #u32",
     kOnly90a},
    {"wgmma.mma_async", "sync aligned? m64nNk8 f32 tf32 tf32", "+Rd Ra/u64 u64 pred/u32 #s32 #s32", kOnly90a},
    {"wgmma.mma_async", "sync aligned? m64nNk32 f16|f32 e4m3|e5m2 e4m3|e5m2", "+Rd Ra/u64 u64 pred/u32 #s32 #s32",
     kOnly90a},
    {"wgmma.mma_async", "sync aligned? m64nMk32 satfinite? s32 u8|s8 u8|s8", "+Rd Ra/u64 u64 pred/u32", kOnly90a},
    // a sparse A: its metadata, and which lanes have it
    {"wgmma.mma_async", "sp sync aligned? m64nNk32 f16|f32 f16 f16",
     "+Rd Ra/u64 u64 b32 #u32 pred/u32 #s32 #s32 #u32? #u32", kOnly90a},
    {"wgmma.mma_async", "sp sync aligned? m64nNk32 f32 bf16 bf16",
     "+Rd Ra/u64 u64 b32 #u32 pred/u32 #s32 #s32 #u32? #u32", kOnly90a},
    {"wgmma.mma_async", "sp sync aligned? m64nNk16 f32 tf32 tf32", "+Rd Ra/u64 u64 b32 #u32 pred/u32 #s32 #s32",
     kOnly90a},
    {"wgmma.mma_async", "sp sync aligned? m64nNk64 f16|f32 e4m3|e5m2 e4m3|e5m2",
     "+Rd Ra/u64 u64 b32 #u32 pred/u32 #s32 #s32", kOnly90a},
    {"wgmma.mma_async", "sp sync aligned? m64nMk64 satfinite? s32 u8|s8 u8|s8", "+Rd Ra/u64 u64 b32 #u32 pred/u32",
     kOnly90a},
    {"wgmma.mma_async", "sync aligned? m64nMk256 s32 b1 b1 and popc", "+Rd Ra/u64 u64 pred/u32", kOnly90a},
};

}  // namespace

std::span<const Form> matrix_forms() {
  return kMatrixForms;
}

}  // namespace kvscope::ptx
