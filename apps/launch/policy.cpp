#include "apps/launch/policy.h"

#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/numbers.h"

namespace kvscope::apps {

Schedule read_policy(const std::string& text) {
  if (text == "late") return {};
  if (text == "early") return {.policy = ptx::Policy::early, .seed = 0};
  if (!text.starts_with("seed:"))
    throw InputError("command line", "--policy", fmt::format("'{}' is not one of late, early, seed:N", text));
  const auto seed = whole_number<std::uint64_t>(std::string_view(text).substr(5));
  if (!seed || *seed == 0) {
    throw InputError(
        "command line", "--policy",
        fmt::format("'{}' is not seed:N with N from 1 to {}", text, std::numeric_limits<std::uint64_t>::max()));
  }
  return {.policy = ptx::Policy::seeded, .seed = *seed};
}

ptx::SumMode sum_of(const std::string& checked) {
  return ptx::sum_from_name(checked).value();
}

}  // namespace kvscope::apps
