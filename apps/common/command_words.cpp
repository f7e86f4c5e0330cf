#include "apps/common/command_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "apps/common/cli.h"

namespace kvscope::apps {
namespace {

constexpr std::size_t kWidestChoices = 40;  // longer lists of values go into the description

// CLI11 writes a type and its checks as "TEXT:{off,steps,full}" or "INT:INT in [1 - 100]".
struct TypeWords {
  std::string name;                  // "TEXT"
  std::vector<std::string> choices;  // {"off", "steps", "full"}
  std::string range;                 // "1 to 100"
};

TypeWords type_words(const std::string& type) {
  const bool ranged = type.find(" in [") != std::string::npos;
  TypeWords words{type.substr(0, type.find(ranged ? ":" : ":{")), {}, ""};
  if (const auto open = type.find('{'), close = type.find('}'); open != std::string::npos && close > open) {
    words.choices = CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
  }
  if (ranged) {
    const auto open = type.find(" in [") + 5;
    words.range = type.substr(open, type.find(']', open) - open);
    if (const auto dash = words.range.find(" - "); dash != std::string::npos) words.range.replace(dash, 3, " to ");
  }
  return words;
}

// The parser's names of types, as a reader would write a value.
std::string placeholder(const std::string& type) {
  if (type == "INT" || type == "UINT") return "N";
  if (type == "FLOAT") return "X";
  if (type == "BOOLEAN") return "{true,false}";
  return type;
}

std::string joined_names(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ", "));
}

OptionWords option_words(const CLI::Option& option) {
  OptionWords words;
  words.positional = option.get_positional();
  words.required = option.get_required();
  words.many = option.get_items_expected_max() > 1;
  words.group = words.positional ? "Positionals" : option.get_group();
  words.description = option.get_description();
  for (const std::string& name : option.get_snames()) words.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) words.names.push_back("--" + name);
  if (words.positional) words.names = {option.get_name(true, false)};

  const TypeWords type = type_words(option.get_type_name());
  words.choices = type.choices;
  std::vector<std::string> notes;
  const std::string choices = fmt::format("{}", fmt::join(type.choices, ","));
  const bool listed = !type.choices.empty() && (words.positional || choices.size() > kWidestChoices);
  if (!words.positional && option.get_items_expected_max() > 0) {
    words.value = type.choices.empty() || listed ? placeholder(type.name) : "{" + choices + "}";
  }
  if (listed) notes.push_back(fmt::format("[values: {}]", fmt::join(type.choices, ", ")));
  if (!type.range.empty()) notes.push_back("[range: " + type.range + "]");
  if (!option.get_default_str().empty()) notes.push_back("[default: " + option.get_default_str() + "]");
  if (words.required && !words.positional) notes.emplace_back("[required]");
  // A group such as "Options of --trace" says already what its options need.
  if (!option.get_needs().empty() && !words.group.ends_with(joined_names(option.get_needs())))
    notes.push_back("[only with " + joined_names(option.get_needs()) + "]");
  if (!option.get_excludes().empty()) notes.push_back("[not with " + joined_names(option.get_excludes()) + "]");
  words.notes = fmt::format("{}", fmt::join(notes, " "));
  return words;
}

std::string usage_of(const CLI::App& app, const CommandWords& words, const std::string& name) {
  std::string usage = name + " [OPTIONS]";
  for (const OptionWords& option : words.options) {
    if (!option.positional && option.required) usage += fmt::format(" {} {}", option.names.back(), option.value);
  }
  for (const OptionWords& option : words.options) {
    if (!option.positional) continue;
    const std::string word = option.names.front() + (option.many ? "..." : "");
    usage += option.required ? " " + word : " [" + word + "]";
  }
  if (words.subcommands.empty()) return usage;
  return usage + (app.get_require_subcommand_min() > 0 ? " SUBCOMMAND" : " [SUBCOMMAND]");
}

// Sections are paragraphs of the footer. A paragraph begins with "Title:", and its text follows in that line or below.
std::vector<HelpSection> sections_of(const std::string& footer) {
  std::vector<HelpSection> sections;
  std::istringstream lines(footer);
  bool first = true;
  for (std::string line; std::getline(lines, line); first = line.empty()) {
    if (line.empty()) continue;
    const std::size_t colon = line.find(':');
    if (first && colon != std::string::npos) {
      sections.push_back({line.substr(0, colon), colon + 2 < line.size() ? line.substr(colon + 2) : "", {}});
    } else if (!sections.empty()) {
      sections.back().lines.push_back(line);
    }
  }
  return sections;
}

CommandWords words_below(const CLI::App& app, std::vector<std::string> path, const std::string& name) {
  CommandWords words;
  words.path = std::move(path);
  words.group = app.get_group();
  words.description = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) words.options.push_back(option_words(*option));
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); })) {
    std::vector<std::string> below = words.path;
    below.push_back(sub->get_name());
    words.subcommands.push_back(words_below(*sub, std::move(below), name + " " + sub->get_name()));
  }
  words.usage = usage_of(app, words, name);
  words.sections = sections_of(app.get_footer());
  return words;
}

// The groups of options or commands, in the order of their first members.
template <typename Words>
std::vector<std::string> groups_of(const std::vector<Words>& all) {
  std::vector<std::string> groups;
  for (const Words& each : all) {
    if (std::ranges::find(groups, each.group) == groups.end()) groups.push_back(each.group);
  }
  return groups;
}

void flatten(const CommandWords& command, std::vector<const CommandWords*>& all) {
  all.push_back(&command);
  for (const CommandWords& sub : command.subcommands) flatten(sub, all);
}

}  // namespace

CommandWords command_words(const CLI::App& app) {
  std::string name = app.get_name();
  std::vector<std::string> path;
  for (const CLI::App* parent = app.get_parent(); parent != nullptr; parent = parent->get_parent()) {
    name = parent->get_name() + " " + name;
  }
  if (app.get_parent() != nullptr) path = CLI::detail::split(name.substr(name.find(' ') + 1), ' ');
  return words_below(app, std::move(path), name);
}

std::vector<std::string> option_groups(const CommandWords& command) {
  std::vector<std::string> groups = groups_of(command.options);
  // std::ranges::stable_partition of libstdc++ 12 does not compile with clang 14.
  std::stable_partition(groups.begin(), groups.end(), [](const std::string& group) { return group == "Positionals"; });
  return groups;
}

std::vector<std::string> subcommand_groups(const CommandWords& command) {
  return groups_of(command.subcommands);
}

std::vector<const CommandWords*> flattened(const CommandWords& program) {
  std::vector<const CommandWords*> all;
  flatten(program, all);
  return all;
}

std::string heading(const OptionWords& option) {
  const std::string names = fmt::format("{}", fmt::join(option.names, ", "));
  return option.value.empty() ? names : names + " " + option.value;
}

}  // namespace kvscope::apps
