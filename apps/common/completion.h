// A completion script for bash, zsh or fish, generated from the registered commands and options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace kvscope::apps {

[[nodiscard]] std::vector<std::string> completion_shells();  // "bash", "zsh", "fish"

// The script for the program `app`. Precondition (caller): `shell` is one of completion_shells().
[[nodiscard]] std::string completion_script(const CLI::App& app, std::string_view shell);

}  // namespace kvscope::apps
