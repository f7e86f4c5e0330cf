// Tensor memory, its matrix products, and cluster launch control. PTX ISA, "TensorCore 5th Generation Family
// Instructions", "clusterlaunchcontrol".
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kTensorForms[] = {
    {"tcgen05.alloc", "<cta-group> sync aligned shared::cta? b32", "A u32", kOnly100a},
    {"tcgen05.dealloc", "<cta-group> sync aligned b32", "u32 u32", kOnly100a},
    {"tcgen05.relinquish_alloc_permit", "<cta-group> sync aligned", "", kOnly100a},
    {"tcgen05.ld", "sync aligned 32x32b|16x64b <repeats-to-128> pack::16b? b32", "=b32*n A", kOnly100a},
    {"tcgen05.ld", "sync aligned 16x128b <repeats-to-64> pack::16b? b32", "=b32*n A", kOnly100a},
    {"tcgen05.ld", "sync aligned 16x256b <repeats-to-32> pack::16b? b32", "=b32*n A", kOnly100a},
    {"tcgen05.ld", "sync aligned 16x32bx2 <repeats-to-128> pack::16b? b32", "=b32*n A #u32", kOnly100a},
    {"tcgen05.st", "sync aligned 32x32b|16x64b <repeats-to-128> unpack::16b? b32", "A b32*n", kOnly100a},
    {"tcgen05.st", "sync aligned 16x128b <repeats-to-64> unpack::16b? b32", "A b32*n", kOnly100a},
    {"tcgen05.st", "sync aligned 16x256b <repeats-to-32> unpack::16b? b32", "A b32*n", kOnly100a},
    {"tcgen05.st", "sync aligned 16x32bx2 <repeats-to-128> unpack::16b? b32", "A #u32 b32*n", kOnly100a},
    {"tcgen05.wait::ld", "sync aligned", "", kOnly100a},
    {"tcgen05.wait::st", "sync aligned", "", kOnly100a},
    {"tcgen05.cp", "<cta-group> 128x256b|128x128b|4x256b", "A u64", kOnly100a},
    {"tcgen05.cp", "<cta-group> 128x256b|128x128b|4x256b b8x16 b6x16_p32|b4x16_p64", "A u64", kOnly100a},
    {"tcgen05.cp", "<cta-group> 64x128b warpx2::02_13|warpx2::01_23", "A u64", kOnly100a},
    {"tcgen05.cp", "<cta-group> 64x128b warpx2::02_13|warpx2::01_23 b8x16 b6x16_p32|b4x16_p64", "A u64", kOnly100a},
    {"tcgen05.cp", "<cta-group> 32x128b warpx4", "A u64", kOnly100a},
    {"tcgen05.cp", "<cta-group> 32x128b warpx4 b8x16 b6x16_p32|b4x16_p64", "A u64", kOnly100a},
    // d, a or its descriptor, b's descriptor, instruction descriptor; lanes of d that stay as they are, whether d is an
    // input, its scale. Operands 5 to 7 are {lanes} p scale, {lanes} p, p scale, or p.
    {"tcgen05.mma", "<cta-group> kind::f16|kind::tf32 <collector-a>?", "A u64/A u64 u32 u32*m/pred pred/u32? #u32?",
     kOnly100a},
    {"tcgen05.mma", "<cta-group> kind::f8f6f4|kind::i8 <collector-a>?", "A u64/A u64 u32 u32*m/pred pred?", kOnly100a},
    {"tcgen05.mma", "<cta-group> kind::mxf8f6f4 block_scale scale_vec::1X|block32? <collector-a>?",
     "A u64/A u64 u32 A A pred", kOnly100a},
    {"tcgen05.mma", "<cta-group> kind::mxf4 block_scale scale_vec::2X|block32? <collector-a>?",
     "A u64/A u64 u32 A A pred", kOnly100a},
    {"tcgen05.mma", "<cta-group> kind::mxf4nvf4 block_scale scale_vec::2X|scale_vec::4X|block16|block32 <collector-a>?",
     "A u64/A u64 u32 A A pred", kOnly100a},
    {"tcgen05.mma.ws",
     "cta_group::1 kind::f16|kind::tf32|kind::f8f6f4|kind::i8 "
     "<collector-b0>|<collector-b1>|<collector-b2>|<collector-b3>?",
     "A u64/A u64 u32 pred u64?", kOnly100a},
    // The same with a sparse A: its metadata in tensor memory after b's descriptor.
    {"tcgen05.mma.sp", "<cta-group> kind::f16|kind::tf32 <collector-a>?",
     "A u64/A u64 A u32 u32*m/pred pred/u32? #u32?", kOnly100a},
    {"tcgen05.mma.sp", "<cta-group> kind::f8f6f4|kind::i8 <collector-a>?", "A u64/A u64 A u32 u32*m/pred pred?",
     kOnly100a},
    {"tcgen05.mma.sp", "<cta-group> kind::mxf8f6f4 block_scale scale_vec::1X|block32? <collector-a>?",
     "A u64/A u64 A u32 A A pred", kOnly100a},
    {"tcgen05.mma.sp", "<cta-group> kind::mxf4 block_scale scale_vec::2X|block32? <collector-a>?",
     "A u64/A u64 A u32 A A pred", kOnly100a},
    {"tcgen05.mma.sp",
     "<cta-group> kind::mxf4nvf4 block_scale scale_vec::2X|scale_vec::4X|block16|block32 <collector-a>?",
     "A u64/A u64 A u32 A A pred", kOnly100a},
    {"tcgen05.mma.ws.sp",
     "cta_group::1 kind::f16|kind::tf32|kind::f8f6f4|kind::i8 "
     "<collector-b0>|<collector-b1>|<collector-b2>|<collector-b3>?",
     "A u64/A u64 A u32 pred u64?", kOnly100a},
    {"tcgen05.commit", "<cta-group> mbarrier::arrive::one shared::cluster? b64", "A", kOnly100a},
    {"tcgen05.commit", "<cta-group> mbarrier::arrive::one shared::cluster? multicast::cluster b64", "A mask",
     kOnly100a},
    {"tcgen05.fence::before_thread_sync", "", "", kOnly100a},
    {"tcgen05.fence::after_thread_sync", "", "", kOnly100a},
    // a 16-byte response, its mbarrier; the response's registers
    {"clusterlaunchcontrol.try_cancel", "async shared::cta? <complete-tx> multicast::cluster::all? b128", "A A", 100},
    {"clusterlaunchcontrol.query_cancel", "is_canceled pred b128", "=pred b128", 100},
    {"clusterlaunchcontrol.query_cancel", "get_first_ctaid v4 b32 b128", "=b32*v b128", 100},
    {"clusterlaunchcontrol.query_cancel", "get_first_ctaid::x|get_first_ctaid::y|get_first_ctaid::z b32 b128",
     "=b32 b128", 100},
};

}  // namespace

std::span<const Form> tensor_forms() {
  return kTensorForms;
}

}  // namespace kvscope::ptx
