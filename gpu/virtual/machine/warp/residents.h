// Resident CTAs (started and not ended): starting them (one, a cluster or all), ending them, lookup.
#pragma once

#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// Starts the next CTA, with its cluster, if one is left and the limit of residents allows it. Returns whether it did.
bool start_next(Launch& launch);
// Every lane has exited: notifies engines and monitors. The CTA is removed when its whole cluster has ended.
void end_cta(Launch& launch, Cta& cta);
void drop_ended(Launch& launch);
// Null: it has not started, or was removed.
[[nodiscard]] Cta* find_cta(Launch& launch, std::int32_t index);
[[nodiscard]] const Cta* find_cta(const Launch& launch, std::int32_t index);

// The cluster of a CTA: 0 and up; in a launch without clusters, each CTA is its own cluster.
[[nodiscard]] std::int64_t cluster_of(const Launch& launch, const Cta& cta);
// The cluster that starts next. Precondition: next_cta < ctas_to_run().
[[nodiscard]] std::int64_t next_cluster(const Launch& launch);

}  // namespace kvscope::ptx
