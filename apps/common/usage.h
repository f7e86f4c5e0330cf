// What a person sees who mistyped the command line: the parser's words, made to name the value and what it should be,
// and the --help that answers.
//   kvscope: command line: 'explian' is not a command: did you mean "explain"?: see 'kvscope --help'
#pragma once

#include <string_view>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace kvscope::apps {

// Prints one line to standard error and returns kExitBadInput. `first_word` is what follows the program's name.
int usage_fault(const CLI::App& app, const CLI::ParseError& error, std::string_view first_word);

}  // namespace kvscope::apps
