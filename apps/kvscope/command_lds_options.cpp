#include "apps/kvscope/lds_options.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/common/cli.h"
#include "core/base/errors.h"
#include "core/scenario/checks.h"

namespace kvscope::apps {
namespace {

constexpr std::string_view kSection = "$.lds.";

// "$.lds.smem_depth" -> "--smem-depth".
std::string option_of(std::string_view where) {
  std::string option = "--" + std::string(where.substr(kSection.size()));
  for (char& c : option) {
    if (c == '_') c = '-';
  }
  return option;
}

}  // namespace

void add_lds_options(CLI::App& command, LdsOptions& options) {
  const std::string group = "Options of the LDS path, to replace those of the scenario";
  command.add_option("--full-kv", options.full_kv, "true: a stage holds all columns; false: one block of BK columns")
      ->group(group);
  command.add_option("--smem-depth", options.smem_depth, "Columns of a stage; 0: as many as are staged")->group(group);
  command.add_option("--cache-depth", options.cache_depth, "Columns of a head in the cache; 0: head_size of the model")
      ->group(group);
  command
      .add_option("--head-dim-offset", options.head_dim_offset,
                  "First column of a head that is staged, such as 512 for the rope part of a latent cache")
      ->group(group);
  command
      .add_option("--reg-chunk-depth", options.reg_chunk_depth,
                  "Columns of K that registers hold at a time; 0: as many as fit")
      ->group(group);
}

Scenario with_lds_options(Scenario scenario, const LdsOptions& options) {
  LdsGeometry& lds = scenario.lds;
  lds.full_kv = options.full_kv.value_or(lds.full_kv);
  lds.smem_depth = options.smem_depth.value_or(lds.smem_depth);
  lds.cache_depth = options.cache_depth.value_or(lds.cache_depth);
  lds.head_dim_offset = options.head_dim_offset.value_or(lds.head_dim_offset);
  lds.reg_chunk_depth = options.reg_chunk_depth.value_or(lds.reg_chunk_depth);
  std::vector<Fault> faults;
  for (Fault& fault : check_scenario(scenario)) {
    if (fault.where.starts_with(kSection)) faults.push_back({option_of(fault.where), std::move(fault.message)});
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
  return scenario;
}

}  // namespace kvscope::apps
