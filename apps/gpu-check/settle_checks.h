// What gpu-check rejects before it runs anything: options without an effect, an unknown kernel, a report that cannot be
// written.
//   gpu-check: command line: --blocks: has no effect without --probes: leave it out
#pragma once

#include <functional>
#include <string>

#include "gpu/hardware/check.h"

namespace kvscope::apps {

// Chooses the checks that run if the command line chose none. InputError, all faults at once, for its options
// (`is_given`) that the chosen checks do not use; then for an unknown kernel, and for an `out` that is not a folder.
// `one`: the value of --one. A check passes the device, the driver, --kernel, --small and --blocks to the process of
// each test, so --one accepts these.
void settle_checks(gpu::CheckOptions& options, const std::string& one, const std::string& out,
                   const std::function<bool(const std::string& option)>& is_given);

}  // namespace kvscope::apps
