#include "gpu/virtual/check/check_names.h"

#include <array>
#include <string_view>

namespace kvscope::ptx {
namespace {

struct NamedCheck {
  std::string_view name;
  bool in_all;
  void (*set)(CheckOptions&);
};

// In the order of docs/15_virtual_gpu.md. A check that makes another one stricter or milder enables that one too.
constexpr std::array<NamedCheck, 15> kChecks{{
    {"race", true, [](CheckOptions& o) { o.race.races = true; }},
    {"proxy", true, [](CheckOptions& o) { o.race.proxy = true; }},
    {"init", true, [](CheckOptions& o) { o.init = true; }},
    {"nc", true, [](CheckOptions& o) { o.nc_modified = true; }},
    {"wgmma", true, [](CheckOptions& o) { o.wgmma = true; }},
    {"tensor", true, [](CheckOptions& o) { o.tensor = true; }},
    {"global_init", false, [](CheckOptions& o) { o.global_init = true; }},
    {"global_race", false, [](CheckOptions& o) { o.global_race = true; }},
    {"uninit_regs", false, [](CheckOptions& o) { o.uninit_regs = true; }},
    {"uninit_local", false, [](CheckOptions& o) { o.uninit_local = true; }},
    {"strict_war_proxy", false, [](CheckOptions& o) { o.race.proxy = o.race.strict_war_proxy = true; }},
    {"collectives_order", false, [](CheckOptions& o) { o.race.races = o.race.collectives_order = true; }},
    {"no_init_fence", false, [](CheckOptions& o) { o.race.init_fence = false; }},
    {"same_value_error", false,
     [](CheckOptions& o) {
       o.race.races = true;
       o.race.same_value = SameValue::error;
     }},
    {"same_value_ignore", false,
     [](CheckOptions& o) {
       o.race.races = true;
       o.race.same_value = SameValue::ignore;
     }},
}};

}  // namespace

std::vector<std::string> check_names() {
  std::vector<std::string> out{"all", "none"};
  for (const NamedCheck& check : kChecks) out.emplace_back(check.name);
  return out;
}

std::string checks_in_all() {
  std::string out;
  for (const NamedCheck& check : kChecks) {
    if (check.in_all) out += (out.empty() ? "" : ",") + std::string(check.name);
  }
  return out;
}

CheckOptions checks_of(const std::vector<std::string>& names) {
  CheckOptions out{
      .init = false, .race = {.races = false, .proxy = false}, .nc_modified = false, .wgmma = false, .tensor = false};
  for (const std::string& name : names) {
    for (const NamedCheck& check : kChecks) {
      if (check.name == name || (name == "all" && check.in_all)) check.set(out);
    }
  }
  return out;
}

}  // namespace kvscope::ptx
