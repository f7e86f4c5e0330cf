// Atomics: atom returns the old value, red does not. PTX ISA, "atom", "red".
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kAtomicForms[] = {
    {"atom", "<atomic-order>? <scope>? <shared> {reduce}", "=T A T"},
    {"atom", "<atomic-order>? <scope>? global? L2::cache_hint? {reduce}", "=T A T policy"},
    {"atom", "<atomic-order>? <scope>? global? L2::cache_hint? {reduce-vector}", "=T*v A T*v policy", 90},
    {"atom", "<atomic-order>? <scope>? <shared> exch b32|b64|b128", "=T A T"},
    {"atom", "<atomic-order>? <scope>? global? L2::cache_hint? exch b32|b64|b128", "=T A T policy"},
    {"atom", "<atomic-order>? <scope>? <ordered>? cas b16|b32|b64|b128", "=T A T T"},
    {"red", "<reduction-order>? <scope>? <shared> {reduce}", "A T"},
    {"red", "<reduction-order>? <scope>? global? L2::cache_hint? {reduce}", "A T policy"},
    {"red", "<reduction-order>? <scope>? global? L2::cache_hint? {reduce-vector}", "A T*v policy", 90},
};

}  // namespace

std::span<const Form> atomic_forms() {
  return kAtomicForms;
}

}  // namespace kvscope::ptx
