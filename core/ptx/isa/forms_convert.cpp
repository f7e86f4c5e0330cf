// Conversions: the type written, then the type read. PTX ISA, "cvt", "cvt.pack".
#include "core/ptx/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kForms[] = {
    // integers
    {Opcode::cvt, "cvt", "sat? <int8> <int8>", "=~T ~T2"},
    {Opcode::cvt, "cvt", "<rnd> ftz? sat? f32 <int8>", "=T ~T2"},
    {Opcode::cvt, "cvt", "<rnd> sat? f16|f64 <int8>", "=T ~T2"},
    {Opcode::cvt, "cvt", "<rnd> bf16 <int8>", "=T ~T2", 90},
    {Opcode::cvt, "cvt", "<rnd-integer> ftz? sat? <int8> f32|f16|f64", "=~T T2"},
    {Opcode::cvt, "cvt", "<rnd-integer> ftz? sat? <int8> bf16", "=~T T2", 90},
    // to a whole number, or the same again
    {Opcode::cvt, "cvt", "<rnd-integer>? ftz? sat? f32 f32", "=T T2"},
    {Opcode::cvt, "cvt", "<rnd-integer>? sat? f64 f64", "=T T2"},
    {Opcode::cvt, "cvt", "<rnd-integer>? ftz? sat? f16 f16", "=T T2"},
    {Opcode::cvt, "cvt", "<rnd-integer>? bf16 bf16", "=T T2", 90},
    // wider: exact
    {Opcode::cvt, "cvt", "ftz? sat? f32 f16", "=T T2"},
    {Opcode::cvt, "cvt", "ftz? sat? f64 f16|f32", "=T T2"},
    {Opcode::cvt, "cvt", "ftz? sat? f32 bf16", "=T T2"},
    {Opcode::cvt, "cvt", "ftz? sat? f64 bf16", "=T T2", 90},
    // narrower
    {Opcode::cvt, "cvt", "<rnd> ftz? sat? f32 f64", "=T T2"},
    {Opcode::cvt, "cvt", "<rnd> ftz? sat? f16 f32|f64", "=T T2"},
    {Opcode::cvt, "cvt", "<rnd> ftz? sat? bf16 f32|f64|f16", "=T T2"},
    {Opcode::cvt, "cvt", "<rnd> ftz? sat? f16 bf16", "=T T2", 90},
    {Opcode::cvt, "cvt", "rn|rz relu? satfinite? f16|bf16 f32", "=T T2"},
    {Opcode::cvt, "cvt", "rn|rz relu? satfinite? f16x2|bf16x2 f32", "=T T2 T2"},
    {Opcode::cvt, "cvt", "rna satfinite? tf32 f32", "=T T2"},
    {Opcode::cvt, "cvt", "rn|rz relu? satfinite? tf32 f32", "=T T2", 90},
    {Opcode::cvt, "cvt", "rn relu? satfinite e4m3x2|e5m2x2 f32", "=T T2 T2"},
    {Opcode::cvt, "cvt", "rn relu? satfinite e4m3x2|e5m2x2 f16x2", "=T T2"},
    {Opcode::cvt, "cvt", "rn relu? f16x2 e4m3x2|e5m2x2", "=T T2"},
    {Opcode::cvt_pack, "cvt.pack", "sat u16|s16 s32", "=b32 T2 T2"},
    {Opcode::cvt_pack, "cvt.pack", "sat u8|s8 s32 b32", "=b32 T2 T2 b32"},
};

}  // namespace

std::span<const Form> convert_forms() {
  return kForms;
}

}  // namespace kvscope::ptx
