// Any bytes as a scenario give a value or an InputError. An accepted scenario must pass the scenario checks, and
// printing and parsing it must give the same scenario.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/errors.h"
#include "core/scenario/checks.h"
#include "core/scenario/scenario_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const kvscope::Scenario scenario = kvscope::parse_scenario(text, "fuzz");
    KVSCOPE_ASSERT(kvscope::check_scenario(scenario).empty());
    KVSCOPE_ASSERT(kvscope::parse_scenario(kvscope::json::dump(kvscope::to_json(scenario)), "again") == scenario);
  } catch (const kvscope::InputError&) {
  }
  return 0;
}
