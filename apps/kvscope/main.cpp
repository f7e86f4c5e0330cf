// kvscope, the command line: registers the commands, parses, runs the one that was chosen.
// Exit codes: 0 fine, 1 the check failed, 2 bad input or usage.
#include <fmt/format.h>

#include <iostream>
#include <string_view>
#include <vector>

#include "apps/kvscope/cli.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/faults.h"
#include "apps/kvscope/signals.h"
#include "core/scenario/nearest_name.h"

namespace {

using namespace kvscope::apps;

void add_commands(CLI::App& app, Action& chosen) {
  add_run(app, chosen);
  add_explain(app, chosen);
  add_golden(app, chosen);
  add_verify(app, chosen);
  add_merge(app, chosen);
  add_trace(app, chosen);
  add_scenario(app, chosen);
  add_layout(app, chosen);
  add_dtype(app, chosen);
  add_completion(app, chosen);
}

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
    return fmt::format("'{}' is no command{}", first_word, kvscope::suggest_name(first_word, views));
  }
  constexpr std::string_view kConversion = "Could not convert: ";
  if (text.starts_with(kConversion)) {
    const std::size_t equals = text.find(" = ");
    return fmt::format("{}: '{}' is not a number of the kind it takes",
                       text.substr(kConversion.size(), equals - kConversion.size()), text.substr(equals + 3));
  }
  return text;
}

int usage_fault(const CLI::App& app, const CLI::ParseError& error, std::string_view first_word) {
  std::cerr << "kvscope: command line: " << words_of(app, error, first_word) << ": see '" << reached(app)
            << " --help'\n";
  return kExitBadInput;
}

}  // namespace

int main(int argc, char** argv) {
  clean_up_on_signals();
  CLI::App app{
      "Shows and checks how a paged KV cache maps tokens to pages, rows and bytes, and what attention over it must "
      "give.",
      "kvscope"};
  app.set_version_flag("--version", "kvscope " KVSCOPE_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  app.footer("Exit codes: 0 fine, 1 the check failed, 2 bad input or usage.");

  try {
    Action chosen;
    add_commands(app, chosen);
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& asked) {  // --help and --version
      return app.exit(asked);
    } catch (const CLI::ParseError& error) {
      return usage_fault(app, error, argc > 1 ? argv[1] : "");
    }
    const int code = chosen();
    if (!std::cout.flush()) {
      std::cerr << "kvscope: standard output could not be written: is the disk full?\n";
      return kExitBadInput;
    }
    return code;
  } catch (const std::exception& error) {
    return print_faults(error);
  }
}
