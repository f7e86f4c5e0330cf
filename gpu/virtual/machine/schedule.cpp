#include "gpu/virtual/machine/schedule.h"

#include <fmt/format.h>

#include <limits>

#include "core/base/numbers.h"

namespace kvscope::ptx {
namespace {

constexpr std::string_view kSeed = "seed:";

}  // namespace

std::optional<Schedule> policy_from_name(std::string_view name) {
  if (name == "late") return Schedule{};
  if (name == "early") return Schedule{.policy = Policy::early};
  if (!name.starts_with(kSeed)) return std::nullopt;
  const auto seed = whole_number<std::uint64_t>(name.substr(kSeed.size()));
  if (!seed || *seed == 0) return std::nullopt;
  return Schedule{.policy = Policy::seeded, .seed = *seed};
}

std::string policy_fault(std::string_view name) {
  if (!name.starts_with(kSeed)) return fmt::format("'{}' is not one of late, early, seed:N", name);
  return fmt::format("'{}' is not seed:N with N from 1 to {}", name, std::numeric_limits<std::uint64_t>::max());
}

}  // namespace kvscope::ptx
