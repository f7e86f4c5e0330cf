// Arrival barriers. PTX ISA, "mbarrier".
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kMbarrierForms[] = {
    {"mbarrier.init", "shared|shared::cta? b64", "A u32"},
    {"mbarrier.inval", "shared|shared::cta? b64", "A"},
    // an arrival at a barrier of another CTA returns no token: _
    {"mbarrier.arrive", "<own-barrier>? b64", "=u64 A u32?"},
    {"mbarrier.arrive_drop", "<own-barrier>? b64", "=u64 A u32?"},
    {"mbarrier.arrive", "<arrive-order> <barrier-scope> <own-barrier>? b64", "=u64 A u32?"},
    {"mbarrier.arrive_drop", "<arrive-order> <barrier-scope> <own-barrier>? b64", "=u64 A u32?"},
    {"mbarrier.arrive", "shared::cluster b64", "=_ A u32?"},
    {"mbarrier.arrive_drop", "shared::cluster b64", "=_ A u32?"},
    {"mbarrier.arrive", "<arrive-order> <barrier-scope> shared::cluster b64", "=_ A u32?"},
    {"mbarrier.arrive_drop", "<arrive-order> <barrier-scope> shared::cluster b64", "=_ A u32?"},
    {"mbarrier.arrive", "expect_tx <own-barrier>? b64", "=u64 A u32", 90},
    {"mbarrier.arrive_drop", "expect_tx <own-barrier>? b64", "=u64 A u32", 90},
    {"mbarrier.arrive", "expect_tx <arrive-order> <barrier-scope> <own-barrier>? b64", "=u64 A u32", 90},
    {"mbarrier.arrive_drop", "expect_tx <arrive-order> <barrier-scope> <own-barrier>? b64", "=u64 A u32", 90},
    {"mbarrier.arrive", "expect_tx shared::cluster b64", "=_ A u32", 90},
    {"mbarrier.arrive_drop", "expect_tx shared::cluster b64", "=_ A u32", 90},
    {"mbarrier.arrive", "expect_tx <arrive-order> <barrier-scope> shared::cluster b64", "=_ A u32", 90},
    {"mbarrier.arrive_drop", "expect_tx <arrive-order> <barrier-scope> shared::cluster b64", "=_ A u32", 90},
    {"mbarrier.arrive", "noComplete <own-barrier>? b64", "=u64 A u32"},
    {"mbarrier.arrive_drop", "noComplete <own-barrier>? b64", "=u64 A u32"},
    {"mbarrier.arrive", "noComplete release cta <own-barrier>? b64", "=u64 A u32"},
    {"mbarrier.arrive_drop", "noComplete release cta <own-barrier>? b64", "=u64 A u32"},
    {"mbarrier.expect_tx", "<barrier-space>? b64", "A u32", 90},
    {"mbarrier.complete_tx", "<barrier-space>? b64", "A u32", 90},
    {"mbarrier.expect_tx", "relaxed <barrier-scope> <barrier-space>? b64", "A u32", 90},
    {"mbarrier.complete_tx", "relaxed <barrier-scope> <barrier-space>? b64", "A u32", 90},
    {"mbarrier.test_wait", "<own-barrier>? b64", "=pred A u64"},
    {"mbarrier.test_wait", "<wait-order> <barrier-scope> <own-barrier>? b64", "=pred A u64"},
    {"mbarrier.test_wait", "parity <own-barrier>? b64", "=pred A u32"},
    {"mbarrier.test_wait", "parity <wait-order> <barrier-scope> <own-barrier>? b64", "=pred A u32"},
    {"mbarrier.try_wait", "<own-barrier>? b64", "=pred A u64 u32?", 90},
    {"mbarrier.try_wait", "<wait-order> <barrier-scope> <own-barrier>? b64", "=pred A u64 u32?", 90},
    {"mbarrier.try_wait", "parity <own-barrier>? b64", "=pred A u32 u32?", 90},
    {"mbarrier.try_wait", "parity <wait-order> <barrier-scope> <own-barrier>? b64", "=pred A u32 u32?", 90},
    {"mbarrier.pending_count", "b64", "=u32 u64"},
};

}  // namespace

std::span<const Form> mbarrier_forms() {
  return kMbarrierForms;
}

}  // namespace kvscope::ptx
