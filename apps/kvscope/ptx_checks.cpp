#include "apps/kvscope/ptx_checks.h"

#include <array>
#include <string_view>

namespace kvscope::apps {
namespace {

using Options = ptx::CheckOptions;

struct Check {
  std::string_view name;
  bool in_all;
  void (*set)(Options&);
};

// In the order of docs/15_virtual_gpu.md. A check that makes another one stricter or milder enables that one too.
constexpr std::array<Check, 14> kChecks{{
    {"race", true, [](Options& o) { o.race.races = true; }},
    {"proxy", true, [](Options& o) { o.race.proxy = true; }},
    {"init", true, [](Options& o) { o.init = true; }},
    {"nc", true, [](Options& o) { o.nc_modified = true; }},
    {"wgmma", true, [](Options& o) { o.wgmma = true; }},
    {"global_init", false, [](Options& o) { o.global_init = true; }},
    {"global_race", false, [](Options& o) { o.global_race = true; }},
    {"uninit_regs", false, [](Options& o) { o.uninit_regs = true; }},
    {"uninit_local", false, [](Options& o) { o.uninit_local = true; }},
    {"strict_war_proxy", false, [](Options& o) { o.race.proxy = o.race.strict_war_proxy = true; }},
    {"collectives_order", false, [](Options& o) { o.race.races = o.race.collectives_order = true; }},
    {"no_init_fence", false, [](Options& o) { o.race.init_fence = false; }},
    {"same_value_error", false,
     [](Options& o) {
       o.race.races = true;
       o.race.same_value = ptx::SameValue::error;
     }},
    {"same_value_ignore", false,
     [](Options& o) {
       o.race.races = true;
       o.race.same_value = ptx::SameValue::ignore;
     }},
}};

}  // namespace

std::vector<std::string> check_names() {
  std::vector<std::string> out{"all", "none"};
  for (const Check& check : kChecks) out.emplace_back(check.name);
  return out;
}

std::string checks_in_all() {
  std::string out;
  for (const Check& check : kChecks) {
    if (check.in_all) out += (out.empty() ? "" : ",") + std::string(check.name);
  }
  return out;
}

ptx::CheckOptions checks_of(const std::vector<std::string>& names) {
  Options out{.init = false, .race = {.races = false, .proxy = false}, .nc_modified = false, .wgmma = false};
  for (const std::string& name : names) {
    for (const Check& check : kChecks) {
      if (check.name == name || (name == "all" && check.in_all)) check.set(out);
    }
  }
  return out;
}

}  // namespace kvscope::apps
