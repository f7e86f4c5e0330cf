// --timeout, an option of every command.
#include <memory>
#include <string>

#include "apps/common/cli.h"
#include "apps/common/time_limit.h"
#include "apps/kvscope/commands.h"

namespace kvscope::apps {
namespace {

void add_timeout_to(CLI::App& command, double& seconds) {
  const auto below = command.get_subcommands([](CLI::App*) { return true; });
  for (CLI::App* one : below) add_timeout_to(*one, seconds);
  if (!below.empty()) return;
  command.add_option("--timeout", seconds, "End after this time with exit code 2; 0: no limit")
      ->type_name("SECONDS")
      ->check(CLI::Validator([](const std::string& text) { return time_limit_fault(text); }, ""))
      ->default_str("0");
}

}  // namespace

std::shared_ptr<double> add_timeout_option(CLI::App& app) {
  auto seconds = std::make_shared<double>(0);
  add_timeout_to(app, *seconds);
  return seconds;
}

}  // namespace kvscope::apps
