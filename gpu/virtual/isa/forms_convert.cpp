// Conversions: the type written, then the type read. PTX ISA, "cvt", "cvt.pack".
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kConvertForms[] = {
    // integers; .sat where a value may not fit
    {"cvt", "<int8> <int8>", "=~T ~T2"},
    {"cvt", "sat u8 u16|u32|u64|s8|s16|s32|s64", "=~T ~T2"},
    {"cvt", "sat u16 u32|u64|s8|s16|s32|s64", "=~T ~T2"},
    {"cvt", "sat u32 u64|s8|s16|s32|s64", "=~T ~T2"},
    {"cvt", "sat u64 s8|s16|s32|s64", "=~T ~T2"},
    {"cvt", "sat s8 u8|u16|u32|u64|s16|s32|s64", "=~T ~T2"},
    {"cvt", "sat s16 u16|u32|u64|s32|s64", "=~T ~T2"},
    {"cvt", "sat s32 u32|u64|s64", "=~T ~T2"},
    {"cvt", "sat s64 u64", "=~T ~T2"},
    {"cvt", "<rnd> ftz? sat? f32 <int8>", "=T ~T2"},
    {"cvt", "<rnd> sat? f16|f64 <int8>", "=T ~T2"},
    {"cvt", "<rnd> bf16 <int>", "=T ~T2", 90},
    {"cvt", "<rnd-integer> ftz? sat? <int8> f32", "=~T T2"},
    {"cvt", "<rnd-integer> sat? <int8> f16|f64", "=~T T2"},
    {"cvt", "<rnd-integer> <int> bf16", "=~T T2", 90},
    // to an integral value, or unchanged
    {"cvt", "<rnd-integer>? ftz? sat? f32 f32", "=T T2"},
    {"cvt", "<rnd-integer>? sat? f64 f64", "=T T2"},
    {"cvt", "<rnd-integer>? sat? f16 f16", "=T T2"},
    {"cvt", "<rnd-integer>? bf16 bf16", "=T T2", 90},
    // wider: exact
    {"cvt", "ftz? sat? f32 f16", "=T T2"},
    {"cvt", "ftz? sat? f64 f32", "=T T2"},
    {"cvt", "sat? f64 f16", "=T T2"},
    {"cvt", "ftz? f32 bf16", "=T T2"},
    {"cvt", "f64 bf16", "=T T2", 90},
    // narrower
    {"cvt", "<rnd> ftz? sat? f32 f64", "=T T2"},
    {"cvt", "<rnd> ftz? sat? f16 f32", "=T T2"},
    {"cvt", "<rnd> sat? f16 f64", "=T T2"},
    {"cvt", "<rnd> ftz? bf16 f32", "=T T2"},
    {"cvt", "<rnd> bf16 f64|f16", "=T T2", 90},
    {"cvt", "<rnd> f16 bf16", "=T T2", 90},
    {"cvt", "rn|rz relu? satfinite? f16|bf16 f32", "=T T2"},
    {"cvt", "rn|rz relu? satfinite? f16x2|bf16x2 f32", "=T T2 T2"},
    {"cvt", "rna satfinite? tf32 f32", "=T T2"},
    {"cvt", "rn|rz relu? tf32 f32", "=T T2", 90},
    {"cvt", "rn|rz relu? satfinite tf32 f32", "=T T2", 100},
    {"cvt", "rn relu? satfinite e4m3x2|e5m2x2 f32", "=T T2 T2"},
    {"cvt", "rn relu? satfinite e4m3x2|e5m2x2 f16x2", "=T T2"},
    {"cvt", "rn relu? f16x2 e4m3x2|e5m2x2", "=T T2"},
    {"cvt", "rn relu? satfinite e2m3x2|e3m2x2|e2m1x2 f32", "=T T2 T2", 100},
    {"cvt", "rn relu? f16x2 e2m3x2|e3m2x2|e2m1x2", "=T T2", 100},
    {"cvt", "rz|rp satfinite? ue8m0x2 f32", "=T T2 T2", 100},
    {"cvt", "rz|rp satfinite? ue8m0x2 bf16x2", "=T T2", 100},
    {"cvt", "rn bf16x2 ue8m0x2", "=T T2", 100},
    // stochastic rounding by random bits, which are the last operand
    {"cvt", "rs relu? satfinite? f16x2|bf16x2 f32", "=T T2 T2 %b32", kOnly100a},
    {"cvt", "rs relu? satfinite e4m3x4|e5m2x4|e2m3x4|e3m2x4|e2m1x4 f32", "=T T2*q %b32", kOnly100a},
    {"cvt.pack", "sat u16|s16 s32", "=b32 T2 T2"},
    {"cvt.pack", "sat u8|s8 s32 b32", "=b32 T2 T2 b32"},
};

}  // namespace

std::span<const Form> convert_forms() {
  return kConvertForms;
}

}  // namespace kvscope::ptx
