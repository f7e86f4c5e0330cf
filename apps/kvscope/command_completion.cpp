// kvscope completion bash|zsh|fish: a completion script made from the commands that are registered, so that it cannot
// fall behind them. Put it to use with:  source <(kvscope completion bash)
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/kvscope/cli.h"
#include "apps/kvscope/commands.h"

namespace kvscope::apps {
namespace {

struct OptionWords {
  std::vector<std::string> names;    // "--json", "-h"; empty for a positional
  std::vector<std::string> choices;  // the closed list of values, when there is one
  std::string description;
  bool takes_value = false;
};

struct CommandWords {
  std::vector<std::string> path;  // {"trace", "show"}; empty for kvscope itself
  std::string description;
  std::vector<CommandWords> subcommands;
  std::vector<OptionWords> options;
};

// CLI11 prints a closed list of values as "TEXT:{off,steps,full}".
std::vector<std::string> choices_of(const std::string& type_name) {
  const auto open = type_name.find('{');
  const auto close = type_name.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type_name.substr(open + 1, close - open - 1), ',');
}

CommandWords words_of(const CLI::App& app, std::vector<std::string> path) {
  CommandWords words{std::move(path), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    OptionWords o;
    for (const std::string& name : option->get_lnames()) o.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) o.names.push_back("-" + name);
    o.choices = choices_of(option->get_type_name());
    o.description = option->get_description();
    o.takes_value = option->get_items_expected_max() > 0;
    words.options.push_back(std::move(o));
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    std::vector<std::string> below = words.path;
    below.push_back(sub->get_name());
    words.subcommands.push_back(words_of(*sub, std::move(below)));
  }
  return words;
}

std::vector<std::string> names_of(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  for (const CommandWords& c : commands) names.push_back(c.path.back());
  return names;
}

std::vector<CommandWords> flattened(const CommandWords& root) {
  std::vector<CommandWords> all{root};
  for (const CommandWords& sub : root.subcommands) {
    for (CommandWords& c : flattened(sub)) all.push_back(std::move(c));
  }
  return all;
}

// One `case` branch a command, for both bash and zsh: $reached is the commands given so far, $previous the word
// before the cursor. Sets $flags (offered once a dash is typed), $plain (offered before it) and $values (what
// $previous takes).
std::string shell_cases(const std::vector<CommandWords>& commands) {
  std::string out = "  case \"$reached\" in\n";
  for (const CommandWords& c : commands) {
    std::vector<std::string> flags;
    std::vector<std::string> plain = names_of(c.subcommands);
    std::string values;
    for (const OptionWords& o : c.options) {
      flags.insert(flags.end(), o.names.begin(), o.names.end());
      if (o.names.empty()) plain.insert(plain.end(), o.choices.begin(), o.choices.end());
      if (!o.names.empty() && !o.choices.empty()) {
        values += fmt::format("        {}) values=\"{}\" ;;\n", fmt::join(o.names, "|"), fmt::join(o.choices, " "));
      }
    }
    out += fmt::format("    \"{}\")\n      flags=\"{}\"\n      plain=\"{}\"\n", fmt::join(c.path, " "),
                       fmt::join(flags, " "), fmt::join(plain, " "));
    if (!values.empty()) out += "      case \"$previous\" in\n" + values + "      esac\n";
    out += "      ;;\n";
  }
  return out + "  esac\n";
}

// The patterns of the words that lead one command deeper: "trace"|"trace show".
std::string deeper(const std::vector<CommandWords>& commands) {
  std::vector<std::string> paths;
  for (const CommandWords& c : commands) {
    if (!c.path.empty()) paths.push_back(fmt::format("\"{}\"", fmt::join(c.path, " ")));
  }
  return fmt::format("{}", fmt::join(paths, "|"));
}

std::string bash_script(const std::vector<CommandWords>& commands) {
  return fmt::format(R"(_kvscope() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local reached="" next i flags="" plain="" values=""
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next="${{reached:+$reached }}${{COMP_WORDS[i]}}"
    case "$next" in
      {}) reached=$next ;;
    esac
  done
{}  if [[ -n $values ]]; then plain=$values; elif [[ $current == -* ]]; then plain=$flags; fi
  COMPREPLY=($(compgen -W "$plain" -- "$current"))
}}
complete -o default -F _kvscope kvscope
)",
                     deeper(commands), shell_cases(commands));
}

std::string zsh_script(const std::vector<CommandWords>& commands) {
  return fmt::format(R"(#compdef kvscope
_kvscope() {{
  local current=${{words[CURRENT]}} previous=${{words[CURRENT - 1]}}
  local at="" reached="" next flags="" plain="" values=""
  for at in "${{(@)words[2, CURRENT - 1]}}"; do
    next="${{reached:+$reached }}$at"
    case "$next" in
      {}) reached=$next ;;
    esac
  done
{}  if [[ -n $values ]]; then plain=$values; elif [[ $current == -* ]]; then plain=$flags; fi
  if [[ -n $plain ]]; then compadd -- ${{=plain}}; else _files; fi
}}
compdef _kvscope kvscope
)",
                     deeper(commands), shell_cases(commands));
}

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return out + "'";
}

std::string fish_script(const std::vector<CommandWords>& commands) {
  std::string out = "# kvscope: one line a word that may follow\n";
  for (const CommandWords& c : commands) {
    std::string when = c.path.empty() ? "__fish_use_subcommand" : "";
    for (const std::string& word : c.path)
      when += (when.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
    for (const CommandWords& sub : c.subcommands) {
      out += fmt::format("complete -c kvscope -n '{}' -f -a {} -d {}\n", when, sub.path.back(),
                         fish_quoted(sub.description));
    }
    for (const OptionWords& o : c.options) {
      std::string line = fmt::format("complete -c kvscope -n '{}'", when);
      for (const std::string& name : o.names)
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!o.choices.empty())
        line += fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(o.choices, " "))));
      if (o.choices.empty() && o.takes_value) line += " -r";
      if (!o.names.empty() || !o.choices.empty()) out += line + " -d " + fish_quoted(o.description) + '\n';
    }
  }
  return out;
}

}  // namespace

void add_completion(CLI::App& app, Action& chosen) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a completion script: source <(kvscope completion bash)");
  command->add_option("SHELL", *shell, "Shell to print it for")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh", "fish"}));
  command->callback([shell, &app, &chosen] {
    chosen = [shell, &app] {
      const std::vector<CommandWords> commands = flattened(words_of(app, {}));
      std::cout << (*shell == "bash"  ? bash_script(commands)
                    : *shell == "zsh" ? zsh_script(commands)
                                      : fish_script(commands));
      return 0;
    };
  });
}

}  // namespace kvscope::apps
