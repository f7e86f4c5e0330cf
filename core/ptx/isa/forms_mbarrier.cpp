// Arrival barriers. PTX ISA, "mbarrier".
#include "core/ptx/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kForms[] = {
    {Opcode::mbarrier_init, "mbarrier.init", "shared|shared::cta? b64", "A u32"},
    {Opcode::mbarrier_inval, "mbarrier.inval", "shared|shared::cta? b64", "A"},
    {Opcode::mbarrier_arrive, "mbarrier.arrive", "<arrive-order>? <barrier-scope>? <barrier-space>? b64",
     "=b64 A u32?"},
    {Opcode::mbarrier_arrive_drop, "mbarrier.arrive_drop", "<arrive-order>? <barrier-scope>? <barrier-space>? b64",
     "=b64 A u32?"},
    {Opcode::mbarrier_arrive, "mbarrier.arrive", "expect_tx <arrive-order>? <barrier-scope>? <barrier-space>? b64",
     "=b64 A u32", 90},
    {Opcode::mbarrier_arrive_drop, "mbarrier.arrive_drop",
     "expect_tx <arrive-order>? <barrier-scope>? <barrier-space>? b64", "=b64 A u32", 90},
    {Opcode::mbarrier_arrive, "mbarrier.arrive", "noComplete <arrive-order>? cta? shared|shared::cta? b64",
     "=b64 A u32"},
    {Opcode::mbarrier_arrive_drop, "mbarrier.arrive_drop", "noComplete <arrive-order>? cta? shared|shared::cta? b64",
     "=b64 A u32"},
    {Opcode::mbarrier_expect_tx, "mbarrier.expect_tx", "relaxed? <barrier-scope>? <barrier-space>? b64", "A u32", 90},
    {Opcode::mbarrier_complete_tx, "mbarrier.complete_tx", "relaxed? <barrier-scope>? <barrier-space>? b64", "A u32",
     90},
    {Opcode::mbarrier_test_wait, "mbarrier.test_wait", "<wait-order>? <barrier-scope>? shared|shared::cta? b64",
     "=pred A b64"},
    {Opcode::mbarrier_test_wait, "mbarrier.test_wait", "parity <wait-order>? <barrier-scope>? shared|shared::cta? b64",
     "=pred A u32"},
    {Opcode::mbarrier_try_wait, "mbarrier.try_wait", "<wait-order>? <barrier-scope>? shared|shared::cta? b64",
     "=pred A b64 u32?", 90},
    {Opcode::mbarrier_try_wait, "mbarrier.try_wait", "parity <wait-order>? <barrier-scope>? shared|shared::cta? b64",
     "=pred A u32 u32?", 90},
    {Opcode::mbarrier_pending_count, "mbarrier.pending_count", "b64", "=u32 b64"},
};

}  // namespace

std::span<const Form> mbarrier_forms() {
  return kForms;
}

}  // namespace kvscope::ptx
