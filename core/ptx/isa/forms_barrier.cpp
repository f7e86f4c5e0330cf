// Barriers of a CTA and of a cluster; fences. PTX ISA, "bar", "barrier", "barrier.cluster", "membar / fence".
#include "core/ptx/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kForms[] = {
    {Opcode::bar_sync, "bar.sync", "aligned?", "u32 u32?"},
    {Opcode::bar_sync, "bar.cta.sync", "aligned?", "u32 u32?"},
    {Opcode::bar_sync, "barrier.sync", "aligned?", "u32 u32?"},
    {Opcode::bar_sync, "barrier.cta.sync", "aligned?", "u32 u32?"},
    {Opcode::bar_arrive, "bar.arrive", "aligned?", "u32 u32"},
    {Opcode::bar_arrive, "bar.cta.arrive", "aligned?", "u32 u32"},
    {Opcode::bar_arrive, "barrier.arrive", "aligned?", "u32 u32"},
    {Opcode::bar_arrive, "barrier.cta.arrive", "aligned?", "u32 u32"},
    {Opcode::bar_red, "bar.red", "aligned? popc u32", "=u32 u32 u32? pred"},
    {Opcode::bar_red, "bar.cta.red", "aligned? popc u32", "=u32 u32 u32? pred"},
    {Opcode::bar_red, "barrier.red", "aligned? popc u32", "=u32 u32 u32? pred"},
    {Opcode::bar_red, "barrier.cta.red", "aligned? popc u32", "=u32 u32 u32? pred"},
    {Opcode::bar_red, "bar.red", "aligned? and|or pred", "=pred u32 u32? pred"},
    {Opcode::bar_red, "bar.cta.red", "aligned? and|or pred", "=pred u32 u32? pred"},
    {Opcode::bar_red, "barrier.red", "aligned? and|or pred", "=pred u32 u32? pred"},
    {Opcode::bar_red, "barrier.cta.red", "aligned? and|or pred", "=pred u32 u32? pred"},
    {Opcode::barrier_cluster_arrive, "barrier.cluster.arrive", "release|relaxed? aligned?", "", 90},
    {Opcode::barrier_cluster_wait, "barrier.cluster.wait", "acquire? aligned?", "", 90},
    {Opcode::membar, "membar", "cta|gl|sys", ""},
    {Opcode::membar, "membar", "proxy alias", ""},
    {Opcode::membar, "membar", "proxy async <proxy-space>?", "", 90},
    {Opcode::fence, "fence", "sc|acq_rel|acquire|release? <scope>", ""},
    {Opcode::fence, "fence", "acquire sync_restrict::shared::cluster cluster", "", 90},
    {Opcode::fence, "fence", "release sync_restrict::shared::cta cluster", "", 90},
    {Opcode::fence, "fence", "mbarrier_init release cluster", "", 90},
    {Opcode::fence, "fence", "proxy alias", ""},
    {Opcode::fence, "fence", "proxy async <proxy-space>?", "", 90},
    {Opcode::fence, "fence", "proxy async::generic acquire sync_restrict::shared::cluster cluster", "", 90},
    {Opcode::fence, "fence", "proxy async::generic release sync_restrict::shared::cta cluster", "", 90},
    {Opcode::fence, "fence", "proxy tensormap::generic release <scope>", "", 90},
    {Opcode::fence, "fence", "proxy tensormap::generic acquire <scope>", "A #u32", 90},
};

}  // namespace

std::span<const Form> barrier_forms() {
  return kForms;
}

}  // namespace kvscope::ptx
