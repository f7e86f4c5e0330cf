#include "apps/kvscope/ptx_policy.h"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "apps/common/cli.h"
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

void add_sum_option(CLI::App& command, std::string& sum) {
  command
      .add_option(
          "--sum", sum,
          "How matrix instructions add products. seq: one after the other, each sum rounded; exact: all, rounded "
          "once; hopper: aligned and truncated, with the bits of an H100 where it was measured")
      ->check(CLI::IsMember(std::vector<std::string>(ptx::kSumNames.begin(), ptx::kSumNames.end())))
      ->capture_default_str();
}

ptx::SumMode sum_of(const std::string& checked) {
  return ptx::sum_from_name(checked).value();
}

}  // namespace kvscope::apps
