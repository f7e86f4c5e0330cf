// A program's commands and options as plain data, read from the parser. The help pages, the man pages and the
// completion scripts are all rendered from it, so they cannot disagree.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace kvscope::apps {

struct OptionWords {
  std::vector<std::string> names;    // "-h", "--help"; a positional has one name without dashes: "SCENARIO"
  std::string value;                 // placeholder: "FILE", "N", "{k,v}"; empty for a flag and for a positional
  std::vector<std::string> choices;  // the closed list of values, when there is one
  std::string description;           // as registered
  std::string notes;                 // "[default: k]", "[required]"; empty when there is nothing to add
  std::string group;                 // heading of the help page: "Options", "Positionals"
  bool positional = false;
  bool required = false;
  bool many = false;  // a positional that takes several words
};

// A titled part of a help page: "Examples" with one command a line, or "Exit codes" with its text in the first line.
struct HelpSection {
  std::string title;
  std::string text;                // behind the colon, in the title's own line
  std::vector<std::string> lines;  // below it, printed as they are
};

struct CommandWords {
  std::vector<std::string> path;  // {"trace", "show"}; empty for the program itself
  std::string group;              // heading in the help page of its parent: "Subcommands"
  std::string description;
  std::string usage;  // "kvscope trace show [OPTIONS] FILE"
  std::vector<CommandWords> subcommands;
  std::vector<OptionWords> options;  // in the order of registration, without hidden ones
  std::vector<HelpSection> sections;
};

// The words of `app` and of every command below it. Options and commands of an empty group are hidden, and left out.
[[nodiscard]] CommandWords command_words(const CLI::App& app);

// The groups of a command's options in the order of the help page: "Positionals", "Options", "Options of --render".
[[nodiscard]] std::vector<std::string> option_groups(const CommandWords& command);

// The groups of a command's subcommands, in the order of the help page.
[[nodiscard]] std::vector<std::string> subcommand_groups(const CommandWords& command);

// The program and all its commands, each before its subcommands: kvscope, run, ..., trace, trace show, trace diff, ...
[[nodiscard]] std::vector<const CommandWords*> flattened(const CommandWords& program);

// What is printed in front of an option's description: "-h, --help", "--kv {k,v}", "SCENARIO".
[[nodiscard]] std::string heading(const OptionWords& option);

}  // namespace kvscope::apps
