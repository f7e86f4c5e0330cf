// Barriers of a CTA and of a cluster; fences. PTX ISA, "bar", "barrier", "barrier.cluster", "membar / fence".
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kBarrierForms[] = {
    {"bar.sync", "", "u32 u32?"},
    {"bar.cta.sync", "", "u32 u32?"},
    {"barrier.sync", "aligned?", "u32 u32?"},
    {"barrier.cta.sync", "aligned?", "u32 u32?"},
    {"bar.arrive", "", "u32 u32"},
    {"bar.cta.arrive", "", "u32 u32"},
    {"barrier.arrive", "aligned?", "u32 u32"},
    {"barrier.cta.arrive", "aligned?", "u32 u32"},
    {"bar.red", "popc u32", "=u32 u32 u32? pred"},
    {"bar.cta.red", "popc u32", "=u32 u32 u32? pred"},
    {"barrier.red", "aligned? popc u32", "=u32 u32 u32? pred"},
    {"barrier.cta.red", "aligned? popc u32", "=u32 u32 u32? pred"},
    {"bar.red", "and|or pred", "=pred u32 u32? pred"},
    {"bar.cta.red", "and|or pred", "=pred u32 u32? pred"},
    {"barrier.red", "aligned? and|or pred", "=pred u32 u32? pred"},
    {"barrier.cta.red", "aligned? and|or pred", "=pred u32 u32? pred"},
    {"barrier.cluster.arrive", "release|relaxed? aligned?", "", 90},
    {"barrier.cluster.wait", "acquire? aligned?", "", 90},
    {"membar", "cta|gl|sys", ""},
    {"membar", "proxy alias", ""},
    {"fence", "sc|acq_rel|acquire|release? <scope>", ""},
    {"fence", "acquire sync_restrict::shared::cluster cluster", "", 90},
    {"fence", "release sync_restrict::shared::cta cluster", "", 90},
    {"fence", "mbarrier_init release cluster", "", 90},
    {"fence", "proxy alias", ""},
    {"fence", "proxy async <proxy-space>?", "", 90},
    {"fence", "proxy async::generic acquire sync_restrict::shared::cluster cluster", "", 90},
    {"fence", "proxy async::generic release sync_restrict::shared::cta cluster", "", 90},
    {"fence", "proxy tensormap::generic release <scope>", "", 90},
    {"fence", "proxy tensormap::generic acquire <scope>", "A #u32", 90},
};

}  // namespace

std::span<const Form> barrier_forms() {
  return kBarrierForms;
}

}  // namespace kvscope::ptx
