// Atomics: atom returns what was there, red does not. PTX ISA, "atom", "red".
#include "core/ptx/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kForms[] = {
    {Opcode::atom, "atom", "<atomic-order>? <scope>? <atomic-space>? <hint>* add u32|s32|u64|f32|f64",
     "=T A T b64@L2::cache_hint"},
    {Opcode::atom, "atom", "<atomic-order>? <scope>? <atomic-space>? <hint>* add noftz f16|f16x2|bf16|bf16x2",
     "=T A T b64@L2::cache_hint"},
    {Opcode::atom, "atom", "<atomic-order>? <scope>? <atomic-space>? <hint>* min|max u32|s32|u64|s64",
     "=T A T b64@L2::cache_hint"},
    {Opcode::atom, "atom", "<atomic-order>? <scope>? <atomic-space>? <hint>* inc|dec u32", "=T A T b64@L2::cache_hint"},
    {Opcode::atom, "atom", "<atomic-order>? <scope>? <atomic-space>? <hint>* and|or|xor b32|b64",
     "=T A T b64@L2::cache_hint"},
    {Opcode::atom, "atom", "<atomic-order>? <scope>? global <hint>* add v2|v4 f32", "=T*v A T*v b64@L2::cache_hint",
     90},
    {Opcode::atom, "atom", "<atomic-order>? <scope>? global <hint>* add|min|max noftz v2|v4|v8 f16|bf16",
     "=T*v A T*v b64@L2::cache_hint", 90},
    {Opcode::atom, "atom", "<atomic-order>? <scope>? global <hint>* add|min|max noftz v2|v4 f16x2|bf16x2",
     "=T*v A T*v b64@L2::cache_hint", 90},
    {Opcode::atom, "atom", "<atomic-order>? <scope>? <atomic-space>? <hint>* exch b32|b64|b128",
     "=T A T b64@L2::cache_hint"},
    {Opcode::atom, "atom", "<atomic-order>? <scope>? <atomic-space>? <hint>* cas b16|b32|b64|b128",
     "=T A T T b64@L2::cache_hint"},
    {Opcode::red, "red", "<reduction-order>? <scope>? <atomic-space>? <hint>* add u32|s32|u64|f32|f64",
     "A T b64@L2::cache_hint"},
    {Opcode::red, "red", "<reduction-order>? <scope>? <atomic-space>? <hint>* add noftz f16|f16x2|bf16|bf16x2",
     "A T b64@L2::cache_hint"},
    {Opcode::red, "red", "<reduction-order>? <scope>? <atomic-space>? <hint>* min|max u32|s32|u64|s64",
     "A T b64@L2::cache_hint"},
    {Opcode::red, "red", "<reduction-order>? <scope>? <atomic-space>? <hint>* inc|dec u32", "A T b64@L2::cache_hint"},
    {Opcode::red, "red", "<reduction-order>? <scope>? <atomic-space>? <hint>* and|or|xor b32|b64",
     "A T b64@L2::cache_hint"},
    {Opcode::red, "red", "<reduction-order>? <scope>? global <hint>* add v2|v4 f32", "A T*v b64@L2::cache_hint", 90},
    {Opcode::red, "red", "<reduction-order>? <scope>? global <hint>* add|min|max noftz v2|v4|v8 f16|bf16",
     "A T*v b64@L2::cache_hint", 90},
    {Opcode::red, "red", "<reduction-order>? <scope>? global <hint>* add|min|max noftz v2|v4 f16x2|bf16x2",
     "A T*v b64@L2::cache_hint", 90},
};

}  // namespace

std::span<const Form> atomic_forms() {
  return kForms;
}

}  // namespace kvscope::ptx
