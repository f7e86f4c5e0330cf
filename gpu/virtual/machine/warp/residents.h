// CTAs that have started and not ended: starting them (one, a cluster or all), ending them, finding the next.
#pragma once

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// Starts the next CTA, with its cluster, when there is one and the limit of residents allows it. True: it did.
bool start_next(Launch& launch);
// Every lane has exited: tells engines and monitors. It leaves when its whole cluster has ended.
void end_cta(Launch& launch, Cta& cta);
void drop_ended(Launch& launch);
// Null: it has not started, or has left.
[[nodiscard]] Cta* find_cta(Launch& launch, std::int32_t index);
[[nodiscard]] const Cta* find_cta(const Launch& launch, std::int32_t index);

// Which cluster a CTA belongs to: 0 and up; CTAs of a launch without clusters are clusters of their own.
[[nodiscard]] std::int64_t cluster_of(const Launch& launch, const Cta& cta);

}  // namespace kvscope::ptx
