// A completion script for bash, zsh or fish, made from the commands and options that are registered, so that it cannot
// fall behind them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace kvscope::apps {

[[nodiscard]] std::vector<std::string> completion_shells();  // "bash", "zsh", "fish"

// Completes the program that `app` is named after. Precondition (caller): `shell` is one of completion_shells().
[[nodiscard]] std::string completion_script(const CLI::App& app, std::string_view shell);

}  // namespace kvscope::apps
