#include "apps/common/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "apps/common/command_words.h"

namespace kvscope::apps {
namespace {

std::vector<std::string> names_of(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  for (const CommandWords& c : commands) names.push_back(c.path.back());
  return names;
}

// One `case` branch per command, for both bash and zsh: $reached holds the commands given so far, $previous the word
// before the cursor. Sets $flags (offered once a dash is typed), $plain (offered before it) and $values (the values of
// $previous).
std::string shell_cases(const std::vector<const CommandWords*>& commands) {
  std::string out = "  case \"$reached\" in\n";
  for (const CommandWords* command : commands) {
    const CommandWords& c = *command;
    std::vector<std::string> flags;
    std::vector<std::string> plain = names_of(c.subcommands);
    std::string values;
    for (const OptionWords& o : c.options) {
      if (o.positional) {
        plain.insert(plain.end(), o.choices.begin(), o.choices.end());
        continue;
      }
      flags.insert(flags.end(), o.names.begin(), o.names.end());
      if (!o.choices.empty()) {
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

// The shell patterns of the words that select a command: "trace"|"trace show". A program without commands gets "",
// which matches no word.
std::string deeper(const std::vector<const CommandWords*>& commands) {
  std::vector<std::string> paths;
  for (const CommandWords* c : commands) {
    if (!c->path.empty()) paths.push_back(fmt::format("\"{}\"", fmt::join(c->path, " ")));
  }
  return paths.empty() ? "\"\"" : fmt::format("{}", fmt::join(paths, "|"));
}

// A name that is legal for a shell function: _kvscope_viewer.
std::string function_name(const std::string& program) {
  std::string name = "_" + program;
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string bash_script(const std::string& program, const std::vector<const CommandWords*>& commands) {
  return fmt::format(R"({function}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local reached="" next i flags="" plain="" values=""
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next="${{reached:+$reached }}${{COMP_WORDS[i]}}"
    case "$next" in
      {deeper}) reached=$next ;;
    esac
  done
{cases}  if [[ -n $values ]]; then plain=$values; elif [[ $current == -* ]]; then plain=$flags; fi
  COMPREPLY=($(compgen -W "$plain" -- "$current"))
}}
complete -o default -F {function} {program}
)",
                     fmt::arg("function", function_name(program)), fmt::arg("program", program),
                     fmt::arg("deeper", deeper(commands)), fmt::arg("cases", shell_cases(commands)));
}

std::string zsh_script(const std::string& program, const std::vector<const CommandWords*>& commands) {
  return fmt::format(R"(#compdef {program}
{function}() {{
  local current=${{words[CURRENT]}} previous=${{words[CURRENT - 1]}}
  local at="" reached="" next flags="" plain="" values=""
  for at in "${{(@)words[2, CURRENT - 1]}}"; do
    next="${{reached:+$reached }}$at"
    case "$next" in
      {deeper}) reached=$next ;;
    esac
  done
{cases}  if [[ -n $values ]]; then plain=$values; elif [[ $current == -* ]]; then plain=$flags; fi
  if [[ -n $plain ]]; then compadd -- ${{=plain}}; else _files; fi
}}
compdef {function} {program}
)",
                     fmt::arg("function", function_name(program)), fmt::arg("program", program),
                     fmt::arg("deeper", deeper(commands)), fmt::arg("cases", shell_cases(commands)));
}

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return out + "'";
}

std::string fish_script(const std::string& program, const std::vector<const CommandWords*>& commands) {
  std::string out = "# " + program + ": one line per word that may follow\n";
  for (const CommandWords* command : commands) {
    const CommandWords& c = *command;
    std::string when = !c.path.empty() ? "" : c.subcommands.empty() ? "true" : "__fish_use_subcommand";
    for (const std::string& word : c.path)
      when += (when.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
    for (const CommandWords& sub : c.subcommands) {
      out += fmt::format("complete -c {} -n '{}' -f -a {} -d {}\n", program, when, sub.path.back(),
                         fish_quoted(sub.description));
    }
    for (const OptionWords& o : c.options) {
      std::string line = fmt::format("complete -c {} -n '{}'", program, when);
      for (const std::string& name : o.positional ? std::vector<std::string>() : o.names)
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!o.choices.empty())
        line += fmt::format(" -x -a {}", fish_quoted(fmt::format("{}", fmt::join(o.choices, " "))));
      if (o.choices.empty() && !o.value.empty()) line += " -r";
      if (!o.positional || !o.choices.empty()) out += line + " -d " + fish_quoted(o.description) + '\n';
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> completion_shells() {
  return {"bash", "zsh", "fish"};
}

std::string completion_script(const CLI::App& app, std::string_view shell) {
  const CommandWords words = command_words(app);
  const std::vector<const CommandWords*> commands = flattened(words);
  const std::string& program = app.get_name();
  return shell == "bash"  ? bash_script(program, commands)
         : shell == "zsh" ? zsh_script(program, commands)
                          : fish_script(program, commands);
}

}  // namespace kvscope::apps
