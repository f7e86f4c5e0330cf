#include "apps/common/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "core/base/nearest_name.h"

namespace kvscope::apps {
namespace {

// The command at fault, to whose --help the message refers, and its full name: the first one that left words over, else
// the deepest one.
struct Reached {
  const CLI::App* command;
  std::string name;
};

Reached reached(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  if (parsed.empty() || !app.remaining().empty()) return {&app, app.get_name()};
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

// A command of commands without one, such as `kvscope` and `kvscope trace --json`.
bool lacks_command(const CLI::ParseError& error) {
  return std::string_view(error.what()) == "A subcommand is required";
}

// "a", "a or b", "a, b or c".
std::string either(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

// The options of a command that a mistyped one may stand for: the closest in spelling, else those that contain its
// word. Example: --inptu is close to --input; --dtype is contained in --cache-dtype and --query-dtype.
std::vector<std::string> similar_options(const CLI::App& command, const std::string& typed) {
  constexpr std::size_t kMostOffered = 4;
  constexpr std::size_t kShortestPart = 4;  // "in" is part of many names
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  if (const std::string_view near = nearest_name(typed, views); !near.empty()) return {std::string(near)};
  const std::string part = typed.substr(std::min(typed.find_first_not_of('-'), typed.size()));
  if (part.size() < kShortestPart) return {};
  std::erase_if(names, [&](const std::string& name) { return name.find(part) == std::string::npos; });
  if (names.size() > kMostOffered) names.clear();
  return names;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word.starts_with('-') && word != "--";
}

// Words that the command does not take. If one of them is an option, the words behind it may be its values, so only
// the option is reported.
std::string unexpected_words(const Reached& at) {
  std::vector<std::string> left = at.command->remaining();
  std::erase(left, "--");
  const auto option = std::ranges::find_if(left, is_option);
  if (option == left.end()) return fmt::format("'{}' takes no further argument '{}'", at.name, left.front());
  const std::string typed = option->substr(0, option->find('='));
  const std::vector<std::string> similar = similar_options(*at.command, typed);
  const std::string offer = similar.empty() ? "" : fmt::format(": did you mean {}?", either(similar));
  return fmt::format("'{}' is not an option of '{}'{}", typed, at.name, offer);
}

// What frameworks and engines call some values of options.
std::string_view kvscope_word(std::string_view word) {
  struct OtherWord {
    std::string_view word, ours;
  };
  constexpr OtherWord kOther[] = {{"bfloat16", "bf16"},
                                  {"float16", "f16"},
                                  {"half", "f16"},
                                  {"fp16", "f16"},
                                  {"float32", "f32"},
                                  {"float", "f32"},
                                  {"fp32", "f32"},
                                  {"float64", "f64"},
                                  {"double", "f64"},
                                  {"fp64", "f64"},
                                  {"fp8", "e4m3"},
                                  {"fp8_e4m3", "e4m3"},
                                  {"fp8e4m3", "e4m3"},
                                  {"e4m3fn", "e4m3"},
                                  {"float8_e4m3fn", "e4m3"},
                                  {"fp8_e5m2", "e5m2"},
                                  {"fp8e5m2", "e5m2"},
                                  {"float8_e5m2", "e5m2"},
                                  {"int8", "i8"},
                                  {"float8_e4m3fnuz", "e4m3fnuz"},
                                  {"fp8_e4m3fnuz", "e4m3fnuz"},
                                  {"fp4", "e2m1"},
                                  {"nvfp4", "e2m1"},
                                  {"float4_e2m1", "e2m1"},
                                  {"e", "natural"},
                                  {"ln", "natural"},
                                  {"2", "two"},
                                  {"log2", "two"}};
  for (const OtherWord& other : kOther) {
    if (other.word == word) return other.ours;
  }
  return {};
}

// "--layout: vlm not in {max,nhd}" of a closed list of values.
std::string not_a_value(std::string_view text) {
  constexpr std::string_view kNotIn = " not in {";
  const std::size_t colon = text.find(": ");
  const std::size_t list = text.rfind(kNotIn);
  const std::string_view option = text.substr(0, colon);
  const std::string_view value = text.substr(colon + 2, list - colon - 2);
  const std::string names(text.substr(list + kNotIn.size(), text.size() - list - kNotIn.size() - 1));
  const std::vector<std::string> known = CLI::detail::split(names, ',');
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string_view ours = kvscope_word(value);
  const std::string offer = !ours.empty() && std::ranges::count(views, ours) > 0
                                ? fmt::format(": did you mean \"{}\"?", ours)
                                : suggest_name(value, views);
  return fmt::format("{}: '{}' is not a valid value{}", option, value, offer);
}

// "0.100000 to 1.000000" -> "0.1 to 1": the parser writes real numbers with six decimals; a typed 2.0000005 keeps its
// digits.
std::string without_zeros(std::string words) {
  constexpr std::size_t kDecimals = 6;
  for (std::size_t point = words.find('.'); point != std::string::npos; point = words.find('.', point + 1)) {
    const std::size_t end = std::min(words.find_first_not_of("0123456789", point + 1), words.size());
    if (end - point != kDecimals + 1) continue;
    const std::size_t last = words.find_last_not_of('0', end - 1);
    words.erase(last == point ? point : last + 1, end - (last == point ? point : last + 1));
  }
  return words;
}

// The parser's message, reworded to name the value and what is allowed.
std::string words_of(const CLI::App& app, const Reached& at, const CLI::ParseError& error,
                     std::string_view first_word) {
  const std::string text = error.what();
  const std::vector<std::string> known = commands_of(*at.command);
  const std::string of = at.command == &app ? "" : fmt::format(" of '{}'", at.name);
  if (!known.empty() && at.command->get_subcommands().empty()) {
    const std::vector<std::string_view> views(known.begin(), known.end());
    const std::string word = chosen_word(app, *at.command, first_word);
    if (!word.empty()) return fmt::format("'{}' is not a command{}{}", word, of, suggest_name(word, views));
    if (lacks_command(error)) {
      return fmt::format("a command{} is missing: choose one of {}", of, fmt::join(known, ", "));
    }
  }
  // A mistyped name of a required option leaves both faults; the typing error is the cause.
  const bool is_mistyped = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
                           std::ranges::any_of(at.command->remaining(), is_option);
  if (is_mistyped || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return unexpected_words(at);
  // First the messages that quote a value before their own words: a value may contain the words of the others.
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
  if (text.find(" not in {") != std::string::npos && text.ends_with('}')) return not_a_value(text);
  // "--tile-keys: Value 0 not in range 1 to 1024": also of a value that is no number, and with six decimals
  constexpr std::string_view kValue = ": Value ", kOutside = " not in range ";
  const std::size_t value = text.find(kValue), outside = text.rfind(kOutside);
  if (value != std::string::npos && outside != std::string::npos) {
    std::string words = text;
    words.replace(outside, kOutside.size(), " is not a number from ");
    return without_zeros(words.replace(value, kValue.size(), ": "));
  }
  return text;
}

void reject_empty_values(CLI::App& app) {
  const CLI::Validator written(
      [](const std::string& value) {
        return value.empty() ? std::string("the value is empty: write one, or leave it out") : std::string();
      },
      std::string(), std::string());
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_items_expected_max() > 0) option->transform(written);  // before the other checks
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) reject_empty_values(*command);
}

}  // namespace

void parse_words(CLI::App& app, int argc, char** argv) {
  reject_empty_values(app);
  app.parse(argc, argv);
}

int usage_fault(const CLI::App& app, const CLI::ParseError& error, std::string_view first_word) {
  const Reached at = reached(app);
  if (lacks_command(error) && at.command->remaining().empty() && (at.command != &app || first_word.empty())) {
    std::cerr << at.command->help();
    return kExitBadInput;
  }
  const std::string words = words_of(app, at, error, first_word);
  std::cerr << app.get_name() << ": command line: " << words << (words.ends_with('?') ? " See '" : ": see '") << at.name
            << " --help'\n";
  return kExitBadInput;
}

}  // namespace kvscope::apps
