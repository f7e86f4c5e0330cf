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

// The deepest command that was parsed, to whose --help the message refers, and its full name.
struct Reached {
  const CLI::App* command;
  std::string name;
};

Reached reached(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  if (parsed.empty()) return {&app, app.get_name()};
  const Reached deeper = reached(*parsed.front());
  return {deeper.command, app.get_name() + " " + deeper.name};
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); })) {
    names.push_back(command->get_name());
  }
  return names;
}

// The word in the place of a command; empty if there is none, or if it is an option.
std::string chosen_word(const CLI::App& app, const CLI::App& command, std::string_view first_word) {
  const std::vector<std::string> left = &command == &app ? std::vector{std::string(first_word)} : command.remaining();
  return left.empty() || left.front().starts_with('-') ? std::string() : left.front();
}

// The parser's message, reworded to name the value and what is allowed.
std::string words_of(const CLI::App& app, const Reached& at, const CLI::ParseError& error,
                     std::string_view first_word) {
  const std::string text = error.what();
  const std::vector<std::string> known = commands_of(*at.command);
  const std::string word = chosen_word(app, *at.command, first_word);
  if (!known.empty() && !word.empty()) {
    const std::vector<std::string_view> views(known.begin(), known.end());
    const std::string of = at.command == &app ? "" : fmt::format(" of '{}'", at.name);
    return fmt::format("'{}' is not a command{}{}", word, of, suggest_name(word, views));
  }
  constexpr std::string_view kConversion = "Could not convert: ";
  if (text.starts_with(kConversion)) {
    const std::size_t equals = text.find(" = ");
    const std::string option = text.substr(kConversion.size(), equals - kConversion.size());
    const std::string value = text.substr(equals + 3);
    if (exceeded_range) {
      return fmt::format("{}: {} is outside [{}, {}]", option, value, exceeded_range->least, exceeded_range->most);
    }
    return fmt::format("{}: '{}' is not a valid number", option, value);
  }
  return text;
}

}  // namespace

int usage_fault(const CLI::App& app, const CLI::ParseError& error, std::string_view first_word) {
  const Reached at = reached(app);
  const std::string words = words_of(app, at, error, first_word);
  std::cerr << app.get_name() << ": command line: " << words << (words.ends_with('?') ? " See '" : ": see '") << at.name
            << " --help'\n";
  return kExitBadInput;
}

}  // namespace kvscope::apps
