// Integer arithmetic. PTX ISA, "Integer Arithmetic Instructions" and "Extended-Precision Integer Arithmetic".
#include "core/ptx/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kForms[] = {
    {Opcode::add, "add", "<int>", "=T T T"},
    {Opcode::sub, "sub", "<int>", "=T T T"},
    {Opcode::add, "add", "sat s32", "=T T T"},
    {Opcode::sub, "sub", "sat s32", "=T T T"},
    {Opcode::add, "add", "u16x2|s16x2", "=T T T", 90},
    {Opcode::add, "add", "cc u32|s32|u64|s64", "=T T T"},
    {Opcode::sub, "sub", "cc u32|s32|u64|s64", "=T T T"},
    {Opcode::addc, "addc", "cc? u32|s32|u64|s64", "=T T T"},
    {Opcode::subc, "subc", "cc? u32|s32|u64|s64", "=T T T"},
    {Opcode::mul, "mul", "lo|hi <int>", "=T T T"},
    {Opcode::mul, "mul", "wide u16|u32|s16|s32", "=W T T"},
    {Opcode::mad, "mad", "lo|hi <int>", "=T T T T"},
    {Opcode::mad, "mad", "wide u16|u32|s16|s32", "=W T T W"},
    {Opcode::mad, "mad", "hi sat s32", "=T T T T"},
    {Opcode::mad, "mad", "lo|hi cc u32|s32|u64|s64", "=T T T T"},
    {Opcode::madc, "madc", "lo|hi cc? u32|s32|u64|s64", "=T T T T"},
    {Opcode::mul24, "mul24", "lo|hi u32|s32", "=T T T"},
    {Opcode::mad24, "mad24", "lo|hi u32|s32", "=T T T T"},
    {Opcode::mad24, "mad24", "hi sat s32", "=T T T T"},
    {Opcode::sad, "sad", "<int>", "=T T T T"},
    {Opcode::div, "div", "<int>", "=T T T"},
    {Opcode::rem, "rem", "<int>", "=T T T"},
    {Opcode::abs, "abs", "s16|s32|s64", "=T T"},
    {Opcode::neg, "neg", "s16|s32|s64", "=T T"},
    {Opcode::min, "min", "<int>", "=T T T"},
    {Opcode::max, "max", "<int>", "=T T T"},
    {Opcode::min, "min", "relu s32", "=T T T", 90},
    {Opcode::max, "max", "relu s32", "=T T T", 90},
    {Opcode::min, "min", "u16x2", "=T T T", 90},
    {Opcode::max, "max", "u16x2", "=T T T", 90},
    {Opcode::min, "min", "relu? s16x2", "=T T T", 90},
    {Opcode::max, "max", "relu? s16x2", "=T T T", 90},
    {Opcode::dp4a, "dp4a", "u32|s32 u32|s32", "=s32 T T2 s32"},
    {Opcode::dp2a, "dp2a", "lo|hi u32|s32 u32|s32", "=s32 T T2 s32"},
    {Opcode::vabsdiff4, "vabsdiff4", "u32 u32 u32 add?", "=T T2 T3 T"},
};

}  // namespace

std::span<const Form> integer_forms() {
  return kForms;
}

}  // namespace kvscope::ptx
