// The options of the LDS path that several commands take, in place of the scenario's own: --full-kv, --smem-depth,
// --cache-depth, --head-dim-offset, --reg-chunk-depth.
#pragma once

#include <cstdint>
#include <optional>

#include "core/scenario/scenario.h"

namespace CLI {
class App;
}

namespace kvscope::apps {

struct LdsOptions {
  std::optional<bool> full_kv;
  std::optional<std::int64_t> smem_depth, cache_depth, head_dim_offset, reg_chunk_depth;
};

void add_lds_options(CLI::App& command, LdsOptions& options);  // `options` outlives the command

// The scenario with the given options set in its `lds` section. InputError("command line") with every fault, under the
// option's name.
[[nodiscard]] Scenario with_lds_options(Scenario scenario, const LdsOptions& options);

}  // namespace kvscope::apps
