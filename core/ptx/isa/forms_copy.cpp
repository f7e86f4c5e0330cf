// Asynchronous copies, plain and by tensor map. PTX ISA, "Asynchronous copy".
#include "core/ptx/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kForms[] = {
    {Opcode::cp_async, "cp.async", "ca|cg shared|shared::cta global <prefetch-size>? L2::cache_hint?",
     "A:shared A:global #u32 u32/pred? b64@L2::cache_hint"},
    {Opcode::cp_async_commit_group, "cp.async.commit_group", "", ""},
    {Opcode::cp_async_wait_group, "cp.async.wait_group", "", "#u32"},
    {Opcode::cp_async_wait_all, "cp.async.wait_all", "", ""},
    {Opcode::cp_async_mbarrier_arrive, "cp.async.mbarrier.arrive", "noinc? shared|shared::cta? b64", "A"},

    // shared <- global, a CTA of the cluster <- shared, global <- shared
    {Opcode::cp_async_bulk, "cp.async.bulk",
     "shared::cluster|shared::cta global mbarrier::complete_tx::bytes multicast::cluster? L2::cache_hint?",
     "A:shared A:global u32 A:shared b16@multicast::cluster b64@L2::cache_hint", 90},
    {Opcode::cp_async_bulk, "cp.async.bulk", "shared::cluster shared::cta mbarrier::complete_tx::bytes",
     "A:shared A:shared u32 A:shared", 90},
    {Opcode::cp_async_bulk, "cp.async.bulk", "global shared::cta bulk_group L2::cache_hint?",
     "A:global A:shared u32 b64@L2::cache_hint", 90},
    {Opcode::cp_async_bulk_commit_group, "cp.async.bulk.commit_group", "", "", 90},
    {Opcode::cp_async_bulk_wait_group, "cp.async.bulk.wait_group", "read?", "#u32", 90},
    {Opcode::cp_async_bulk_prefetch, "cp.async.bulk.prefetch", "L2 global L2::cache_hint?",
     "A:global u32 b64@L2::cache_hint", 90},
    {Opcode::cp_reduce_async_bulk, "cp.reduce.async.bulk",
     "shared::cluster shared::cta mbarrier::complete_tx::bytes add u32|s32|u64", "A:shared A:shared u32 A:shared", 90},
    {Opcode::cp_reduce_async_bulk, "cp.reduce.async.bulk",
     "shared::cluster shared::cta mbarrier::complete_tx::bytes min|max u32|s32", "A:shared A:shared u32 A:shared", 90},
    {Opcode::cp_reduce_async_bulk, "cp.reduce.async.bulk",
     "shared::cluster shared::cta mbarrier::complete_tx::bytes inc|dec u32", "A:shared A:shared u32 A:shared", 90},
    {Opcode::cp_reduce_async_bulk, "cp.reduce.async.bulk",
     "shared::cluster shared::cta mbarrier::complete_tx::bytes and|or|xor b32", "A:shared A:shared u32 A:shared", 90},
    {Opcode::cp_reduce_async_bulk, "cp.reduce.async.bulk",
     "global shared::cta bulk_group L2::cache_hint? add u32|s32|u64|f32|f64",
     "A:global A:shared u32 b64@L2::cache_hint", 90},
    {Opcode::cp_reduce_async_bulk, "cp.reduce.async.bulk",
     "global shared::cta bulk_group L2::cache_hint? add noftz f16|bf16", "A:global A:shared u32 b64@L2::cache_hint",
     90},
    {Opcode::cp_reduce_async_bulk, "cp.reduce.async.bulk",
     "global shared::cta bulk_group L2::cache_hint? min|max u32|s32|u64|s64|f16|bf16",
     "A:global A:shared u32 b64@L2::cache_hint", 90},
    {Opcode::cp_reduce_async_bulk, "cp.reduce.async.bulk", "global shared::cta bulk_group L2::cache_hint? inc|dec u32",
     "A:global A:shared u32 b64@L2::cache_hint", 90},
    {Opcode::cp_reduce_async_bulk, "cp.reduce.async.bulk",
     "global shared::cta bulk_group L2::cache_hint? and|or|xor b32|b64", "A:global A:shared u32 b64@L2::cache_hint",
     90},

    {Opcode::cp_async_bulk_tensor, "cp.async.bulk.tensor",
     "1d|2d|3d|4d|5d shared::cluster|shared::cta global tile? mbarrier::complete_tx::bytes multicast::cluster? "
     "L2::cache_hint?",
     "A:shared M A:shared b16@multicast::cluster b64@L2::cache_hint", 90},
    {Opcode::cp_async_bulk_tensor, "cp.async.bulk.tensor",
     "2d shared::cluster|shared::cta global tile::gather4 mbarrier::complete_tx::bytes multicast::cluster? "
     "L2::cache_hint?",
     "A:shared M A:shared b16@multicast::cluster b64@L2::cache_hint", 100},
    {Opcode::cp_async_bulk_tensor, "cp.async.bulk.tensor",
     "1d|2d|3d|4d|5d global shared::cta tile? bulk_group L2::cache_hint?", "M A:shared b64@L2::cache_hint", 90},
    {Opcode::cp_async_bulk_prefetch_tensor, "cp.async.bulk.prefetch.tensor",
     "1d|2d|3d|4d|5d L2 global tile? L2::cache_hint?", "M b64@L2::cache_hint", 90},
    {Opcode::cp_reduce_async_bulk_tensor, "cp.reduce.async.bulk.tensor",
     "1d|2d|3d|4d|5d global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group L2::cache_hint?",
     "M A:shared b64@L2::cache_hint", 90},

    {Opcode::st_async, "st.async", "weak? shared::cluster? mbarrier::complete_tx::bytes v2|v4? b32|u32|s32|f32",
     "A:shared T*v A:shared", 90},
    {Opcode::st_async, "st.async", "weak? shared::cluster? mbarrier::complete_tx::bytes v2? b64|u64|s64|f64",
     "A:shared T*v A:shared", 90},
    {Opcode::red_async, "red.async", "relaxed cluster shared::cluster? mbarrier::complete_tx::bytes add u32|s32|u64",
     "A:shared T A:shared", 90},
    {Opcode::red_async, "red.async", "relaxed cluster shared::cluster? mbarrier::complete_tx::bytes min|max u32|s32",
     "A:shared T A:shared", 90},
    {Opcode::red_async, "red.async", "relaxed cluster shared::cluster? mbarrier::complete_tx::bytes inc|dec u32",
     "A:shared T A:shared", 90},
    {Opcode::red_async, "red.async", "relaxed cluster shared::cluster? mbarrier::complete_tx::bytes and|or|xor b32",
     "A:shared T A:shared", 90},

    {Opcode::tensormap_replace, "tensormap.replace", "tile global_address global|shared::cta? b1024 b64", "A T", 90},
    {Opcode::tensormap_replace, "tensormap.replace", "tile rank global|shared::cta? b1024 b32", "A T", 90},
    {Opcode::tensormap_replace, "tensormap.replace",
     "tile box_dim|global_dim|element_stride global|shared::cta? b1024 b32", "A #u32 T", 90},
    {Opcode::tensormap_replace, "tensormap.replace", "tile global_stride global|shared::cta? b1024 b64", "A #u32 T",
     90},
    {Opcode::tensormap_replace, "tensormap.replace",
     "tile elemtype|interleave_layout|swizzle_mode|fill_mode global|shared::cta? b1024 b32", "A #u32", 90},
    {Opcode::tensormap_cp_fenceproxy, "tensormap.cp_fenceproxy",
     "global shared::cta tensormap::generic release <scope> sync aligned", "A:global A:shared #u32", 90},
};

}  // namespace

std::span<const Form> copy_forms() {
  return kForms;
}

}  // namespace kvscope::ptx
