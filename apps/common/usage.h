// The message for a mistyped command line: names the value, what is allowed, and the --help page to read.
//   kvscope: command line: 'explian' is not a command: did you mean "explain"? See 'kvscope --help'
#pragma once

#include <string_view>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace kvscope::apps {

// Parses the command line, and rejects an empty value of any option or positional, which the parser reads as the number
// 0 or as an option that was not given: "--step $N" of a script whose N is not set. Throws CLI::Error.
void parse_words(CLI::App& app, int argc, char** argv);

// Prints one line to standard error and returns kExitBadInput; for a command of commands with nothing behind it, its
// help page instead of the line. `first_word` is the first argument of the program.
int usage_fault(const CLI::App& app, const CLI::ParseError& error, std::string_view first_word);

}  // namespace kvscope::apps
