#include "apps/common/help_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "apps/common/cli.h"
#include "apps/common/command_words.h"
#include "apps/common/man_page.h"
#include "apps/common/memory_failure.h"
#include "apps/common/version.h"

namespace kvscope::apps {
namespace {

constexpr std::size_t kWidth = 100;  // [columns] of a page
constexpr std::size_t kColumn = 28;  // [columns] in front of a description
constexpr std::size_t kWhole = 32;   // [columns] notes up to this length are not broken
constexpr std::string_view kExitCodes = "Exit codes: ";

// The length of the first word. A short note such as "[default: constants]" counts as one word.
std::size_t word_length(std::string_view text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::size_t close = text.starts_with('[') ? text.find(']') : std::string_view::npos;
  return close < kWhole ? close + 1 : space;
}

// The text in lines that begin at `column` and end at kWidth. The first line is already at `column`.
std::string wrapped(std::string_view text, std::size_t column) {
  std::string out;
  std::size_t at = column;
  while (!text.empty()) {
    const std::size_t space = word_length(text);
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (at > column && at + 1 + word.size() > kWidth) {
      out += '\n' + std::string(column, ' ');
      at = column;
    } else if (at > column) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
  }
  return out + '\n';
}

// "  --kv {k,v}                Tensor to follow: K or V [default: k]"
std::string entry(const std::string& head, const std::string& text) {
  std::string line = "  " + head;
  if (text.empty()) return line + '\n';
  line += line.size() + 2 > kColumn ? '\n' + std::string(kColumn, ' ') : std::string(kColumn - line.size(), ' ');
  return line + wrapped(text, kColumn);
}

std::string options_text(const CommandWords& words) {
  std::string out;
  for (const std::string& group : option_groups(words)) {
    out += fmt::format("\n{}:\n", group);
    for (const OptionWords& option : words.options) {
      if (option.group != group) continue;
      out += entry(heading(option), option.description + (option.notes.empty() ? "" : " " + option.notes));
    }
  }
  return out;
}

class HelpPage : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    const CommandWords words = command_words(*app);
    std::string out = wrapped(words.description, 0) + "Usage: " + words.usage + '\n' + options_text(words);
    for (const std::string& group : subcommand_groups(words)) {
      out += fmt::format("\n{}:\n", group);
      for (const CommandWords& sub : words.subcommands) {
        if (sub.group == group) out += entry(sub.path.back(), sub.description);
      }
    }
    return out + '\n' + app->get_footer() + '\n';
  }
};

}  // namespace

void set_up_program(CLI::App& app, std::string_view exit_codes) {
  set_program_name(app.get_name());
  app.formatter(std::make_shared<HelpPage>());
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_version_flag("--version", version_text(app.get_name()), "Print the version and the commit, and exit");
  // The parser ends such an option like --version: it prints the text and exits with 0.
  app.add_flag_callback("--man", [&app] { throw CLI::CallForVersion(man_page(app.get_name(), command_words(app)), 0); })
      ->group("");
  app.footer(std::string(kExitCodes) + std::string(exit_codes));
}

void add_help_section(CLI::App& command, std::string_view title, const std::vector<std::string>& lines) {
  std::string section = fmt::format("{}:\n", title);
  for (const std::string& line : lines) section += fmt::format("  {}\n", line);
  std::string footer = command.get_footer();
  footer.insert(footer.find(kExitCodes), section + '\n');
  command.footer(std::move(footer));
}

void add_examples(CLI::App& command, std::initializer_list<std::string> lines) {
  add_help_section(command, "Examples", lines);
}

}  // namespace kvscope::apps
