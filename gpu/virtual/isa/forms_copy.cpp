// Asynchronous copies, plain and by tensor map. PTX ISA, "Asynchronous copy".
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kCopyForms[] = {
    {"cp.async", "ca|cg shared|shared::cta global <prefetch-size>? L2::cache_hint?",
     "A:shared A:global #u32 u32/pred? policy"},
    {"cp.async.commit_group", "", ""},
    {"cp.async.wait_group", "", "#u32"},
    {"cp.async.wait_all", "", ""},
    {"cp.async.mbarrier.arrive", "noinc? shared|shared::cta? b64", "A"},

    // shared <- global, a CTA of the cluster <- shared, global <- shared
    {"cp.async.bulk", "shared::cta global <complete-tx> L2::cache_hint?", "A:shared A:global u32 A:shared policy", 90},
    {"cp.async.bulk", "shared::cluster global <complete-tx> multicast::cluster? L2::cache_hint?",
     "A:shared A:global u32 A:shared mask policy", 90},
    {"cp.async.bulk", "shared::cluster shared::cta <complete-tx>", "A:shared A:shared u32 A:shared", 90},
    {"cp.async.bulk", "global shared::cta bulk_group L2::cache_hint?", "A:global A:shared u32 policy", 90},
    {"cp.async.bulk.commit_group", "", "", 90},
    {"cp.async.bulk.wait_group", "read?", "#u32", 90},
    {"cp.async.bulk.prefetch", "L2 global L2::cache_hint?", "A:global u32 policy", 90},
    {"cp.reduce.async.bulk", "shared::cluster shared::cta <complete-tx> {reduce-remote}",
     "A:shared A:shared u32 A:shared", 90},
    {"cp.reduce.async.bulk", "global shared::cta bulk_group L2::cache_hint? {reduce-bulk}",
     "A:global A:shared u32 policy", 90},

    // the map defines the global address
    {"cp.async.bulk.tensor", "<dim> shared::cta global tile? <complete-tx> L2::cache_hint?",
     "A:shared M A:shared policy", 90},
    {"cp.async.bulk.tensor", "<dim> shared::cluster global tile? <complete-tx> multicast::cluster? L2::cache_hint?",
     "A:shared M A:shared mask policy", 90},
    {"cp.async.bulk.tensor", "2d shared::cta global tile::gather4 <complete-tx> L2::cache_hint?",
     "A:shared M A:shared policy", 100},
    {"cp.async.bulk.tensor",
     "2d shared::cluster global tile::gather4 <complete-tx> multicast::cluster? L2::cache_hint?",
     "A:shared M A:shared mask policy", 100},
    // .cta_group::2: the barrier may be that of the peer in a pair of CTAs
    {"cp.async.bulk.tensor", "<dim> shared::cta global tile? <complete-tx> <cta-group> L2::cache_hint?",
     "A:shared M A:shared policy", kOnly100a},
    {"cp.async.bulk.tensor",
     "<dim> shared::cluster global tile? <complete-tx> multicast::cluster? <cta-group> L2::cache_hint?",
     "A:shared M A:shared mask policy", kOnly100a},
    {"cp.async.bulk.tensor", "2d shared::cta global tile::gather4 <complete-tx> <cta-group> L2::cache_hint?",
     "A:shared M A:shared policy", kOnly100a},
    {"cp.async.bulk.tensor",
     "2d shared::cluster global tile::gather4 <complete-tx> multicast::cluster? <cta-group> L2::cache_hint?",
     "A:shared M A:shared mask policy", kOnly100a},
    {"cp.async.bulk.tensor", "<dim> global shared::cta tile? bulk_group L2::cache_hint?", "M A:shared policy", 90},
    {"cp.async.bulk.tensor", "2d global shared::cta tile::scatter4 bulk_group L2::cache_hint?", "M A:shared policy",
     kOnly100a},
    {"cp.async.bulk.prefetch.tensor", "<dim> L2 global tile? L2::cache_hint?", "M policy", 90},
    {"cp.async.bulk.prefetch.tensor", "2d L2 global tile::gather4 L2::cache_hint?", "M policy", kOnly100a},
    {"cp.reduce.async.bulk.tensor",
     "<dim> global shared::cta add|min|max|inc|dec|and|or|xor tile? bulk_group L2::cache_hint?", "M A:shared policy",
     90},

    {"st.async", "weak? shared::cluster? <complete-tx> v2|v4? b32|u32|s32|f32", "A:shared T*v A:shared", 90},
    {"st.async", "weak? shared::cluster? <complete-tx> v2? b64|u64|s64|f64", "A:shared T*v A:shared", 90},
    {"red.async", "relaxed cluster shared::cluster? <complete-tx> {reduce-remote}", "A:shared T A:shared", 90},

    {"tensormap.replace", "tile global_address global|shared::cta? b1024 b64", "A T", 90},
    {"tensormap.replace", "tile rank global|shared::cta? b1024 b32", "A T", 90},
    {"tensormap.replace", "tile box_dim|global_dim|element_stride global|shared::cta? b1024 b32", "A #u32 T", 90},
    {"tensormap.replace", "tile global_stride global|shared::cta? b1024 b64", "A #u32 T", 90},
    {"tensormap.replace", "tile elemtype|interleave_layout|swizzle_mode|fill_mode global|shared::cta? b1024 b32",
     "A #u32", 90},
    {"tensormap.cp_fenceproxy", "global shared::cta tensormap::generic release <scope> sync aligned",
     "A:global A:shared #u32", 90},
};

}  // namespace

std::span<const Form> copy_forms() {
  return kCopyForms;
}

}  // namespace kvscope::ptx
