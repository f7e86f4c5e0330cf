#include "apps/common/usage.h"

#include <fmt/format.h>

#include <iostream>
#include <string>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "core/scenario/nearest_name.h"

namespace kvscope::apps {
namespace {

// The deepest command that was reached: the one whose --help answers the fault.
std::string reached(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app.get_name() : app.get_name() + " " + reached(*parsed.front());
}

// The parser's words, made to name the value and what it should be.
std::string words_of(const CLI::App& app, const CLI::ParseError& error, std::string_view first_word) {
  const std::string text = error.what();
  if (app.get_subcommands().empty() && !first_word.empty() && first_word.front() != '-') {
    std::vector<std::string> known;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      known.push_back(command->get_name());
    }
    const std::vector<std::string_view> views(known.begin(), known.end());
    if (!known.empty()) return fmt::format("'{}' is no command{}", first_word, suggest_name(first_word, views));
  }
  constexpr std::string_view kConversion = "Could not convert: ";
  if (text.starts_with(kConversion)) {
    const std::size_t equals = text.find(" = ");
    return fmt::format("{}: '{}' is not a number of the kind it takes",
                       text.substr(kConversion.size(), equals - kConversion.size()), text.substr(equals + 3));
  }
  return text;
}

}  // namespace

int usage_fault(const CLI::App& app, const CLI::ParseError& error, std::string_view first_word) {
  std::cerr << app.get_name() << ": command line: " << words_of(app, error, first_word) << ": see '" << reached(app)
            << " --help'\n";
  return kExitBadInput;
}

}  // namespace kvscope::apps
