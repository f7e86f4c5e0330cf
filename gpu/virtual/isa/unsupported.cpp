// PTX features that the machine does not support, by name. Such a statement loads, and traps when it is reached.
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr std::string_view kNewer = "needs sm_100, not modeled";
constexpr std::string_view kTextures = "needs textures, not modeled";
constexpr std::string_view kSurfaces = "needs surfaces, not modeled";
constexpr std::string_view kMulticast = "needs memory of several GPUs, not modeled";
constexpr std::string_view kVideo = "a video instruction, not modeled";
constexpr std::string_view kIm2col = "needs im2col copies, not modeled";
constexpr std::string_view kScatter = "a reduction of scattered rows is not in the PTX ISA, not modeled";

constexpr Refusal kRefusals[] = {
    {"tex", "", kTextures},
    {"tld4", "", kTextures},
    {"txq", "", kTextures},
    {"istypep", "", kTextures},
    {"suld", "", kSurfaces},
    {"sust", "", kSurfaces},
    {"sured", "", kSurfaces},
    {"suq", "", kSurfaces},
    {"tcgen05.shift", "", "moves rows of tensor memory, not modeled"},
    {"tcgen05.ld.red", "", "needs sm_103a, not modeled"},
    {"tcgen05.mma", "ashift", "moves the rows of A, not modeled"},
    {"tcgen05.mma.sp", "ashift", "moves the rows of A, not modeled"},
    {"multimem", "", kMulticast},
    {"vadd", "", kVideo},
    {"vsub", "", kVideo},
    {"vabsdiff", "", kVideo},
    {"vmin", "", kVideo},
    {"vmax", "", kVideo},
    {"vshl", "", kVideo},
    {"vshr", "", kVideo},
    {"vmad", "", kVideo},
    {"vset", "", kVideo},
    {"vadd2", "", kVideo},
    {"vsub2", "", kVideo},
    {"vavrg2", "", kVideo},
    {"vabsdiff2", "", kVideo},
    {"vmin2", "", kVideo},
    {"vmax2", "", kVideo},
    {"vset2", "", kVideo},
    {"vadd4", "", kVideo},
    {"vsub4", "", kVideo},
    {"vavrg4", "", kVideo},
    {"vmin4", "", kVideo},
    {"vmax4", "", kVideo},
    {"vset4", "", kVideo},
    {"vabsdiff4", "s32", kVideo},
    {"vabsdiff4", "sat", kVideo},
    // unsupported forms of supported opcodes
    {"add", "f32 f16", kNewer},
    {"add", "f32 bf16", kNewer},
    {"sub", "f32 f16", kNewer},
    {"sub", "f32 bf16", kNewer},
    {"fma", "f32 f16", kNewer},
    {"fma", "f32 bf16", kNewer},
    {"add", "f32x4", kNewer},
    {"cvt.pack", "u4", kVideo},
    {"cvt.pack", "s4", kVideo},
    {"cvt.pack", "u2", kVideo},
    {"cvt.pack", "s2", kVideo},
    {"cp.async.bulk", "cp_mask", kNewer},
    {"cp.async.bulk.tensor", "im2col", kIm2col},
    {"cp.async.bulk.tensor", "im2col_no_offs", kIm2col},
    {"cp.async.bulk.tensor", "im2col::w", kIm2col},
    {"cp.async.bulk.tensor", "im2col::w::128", kIm2col},
    {"cp.async.bulk.prefetch.tensor", "im2col", kIm2col},
    {"cp.async.bulk.prefetch.tensor", "im2col::w", kIm2col},
    {"cp.async.bulk.prefetch.tensor", "im2col::w::128", kIm2col},
    {"cp.reduce.async.bulk.tensor", "im2col_no_offs", kIm2col},
    {"cp.reduce.async.bulk.tensor", "tile::scatter4", kScatter},
    {"tensormap.replace", "swizzle_atomicity", kNewer},
    {"mma", "m8n8k4 f16", "mma m8n8k4 of f16 is not modeled"},
    {"ldmatrix", "b8", kNewer},
    {"ldmatrix", "m16n16", kNewer},
    {"ldmatrix", "m8n16", kNewer},
    {"stmatrix", "b8", kNewer},
};

}  // namespace

std::span<const Refusal> refusals() {
  return kRefusals;
}

}  // namespace kvscope::ptx
