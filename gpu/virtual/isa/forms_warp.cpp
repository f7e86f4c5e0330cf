// Instructions executed by the lanes of a warp together. PTX ISA, "Parallel Synchronization and Communication",
// "shfl.sync".
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kWarpForms[] = {
    {"shfl", "sync up|down|bfly|idx b32", "=T|pred? T b32 b32 u32"},
    {"vote", "sync all|any|uni pred", "=pred pred u32"},
    {"vote", "sync ballot b32", "=b32 pred u32"},
    {"match", "any sync b32|b64", "=b32 T u32"},
    {"match", "all sync b32|b64", "=b32|pred? T u32"},
    {"redux", "sync add|min|max u32|s32", "=T T u32"},
    {"redux", "sync and|or|xor b32", "=T T u32"},
    {"redux", "sync min|max abs? NaN? f32", "=T T u32", 100},
    {"elect", "sync", "=u32|pred u32"},
    {"activemask", "b32", "=T"},
    {"bar.warp.sync", "", "u32"},
    {"movmatrix", "sync aligned m8n8 trans b16", "=b32 b32"},
};

}  // namespace

std::span<const Form> warp_forms() {
  return kWarpForms;
}

}  // namespace kvscope::ptx
