#include "apps/kvscope/ptx_policy.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/base/errors.h"

namespace kvscope::apps {

Schedule read_policy(const std::string& text) {
  if (text == "late") return {};
  if (text == "early") return {.policy = ptx::Policy::early, .seed = 0};
  if (!text.starts_with("seed:"))
    throw InputError("command line", "--policy", fmt::format("'{}' is not one of late, early, seed:N", text));
  const std::uint64_t seed = std::strtoull(text.c_str() + 5, nullptr, 10);
  if (seed == 0) throw InputError("command line", "--policy", "a seed is a number from 1 on: seed:1");
  return {.policy = ptx::Policy::seeded, .seed = seed};
}

ptx::SumMode sum_of(const std::string& checked) {
  return ptx::sum_from_name(checked).value();
}

}  // namespace kvscope::apps
