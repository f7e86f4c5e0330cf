#include "apps/labs/unknown_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "core/base/nearest_name.h"
#include "core/base/report.h"

namespace kvscope::labs {

std::string unknown_names(const json::Value& answers, std::string_view missing,
                          std::span<const std::string_view> names) {
  constexpr std::size_t kLongestName = 40;  // of a student; the rest is cut off
  constexpr std::int64_t kMostNamed = 3;
  if (answers.as_object() == nullptr) return {};
  std::string text;
  std::int64_t found = 0;
  for (const json::Member& member : *answers.as_object()) {
    const std::string& name = member.first;
    if (std::ranges::find(names, name) != names.end()) continue;
    const std::string_view near = nearest_name(name, names);
    if (!near.empty() && near != missing) continue;
    if (++found > kMostNamed) continue;
    text += fmt::format("; \"{}\" is unknown{}", name.substr(0, kLongestName),
                        near.empty() ? "" : fmt::format(": did you mean \"{}\"?", near));
  }
  if (found > kMostNamed) text += fmt::format("; and {}", counted(found - kMostNamed, "more unknown name"));
  return text;
}

}  // namespace kvscope::labs
