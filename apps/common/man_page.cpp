#include "apps/common/man_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace kvscope::apps {
namespace {

constexpr std::array<std::string_view, 3> kPrograms = {"kvscope", "kvscope-viewer", "gpu-check"};

// Text as roff takes it: a backslash and a minus are escaped, and a line that begins with a dot or an apostrophe, which
// would be a request, is preceded by a character of no width.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '^') {
      out += "\\(ha";
    } else if (c == '~') {
      out += "\\(ti";
    } else {
      out += c;
    }
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

std::string bold(std::string_view text) {
  return "\\fB" + escaped(text) + "\\fR";
}

// Lines that keep their breaks and their columns.
std::string as_typed(const std::vector<std::string>& lines) {
  std::string out = ".PP\n.nf\n";
  for (const std::string& line : lines) out += escaped(line) + '\n';
  return out + ".fi\n";
}

std::string option_part(const OptionWords& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(bold(name));
  std::string out = fmt::format(".TP\n{}", fmt::join(names, ", "));
  if (!option.value.empty()) out += " \\fI" + escaped(option.value) + "\\fR";
  out += '\n' + escaped(option.description) + '\n';
  if (!option.notes.empty()) out += escaped(option.notes) + '\n';
  return out;
}

std::string options_part(const CommandWords& words) {
  std::string out;
  for (const std::string& group : option_groups(words)) {
    if (group != "Positionals" && group != "Options") out += ".PP\n" + escaped(group) + ":\n";
    for (const OptionWords& option : words.options) {
      if (option.group == group) out += option_part(option);
    }
  }
  return out;
}

std::string section_part(const HelpSection& section) {
  std::string out = ".PP\n" + escaped(section.title) + ":\n";
  if (!section.text.empty()) out += escaped(section.text) + '\n';
  return section.lines.empty() ? out : out + as_typed(section.lines);
}

// The usage behind the name of the program: "trace show [OPTIONS] FILE".
std::string command_part(const CommandWords& command) {
  std::string out = fmt::format(".SS {}\n{}.\n.PP\n{}\n", escaped(fmt::format("{}", fmt::join(command.path, " "))),
                                escaped(command.description), bold(command.usage));
  out += options_part(command);
  for (const HelpSection& section : command.sections) {
    if (section.title != "Exit codes") out += section_part(section);
  }
  return out;
}

// NAME takes a phrase: "kvscope \- shows and checks ..." without the closing dot.
std::string phrase(std::string text) {
  if (text.ends_with('.')) text.pop_back();
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

std::string man_page(std::string_view program, const CommandWords& words) {
  std::string out = fmt::format(".TH {0} 1 \"\" \"{1} {2}\" \"User Commands\"\n", escaped(upper(program)),
                                escaped(program), KVSCOPE_VERSION);
  out += fmt::format(".SH NAME\n{} \\- {}\n", escaped(program), escaped(phrase(words.description)));
  out += fmt::format(".SH SYNOPSIS\n{}\n", bold(words.usage));
  out += fmt::format(".SH DESCRIPTION\n{}\n", escaped(words.description));
  out += ".SH OPTIONS\n" + options_part(words);
  if (!words.subcommands.empty()) out += ".SH COMMANDS\n";
  for (const CommandWords* command : flattened(words)) {
    if (command != &words) out += command_part(*command);
  }
  std::string exit_status;
  for (const HelpSection& section : words.sections) {
    if (section.title == "Exit codes") {
      exit_status = ".SH EXIT STATUS\n" + escaped(section.text) + '\n';
    } else {
      out += fmt::format(".SH {}\n", escaped(upper(section.title)));
      if (!section.text.empty()) out += escaped(section.text) + '\n';
      if (!section.lines.empty()) out += as_typed(section.lines);
    }
  }
  out += exit_status + ".SH SEE ALSO\n";
  std::string others;
  for (const std::string_view other : kPrograms) {
    if (other != program) others += fmt::format("{}{} (1)", others.empty() ? ".BR " : ",\n.BR ", escaped(other));
  }
  return out + others + "\n";
}

}  // namespace kvscope::apps
