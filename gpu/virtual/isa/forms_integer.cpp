// Integer arithmetic. PTX ISA, "Integer Arithmetic Instructions" and "Extended-Precision Integer Arithmetic".
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kIntegerForms[] = {
    {"add", "<int>", "=T T T"},
    {"sub", "<int>", "=T T T"},
    {"add", "sat s32", "=T T T"},
    {"sub", "sat s32", "=T T T"},
    {"add", "u16x2|s16x2", "=T T T", 90},
    {"add", "cc u32|s32|u64|s64", "=T T T"},
    {"sub", "cc u32|s32|u64|s64", "=T T T"},
    {"addc", "cc? u32|s32|u64|s64", "=T T T"},
    {"subc", "cc? u32|s32|u64|s64", "=T T T"},
    {"mul", "lo|hi <int>", "=T T T"},
    {"mul", "wide u16|u32|s16|s32", "=W T T"},
    {"mad", "lo|hi <int>", "=T T T T"},
    {"mad", "wide u16|u32|s16|s32", "=W T T W"},
    {"mad", "hi sat s32", "=T T T T"},
    {"mad", "lo|hi cc u32|s32|u64|s64", "=T T T T"},
    {"madc", "lo|hi cc? u32|s32|u64|s64", "=T T T T"},
    {"mul24", "lo|hi u32|s32", "=T T T"},
    {"mad24", "lo|hi u32|s32", "=T T T T"},
    {"mad24", "hi sat s32", "=T T T T"},
    {"sad", "<int>", "=T T T T"},
    {"div", "<int>", "=T T T"},
    {"rem", "<int>", "=T T T"},
    {"abs", "s16|s32|s64", "=T T"},
    {"neg", "s16|s32|s64", "=T T"},
    {"min", "<int>", "=T T T"},
    {"max", "<int>", "=T T T"},
    {"min", "relu s32", "=T T T", 90},
    {"max", "relu s32", "=T T T", 90},
    {"min", "u16x2", "=T T T", 90},
    {"max", "u16x2", "=T T T", 90},
    {"min", "relu? s16x2", "=T T T", 90},
    {"max", "relu? s16x2", "=T T T", 90},
    {"dp4a", "u32|s32 u32|s32", "=s32 T T2 s32"},
    {"dp2a", "lo|hi u32|s32 u32|s32", "=s32 T T2 s32"},
    {"vabsdiff4", "u32 u32 u32 add?", "=T T2 T3 T"},
};

}  // namespace

std::span<const Form> integer_forms() {
  return kIntegerForms;
}

}  // namespace kvscope::ptx
