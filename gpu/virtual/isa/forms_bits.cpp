// Bits, shifts, bytes, selection, comparison. PTX ISA, "Logic and Shift Instructions", "Comparison and Selection".
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kBitsForms[] = {
    {"popc", "b32|b64", "=u32 T"},
    {"clz", "b32|b64", "=u32 T"},
    {"brev", "b32|b64", "=T T"},
    {"bfind", "shiftamt? u32|u64|s32|s64", "=u32 T"},
    {"fns", "b32", "=b32 b32 b32 s32"},
    {"bfe", "u32|u64|s32|s64", "=T T u32 u32"},
    {"bfi", "b32|b64", "=T T T u32 u32"},
    {"bmsk", "clamp|wrap b32", "=T T T"},
    {"szext", "clamp|wrap u32|s32", "=T T u32"},
    {"and", "b16|b32|b64|pred", "=T T T"},
    {"or", "b16|b32|b64|pred", "=T T T"},
    {"xor", "b16|b32|b64|pred", "=T T T"},
    {"not", "b16|b32|b64|pred", "=T T"},
    {"cnot", "b16|b32|b64", "=T T"},
    {"lop3", "b32", "=T T T T #u32"},
    {"lop3", "and|or b32", "=T|pred T T T #u32 pred"},
    {"shl", "b16|b32|b64", "=T T u32"},
    {"shr", "b16|b32|b64|<int>", "=T T u32"},
    {"shf", "l|r wrap|clamp b32", "=T T T u32"},
    {"prmt", "b32 f4e|b4e|rc8|ecl|ecr|rc16?", "=T T T T"},
    {"mov", "b16|b32|b64|b128", "=T& T&"},
    {"mov", "<int>|f32|f64|pred", "=T T"},
    {"mov", "v2|v4 b16|b32|u16|u32|s16|s32|f32", "=T*v T*v"},
    {"mov", "v2 b64|u64|s64|f64", "=T*v T*v"},
    {"selp", "b16|b32|b64|<int>|f32|f64", "=T T T pred"},
    {"slct", "b16|b32|b64|<int>|f32|f64 s32", "=T T T T2"},
    {"slct", "ftz? b16|b32|b64|<int>|f32|f64 f32", "=T T T T2"},
    // p|q: the result of the comparison and its negation; for packed halves, the result of each half
    {"setp", "{compare}", "=pred|pred? T T"},
    {"setp", "{compare} <logic>", "=pred|pred? T T pred"},
    {"setp", "{compare-half}", "=pred T T"},
    {"setp", "{compare-half} <logic>", "=pred T T pred"},
    {"setp", "{compare-halves}", "=pred|pred T T"},
    {"setp", "{compare-halves} <logic>", "=pred|pred T T pred"},
    {"set", "u32|s32|f32 {compare}", "=T T2 T2"},
    {"set", "u32|s32|f32 {compare} <logic>", "=T T2 T2 pred"},
    {"set", "f16|u16|s16|u32|s32 <order>|<unordered> ftz? f16", "=T T2 T2"},
    {"set", "f16|u16|s16|u32|s32 <order>|<unordered> <logic> ftz? f16", "=T T2 T2 pred"},
    {"set", "bf16|u16|s16|u32|s32 <order>|<unordered> bf16", "=T T2 T2"},
    {"set", "bf16|u16|s16|u32|s32 <order>|<unordered> <logic> bf16", "=T T2 T2 pred"},
    {"set", "f16x2|u32|s32 <order>|<unordered> ftz? f16x2", "=T T2 T2"},
    {"set", "f16x2|u32|s32 <order>|<unordered> <logic> ftz? f16x2", "=T T2 T2 pred"},
    {"set", "bf16x2|u32|s32 <order>|<unordered> bf16x2", "=T T2 T2"},
    {"set", "bf16x2|u32|s32 <order>|<unordered> <logic> bf16x2", "=T T2 T2 pred"},
    {"testp", "finite|infinite|number|notanumber|normal|subnormal f32|f64", "=pred T"},
};

}  // namespace

std::span<const Form> bit_forms() {
  return kBitsForms;
}

}  // namespace kvscope::ptx
