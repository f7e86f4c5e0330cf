#include "apps/common/version.h"

#include <fmt/format.h>

namespace kvscope::apps {

std::string version_text(std::string_view program, std::string_view commit) {
  const std::string built_from = commit.empty() ? "unknown commit" : fmt::format("commit {}", commit);
  return fmt::format("{} {} ({})", program, KVSCOPE_VERSION, built_from);
}

}  // namespace kvscope::apps
