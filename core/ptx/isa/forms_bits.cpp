// Bits, shifts, bytes, selection, comparison. PTX ISA, "Logic and Shift Instructions", "Comparison and Selection".
#include "core/ptx/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kForms[] = {
    {Opcode::popc, "popc", "b32|b64", "=u32 T"},
    {Opcode::clz, "clz", "b32|b64", "=u32 T"},
    {Opcode::brev, "brev", "b32|b64", "=T T"},
    {Opcode::bfind, "bfind", "shiftamt? u32|u64|s32|s64", "=u32 T"},
    {Opcode::fns, "fns", "b32", "=b32 b32 b32 s32"},
    {Opcode::bfe, "bfe", "u32|u64|s32|s64", "=T T u32 u32"},
    {Opcode::bfi, "bfi", "b32|b64", "=T T T u32 u32"},
    {Opcode::bmsk, "bmsk", "clamp|wrap b32", "=T T T"},
    {Opcode::szext, "szext", "clamp|wrap u32|s32", "=T T u32"},
    {Opcode::and_, "and", "b16|b32|b64|pred", "=T T T"},
    {Opcode::or_, "or", "b16|b32|b64|pred", "=T T T"},
    {Opcode::xor_, "xor", "b16|b32|b64|pred", "=T T T"},
    {Opcode::not_, "not", "b16|b32|b64|pred", "=T T"},
    {Opcode::cnot, "cnot", "b16|b32|b64", "=T T"},
    {Opcode::lop3, "lop3", "b32", "=T T T T #u32"},
    {Opcode::lop3, "lop3", "and|or b32", "=T|pred T T T #u32 pred"},
    {Opcode::shl, "shl", "b16|b32|b64", "=T T u32"},
    {Opcode::shr, "shr", "b16|b32|b64|<int>", "=T T u32"},
    {Opcode::shf, "shf", "l|r wrap|clamp b32", "=T T T u32"},
    {Opcode::prmt, "prmt", "b32 f4e|b4e|rc8|ecl|ecr|rc16?", "=T T T T"},

    {Opcode::mov, "mov", "b16|b32|b64|b128", "=T& T&"},
    {Opcode::mov, "mov", "<int>|f32|f64|pred", "=T T"},
    {Opcode::mov, "mov", "v2|v4 b16|b32|u16|u32|s16|s32|f32", "=T*v T*v"},
    {Opcode::mov, "mov", "v2 b64|u64|s64|f64", "=T*v T*v"},
    {Opcode::selp, "selp", "b16|b32|b64|<int>|f32|f64", "=T T T pred"},
    {Opcode::slct, "slct", "b16|b32|b64|<int>|f32|f64 s32", "=T T T T2"},
    {Opcode::slct, "slct", "ftz? b16|b32|b64|<int>|f32|f64 f32", "=T T T T2"},

    // setp p|q, a, b and setp.and p|q, a, b, c
    {Opcode::setp, "setp", "<equal> b16|b32|b64", "=pred|pred? T T"},
    {Opcode::setp, "setp", "<order> s16|s32|s64", "=pred|pred? T T"},
    {Opcode::setp, "setp", "<order>|<unsigned-order> u16|u32|u64", "=pred|pred? T T"},
    {Opcode::setp, "setp", "<order>|<unordered> ftz? f32|f16|f16x2", "=pred|pred? T T"},
    {Opcode::setp, "setp", "<order>|<unordered> f64|bf16|bf16x2", "=pred|pred? T T"},
    {Opcode::setp, "setp", "<equal> <logic> b16|b32|b64", "=pred|pred? T T pred"},
    {Opcode::setp, "setp", "<order> <logic> s16|s32|s64", "=pred|pred? T T pred"},
    {Opcode::setp, "setp", "<order>|<unsigned-order> <logic> u16|u32|u64", "=pred|pred? T T pred"},
    {Opcode::setp, "setp", "<order>|<unordered> <logic> ftz? f32|f16|f16x2", "=pred|pred? T T pred"},
    {Opcode::setp, "setp", "<order>|<unordered> <logic> f64|bf16|bf16x2", "=pred|pred? T T pred"},
    {Opcode::set, "set", "<equal> u32|s32|f32 b16|b32|b64", "=T T2 T2"},
    {Opcode::set, "set", "<order> u32|s32|f32 s16|s32|s64", "=T T2 T2"},
    {Opcode::set, "set", "<order>|<unsigned-order> u32|s32|f32 u16|u32|u64", "=T T2 T2"},
    {Opcode::set, "set", "<order>|<unordered> ftz? u32|s32|f32 f32", "=T T2 T2"},
    {Opcode::set, "set", "<order>|<unordered> u32|s32|f32 f64", "=T T2 T2"},
    {Opcode::set, "set", "<order>|<unordered> ftz? f16|u16|s16|u32|s32 f16", "=T T2 T2"},
    {Opcode::set, "set", "<order>|<unordered> ftz? f16x2|u32|s32 f16x2", "=T T2 T2"},
    {Opcode::set, "set", "<order>|<unordered> bf16|u16|s16|u32|s32 bf16", "=T T2 T2"},
    {Opcode::set, "set", "<order>|<unordered> bf16x2|u32|s32 bf16x2", "=T T2 T2"},
    {Opcode::set, "set", "<equal> <logic> u32|s32|f32 b16|b32|b64", "=T T2 T2 pred"},
    {Opcode::set, "set", "<order> <logic> u32|s32|f32 s16|s32|s64", "=T T2 T2 pred"},
    {Opcode::set, "set", "<order>|<unsigned-order> <logic> u32|s32|f32 u16|u32|u64", "=T T2 T2 pred"},
    {Opcode::set, "set", "<order>|<unordered> <logic> ftz? u32|s32|f32 f32", "=T T2 T2 pred"},
    {Opcode::set, "set", "<order>|<unordered> <logic> u32|s32|f32 f64", "=T T2 T2 pred"},
    {Opcode::set, "set", "<order>|<unordered> <logic> ftz? f16|u16|s16|u32|s32 f16", "=T T2 T2 pred"},
    {Opcode::set, "set", "<order>|<unordered> <logic> ftz? f16x2|u32|s32 f16x2", "=T T2 T2 pred"},
    {Opcode::set, "set", "<order>|<unordered> <logic> bf16|u16|s16|u32|s32 bf16", "=T T2 T2 pred"},
    {Opcode::set, "set", "<order>|<unordered> <logic> bf16x2|u32|s32 bf16x2", "=T T2 T2 pred"},
    {Opcode::testp, "testp", "finite|infinite|number|notanumber|normal|subnormal f32|f64", "=pred T"},
};

}  // namespace

std::span<const Form> bit_forms() {
  return kForms;
}

}  // namespace kvscope::ptx
