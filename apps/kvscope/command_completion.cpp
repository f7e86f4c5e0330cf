// kvscope completion bash|zsh|fish: prints a completion script. To enable it:  source <(kvscope completion bash)
#include <iostream>
#include <memory>
#include <string>

#include "apps/common/cli.h"
#include "apps/common/completion.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"

namespace kvscope::apps {

void add_completion(CLI::App& app, Action& chosen) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for bash, zsh or fish");
  command->add_option("SHELL", *shell, "Shell to print the script for")
      ->required()
      ->check(CLI::IsMember(completion_shells()));
  add_examples(*command, {"source <(kvscope completion bash)",
                          "kvscope completion fish > kvscope.fish    # in ~/.config/fish/completions"});
  command->callback([shell, &app, &chosen] {
    chosen = [shell, &app] {
      std::cout << completion_script(app, *shell);
      return 0;
    };
  });
}

}  // namespace kvscope::apps
