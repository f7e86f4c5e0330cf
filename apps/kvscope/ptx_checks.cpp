#include "apps/kvscope/ptx_checks.h"

#include <array>
#include <string_view>

#include "apps/common/cli.h"

namespace kvscope::apps {
namespace {

using Options = ptx::CheckOptions;

struct Check {
  std::string_view name;
  bool in_all;
  void (*set)(Options&);
};

// In the order of docs/15_virtual_gpu.md. One that makes another stricter, or milder, asks for that one too.
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

void add_check_option(CLI::App& command, std::vector<std::string>& names) {
  std::vector<std::string> known{"all", "none"};
  std::string all;
  for (const Check& check : kChecks) {
    known.emplace_back(check.name);
    if (check.in_all) all += (all.empty() ? "" : ",") + std::string(check.name);
  }
  command.add_option("--check", names, "What to watch for: none, or a list; all is " + all + ", the rest goes by name")
      ->delimiter(',')
      ->check(CLI::IsMember(known));
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
